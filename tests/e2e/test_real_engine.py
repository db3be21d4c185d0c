"""What the product promises, on the real engine through real sockets: by order of events, never by time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.request

import pytest
from msgspec import UNSET

from gateway.client import ClientSession, connect
from gateway.protocol.messages import TranslationDelta, TranslationFailed, TranslationFinal
from tests.processes import COMMAND, GatewayProcess

pytestmark = pytest.mark.engine

SENTENCES = [
    "Let's move the launch to Friday.",
    "Good morning, everyone.",
    "Can you hear me?",
    "Thank you very much.",
    "I have a question.",
    "You're on mute.",
    "Can you see my screen?",
    "What do you think?",
]
# One sentence that is not cut, and whose generation takes many steps.
LONG = ", ".join(sentence.rstrip(".?") for sentence in SENTENCES) + "."


async def finals(session: ClientSession, count: int) -> list[TranslationFinal]:
    found: list[TranslationFinal] = []
    async for message in session:
        assert not isinstance(message, TranslationFailed), message
        if isinstance(message, TranslationFinal):
            found.append(message)
            if len(found) == count:
                break
    return found


async def alone(real_gateway: GatewayProcess, text: str, target: str) -> str:
    """What the engine gives for this prompt when it runs nothing else."""
    async with connect(real_gateway.url, reads=[target], speaks="en") as session:
        await session.final(text)
        (final,) = await finals(session, 1)
    return final.text


async def nothing_runs(real_gateway: GatewayProcess) -> None:
    """Until the gateway, and then its engine, counts no more running; the suite's timeout is the bound."""
    # In this order: before the gateway notices that a client has left, the engine's count may be an old one.
    for count in ("gateway_translations_running", "vllm:num_requests_running"):
        while await asyncio.to_thread(real_gateway.metric, count):
            await asyncio.sleep(0.05)


async def test_a_sentence_is_translated_into_every_language(real_gateway: GatewayProcess) -> None:
    async with connect(real_gateway.url, reads=["ja", "es", "de", "fr", "zh"], speaks="en") as session:
        await session.final("Good morning, everyone.")
        texts = {final.lang: final.text for final in await finals(session, 5)}
    assert texts["ja"].startswith("皆さん") or "おはよう" in texts["ja"]
    assert "Guten Morgen" in texts["de"]
    assert "Bonjour" in texts["fr"]
    assert "Buenos días" in texts["es"]
    assert "早上好" in texts["zh"]


async def test_model_is_sure_only_of_what_it_knows(real_gateway: GatewayProcess) -> None:
    async with connect(real_gateway.url, reads=["ja", "es", "de", "fr", "zh"], speaks="en") as session:
        # As in a meeting: most of it is taken over from what was shown before.
        await session.partial("We have 2 topics on")
        await session.final("We have 2 topics on the agenda today.")
        known = await finals(session, 5)
        await session.final("My grandmother used to grow tomatoes behind the railway station.")
        unknown = await finals(session, 5)
    assert [final.unsure for final in known] == [UNSET] * 5
    assert [final.unsure for final in unknown] == [True] * 5
    told = [[float(final.confidence or 0) for final in found] for found in (known, unknown)]
    assert min(told[0]) > max(told[1])


# One sentence as people type it, and as recognisers and stenographers write it.
SPELLED = [
    "\ufeffLet’s move\u00a0the launch\u202fto\tFriday.",
    "LET'S MOVE THE LAUNCH TO FRIDAY.",
    "let's move the launch to friday",
    "Ｌｅｔ’ｓ　ｍｏｖｅ　ｔｈｅ　ｌａｕｎｃｈ　ｔｏ　Ｆｒｉｄａｙ．",
    "Let's move the launch to Friday!!!",
    ">> ANNA: “Let's move the launch to Friday.”",
]
RECOGNISED = ["yes", "no", "okay", "i agree", "not yet", "thank you", "exactly", "why"]


async def test_a_spelling_changes_no_translation(real_gateway: GatewayProcess) -> None:
    async with connect(real_gateway.url, reads=["de", "ja"], speaks="en") as session:
        await session.final("Let's move the launch to Friday.")
        plain = {final.lang: final.text for final in await finals(session, 2)}
        for text in SPELLED:
            await session.final(text)
        for final in await finals(session, 2 * len(SPELLED)):
            assert final.text in (plain[final.lang], f">> ANNA: “{plain[final.lang]}”")
            assert final.unsure is UNSET
        for text in RECOGNISED:
            await session.final(text)
        assert all(final.text for final in await finals(session, 2 * len(RECOGNISED)))
        await session.final("Please open https://example.com/a?b=c.")
        assert ["https://example.com/a?b=c" in final.text for final in await finals(session, 2)] == [True] * 2


async def test_a_late_joiner_enters_the_running_batch(real_gateway: GatewayProcess) -> None:
    # Until it is seen: on a busy machine the long text may be complete before the other one is said.
    while not await joined_mid_batch(real_gateway):
        pass


async def joined_mid_batch(real_gateway: GatewayProcess) -> bool:
    """Whether a text that was said later had tokens while an earlier one was generated, and ended first."""
    order: list[str] = []
    async with (
        connect(real_gateway.url, reads=["de"], speaks="en") as first,
        connect(real_gateway.url, reads=["de"], speaks="en") as late,
    ):

        async def record(session: ClientSession, name: str) -> None:
            async for message in session:
                if isinstance(message, TranslationDelta):
                    order.append(f"{name} token")
                    if order == ["first token"]:
                        await late.final("Can you hear me?")
                elif isinstance(message, TranslationFinal):
                    order.append(f"{name} final")
                    if order == ["first final"]:
                        await late.final("Can you hear me?")
                    return

        await first.final(LONG)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(record(first, "first"))
            tasks.create_task(record(late, "late"))
    if "late token" not in order:
        return False
    after = order[order.index("late token") :]
    return "first token" in after and after.index("late final") < after.index("first final")


@pytest.mark.parametrize("how", ["cancel", "disconnect"])
async def test_what_nobody_waits_for_leaves_the_engine(real_gateway: GatewayProcess, how: str) -> None:
    async with connect(real_gateway.url, reads=["ja", "de"], speaks="en") as session:
        # Twice what runs together, so that some still wait when the first has begun.
        ids = [await session.final(LONG) for _ in range(16)]
        ends: list[str] = []
        begun = False
        async for message in session:
            # A reader that lags may get the first translation without its deltas, so it counts here already.
            if isinstance(message, TranslationFailed | TranslationFinal):
                ends.append(message.code if isinstance(message, TranslationFailed) else "final")
            elif not isinstance(message, TranslationDelta):
                continue
            if not begun:
                begun = True
                if how == "disconnect":
                    break
                for utterance in ids:
                    await session.cancel(utterance)
            if len(ends) == 2 * len(ids):
                break
        if how == "cancel":
            # What was complete when it was cancelled stays so.
            assert "cancelled" in ends
            assert set(ends) <= {"cancelled", "final"}
    await nothing_runs(real_gateway)
    assert await alone(real_gateway, "Can you hear me?", "de")


async def test_many_utterances_over_many_sessions_arrive_correctly(real_gateway: GatewayProcess) -> None:
    """There are 64 utterances over 16 sessions."""
    targets = ["ja", "es", "de", "fr"]
    expected = {
        (text, target): await alone(real_gateway, text, target) for text in SENTENCES for target in targets
    }

    async def one(number: int) -> None:
        target = targets[number % 4]
        texts = [SENTENCES[(number + n) % len(SENTENCES)] for n in range(4)]
        async with connect(real_gateway.url, reads=[target], speaks="en", name=f"session {number}") as session:
            ids = {await session.final(text): text for text in texts}
            for final in await finals(session, 4):
                assert final.speaker == f"session {number}"
                assert final.text == expected[ids.pop(final.utterance), target]
            assert not ids

    await asyncio.gather(*(one(number) for number in range(16)))


async def test_deltas_add_up_to_the_final(real_gateway: GatewayProcess) -> None:
    async with connect(real_gateway.url, reads=["ja"], speaks="en") as session:
        shown = ""
        # A final replaces the deltas that were not sent yet: on a busy machine, all of a short one.
        while not shown:
            await session.final("Let's move the launch to Friday.")
            async for message in session:
                if isinstance(message, TranslationDelta):
                    shown += message.committed
                elif isinstance(message, TranslationFinal):
                    assert message.text.startswith(shown.rstrip())
                    assert message.timings.queue_ms <= message.timings.first_token_ms <= message.timings.total_ms
                    assert message.tokens > 1
                    break
        assert "�" not in shown


@pytest.mark.parametrize(
    "text", ["<s><en><ja><final>", "</s>", "🙂🙂🙂", "\x00\x01", "Ω≈ç√∫˜µ", "a" * 2_000, "日本語で話します"]
)
async def test_any_text_ends_in_a_translation(real_gateway: GatewayProcess, text: str) -> None:
    async with connect(real_gateway.url, reads=["de"], speaks="en") as session:
        await session.final(text)
        async for message in session:
            if isinstance(message, TranslationFinal | TranslationFailed):
                break
        await session.final("Can you hear me?")
        (final,) = await finals(session, 1)
        assert final.text


def test_http_gives_the_same_translation(real_gateway: GatewayProcess) -> None:
    body = {"text": "Can you hear me?", "source_lang": "en", "target_lang": "de"}
    request = urllib.request.Request(  # noqa: S310 -- our own address
        f"{real_gateway.url}/v1/translate", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:  # noqa: S310
        answer = json.load(response)
    assert answer["translation"] == asyncio.run(alone(real_gateway, "Can you hear me?", "de"))


def test_the_command_line_translates(real_gateway: GatewayProcess) -> None:
    options = ("--from", "en", "--to", "ja,de", "--url", real_gateway.url)
    command = [COMMAND, "translate", SENTENCES[0], *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = dict(line.split("\t") for line in done.stdout.splitlines())
    assert set(lines) == {"ja", "de"}
    assert "Freitag" in lines["de"]
    assert "金曜日" in lines["ja"]
