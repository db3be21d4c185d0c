"""Settings from four places, and clear sentences for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import BUNDLED, Settings, engines_of, load
from gateway.domain.errors import StartupError
from gateway.engines.prompting.families import FAMILIES


def refusal(tmp_path: Path, toml: str = "", **environment: str) -> str:
    """What is said of settings that cannot be used."""
    file = tmp_path / "gateway.toml"
    file.write_text(toml)
    with pytest.raises(StartupError) as caught:
        load(file, environment)
    return caught.value.message


def test_without_anything_it_is_the_defaults() -> None:
    assert load() == Settings()
    assert load().engine.model == BUNDLED


def test_nested_settings_keep_their_defaults(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[limits]\ntext_chars = 10\n[engine.script]\nload_s = 1.5\n")
    settings = load(file)
    assert (settings.limits.text_chars, settings.limits.languages) == (10, 8)
    assert settings.engine.script.load_s == 1.5


def test_typing_error_is_corrected(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    assert refusal(tmp_path, "prot = 1") == f"{file}: there is no setting 'prot'; did you mean 'port'?"
    assert refusal(tmp_path, "[engine]\nmodle = 'x'").endswith("'engine.modle'; did you mean 'engine.model'?")
    assert refusal(tmp_path, "max_num_seqs = 4").endswith("did you mean 'engine.max_num_seqs'?")
    assert refusal(tmp_path, "[engin]").endswith("'engin'; did you mean 'engine'?")
    assert refusal(tmp_path, "[[engine.script.rules]]\nmatch = 'x'\nfail_afer = 1").endswith(
        "'engine.script.rules[0].fail_afer'; did you mean 'fail_after'?"
    )
    assert refusal(tmp_path, GATEWAY__ENGINE_MAX_NUM_SEQS="4") == (
        "GATEWAY__ENGINE_MAX_NUM_SEQS: there is no setting 'engine_max_num_seqs'; "
        "did you mean GATEWAY__ENGINE__MAX_NUM_SEQS?"
    )
    assert refusal(tmp_path, GATEWAY__COLOUR="red") == "GATEWAY__COLOUR: there is no setting 'colour'."


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("port = 'abc'", "port: 'abc' is not a whole number."),
        ("port = true", "port: True is not a whole number."),
        ("port = 1.5", "port: 1.5 is not a whole number."),
        ("drain_s = 'long'", "drain_s: 'long' is not a number."),
        ("host = 1", "host: 1 is not text."),
        ("log_level = 'loud'", "log_level: 'loud' is not one of debug, error, info, warning."),
        ("allowed_origins = 'x'", "allowed_origins: 'x' is not a list."),
        ("allowed_origins = [1]", "allowed_origins[0]: 1 is not text."),
        ("[engine]\nkind = 'magic'", "engine.kind: 'magic' is not one of remote, simulated, vllm."),
        ("[engine]\nenforce_eager = 'perhaps'", "engine.enforce_eager: 'perhaps' is neither true nor false."),
        ("[engine]\nmax_model_len = 'many'", "engine.max_model_len: 'many' is not a whole number."),
        ("[engine]\nextra = 1", "engine.extra: 1 is not a section."),
        ("engine = 'vllm'", "'engine' is a section, not a setting; one of its settings is 'engine.kind'."),
        ("[engine.script]\nrules = ['x']", "engine.script.rules[0]: 'x' is not a section."),
        ("[[engine.script.rules]]\nmatch = 1", "engine.script.rules[0].match: 1 is not text."),
        ("[[engine.script.rules]]\nrepeat = 1", "engine.script.rules[0]: 'match' is missing."),
        # Outside its range.
        ("port = 70000", "port: 70000 is not between 0 and 65535."),
        ("drain_s = nan", "drain_s: nan is not between 0 and 3600."),
        ("[engine]\nmax_model_len = 63", "engine.max_model_len: 63 is below 64."),
        ("[engine]\nmax_num_batched_tokens = 0", "engine.max_num_batched_tokens: 0 is below 1."),
        ("[engine]\ndtype = 'int4'", "engine.dtype: 'int4' is not one of auto, bfloat16, float16, float32."),
        ("[engine]\nfamily = 'gpt'", f"engine.family: 'gpt' is not one of {', '.join(sorted(FAMILIES))}."),
        ("[engine.script]\nmax_running = 0", "engine.script.max_running: 0 is below 1."),
        ("[engine.script]\nload_s = -1", "engine.script.load_s: -1.0 is not between 0 and 86400."),
        ("[engine.script]\nfirst_token_s = inf", "engine.script.first_token_s: inf is not between 0 and 86400."),
        ("[engine.script]\ntoken_s = -0.1", "engine.script.token_s: -0.1 is not between 0 and 86400."),
        (
            "[[engine.script.rules]]\nmatch = 'x'\ntoken_s = -1",
            "engine.script.rules[0].token_s: -1.0 is not between 0 and 86400.",
        ),
        ("[limits]\nmessage_bytes = 1000", "limits.message_bytes: 1000 is not between 1024 and 1073741824."),
        ("[limits]\nlanguages = 0", "limits.languages: 0 is not between 1 and 1073741824."),
    ],
)
def test_value_that_cannot_be_used(tmp_path: Path, toml: str, says: str) -> None:
    assert refusal(tmp_path, toml) == f"{tmp_path / 'gateway.toml'}: {says}"


def test_a_wrong_value_names_the_variable_or_the_flag(tmp_path: Path) -> None:
    assert refusal(tmp_path, GATEWAY__PORT="abc") == "GATEWAY__PORT: 'abc' is not a whole number."
    assert refusal(tmp_path, "port = 1", GATEWAY__PORT="70000") == (
        "GATEWAY__PORT: 70000 is not between 0 and 65535."
    )
    assert refusal(tmp_path, GATEWAY__ENGINE="simulated") == (
        "GATEWAY__ENGINE: 'engine' is a section, not a setting; one of its settings is GATEWAY__ENGINE__KIND."
    )
    with pytest.raises(StartupError, match=r"^--max-model-len: 10 is below 64\.$"):
        load(overrides={"engine.max_model_len": 10})
    with pytest.raises(StartupError, match=r"^tls_cert is c\.pem, from --tls-cert: TLS needs tls_key as well\.$"):
        load(overrides={"tls_cert": "c.pem"})
    with pytest.raises(StartupError, match=r"^--engine: 'magic' is not one of remote, simulated, vllm\.$"):
        load(overrides={"engine.kind": "magic"})


def test_a_device_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    two = "[[engines]]\nname = 'a'\ndevice = ' 0'\n[[engines]]\nname = 'b'\ndevice = '{}'\n"
    file.write_text(two.format("cuda:0"))
    assert [lane.device for lane in load(file).engines] == ["0", "0"]
    assert load(overrides={"engine.device": "cuda:1, 2"}).engine.device == "1,2"
    said = refusal(tmp_path, two.format("3-1"))
    assert said == f"engines[1].device is '3-1', from {file}: 3-1 ends before it begins."
    with pytest.raises(StartupError, match=r"'gpu zero', from --device: it is not numbers of GPUs \(0, or 0,1\)"):
        load(overrides={"engine.device": "gpu zero"})


def test_only_values_in_force_have_to_work(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("port = 70000\n[engine]\ndtype = 'int4'\n")
    settings = load(file, {"GATEWAY__PORT": "1"}, {"engine.dtype": "float32"})
    assert (settings.port, settings.engine.dtype) == (1, "float32")


def test_every_prompt_family_may_be_chosen() -> None:
    for family in FAMILIES:
        assert load(overrides={"engine.family": family}).engine.family == family


def test_one_utterance_has_room_in_the_outbox(tmp_path: Path) -> None:
    least = 65_536 + 4 * 2_000 * 9
    assert load(overrides={"outbox_bytes": least}).outbox_bytes == least
    assert refusal(tmp_path, GATEWAY__OUTBOX_BYTES=str(least - 1)) == (
        f"outbox_bytes is {least - 1}, from GATEWAY__OUTBOX_BYTES: one utterance of limits.text_chars = 2000 "
        f"characters in limits.languages = 8 languages would close its session. It must be at least {least}."
    )
    # The limits are to blame as well as the bound; the sentence names all of them, with their values.
    assert refusal(tmp_path, "[limits]\ntext_chars = 100000").startswith(
        "outbox_bytes is 1048576, the default: one utterance of limits.text_chars = 100000 "
    )


def test_a_host_is_named_without_scheme_and_port(tmp_path: Path) -> None:
    for wrong in ("https://meet.example.com", "meet.example.com:8443", "übung.example", "*.", ""):
        with pytest.raises(StartupError, match="is not a host name like meet"):
            load(overrides={"allowed_hosts": [wrong]})
    load(overrides={"allowed_hosts": ["meet.example.com", "*.example.org", "*", "gateway_1"]})


def test_an_origin_is_written_as_browsers_send_it() -> None:
    for wrong in (
        *("meet.example.com", "https://meet.example.com/", "https://Meet.example.com", "https://a.example/page"),
        *("https://meet.example.com:443", "http://meet.example.com:80", "https://*.example.com", "https://", ""),
    ):
        with pytest.raises(StartupError, match="is not an origin as browsers send it"):
            load(overrides={"allowed_origins": [wrong]})
    right = [
        "https://meet.example.com",
        "http://localhost:3000",
        "http://[::1]:443",
        "capacitor://localhost",
        "null",
    ]
    assert load(overrides={"allowed_origins": [*right, "*"]}).allowed_origins == (*right, "*")


def test_jwks_over_https_or_loopback() -> None:
    for url in ("https://id.example/keys", "http://127.0.0.1:8080/keys", "http://localhost/keys"):
        assert load(overrides={"auth.jwks_url": url, "auth.jwks_issuer": "i"}).auth.jwks_url == url


def test_the_address_of_a_remote_engine_may_have_a_path() -> None:
    overrides = {"engine.kind": "remote", "engine.url": "https://gpu.example.com/llm", "engine.api_key": "k"}
    engine = load(overrides=overrides).engine
    assert (engine.url, engine.is_shared) == ("https://gpu.example.com/llm", True)


TWO = """
[[engines]]
name = "large"
model = "/models/large"
pairs = ["en-ja", "ja-en"]
device = "0"
max_num_seqs = 32

[[engines]]
name = "small"
kind = "simulated"
[engines.script]
max_running = 3
"""
HOOK = "[[webhooks]]\nname = 'a'\nsecret_file = 's'\n"
NO_ADDRESS = "webhooks[0].url is given, from {file}: it is not an address like https://example.com/webhooks."
REMOTE = "[engine]\nkind = 'remote'\nurl = '{url}'\n"
NO_SERVER = "from {file}: it is not an address like https://gpu.example.com:8000."
KEYS = "https://id.example/keys"
NO_TLS = "from {file}: it is not an https address; whoever can change the keys on their way could make tokens."
NO_FILE = "is empty, from {file}: name a file, or leave it out to have none."
BOTH = "from {file}: auth.jwks_url and auth.jwks_issuer go together."
OPEN = "auth.insecure_open is True, from {file}: with keys, nobody is let in without a token."


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("tls_cert = 'c.pem'", "tls_cert is c.pem, from {file}: TLS needs tls_key as well."),
        ("tls_key = 'k.pem'", "tls_key is k.pem, from {file}: TLS needs tls_cert as well."),
        ("tls_cert = ''\ntls_key = 'k.pem'", f"tls_cert {NO_FILE}"),
        ("tls_cert = 'c.pem'\ntls_key = ''", f"tls_key {NO_FILE}"),
        ("[event_log]\nhandover_file = ''", f"event_log.handover_file {NO_FILE}"),
        ("[auth]\naudit_file = ''", f"auth.audit_file {NO_FILE}"),
        (
            "max_waiting = 15",
            "max_waiting is 15, from {file}: one session may fill half of it, and an utterance in "
            "limits.languages = 8 languages must fit. It must be at least 16.",
        ),
        ("[store]\nurl = ' '", "store.url is empty, from {file}: leave it out to keep meetings in memory."),
        (
            "[store]\nurl = 'unix:///store'\n[event_log]\nhandover_file = 'handover'",
            "event_log.handover_file is handover, from {file}: leave it out, as the store keeps all of it.",
        ),
        (
            "admin_keys_file = 'a.json'",
            "admin_keys_file is a.json, from {file}: the administration needs admin_port.",
        ),
        # Who is let in.
        ("[auth]\njwks_url = 'http://id.example/keys'\njwks_issuer = 'i'", NO_TLS),
        ("[auth]\njwks_url = 'ftp://127.0.0.1/keys'\njwks_issuer = 'i'", NO_TLS),
        (f"[auth]\njwks_url = '{KEYS}'", f"auth.jwks_url is given, {BOTH}"),
        ("[auth]\njwks_issuer = 'i'", f"auth.jwks_issuer is given, {BOTH}"),
        ("[auth]\ninsecure_open = true\nkeys_file = 'k.json'", OPEN),
        (f"[auth]\ninsecure_open = true\njwks_url = '{KEYS}'\njwks_issuer = 'i'", OPEN),
        # A remote engine.
        (
            "[engine]\nkind = 'remote'",
            "engine.kind is remote, from {file}: engine.url is missing, the address of the vLLM server.",
        ),
        (
            "[engine]\nurl = 'http://gpu:8000'",
            "engine.url is given, from {file}: only an engine of kind `remote` has an address.",
        ),
        (REMOTE.format(url="gpu:8000"), NO_SERVER),
        (REMOTE.format(url="http://gpu:99999"), NO_SERVER),
        (REMOTE.format(url="http://gpu:port"), NO_SERVER),
        (REMOTE.format(url="http://gpu:8000?a=b"), NO_SERVER),
        (
            REMOTE.format(url="http://me:secret@gpu"),
            "engine.url is given, from {file}: leave user and password out of it, and name the file with the key "
            "in engine.api_key_file.",
        ),
        (
            f"{REMOTE.format(url='http://gpu')}api_key = 'a'\napi_key_file = 'b'",
            "engine.api_key_file is b, from {file}: engine.api_key is given as well; leave one of them out.",
        ),
        (
            "[engine]\nrestart_backoff_max_s = 0.5",
            "engine.restart_backoff_max_s is 0.5, from {file}: it must be at least engine.restart_backoff_s = "
            "1.0.",
        ),
        # Several engines.
        (
            f"[engine]\nmodel = 'x'\n{TWO}",
            "{file} has settings of the only engine, and there are several: put them into the [[engines]] that "
            "they are for.",
        ),
        ("[[engines]]\nmodel = 'x'", "{file}: engines[0]: 'name' is missing."),
        ("[[engines]]\nname = 'a'\nmodle = 'x'", "'engines[0].modle'; did you mean 'model'?"),
        (
            "[[engines]]\nname = 'a b'",
            "engines[0].name is 'a b', from {file}: a name has 1 to 32 letters, digits, _ and -.",
        ),
        (
            "[[engines]]\nname = 'a'\n[[engines]]\nname = 'a'",
            "engines[1].name is a, from {file}: another engine has this name.",
        ),
        (
            "[[engines]]\nname = 'a'\npairs = []",
            "engines[0].pairs is empty, from {file}: without a pair it is of no use.",
        ),
        (
            "[[engines]]\nname = 'a'\npairs = ['*', 'english']",
            "engines[0].pairs[1] is 'english', from {file}: 'english' is not a pair of languages like en-ja, "
            "*-de, en-* or *.",
        ),
        ("[[engines]]\nname = 'a'\nmax_num_seqs = 0", "engines[0].max_num_seqs: 0 is not between 1 and 4096."),
        (
            "[[engines]]\nname = 'a'\n[[engines]]\nname = 'b'\nrestart_backoff_max_s = 0.5",
            "engines[1].restart_backoff_max_s is 0.5, from {file}: it must be at least "
            "engines[1].restart_backoff_s = 1.0.",
        ),
        (
            "delta_interval_s = 2\n[[engines]]\nname = 'a'\nstall_s = 4",
            "delta_interval_s is 2.0, from {file}: it must be at most a quarter of engines[0].stall_s = 4.0.",
        ),
        # Webhooks; their addresses may be secrets.
        ("[[webhooks]]\nname = 'a'", "{file}: webhooks[0]: 'url' is missing."),
        (
            "[[webhooks]]\nname = 'a b'\nurl = 'https://e'\nsecret_file = 's'",
            "webhooks[0].name is 'a b', from {file}: a name has 1 to 32 letters, digits, _ and -.",
        ),
        (
            2 * f"{HOOK}url = 'https://e'\n",
            "webhooks[1].name is a, from {file}: another webhook has this name.",
        ),
        (
            f"{HOOK}url = 'https://e'\nevents = []",
            "webhooks[0].events is empty, from {file}: leave it out to send all of them.",
        ),
        (
            f"{HOOK}url = 'https://e'\nevents = ['meeting.stopped']",
            "'meeting.stopped' is not one of meeting.ended, meeting.started, transcript.ready.",
        ),
        (
            f"{HOOK}url = 'https://e'\ntenants = ['a,b']",
            "webhooks[0].tenants is 'a,b', from {file}: no tenant can have this name.",
        ),
        (f"{HOOK}url = 'ftp://e'", NO_ADDRESS),
        (f"{HOOK}url = 'https:///hook'", NO_ADDRESS),
        (f"{HOOK}url = 'https://e:99999'", NO_ADDRESS),
        (f"{HOOK}url = 'https://[e'", NO_ADDRESS),
        (f"{HOOK}url = 'https://e/#part'", NO_ADDRESS),
        (
            f"{HOOK}url = 'https://u:p@e'",
            "webhooks[0].url is given, from {file}: leave user and password out of it; a signature proves who "
            "sends.",
        ),
        (
            f"{HOOK}url = 'http://e'",
            "webhooks[0].url is given, from {file}: it is not an https address; what is sent could be read on its "
            "way. If that is meant, set webhooks[0].allow_http = true.",
        ),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, toml: str, says: str) -> None:
    assert refusal(tmp_path, toml).endswith(says.format(file=tmp_path / "gateway.toml"))


def test_settings_of_several_engines(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(TWO)
    settings = load(file)
    large, small = settings.engines
    assert engines_of(settings) == (large, small)
    assert (large.name, large.model, large.device, large.max_num_seqs) == ("large", "/models/large", "0", 32)
    assert (large.pairs, small.pairs) == (("en-ja", "ja-en"), ("*",))
    assert (small.kind, small.script.max_running, small.max_restarts) == ("simulated", 3, 5)
    assert engines_of(load()) == (load().engine,)


def test_flag_for_the_only_engine_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(TWO)
    with pytest.raises(StartupError, match=r"^--model has settings of the only engine, and there are several"):
        load(file, overrides={"engine.model": "x"})
    with pytest.raises(StartupError, match=r"^GATEWAY__ENGINE__MODEL has settings of the only engine"):
        load(file, {"GATEWAY__ENGINE__MODEL": "x"})


@pytest.mark.parametrize("more", ["url = 'http://127.0.0.1:9'", "url = 'http://e'\nallow_http = true"])
def test_webhook_without_tls_where_allowed(tmp_path: Path, more: str) -> None:
    (tmp_path / "gateway.toml").write_text(HOOK + more)
    [webhook] = load(tmp_path / "gateway.toml").webhooks
    assert webhook.url.startswith("http:")
