"""What may help a small model, each off unless asked for: dropout, averages, a teacher, a part of the corpus."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demo_model.clauses.compose import Composer, frames
from demo_model.clauses.syntax import Utterance
from demo_model.generate import Kind, PairSource
from demo_model.layout import IDS
from demo_model.patterns import in_part
from demo_model.sampling import Sampler, Split

TINY = ("--tiny", "--device", "cpu", "--workers", "0", "--batch-tokens", "512", "--sets", "0", "--no-samples")
Run = Callable[..., Path]


@pytest.fixture
def run(torch: Any, tmp_path: Path) -> Run:
    """Trains a tiny model with these arguments; returns its folder."""
    from demo_model.train import main

    def trained(name: str, *arguments: object) -> Path:
        main([str(tmp_path / name), *TINY, *map(str, arguments)])
        return tmp_path / name

    return trained


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.long
def test_dropout_is_of_the_training_alone_and_leaves_no_trace_in_the_files(torch: Any, run: Run) -> None:
    from demo_model.model import load

    plain, dropped = run("plain", "--steps", 4), run("dropped", "--steps", 4, "--dropout", 0.5)
    assert weights(plain) != weights(dropped)
    assert (plain / "config.json").read_bytes() == (dropped / "config.json").read_bytes()
    model = load(dropped)
    assert model.state_dict().keys() == load(plain).state_dict().keys()
    tokens, places = torch.arange(20, 60).reshape(2, 20), torch.arange(5, 15)
    without = model.loss(tokens, places).item()
    model.drop(0.5)
    assert len({model.loss(tokens, places).item() for _ in range(3)}) == 3
    assert model.eval().loss(tokens, places).item() == without


@pytest.mark.long
def test_bpe_dropout_writes_the_same_sources_in_other_tokens(torch: Any) -> None:
    from demo_model.batches import Recipe, batches, encode_pairs
    from demo_model.tokenizer import train_tokenizer, with_dropout

    tokenizer = train_tokenizer(sets=300, vocabulary=3000)
    pairs = list(itertools.islice(PairSource(3), 300))
    usual = encode_pairs(pairs, tokenizer)
    dropped = encode_pairs(pairs, tokenizer, with_dropout(tokenizer, 0.3))
    longer = 0
    for pair, (ids, prompt), (others, other_prompt) in zip(pairs, usual, dropped, strict=True):
        assert ids[prompt:] == others[other_prompt:]
        assert tokenizer.decode(others[4 : other_prompt - 1]) == pair.source
        longer += other_prompt > prompt
    assert longer > 100
    recipe = Recipe(bpe_dropout=0.3)
    one, other = (next(batches(5, tokenizer, 1024, each)) for each in (Recipe(), recipe))
    assert one.tokens.shape != other.tokens.shape or (one.tokens != other.tokens).any()
    assert IDS["</s>"] in other.tokens


@pytest.mark.long
def test_what_is_saved_is_the_average_of_the_last_weights(
    torch: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from demo_model import train
    from demo_model.model import load

    steps: list[dict[str, Any]] = []
    optimizer_for = train.optimizer_for

    def watched(model: Any, *arguments: Any, **options: Any) -> Any:
        def keep(*_: object) -> None:
            steps.append({name: value.detach().clone() for name, value in model.named_parameters()})

        optimizer = optimizer_for(model, *arguments, **options)
        optimizer.register_step_post_hook(keep)
        return optimizer

    monkeypatch.setattr(train, "optimizer_for", watched)
    averaged = dict(load(run("averaged", "--steps", 8, "--average", 0.5)).named_parameters())
    assert len(steps) == 8
    for name, value in averaged.items():
        mean = torch.stack([step[name] for step in steps[4:]]).mean(0)
        assert torch.allclose(value, mean.bfloat16().float(), rtol=0.01, atol=1e-6), name
    last = steps[-1]["model.embed_tokens.weight"]
    assert not torch.allclose(averaged["model.embed_tokens.weight"], last, rtol=0.01, atol=1e-6)


@pytest.mark.long
def test_the_average_of_one_step_and_options_of_nothing_change_no_bit(run: Run) -> None:
    plain = run("plain", "--steps", 6)
    nothing = ("--dropout", 0, "--bpe-dropout", 0, "--part", 1)
    assert weights(run("nothing", "--steps", 6, *nothing, "--average", 0.2)) == weights(plain)


@pytest.mark.long
def test_a_teacher_is_followed(torch: Any, run: Run) -> None:
    """A teacher that knows forty sentences and thinks of nothing else."""
    from demo_model.batches import batches
    from demo_model.model import load
    from demo_model.tokenizer import load_tokenizer

    teacher = run("teacher", "--pair", "en-de", "--steps", 60)
    plain, taught = run("plain", "--steps", 30), run("taught", "--steps", 30, "--teacher", teacher)
    batch = next(batches(99, load_tokenizer(teacher), 2048))
    tokens = torch.from_numpy(batch.tokens.astype("int64"))
    places = torch.from_numpy(batch.predicted.astype("int64"))
    wanted = load(teacher).expected(tokens, places)

    def divergence(folder: Path) -> float:
        said = load(folder).expected(tokens, places)
        return float(torch.nn.functional.kl_div(said.log(), wanted, reduction="batchmean"))

    assert divergence(taught) < 0.9 * divergence(plain)
    assert (taught / "tokenizer.json").read_bytes() == (teacher / "tokenizer.json").read_bytes()


@pytest.mark.long
def test_a_student_cannot_have_two_tokenizers(
    torch: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from demo_model.train import parse

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokenizer.json").write_text(name, encoding="utf-8")
    with pytest.raises(SystemExit):
        parse(["out", "--init", str(tmp_path / "a"), "--teacher", str(tmp_path / "b")])
    assert "different tokenizers" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse(["out", "--average", "25"])
    assert "25 is not from 0 to 1" in capsys.readouterr().err


def drawn(part: float) -> list[Utterance]:
    composer = Composer(Sampler(4, Split.ANY, part=part), part)
    return [composer.draw() for _ in range(2000)]


@pytest.mark.long
def test_a_half_of_the_corpus_has_half_of_its_patterns_frames_and_words() -> None:
    whole, half, quarter = (PairSource(1, part=part) for part in (1.0, 0.5, 0.25))
    ids = [{pattern.id for pattern in source.patterns} for source in (whole, half, quarter)]
    assert ids[2] < ids[1] < ids[0]
    assert 0.4 < len(ids[1]) / len(ids[0]) < 0.6
    assert 0.2 < len(ids[2]) / len(ids[0]) < 0.3
    adjectives = [set(source.composer.predicated) for source in (whole, half, quarter)]
    items = [set(source.sampler._nouns["item"]) for source in (whole, half, quarter)]
    for words in (adjectives, items):
        assert words[2] < words[1] < words[0]
    said = {part: drawn(part) for part in (1.0, 0.5, 0.25)}
    links = Counter(each.link for each in said[1.0])
    common = {link for link, count in links.items() if count >= 15}
    for part, utterances in said.items():
        # What is drawn often is still drawn; so are the frames that the code names.
        assert common <= {each.link for each in utterances}, part
        used = set().union(*(frames(each.first) | frames(each.second) for each in utterances))
        assert all(in_part(part, "frame", key) for key in used), part
        assert len(used) < 700 * part
    nouns = [{each.key for each in Composer(Sampler(0), part)._nouns(["document"])} for part in said]
    assert nouns[2] < nouns[1] < nouns[0]


def test_a_part_of_the_corpus_is_said_in_every_way() -> None:
    source = PairSource(5, composed=0.5, part=0.25)
    assert source.composer.part == 0.25
    for kind in Kind:
        for _ in range(60):
            assert source.draw([("en", "ja"), ("fr", "zh")], kind)


def scored(chrf: float, steps: int) -> dict[str, Any]:
    scores = {"meeting": {"en-de": chrf, "de-en": chrf + 2}, "everyday": {"en-de": chrf, "de-en": chrf + 4}}
    return {
        "settings": {"parameters": 13.8e6},
        "curve": [{"step": steps, "tokens": 2e6, "loss": 0.5, "waited": 3.0}],
        "scores": {
            "own": {"development": {"chrf": scores}, "test": {"chrf": scores}},
            "suites": {name: {"chrf_mean_english": 90.0} for name in ("unseen", "composed", "held_out")},
        },
    }


def test_runs_are_compared_row_by_row() -> None:
    from demo_model.compare import compared

    lines = compared([("half", scored(20.0, 1000)), ("whole", scored(26.0, 1000))]).splitlines()
    assert (
        lines[2] == "| half | 13.8 | 1,000 | 2 | 3 | 0.500 | 20.0 | 23.0 |  | 20.0 | 23.0 | 90.0 | 90.0 | 90.0 |"
    )
    assert (
        lines[3]
        == "| whole | 13.8 | 1,000 | 2 | 3 | 0.500 | 26.0 | 29.0 | +6.0 | 26.0 | 29.0 | 90.0 | 90.0 | 90.0 |"
    )
    assert len({line.count("|") for line in lines}) == 1
