"""What holds for whatever is composed, judged by thousands of utterances: what goes with what, and what occurs."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from demo_model.clauses.compose import Composer
from demo_model.clauses.compose_phrases import choices, expanded, said_of
from demo_model.clauses.lexicon import load_words
from demo_model.clauses.syntax import Modal, Mood, Tense, Utterance
from demo_model.lexicon import load_lexicon
from demo_model.sampling import Sampler
from tests.demo_model.clauses.said import SHE, texts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawn() -> list[Utterance]:
    composer = Composer(Sampler(31))
    return [composer.draw() for _ in range(8_000)]


def test_only_what_an_adjective_is_said_of_has_it(drawn: list[Utterance]) -> None:
    """A meeting is not newer than a reunion."""
    described = [
        utterance.first for utterance in drawn if utterance.first.predicate and utterance.first.predicate.adjective
    ]
    assert len(described) > 200
    for clause in described:
        assert clause.predicate is not None
        adjective, than = clause.predicate.adjective, clause.predicate.than
        subject = clause.roles["S"]
        if subject.noun:
            assert adjective in said_of(subject.noun)
        if than is not None:
            groups = [set(expanded([each])) for each in choices()["compared"][adjective]]
            nouns = load_words().nouns
            kinds = [{subject.noun, nouns[subject.noun].type}, {than.noun, nouns[than.noun].type}]
            assert any(all(group & kind for kind in kinds) for group in groups)


def test_what_is_done_about_something_is_in_the_table_of_causes(drawn: list[Utterance]) -> None:
    """She deleted the report, so the agent will inform the manager: nothing joins these."""
    linked = [each for each in drawn if each.link in ("if", "when", "so")]
    assert len(linked) > 100
    for said in linked:
        assert said.second is not None
        event, reaction = (said.first, said.second) if said.link == "so" else (said.second, said.first)
        known = [each.partition(":")[2].split()[0] for each in choices()["follow"][event.frame] if each[0] != "@"]
        assert reaction.frame in known


def test_a_time_fits_what_is_done(drawn: list[Utterance]) -> None:
    """Nobody develops a platform half an hour ago, nor is a move as soon as possible."""
    clauses = [utterance.first for utterance in drawn]
    timed = [(clause.frame, each.key) for clause in clauses for each in clause.adverbials]
    times = choices()["times"]
    for pattern, table in (
        (r"(minutes|hour).* ago|^in .*(minutes|hour)", "brief"),
        ("as soon as possible", "soon"),
        ("^(last year|next year)", "notable"),
    ):
        frames = {frame for frame, key in timed if re.search(pattern, key)}
        assert frames
        assert frames <= {*times[table], *times["large"]}


def test_what_is_said_has_an_occasion(drawn: list[Utterance]) -> None:
    """Nobody is thanked for nothing, nor does anybody ask when he himself did something."""
    linked = set(choices()["verbs"]["linked"])
    for each in drawn:
        if not each.link or each.speaker:
            assert each.first.frame not in linked
        if each.link == "whether":
            assert each.first.roles.get("S", SHE).pronoun not in ("i", "we")
        if each.answer == "that depends":
            assert each.first.tense not in (Tense.PAST, Tense.DONE) or each.first.modal is not Modal.NONE


def test_who_does_it_has_something_to_do_with_it(drawn: list[Utterance]) -> None:
    """The accountant does not replace the camera, nor does the postman bring the sofa."""
    frames = load_words().frames
    jobs = choices()["jobs"]
    doers = 0
    for utterance in drawn:
        frame, doer = frames.get(utterance.first.frame), utterance.first.roles.get("S")
        if frame and doer and doer.noun[:7] == "person:" and frame.types["S"] == ("human",):
            doers += 1
            assert doer.noun in {*expanded(["actor", "attendant"]), *jobs.get(frame.key, ())}
    assert doers > 50


def test_what_is_asked_of_a_noun_is_asked_of_that_noun(drawn: list[Utterance]) -> None:
    """Nobody asks what kind of fire drill it was, how many financial plans or whose error log."""
    tables = {"what_kind": "kinds", "how_many": "counted", "whose": "lent", "how_much": "measured"}
    nouns = load_words().nouns
    asked = [utterance.first.wanted for utterance in drawn if utterance.first.wanted]
    asked = [np for np in asked if np.det in tables and nouns[np.noun].type != "person"]
    assert len(asked) > 30
    for np in asked:
        if np.det != "how_many" or nouns[np.noun].key not in expanded(["seat", "stock"]):
            assert {np.noun, nouns[np.noun].type} & set(expanded([tables[np.det]]))


def test_several_are_named_where_one_does_it_together(drawn: list[Utterance]) -> None:
    """The intern and the designer do not switch on the phone, nor do Ben and I listen to music with me."""
    together, company = choices()["together"], choices()["companions"]["with {P}"]
    joined = 0
    for utterance in drawn:
        for role, np in utterance.first.roles.items():
            if np.members and utterance.first.frame != "be":
                joined += 1
                several = {"S": [*together["done"], *company], "O": together["things"], "T": together["to"]}
                assert utterance.first.frame in several[role]
                assert role != "S" or not any(each.phrase for each in utterance.first.adverbials)
    assert joined > 30


def test_no_verb_is_echoed_by_its_object_and_nothing_is_in_itself(drawn: list[Utterance]) -> None:
    """To test a test case ("before deploying it" as well), a backpack in the backpack."""
    words = load_words()
    for clause in (each for said in drawn for each in (said.first, said.second) if each):
        thing = clause.roles.get("O")
        if thing and thing.noun and clause.frame not in ("be", "exist"):
            verb = words.frames[clause.frame].cells["en"].replace("_", " ").split()[0]
            assert len(verb) < 4 or verb not in words.nouns[thing.noun].cells["en"], clause
        place = clause.predicate.place if clause.predicate else None
        if place:
            assert not place.key.endswith(" " + words.nouns[clause.roles["S"].noun].cells["en"])


def test_one_noun_is_not_said_of_two(drawn: list[Utterance]) -> None:
    """The colleague does not have lunch with the colleague."""
    for said in drawn:
        nouns: list[str] = []
        for clause in (said.first, said.second):
            phrases = [*clause.roles.values(), *(each.phrase for each in clause.adverbials)] if clause else []
            phrases += [member for np in phrases if np for member in np.members]
            nouns += [np.noun for np in phrases if np and np.noun and not np.pronoun]
        assert len(nouns) == len(set(nouns)), nouns


def test_one_knows_what_one_did_oneself(drawn: list[Utterance]) -> None:
    answered = [said for said in drawn if said.answer]
    own = [said for said in answered if said.first.roles["S"].pronoun == "you" and said.first.tense is Tense.PAST]
    assert len(own) > 5
    assert not [said.answer for said in own if re.search("probably|maybe|sure|hope", said.answer)]


def test_what_is_lost_is_not_found_yet_without_a_but(drawn: list[Utterance]) -> None:
    undone = [said for said in drawn if said.second and said.first.frame == "lose"]
    found = [said for said in undone if said.second and said.second.frame == "find" and said.second.negative]
    assert found
    assert {said.link for said in found} == {"and"}
    chinese = {texts(said)["zh"] for said in found}
    assert not [each for each in chinese if "最后" in each]


def test_amounts_occasions_and_times_make_sense(drawn: list[Utterance]) -> None:
    """Nobody switches on three phones, nor eats out when it was sunny, nor sends back that day what he ordered."""
    countable = {*choices()["asked"]["how_many"], *choices()["verbs"]["several"], "exist"}
    for said in drawn:
        thing = said.first.roles.get("O")
        assert thing is None or thing.det != "num" or said.first.frame in countable
        assert said.link != "when" or said.second is None or "weather_" not in said.second.frame
        assert not (said.first.mood is Mood.IMPERATIVE and said.first.negative and said.first.adverbials)
        if said.second is not None and said.second.frame in ("return_goods", "exchange") and said.link == "and":
            assert not said.first.adverbials


def test_what_is_chosen_for_what_it_is_like_is_this_one(drawn: list[Utterance]) -> None:
    reasoned = [said for said in drawn if said.link == "because" and said.second]
    chosen = [said for said in reasoned if said.second and said.second.roles["S"].refers == "O"]
    assert len(chosen) > 30
    assert not [said for said in chosen if said.first.roles["O"].det == "a" and not said.first.negative]


def test_who_does_it_and_what_it_depends_on_fit_what_it_is_done_to(drawn: list[Utterance]) -> None:
    """A mechanic does not repair a phone, nor does a salary increase depend on a schedule."""
    paired, seen = choices()["paired"], 0
    types = load_words().nouns
    for said in drawn:
        for clause in (said.first, said.second):
            if clause is None or said.link in ("if", "when"):
                continue
            for other, owner in clause.roles.items():
                noun = owner.noun
                for role, np in clause.roles.items() if noun and not owner.pronoun else ():
                    if role == other:
                        continue
                    row = paired.get(f"{clause.frame} {role} of:{noun}")
                    for thing in (np, *np.members):
                        if row and thing.noun and not thing.pronoun:
                            seen += 1
                            assert {thing.noun, types[thing.noun].type} & set(expanded(row)), (clause.frame, noun)
    assert seen > 20


def test_what_one_did_oneself_is_not_why(drawn: list[Utterance]) -> None:
    """ "He finished the report. That's why he went home." """
    frames = load_words().frames
    why = [said.first.frame for said in drawn if said.link == "that's why" and said.second]
    assert len(why) > 10
    assert {each for each in why if "stative" not in frames[each].tags} <= {*choices()["verbs"]["unasked"]}


def test_what_is_gone_is_not_this_one_and_what_one_gives_away_is_ones_own(drawn: list[Utterance]) -> None:
    """Nobody sold this bench, nor did his grandfather sell our lamp, nor did two eat the same soup."""
    verbs = choices()["verbs"]
    for said in drawn:
        thing, subject = said.first.roles.get("O"), said.first.roles.get("S")
        if thing is None or subject is None:
            continue
        over = said.first.tense in (Tense.PAST, Tense.DONE) and said.first.modal is Modal.NONE
        assert not (over and thing.det == "this" and said.first.frame in verbs["gone"]), said.first.frame
        if said.first.frame in verbs["disposed"] and subject.noun and not thing.members:
            assert thing.det not in ("i", "we", "you")
        if said.link in ("too", "neither"):  # nor "He had lunch with me. So did I."
            assert not [each for each in said.first.adverbials if each.phrase]
        if said.link in ("too", "neither") and said.first.frame in verbs["gone"]:
            assert thing.det in ("a", "bare"), said.first.frame


def test_one_asks_which_of_what_there_is_a_choice_of(drawn: list[Utterance]) -> None:
    """ "Which birthday party will your father invite your cousin to?" """
    asked = [said.first for said in drawn if said.first.asked in said.first.roles]
    which = [each for each in asked if each.roles[each.asked].det == "which"]
    assert len(which) > 50
    for clause in which:
        assert [np.noun[:7] for np in clause.roles.values()].count("family:") < 2
        if clause.asked == "T" and "O" in clause.roles:
            assert clause.roles["T"].noun.split(":")[0] in ("person", "group")


def test_a_habit_is_not_of_two_single_things(drawn: list[Utterance]) -> None:
    """ "She regularly buys a pudding and a muffin." """
    for said in drawn:
        if said.first.tense is Tense.HABIT and said.first.modal is Modal.NONE and said.first.frame != "exist":
            dets = [member.det for np in said.first.roles.values() for member in np.members]
            assert "a" not in dets


def test_what_is_over_in_days_does_not_go_on_for_weeks(drawn: list[Utterance]) -> None:
    """Nobody has been translating an email since last month."""
    lasted = [said.first for said in drawn if said.first.frame in choices()["lasted"]["short"]]
    times = [
        str(each) for clause in lasted for each in clause.adverbials if "for " in each.key or "since" in each.key
    ]
    assert len(times) > 20
    assert not [each for each in times if re.search("weeks|month", each)]


def test_what_one_will_see_is_not_judged_yet(drawn: list[Utterance]) -> None:
    """ "I'm going to watch this match because it's good." """
    judged = {*choices()["adjectives"]["judged"]}
    for said in drawn:
        ahead = said.first.frame in choices()["verbs"]["judged"] and said.first.tense is not Tense.PAST
        if said.link == "because" and ahead and said.second and said.second.predicate:
            assert said.second.predicate.adjective not in judged


def test_nine_names_in_ten_are_names_that_people_have(drawn: list[Utterance]) -> None:
    lexicon = load_lexicon()
    known = {part for name in (*lexicon.names, *lexicon.surnames) for part in name.split()}
    names = [str(value) for said in drawn for kind, value in said.values.values() if kind == "name"]
    assert len(names) > 500
    invented = [name for name in names if not known.issuperset(name.split())]
    assert 0.06 < len(invented) / len(names) < 0.14


def test_meat_is_not_named_beside_beef_nor_drinks_in_one_order(drawn: list[Utterance]) -> None:
    together = [np.members for said in drawn for np in said.first.roles.values() if np.members]
    nouns = [{each.noun for each in members} for members in together]
    assert not [each for each in nouns for noun in each if each & set(choices()["broader"].get(noun, ()))]
    ordered = [said.first.roles["O"].members for said in drawn if said.first.frame == "order_food"]
    assert len([members for members in ordered if members]) > 5
    assert not [each.noun for members in ordered for each in members if each.noun.startswith("drink:")]


def test_figures_are_plural_everywhere(drawn: list[Utterance]) -> None:
    exported = [texts(said) for said in drawn if "sales figures" in str(said)]
    assert exported
    for said in exported:
        assert "cifras de ventas" in said["es"]
        assert "Verkaufszahlen" in said["de"]
        assert "chiffres de vente" in said["fr"]


def test_what_goes_on_says_since_when_and_what_is_settled_says_when(drawn: list[Utterance]) -> None:
    kinds = load_words().adverbial_kinds
    ongoing_ones = [said.first for said in drawn if said.first.tense is Tense.ONGOING]
    planned = [said.first for said in drawn if said.first.tense is Tense.PLANNED]
    assert len(ongoing_ones) > 50
    assert len(planned) > 20
    for clause in ongoing_ones:
        assert clause.asked == "how_long" or [
            kinds[each.key] in ("since", "span") for each in clause.adverbials
        ] == [True]
    for clause in planned:
        assert clause.asked == "when" or any(kinds[each.key].startswith("time") for each in clause.adverbials)


def test_a_purpose_is_that_of_who_acts_or_of_whom_it_is_done_for(drawn: list[Utterance]) -> None:
    rows = choices()["purpose"]
    meant = [said for said in drawn if said.link in ("to", "so that")]
    assert {said.link for said in meant} == {"to", "so that"}
    for said in meant:
        assert said.second is not None
        wanted = [row.split(":", 1) for row in rows[said.first.frame] if not row.startswith("@")]
        who = {who for who, does in wanted if does.split()[0] == said.second.frame}
        doer, other = said.first.roles["S"].pronoun, said.second.roles["S"].pronoun
        if said.link == "to":
            assert "same" in who
            assert doer == other
        else:
            assert doer != other
            assert "to" not in who or said.first.roles["T"].pronoun == other


def test_a_reason_fits_what_is_done(drawn: list[Utterance]) -> None:
    kinds, rows = load_words().adverbial_kinds, choices()["causes"]
    told = [
        (said.first, each.key) for said in drawn for each in said.first.adverbials if kinds[each.key] == "cause"
    ]
    assert len(told) > 50
    for clause, key in told:
        unable = clause.modal is Modal.CAN and clause.negative
        who = {row.partition(":")[0] for row in rows[key] if row.partition(":")[2].split()[0] == clause.frame}
        assert ("not" if unable else "did") in who


def test_talk_occurs_among_what_is_composed(drawn: list[Utterance]) -> None:
    asking = Counter(utterance.first.wanted.det for utterance in drawn if utterance.first.wanted)
    assert {"which", "how_many", "how_much", "what_kind", "whose"} <= set(asking)
    asked_for = {utterance.first.asked for utterance in drawn}
    assert {"how_long", "how_often", "amount", "age", "owner"} <= asked_for
    links = {np.link for utterance in drawn for np in utterance.first.roles.values()}
    assert {"and", "both", "either"} <= links
    assert {"yes", "no", "too", "neither"} <= {utterance.link for utterance in drawn}
    assert any(utterance.answer for utterance in drawn)


def test_nobody_is_asked_to_proofread_what_others_then_submit_to_the_one_who_asks(
    drawn: list[Utterance],
) -> None:
    """ "Please proofread the report before they submit it to me", "before sending it to you"."""
    others, asked = 0, 0
    for said in drawn:
        if said.link not in ("before", "after") or said.second is None:
            continue
        clauses = (said.first, said.second)
        please = said.first.mood is Mood.IMPERATIVE
        doers = [each.roles["S"].pronoun for each in clauses]
        to = [each.roles["T"].pronoun if "T" in each.roles else "" for each in clauses]
        assert not (please and "you" in to)
        it = said.second.roles.get("O", SHE).pronoun == "it"
        if it and doers[0] != doers[1]:
            others += 1
            assert not any(to)
        if it and doers[0] != doers[1] and please and said.link == "before":
            asked += 1
            assert doers[1] in ("i", "we")
    assert others > 10
    assert asked


def test_a_state_is_why_something_was_done_not_when(drawn: list[Utterance]) -> None:
    """ "When he had a headache, he went to bed" would be each time."""
    when = [said.second for said in drawn if said.link == "when" and said.second]
    frames = load_words().frames
    past = [each.frame for each in when if each.tense is Tense.PAST]
    assert past
    assert not [each for each in past if "stative" in frames[each].tags and each != "be_delayed"]


def test_those_who_come_to_a_course_are_not_called_participants(drawn: list[Utterance]) -> None:
    """ "How many participants took part in the piano lesson": 参会人员 are at a meeting."""
    lessons = set(expanded(["lesson"]))
    took_part = [said.first for said in drawn if said.first.frame in ("sign_up", "take_part", "attend")]
    assert len(took_part) > 20
    for clause in took_part:
        subject, thing = clause.roles.get("S"), clause.roles.get("O")
        if subject and thing and subject.noun == "person:participant":
            assert thing.noun not in lessons


def test_who_is_meant_by_he_and_she_is_known_beside_a_name(drawn: list[Utterance]) -> None:
    """Virginie and Eli may be either, so nobody could tell whether "she" is another."""
    said = [each for each in drawn if each.speaker and each.speaker.name and each.first.roles.get("S")]
    about = [(each.speaker, each.first.roles["S"].pronoun) for each in said]
    known = [speaker for speaker, pronoun in about if speaker and pronoun in ("he", "she")]
    assert len(known) > 20
    assert not [speaker.name for speaker in known if len(speaker.taken_for) > 1]
