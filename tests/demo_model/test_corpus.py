"""The corpus: its patterns are right, the validator sees what is wrong, the grammar inflects as natives do."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from demo_model import LANGUAGES, SMALL_MODEL
from demo_model.grammar import KINDS, Value, inflect, parse_template
from demo_model.lexicon import NOUN_KINDS, load_lexicon
from demo_model.pattern_check import check_files
from demo_model.patterns import (
    Pattern,
    bundled_patterns,
    files_of_model,
    fill,
    held_out_patterns,
    load_patterns,
    main,
    pattern_files,
    trained_patterns,
    written,
)
from demo_model.sampling import Sampler, Split

RIGHT = {
    "en": "Please send the {item} to {name}.",
    "ja": "{item}を{name}さんに送ってください。",
    "es": "Envíe {item:el} a {name}, por favor.",
    "de": "Bitte senden Sie {item:acc} an {name}.",
    "fr": "Envoyez {item:le} à {name}, s'il vous plaît.",
    "zh": "请把{item}发给{name}。",
}


def complaints(tmp_path: Path, *tables: dict[str, str]) -> list[str]:
    text = "\n".join(
        f"[p{index}]\n" + "\n".join(f"{language} = '''{line}'''" for language, line in table.items())
        for index, table in enumerate(tables)
    )
    path = tmp_path / "patterns.toml"
    path.write_text(text, encoding="utf-8")
    return check_files([path])[1]


def test_a_right_pattern_draws_no_complaint(tmp_path: Path) -> None:
    assert complaints(tmp_path, RIGHT) == []


@pytest.mark.parametrize(
    ("language", "line", "complaint"),
    [
        ("zh", None, "missing language: zh"),
        ("it", "Ciao.", "unknown key: it"),
        ("zh", "请把{item}发出去。", "zh: other slots than en (lacks name)"),
        ("zh", "请{n}把{item}发给{name}。", "zh: other slots than en (has n more)"),
        ("zh", "请把{items}发给{name}。", "zh: unknown slot {items}"),
        ("de", "Bitte senden Sie {item:dativ} an {name}.", "de: {item:dativ} is not a form of de"),
        ("ja", "{item:el}を{name}さんに送ってください。", "ja: {item:el} is not a form of ja"),
        ("de", "{item:?er/sie} {item} {name}.", "de: {item:?er/sie} needs 3 words"),
        ("es", "{item:?nuevo/nueva}, {name}.", "es: only an agreeing word for item"),
        ("en", "Please send a {item} to {name}.", "en: 'a' before {item} depends on the noun"),
        ("es", "Envíe la {item} a {name}.", "es: 'la' before {item} depends on the noun"),
        ("es", "Envíe a {item:el} a {name}.", "es: 'a {item:el}' contracts: use {item:a}"),
        ("fr", "Parlez de {item:le} à {name}.", "fr: 'de {item:le}' contracts: use {item:de}"),
        ("fr", "Envoyez {item:le} d'{name}.", "fr: write de before {name}"),
        ("de", "Bitte senden Sie den {item} an {name}.", "de: 'den' before {item} depends on the noun"),
        ("en", "Please send the {item} to {name}", "en: must end with one of"),
        ("ja", "{item}を{name}さんに送ってください.", "ja: must end with one of"),
        ("zh", "请把{item} 发给{name}。", "zh: no spaces between words"),
        ("zh", "请把{item},发给{name}。", "zh: , is not punctuation of zh"),
        ("fr", "Envoyez {item:le} à {name}?", "fr: needs a space before ? ! : ;"),
        ("es", "Envía {item:el} a {name}?", "es: unbalanced ¿ ?"),
        ("es", "Envía tu correo, {item:el} y {name}.", "es: 'tu' is not the polite register"),
        ("de", "Schicke {item:acc} an {name}, wenn du kannst.", "de: 'du' is not the polite register"),
        ("en", "Please send the “{item}” to {name}.", "en: no quotation marks"),
        ("en", "Please  send the {item} to {name}.", "en: a space too many"),
        ("en", "Please send the {item} to {name} .", "en: a space before punctuation"),
        ("en", "Please send the {item to {name}.", "en: a brace that is not a slot"),
    ],
)
def test_the_validator_names_what_is_wrong(
    tmp_path: Path, language: str, line: str | None, complaint: str
) -> None:
    table = {key: value for key, value in RIGHT.items() if key != language}
    if line is not None:
        table[language] = line
    found = complaints(tmp_path, table)
    assert any(complaint in one for one in found), found


def test_the_dative_after_a_german_preposition_is_demanded(tmp_path: Path) -> None:
    table = {
        "en": "Back in {duration}.",
        "ja": "{duration}後に戻ります。",
        "es": "Vuelvo en {duration}.",
        "de": "Zurück in {duration}.",
        "fr": "De retour dans {duration}.",
        "zh": "{duration}后回来。",
    }
    assert "de: 'in' takes the dative" in complaints(tmp_path, table)[0]
    assert complaints(tmp_path, table | {"de": "Zurück in {duration:dat}."}) == []


def test_the_same_english_sentence_twice_is_found_across_files(tmp_path: Path) -> None:
    assert "en: the same sentence as patterns.toml [p0]" in complaints(tmp_path, RIGHT, RIGHT)[0]


def test_a_broken_file_is_one_complaint(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("[a\n", encoding="utf-8")
    assert "broken.toml: not valid TOML" in check_files([path])[1][0]


def test_the_command_fails_on_a_wrong_file_and_prints_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.toml"
    path.write_text("[unheard_of]\n" + "\n".join(f'{k} = "{v}"' for k, v in RIGHT.items()), encoding="utf-8")
    assert main(["check", "--samples", "2", str(path)]) == 0
    assert capsys.readouterr().out.count("[unheard_of]") == 2
    path.write_text('[unheard_of]\nen = "Hm"\n', encoding="utf-8")
    assert main(["check", str(path)]) == 1


def test_the_corpus_has_enough_patterns_and_each_can_be_said_in_six_languages() -> None:
    patterns = load_patterns()
    assert len(patterns) >= 400
    sampler = Sampler(0)
    for pattern in patterns:
        values = sampler.values(pattern)
        for language in LANGUAGES:
            text = written(fill(pattern.templates[language], values, language), language).text
            assert text == text.strip(), pattern.id
            assert not set("{}~*") & set(text), pattern.id


def test_one_pattern_in_twenty_is_held_out() -> None:
    assert len(held_out_patterns()) == pytest.approx(len(load_patterns()) / 20, rel=0.25)


def test_the_small_model_is_scored_with_the_patterns_that_it_was_trained_with() -> None:
    """Those of the files that it names. Patterns that are added go into other files, until it is trained again."""
    settings = json.loads((SMALL_MODEL / "training.json").read_text(encoding="utf-8"))["settings"]
    files = files_of_model(SMALL_MODEL)
    assert len(load_patterns(files)) == settings["patterns"]
    assert len(load_patterns(files)) - len(trained_patterns(files)) == settings["held_out_patterns"]
    assert set(load_patterns(files)) <= set(load_patterns())
    assert list(bundled_patterns()) == trained_patterns(files)


def test_a_model_that_does_not_say_its_files_is_scored_with_all(tmp_path: Path) -> None:
    assert files_of_model(tmp_path) is None
    assert load_patterns(None) == load_patterns(tuple(pattern_files()))


@pytest.mark.parametrize(
    ("kind", "least"),
    [("item", 35), ("event", 35), ("topic", 25), ("role", 20), ("quarter", 4), ("place", 30), ("dept", 14)],
)
def test_the_lexicon_is_large_and_unambiguous(kind: str, least: int) -> None:
    entries = load_lexicon().entries[kind]
    assert len(entries) >= least
    for language in LANGUAGES:
        words = [entry[language].text for entry in entries.values()]
        assert len(set(words)) == len(words)


def test_names_and_products_are_many() -> None:
    lexicon = load_lexicon()
    assert len(set(lexicon.names)) >= 400
    assert {"José", "Zoë", "Jürgen", "Chloé"} <= set(lexicon.names)
    assert len({f"{p} {s}".strip() for p in lexicon.products for s in ("", *lexicon.product_suffixes)}) >= 120


def test_no_noun_means_two_things_in_a_language() -> None:
    for language in LANGUAGES:
        words = [entry[language].text for kind in NOUN_KINDS for entry in load_lexicon().entries[kind].values()]
        assert len(words) == len(set(words))


def said(language: str, template: str, **values: Value) -> str:
    return written(fill(parse_template(template), values, language), language).text


@pytest.mark.parametrize(
    ("language", "template", "values", "text"),
    [
        ("en", "It is {item:a}.", {"item": "invoice"}, "It is an invoice."),
        ("en", "It is {item:a}.", {"item": "user guide"}, "It is a user guide."),
        ("en", "At {time} on {date}.", {"time": (15, 30), "date": (3, 14)}, "At 3:30 PM on March 14."),
        ("en", "At {time}.", {"time": (12, 5)}, "At 12:05 PM."),
        ("ja", "{date}の{time}に", {"time": (15, 30), "date": (3, 14)}, "3月14日の午後3時30分に"),
        ("ja", "{money}です。", {"money": 12000}, "12,000ドルです。"),
        ("zh", "{time}。", {"time": (15, 30)}, "下午3点30分。"),
        ("zh", "{duration}。", {"duration": (10, "minutes")}, "10分钟。"),
        ("es", "{item:el} está {item:?listo/lista}.", {"item": "invoice"}, "La factura está lista."),
        ("es", "Hable {event:de}.", {"event": "workshop"}, "Hable del taller."),
        ("es", "Vamos {event:a}.", {"event": "meeting"}, "Vamos a la reunión."),
        ("es", "{name} y {name2}.", {"name": "Ana", "name2": "Inés"}, "Ana e Inés."),
        ("es", "{n} o {n2}.", {"n": 7, "n2": 8}, "7 u 8."),
        ("es", "El {percent} de {bign}.", {"percent": "2.5", "bign": 12500}, "El 2,5 % de 12.500."),
        (
            "de",
            "{item:nom} liegt {item2:in}.",
            {"item": "contract", "item2": "app"},
            "Der Vertrag liegt in der App.",
        ),
        ("de", "{item:acc}.", {"item": "contract"}, "Den Vertrag."),
        ("de", "Mit {item:einem}.", {"item": "app"}, "Mit einer App."),
        ("de", "Mehr {quarter:in}.", {"quarter": "third quarter"}, "Mehr im dritten Quartal."),
        ("de", "Das war {quarter:ein}.", {"quarter": "third quarter"}, "Das war ein drittes Quartal."),
        ("de", "{quarter:nom}.", {"quarter": "third quarter"}, "Das dritte Quartal."),
        ("de", "{item:nom}: {item:?er/sie/es}.", {"item": "budget"}, "Das Budget: es."),
        (
            "de",
            "Um {time} in {duration:dat}.",
            {"time": (9, 0), "duration": (3, "days")},
            "Um 9:00 Uhr in 3 Tagen.",
        ),
        ("de", "Am {date}.", {"date": (3, 14)}, "Am 14. März."),
        ("fr", "Parlons {item:de}.", {"item": "order"}, "Parlons de la commande."),
        ("fr", "Parlons {item:de}.", {"item": "analysis"}, "Parlons de l'analyse."),
        ("fr", "Parlons {item:de}.", {"item": "contract"}, "Parlons du contrat."),
        (
            "fr",
            "{event:ce} et {event2:ce}.",
            {"event": "workshop", "event2": "meeting"},
            "Cet atelier et cette réunion.",
        ),
        ("fr", "{event:le}.", {"event": "hackathon"}, "Le hackathon."),
        ("fr", "L'avis de {name}.", {"name": "Anna"}, "L'avis d'Anna."),
        ("fr", "L'avis de {name}.", {"name": "Hélène"}, "L'avis d'Hélène."),
        ("fr", "L'avis de {name}.", {"name": "Haruto"}, "L'avis de Haruto."),
        ("fr", "L'avis de {name}.", {"name": "Yuki"}, "L'avis de Yuki."),
        ("fr", "Je crois que {name} vient.", {"name": "Émilie"}, "Je crois qu'Émilie vient."),
        ("fr", "Il vient de {place}.", {"place": "Hamburg"}, "Il vient de Hambourg."),
        ("fr", "Le {date} à {time}.", {"date": (8, 1), "time": (15, 0)}, "Le 1er août à 15 h."),
        ("fr", "{bign} et {money}.", {"bign": 12500, "money": 900}, "12 500 et 900 dollars."),
    ],
)
def test_slots_are_inflected(language: str, template: str, values: dict[str, Value], text: str) -> None:
    assert said(language, template, **values) == text


def test_every_noun_has_every_form() -> None:
    forms = {
        "de": "nom acc dat ein einen einem in zu von bei an",
        "es": "el un de a",
        "fr": "le un de à ce",
        "en": "a",
    }
    for (language, names), kind in itertools.product(forms.items(), NOUN_KINDS):
        for key, form in itertools.product(load_lexicon().entries[kind], names.split()):
            slot = parse_template(f"{{{kind}:{form}}}").slots[0]
            words = inflect(slot, key, language)
            assert words[0].islower()
            assert "~" not in words


def test_every_kind_of_slot_can_be_drawn_and_said() -> None:
    sampler = Sampler(1)
    for kind in KINDS:
        template = parse_template(f"{{{kind}}}")
        for _ in range(20):
            value = sampler.value(kind)
            for language in LANGUAGES:
                assert fill(template, {kind: value}, language).text


def test_two_slots_of_a_kind_differ() -> None:
    template = parse_template("{weekday} {weekday2}")
    pattern = Pattern("two_days", dict.fromkeys(LANGUAGES, template))
    sampler = Sampler(0, Split.ANY)
    for _ in range(50):
        values = sampler.values(pattern)
        assert values["weekday"] != values["weekday2"]
