"""The tokenizer, the network and a training run of seconds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.generate import Kind, PairSource
from demo_model.layout import IDS, MARKER, SPECIAL_TOKENS, answer_limit, prompt_ids

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("torch")]


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    from demo_model.tokenizer import train_tokenizer

    return train_tokenizer(sets=400, vocabulary=3000)


def streamed(tokenizer: Any, ids: list[int]) -> str:
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(skip_special_tokens=True)
    return "".join(stream.step(tokenizer, id) or "" for id in ids)


@given(text=st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_comes_back(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert not set(ids) & set(IDS.values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "  two  spaces  ",
        "\n\ttabs\r\n",
        "👩‍💻🏳️‍🌈",
        "</s><s><en> is text",
        "<0xE3><0x81>",
        "▁Ġ",
        "İstanbul",
        "\x00",
    ],
)
def test_odd_texts_come_back_whole_and_streamed(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert streamed(tokenizer, ids) == text
    assert not set(ids) & set(IDS.values())


def test_generated_text_streams_without_broken_letters(tokenizer: Any) -> None:
    for pair in itertools.islice(PairSource(7), 500):
        ids = tokenizer.encode(pair.target, add_special_tokens=False).ids
        assert streamed(tokenizer, [*ids, IDS["</s>"]]) == pair.target


def test_a_name_has_the_same_tokens_in_every_language(tokenizer: Any) -> None:
    name = tokenizer.encode("Wojciech", add_special_tokens=False).tokens
    for text in ("I asked Wojciech.", "Wojciechさんに聞きました。", "我问了Wojciech。", "d'Wojciech"):
        tokens = tokenizer.encode(text, add_special_tokens=False).tokens
        assert any(tokens[at : at + len(name)] == name for at in range(len(tokens)))


def test_transformers_reads_the_tokenizer_and_takes_text_as_data(tokenizer: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from demo_model.tokenizer import save_tokenizer

    save_tokenizer(tokenizer, tmp_path)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "  hello </s> wörld 会議 "
    assert loaded.encode(text) == tokenizer.encode(text, add_special_tokens=False).ids
    assert loaded.decode(loaded.encode(text), skip_special_tokens=True) == text
    assert (loaded.bos_token_id, loaded.eos_token_id, loaded.pad_token_id) == (1, 2, 0)


def test_the_prompt_is_laid_out_as_documented() -> None:
    assert [SPECIAL_TOKENS[id] for id in prompt_ids("en", "ja", True, [])] == [
        "<s>",
        "<en>",
        "<ja>",
        "<final>",
        "<to>",
    ]
    assert prompt_ids("de", "zh", False, [99])[3:5] == [IDS["<partial>"], 99]
    assert answer_limit(10) == 52


def test_a_small_part_of_the_corpus_is_some_sentences_of_one_pair(tokenizer: Any) -> None:
    from demo_model.batches import Phrases, Recipe, batches
    from demo_model.generate import phrases

    some = {
        (str(pattern.templates["en"].parts[0]), str(pattern.templates["de"].parts[0])) for pattern in phrases(3)
    }
    seen: set[tuple[str, str]] = set()
    for batch in itertools.islice(batches(1, tokenizer, 256, Recipe(Phrases(("en", "de"), 3))), 40):
        for row in batch.tokens.tolist():
            assert row[1:3] == [IDS["<en>"], IDS["<de>"]]
            to, end = row.index(IDS["<to>"]), row.index(IDS["</s>"])
            if row[3] == IDS["<final>"]:
                seen.add((tokenizer.decode(row[4:to]), tokenizer.decode(row[to + 1 : end])))
    assert seen == some


def test_only_pairs_of_the_corpus_can_be_trained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from demo_model.train import parse

    assert parse([str(tmp_path), "--tiny", "--pair", "en-de"]).sets == 0
    with pytest.raises(SystemExit):
        parse([str(tmp_path), "--pair", "en-ko"])
    assert "--pair en-ko is none of " in capsys.readouterr().err


def test_batches_are_deterministic_and_predict_targets_alone(tokenizer: Any) -> None:
    from demo_model.batches import batches

    first, again = (list(itertools.islice(batches(5, tokenizer, 1024), 3)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert (one.tokens == other.tokens).all()
        flat = one.tokens.reshape(-1)
        predicted = flat[one.predicted + 1]
        assert IDS["<to>"] not in predicted
        assert (predicted == IDS["</s>"]).sum() == len(one.tokens)
        starts = flat[one.predicted] == IDS["<to>"]
        assert starts.sum() == len(one.tokens)


def small_model(vocabulary: int) -> Any:
    import torch

    from demo_model.model import TINY, Shape, TranslationModel

    torch.manual_seed(0)
    return TranslationModel(Shape(vocabulary=vocabulary, **TINY))


def test_the_network_is_the_llama_of_transformers(torch: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from demo_model.model import load, save

    names = save(small_model(300), tmp_path, shard_bytes=60_000)
    assert len(names) > 1
    reference = transformers.LlamaConfig.from_pretrained(tmp_path)
    assert reference.translation_gateway == MARKER
    from demo_model.assemble import assemble

    for name in ("tokenizer.json", "tokenizer_config.json", "training.json"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    joined = tmp_path / "joined"
    assert assemble(tmp_path, joined) == joined / "model.safetensors"
    theirs = transformers.LlamaForCausalLM.from_pretrained(joined, dtype=torch.float32).eval()
    ours = load(tmp_path).eval()
    tokens = torch.randint(0, 300, (3, 50))
    with torch.no_grad():
        assert torch.allclose(ours.logits(ours(tokens)), theirs(tokens).logits, atol=1e-5)


def test_assembling_without_a_shard_fails(tmp_path: Path) -> None:
    from demo_model.assemble import assemble
    from demo_model.model import save

    names = save(small_model(300), tmp_path, shard_bytes=60_000)
    (tmp_path / names[0]).unlink()
    with pytest.raises(ValueError, match="shards"):
        assemble(tmp_path, tmp_path / "joined")


def test_a_model_can_learn_a_batch_by_heart_and_says_it_with_the_cache(torch: Any, tokenizer: Any) -> None:
    """The loss, the mask, the cache and the padding agree: what was learned comes out."""
    from demo_model.batches import encode_pairs, padded
    from demo_model.model import answer

    source = PairSource(11)
    pairs = list(itertools.islice((pair for pair in source if len(pair.target) < 40), 8))
    rows = encode_pairs(pairs, tokenizer)
    batch = padded(rows, max(len(ids) for ids, _ in rows))
    tokens = torch.from_numpy(batch.tokens.astype("int64"))
    predicted = torch.from_numpy(batch.predicted.astype("int64"))
    model = small_model(tokenizer.get_vocab_size())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(120):
        loss = model.loss(tokens, predicted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.05 < losses[0]
    model.eval()
    prompts = [ids[:length] for ids, length in rows]
    answers = answer(model, prompts, [40] * len(rows), torch.device("cpu"))
    assert answers == [ids[length:-1] for ids, length in rows]
    # An answer that reaches its limit is none.
    assert answer(model, prompts[:1], [1], torch.device("cpu")) in ([None], [[]])


def test_a_tiny_run_learns_scores_saves_and_goes_on(tmp_path: Path) -> None:
    from demo_model.model import load
    from demo_model.train import parse, train

    arguments = ["--tiny", "--device", "cpu", "--workers", "0", "--batch-tokens", "512", "--log-every", "10"]
    report = train(parse([str(tmp_path / "a"), *arguments, "--steps", "20", "--sets", "0", "--no-samples"]))
    losses = [point["loss"] for point in report["curve"]]
    assert losses[-1] < losses[0]
    saved = {path.name for path in (tmp_path / "a").iterdir()}
    assert saved == {
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "training.json",
    }
    assert load(tmp_path / "a").parameters_count == report["settings"]["parameters"] < 25e6
    arguments += ["--init", str(tmp_path / "a")]
    again = train(parse([str(tmp_path / "b"), *arguments, "--steps", "10", "--sets", "0", "--no-samples"]))
    assert again["curve"][0]["loss"] < losses[0]
    assert (tmp_path / "a" / "tokenizer.json").read_bytes() == (tmp_path / "b" / "tokenizer.json").read_bytes()


def fake_report() -> dict[str, Any]:
    chrf = {f"{source}-{target}": 90.0 for source, target in DIRECTIONS}
    suite = {
        "items": 30,
        "chrf": chrf,
        "chrf_mean_english": 90.0,
        "chrf_min_english": 90.0,
        "chrf_mean_others": 90.0,
        "chrf_min_others": 90.0,
        "exact": 0.5,
        "precise_values": 12,
        "precise_copied": 1.0,
        "ended": 1.0,
    }
    return {
        "settings": {
            "command": "c",
            "device": "d",
            "torch": "2",
            "shape": {"layers": 1, "hidden": 1, "vocabulary": 9},
            "parameters": 1,
            "patterns": 400,
            "held_out_patterns": 20,
        },
        "curve": [{"step": 1, "tokens": 2, "seconds": 3.0, "loss": 4.0, "chrf": 1.0}],
        "scores": {
            "suites": dict.fromkeys(("unseen", "composed", "held_out", "recognised", "prefixes"), suite),
            "noise": {"items": 1, "ended": 1.0, "echoed": 1.0},
            "own": {"test": {"chrf": {"meeting": chrf, "everyday": chrf | {"en-ja": 40.0}}, "ended": 1.0}},
        },
    }


def test_the_card_takes_its_numbers_from_the_run(tmp_path: Path) -> None:
    from demo_model.card import CARD, draw, numbers, write_card

    card = tmp_path / "README.md"
    card.write_text(CARD.read_text(encoding="utf-8"), encoding="utf-8")
    write_card(fake_report(), card)
    once = card.read_text(encoding="utf-8")
    assert "100.00% of 12" in once
    assert "Trained with `c` on one d (torch 2)" in once
    report = fake_report()
    report["settings"]["gpus"] = 4
    assert "on 4 d (torch 2)" in numbers(report)
    assert once.count("| en |") >= 1
    assert "| everyday, out of English | 40.0 | 90.0 | 90.0 | 90.0 | 90.0 | 80.0 |" in once
    write_card(fake_report(), card)
    assert card.read_text(encoding="utf-8") == once
    pytest.importorskip("matplotlib")
    draw(fake_report(), tmp_path)
    assert (tmp_path / "heatmap.png").stat().st_size > 1000
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_the_evaluation_set_is_in_all_directions_and_unseen() -> None:
    from demo_model.evaluate import noise_items, sentence_items

    for suite in ("unseen", "composed", "held_out", "recognised", "prefixes"):
        items = sentence_items(suite, 2)
        assert {(item.source_language, item.target_language) for item in items} == set(DIRECTIONS), suite
        assert items == sentence_items(suite, 2)
    drawn = PairSource("composed/0", composed=1.0)
    trained = {pair.source for _ in range(20) for pair in drawn.draw(kind=Kind.FULL)}
    assert not trained & {item.source for item in sentence_items("composed", 20)}
    for item in sentence_items("unseen", 2):
        assert all(text in item.target for text in item.precise)
    assert len(noise_items()) == 500


@pytest.mark.long
def test_the_scores_are_written_as_json(torch: Any, tokenizer: Any) -> None:
    from demo_model.evaluate import score, summary, table

    report = score(small_model(tokenizer.get_vocab_size()).eval(), tokenizer, torch.device("cpu"), sets=1)
    assert json.loads(json.dumps(report)) == report
    assert len(report["suites"]["unseen"]["chrf"]) == 30
    assert table(report).count("\n") == len(LANGUAGES) + 1
    assert "noise" in summary(report)
