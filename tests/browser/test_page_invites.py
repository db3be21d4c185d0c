"""The page behind a link with an invite. What gives tokens is played, and the gateway behind it lets everybody in;
at the end, one guest meets a gateway with keys."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Request, Route, WebSocketRoute, expect

from gateway.cli.main import main
from tests.browser.axe import scan
from tests.browser.pages import (
    DESKTOP,
    PHONE,
    SENTENCE,
    captions_connected,
    cell,
    connected,
    join,
    new_meeting,
    row,
    say,
    sent,
    settled,
    show,
    until,
)
from tests.browser.test_panels import read_code
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess, gateway_process

pytestmark = pytest.mark.browser

INVITE = "inv.a-b_c~1"
OUTDATED = "inv.outdated"
ENDED = {
    **{"type": "error", "code": "meeting_ended", "message": "The operator has ended this meeting."},
    **{"retryable": False, "retry_after_ms": None, "utterance": None, "field": None},
}


class Tokens:
    """What answers `POST /v1/tokens`, and what it was asked."""

    def __init__(self, *roles: str, **grant: Any) -> None:
        self.asked: list[dict[str, str]] = []
        self.refuses = False
        self._grant = {"roles": roles, "langs": None, "speaks": None, "once": False, **grant}

    @property
    def given(self) -> list[str]:
        return [f"secret-{number}" for number in range(1, len(self.asked) + 1)]

    async def answer(self, route: Route) -> None:
        request = route.request
        assert (request.method, "authorization" in request.headers) == ("POST", False)
        self.asked.append(request.post_data_json or {})
        if self.refuses or self.asked[-1]["invite"] == OUTDATED:
            problem = {
                "type": "/errors/unauthenticated",
                "status": 401,
                "code": "unauthenticated",
                "detail": "No.",
            }
            return await route.fulfill(status=401, json=problem, content_type="application/problem+json")
        times = {"expires_at": "2026-11-23T12:00:00Z", "expires_in_s": 600}
        await route.fulfill(json={"token": self.given[-1], **times, **self._grant})


class Visit:
    """A tab at a gateway that wants tokens."""

    def __init__(self, watch: Watch, gateway: GatewayProcess, tokens: Tokens) -> None:
        self.watch = watch
        self.page = watch.page
        self.gateway = gateway
        self.tokens = tokens
        self.addresses: list[str] = []
        self.page.on("request", self._on_request)
        self.page.on("websocket", lambda socket: self.addresses.append(socket.url))

    def _on_request(self, request: Request) -> None:
        # The fragment of an address stays in the browser.
        self.addresses.append(request.url.partition("#")[0])

    async def goto(self, address: str) -> None:
        await self.page.goto(f"{self.gateway.url}/{address}")

    @property
    def starts(self) -> list[dict[str, Any]]:
        return sent(self.watch, "session.start")


@pytest.fixture
def visit(open_page: OpenPage, gateway: GatewayProcess) -> Any:
    """Opens a tab; the roles are those of the invite. At the end, the invite and the tokens were told nobody."""

    @asynccontextmanager
    async def opened(
        *roles: str,
        meeting: str = "",
        name: str | None = None,
        limits: dict[str, Any] | None = None,
        **options: Any,
    ) -> AsyncIterator[Visit]:
        async with open_page(f"{gateway.url}/healthz", **options) as watch:
            watch.allow("favicon.ico")
            watch.allow("401")
            tokens = Tokens(*roles, meeting=meeting or new_meeting(), name=name, **limits or {})
            await watch.page.route("**/v1/tokens", tokens.answer)
            await watch.page.route("**/readyz*", _wants_tokens)
            visited = Visit(watch, gateway, tokens)
            yield visited
            for address in visited.addresses:
                assert "inv." not in address
                assert "secret" not in address
            stored = await watch.page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
            assert "secret" not in stored

    return opened


async def _wants_tokens(route: Route) -> None:
    await route.fulfill(json={"status": "ready", "reason": "", "running": 0, "waiting": 0, "auth": "token"})


def alert(page: Page) -> Any:
    return page.get_by_role("alert")


async def test_read_only_guest_is_asked_name_and_language(visit: Any, artifacts: Any) -> None:
    async with visit("read", meeting="weekly-reader", **DESKTOP) as visited:
        page = visited.page
        await visited.goto(f"#invite={INVITE}")
        dialog = page.get_by_role("dialog", name="Join the meeting")
        await expect(dialog).to_contain_text("weekly-reader")
        await expect(dialog.get_by_role("radio")).to_have_count(0)
        await dialog.get_by_label("Your name").fill("Ana")
        await dialog.get_by_label("I read").select_option("ja")
        await dialog.get_by_role("button", name="Join").click()
        await connected(page)
        (start,) = visited.starts
        assert (start["meeting"], start["name"], start["reads"]) == ("weekly-reader", "Ana", ["ja"])
        assert start["token"] == visited.tokens.given[-1]
        await expect(page.get_by_text("You are reading along.")).to_be_visible()
        for testid in ("text", "microphone", "speak-too", "empty-speak", "empty-play", "sample"):
            await expect(page.get_by_test_id(testid).locator("visible=true")).to_have_count(0)
        people = await show(page, "people")
        await expect(people.get_by_test_id("download")).to_be_hidden()
        engine = await show(page, "engine")
        await expect(engine.get_by_test_id("load-add-5")).to_be_hidden()
        await show(page, "reading")
        await page.screenshot(path=artifacts / "page-invited-reader.png")
        assert not (await scan(page)).serious

        # The invite stays in the address, and a reload asks nothing: it is the same guest.
        await page.reload()
        await connected(page)
        assert page.url.endswith(f"#invite={INVITE}")
        assert len(visited.starts) == 2
        (guest,) = {asked["guest"] for asked in visited.tokens.asked}
        assert len(guest) >= 16
        assert {asked["invite"] for asked in visited.tokens.asked} == {INVITE}
        tokens = [start["token"] for start in visited.starts]
        assert len(set(tokens)) == 2
        assert set(tokens) <= set(visited.tokens.given)


async def test_named_guest_who_only_speaks_is_asked_nothing(visit: Any) -> None:
    async with visit("speak", name="Bo") as visited:
        page = visited.page
        await visited.goto(f"#invite={INVITE}")
        await connected(page)
        (start,) = visited.starts
        assert (start["name"], start["reads"], start["originals"]) == ("Bo", [], False)
        await say(page, SENTENCE)
        await expect(row(page, SENTENCE)).to_be_visible()
        await show(page, "reading")
        await expect(page.get_by_test_id("read-ja")).to_be_hidden()
        people = await show(page, "people")
        await expect(people.get_by_test_id("own")).to_contain_text("Bo")
        await expect(people.get_by_test_id("rename")).to_be_hidden()
        await page.get_by_test_id("share").click()
        await expect(page.get_by_test_id("link")).to_be_visible()
        await expect(page.get_by_test_id("captions-link")).to_have_count(0)


async def test_full_guest_shares_invite_and_saves_transcript(visit: Any) -> None:
    async with visit("speak", "read", "transcript", **DESKTOP) as visited:
        page = visited.page
        await visited.goto(f"#invite={INVITE}")
        await join(page, "Ana", reads="ja")
        await settled(await say(page, SENTENCE))
        await expect(cell(row(page, SENTENCE), "ja")).to_have_text(f"[ja] {SENTENCE}")

        people = await show(page, "people")
        async with (
            page.expect_request("**/transcript.txt*") as asking,
            page.expect_download() as saving,
        ):
            await people.get_by_test_id("download").click()
        assert (await (await asking.value).all_headers())["authorization"] == f"Bearer {visited.tokens.given[-1]}"
        assert SENTENCE in (await (await saving.value).path()).read_text()

        await page.get_by_test_id("share").click()
        link = f"{visited.gateway.url}/#invite={INVITE}"
        await expect(page.get_by_test_id("link")).to_have_value(link)
        await expect(page.get_by_test_id("captions-link")).to_have_value(
            f"{visited.gateway.url}/?view=captions&lang=en&lines=2&size=2.25#invite={INVITE}"
        )
        assert await read_code(page.get_by_role("img", name="QR code of the meeting link")) == link


async def test_guest_without_any_language_neither_reads_nor_speaks(visit: Any) -> None:
    # The gateway does not know the one language.
    limits = {"langs": ["tlh"], "speaks": []}
    async with visit("speak", "read", "transcript", name="Bo", limits=limits) as visited:
        page = visited.page
        await visited.goto(f"#invite={INVITE}")
        await connected(page)
        (start,) = visited.starts
        assert (start["reads"], start["speaks"], start["originals"]) == ([], None, False)
        await expect(page.get_by_text("You were invited neither to speak nor to read.")).to_be_visible()
        await expect(page.get_by_test_id("composer")).to_be_hidden()
        people = await show(page, "people")
        await expect(people.get_by_test_id("download")).to_be_hidden()


async def test_without_an_invite_the_page_explains_and_waits(visit: Any, artifacts: Any) -> None:
    """Nothing is tried."""
    async with visit("read", **PHONE) as visited:
        page = visited.page
        await visited.goto("?meeting=weekly")
        await expect(alert(page)).to_contain_text("Ask whoever holds the meeting for a link")
        await expect(page.get_by_test_id("status")).to_have_text("No access")
        await page.screenshot(path=artifacts / "page-not-invited.png")
        assert not (await scan(page)).serious
        assert visited.tokens.asked == []
        assert not any(address.startswith("ws") for address in visited.addresses)


async def test_refused_invite_is_tried_once(visit: Any) -> None:
    """A new link in the same tab works."""
    async with visit("read") as visited:
        page = visited.page
        await page.clock.install()
        await visited.goto(f"#invite={OUTDATED}")
        await expect(alert(page)).to_contain_text("Ask whoever sent you the link for a new one.")
        await expect(page.get_by_test_id("status")).to_have_text("No access")
        # The gateway is still asked whether it is ready. What the first answer caused comes before the second one.
        for _ in range(2):
            async with page.expect_response("**/readyz*"):
                await page.clock.run_for(15_000)
        assert [asked["invite"] for asked in visited.tokens.asked] == [OUTDATED]
        await page.clock.resume()
        await visited.goto(f"#invite={INVITE}")
        await expect(page.get_by_role("dialog", name="Join the meeting")).to_be_visible()
        await expect(alert(page)).to_be_hidden()
        assert len({asked["guest"] for asked in visited.tokens.asked}) == 2


class Line:
    """The connection of the page with the gateway, with a say in it: a language may be forbidden."""

    def __init__(self, forbidden: str = "") -> None:
        self._forbidden = forbidden
        self.sockets: list[WebSocketRoute] = []
        self.refreshes: list[str] = []

    def __call__(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        gateway = socket.connect_to_server()

        def on_message(frame: str | bytes) -> None:
            message = json.loads(frame)
            if message["type"] == "session.refresh":
                self.refreshes.append(message["token"])
                self.say({"type": "session.refreshed", "expires_in_ms": 600_000})
            elif message["type"] == "session.start" and self._forbidden in message["reads"]:
                field = f"reads[{message['reads'].index(self._forbidden)}]"
                self.say({"type": "error", "code": "forbidden", "message": "No.", "field": field})
            else:
                gateway.send(frame)

        socket.on_message(on_message)

    def say(self, message: dict[str, Any]) -> None:
        self.sockets[-1].send(json.dumps(message))


async def test_a_refresh_in_the_meeting_is_not_noticed(visit: Any) -> None:
    async with visit("speak", "read") as visited:
        page, line = visited.page, Line()
        await page.route_web_socket("**/v1/stream", line)
        await visited.goto(f"#invite={INVITE}")
        await join(page, "Ana", reads="ja")
        line.say({"type": "token.expiring", "expires_in_ms": 60_000})
        await until(lambda: len(line.refreshes) == 1)
        assert line.refreshes == visited.tokens.given[-1:]
        await settled(await say(page, SENTENCE))
        assert len(line.sockets) == 1
        await expect(alert(page)).to_be_hidden()
        await connected(page)


async def test_languages_the_invite_forbids_are_left_out(visit: Any) -> None:
    async with visit("speak", "read") as visited:
        page, line = visited.page, Line("ja")
        await page.route_web_socket("**/v1/stream", line)
        await page.evaluate("localStorage.setItem('reads', 'ja,de')")
        await visited.goto(f"#invite={INVITE}")
        await join(page, "Ana", reads="de")
        await expect(alert(page)).to_contain_text("Not all of your languages can be read in this meeting.")
        pane = await show(page, "reading")
        await expect(pane.get_by_test_id("read-de")).to_be_checked()
        await expect(pane.get_by_test_id("read-ja")).not_to_be_checked()


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("token_revoked", 4503, "Your access to this meeting was withdrawn."),
        ("unauthenticated", 4501, "Ask whoever sent you the link for a new one."),
    ],
)
async def test_losing_access_is_announced_without_reconnecting(
    visit: Any, code: str, status: int, words: str
) -> None:
    async with visit("speak", "read") as visited:
        page, line = visited.page, Line()
        await page.route_web_socket("**/v1/stream", line)
        await visited.goto(f"#invite={INVITE}")
        await join(page, "Ana", reads="ja")
        line.say({"type": "error", "code": code, "message": "No.", "retryable": False})
        await line.sockets[-1].close(code=status)
        await expect(alert(page)).to_contain_text(words)
        await expect(page.get_by_test_id("status")).to_have_text("Disconnected")
        await page.clock.install()
        await page.clock.run_for(60_000)
        assert len(line.sockets) == 1


async def test_expired_invite_ends_the_meeting_in_plain_words(visit: Any) -> None:
    async with visit("speak", "read") as visited:
        page, line = visited.page, Line()
        await page.route_web_socket("**/v1/stream", line)
        await visited.goto(f"#invite={INVITE}")
        await join(page, "Ana", reads="ja")
        visited.tokens.refuses = True
        line.say({"type": "error", "code": "token_expired", "message": "It is over.", "retryable": False})
        await line.sockets[-1].close(code=4401)
        await expect(alert(page)).to_contain_text("Ask whoever sent you the link for a new one.")
        await expect(page.get_by_test_id("status")).to_have_text("Disconnected")
        assert len(line.sockets) == 1


async def test_guest_of_an_ended_meeting_saves_what_was_shown(visit: Any) -> None:
    async with visit("speak", "read", "transcript") as visited:
        page, line, last = visited.page, Line(), visited.page.get_by_test_id("last-screen")
        await page.route_web_socket("**/v1/stream", line)
        await visited.goto(f"#invite={INVITE}")
        await join(page, "Ana", reads="ja")
        await settled(await say(page, SENTENCE))
        bo = {"participant": "bo", "utterance": "1", "speaker": "Bo", "rev": 1, "offset": 1_000}
        line.say({"type": "caption", **bo, "lang": "en", "text": "Oh.", "final": True})
        end = {"lang": "ja", "text": "[ja] Oh.", "tokens": 1, "truncated": False, "unsure": True}
        timings = {"queue_ms": 1, "first_token_ms": 2, "total_ms": 3}
        line.say({"type": "translation.final", **bo, **end, "timings": timings, "offset": 1_001})
        line.say(ENDED)
        await expect(last.get_by_role("heading")).to_have_text("The meeting has ended")
        async with page.expect_download() as saved:
            await last.get_by_role("button", name="Save what this page has shown").click()
        text = (await (await saved.value).path()).read_text()
        assert text.splitlines()[0].endswith(" You")
        assert text.splitlines()[1:3] == [SENTENCE, f"[ja] {SENTENCE}"]
        # Marked as in the gateway's files.
        assert text.splitlines()[-2:] == ["Oh.", "(?) [ja] Oh."]
        # The invite is no longer valid.
        visited.tokens.refuses = True
        await last.get_by_role("button", name="Join again").click()
        await expect(alert(page)).to_contain_text("This invite is not valid, or not any more.")
        await expect(last.get_by_role("button", name="Join again")).to_be_enabled()


async def test_reader_alone_learns_who_can_start(visit: Any) -> None:
    async with visit("read") as visited:
        await visited.goto(f"#invite={INVITE}")
        await visited.page.get_by_role("dialog").get_by_role("button", name="Join").click()
        await connected(visited.page)
        empty = visited.page.get_by_test_id("empty-state")
        await expect(empty).to_contain_text("People who were invited to speak can start the meeting.")


# -------------------------------------------------------------------- captions


async def test_captions_come_with_an_invite(visit: Any) -> None:
    async with visit("read", "speak", meeting="weekly-wall") as visited:
        page = visited.page
        await visited.goto(f"?view=captions&lang=ja#invite={INVITE}")
        await captions_connected(page)
        (start,) = visited.starts
        assert (start["meeting"], start["token"]) == ("weekly-wall", visited.tokens.given[-1])


@pytest.mark.parametrize(
    ("roles", "address", "words"),
    [
        (["read"], f"#invite={OUTDATED}", "Ask whoever sent you the link for a new one."),
        (["speak"], f"#invite={INVITE}", "This invite is not one for reading."),
    ],
)
async def test_captions_that_may_not_be_shown_say_why(
    visit: Any, roles: list[str], address: str, words: str
) -> None:
    async with visit(*roles) as visited:
        page = visited.page
        await visited.goto(f"?view=captions&lang=ja{address}")
        await expect(page.get_by_test_id("captions-message")).to_contain_text(words)
        assert len(visited.tokens.asked) == 1
        assert visited.starts == []


async def test_refused_captions_explain_the_missing_invite(visit: Any) -> None:
    async with visit() as visited:
        page = visited.page
        sockets = 0

        def refuse(socket: WebSocketRoute) -> None:
            nonlocal sockets
            sockets += 1

            async def on_message(_: str | bytes) -> None:
                socket.send(json.dumps({"type": "error", "code": "unauthenticated", "message": "No."}))
                await socket.close(code=4501)

            socket.on_message(on_message)

        await page.route_web_socket("**/v1/stream", refuse)
        await page.clock.install()
        await visited.goto("?view=captions&lang=ja&meeting=weekly")
        message = page.get_by_test_id("captions-message")
        await expect(message).to_contain_text("Ask whoever holds the meeting for a link")
        await page.clock.run_for(60_000)
        assert sockets == 1


# -------------------------------------------------------------------- a gateway with keys


@contextmanager
def gateway_with_keys(folder: Path) -> Iterator[tuple[GatewayProcess, Callable[..., str]]]:
    """A gateway, and what makes a link with an invite to the meeting `weekly` there."""
    keys = str(folder / "keys.json")
    assert main(["key", "new", "--keys", keys]) == 0

    def link(*limits: str) -> str:
        with redirect_stdout(StringIO()) as printed:
            order = ["--meeting", "weekly", "--invite", "--url", gateway.url, *limits]
            assert main(["token", "--keys", keys, *order]) == 0
        return printed.getvalue().strip()

    with gateway_process("--engine", "simulated", "--keys", keys) as gateway:
        yield gateway.ready(), link
    assert "eyJ" not in gateway.said


async def test_guest_of_a_keyed_gateway_joins_and_returns(open_page: OpenPage, tmp_path: Path) -> None:
    """Between joining and returning, the guest speaks."""
    with gateway_with_keys(tmp_path) as (gateway, link):
        async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
            watch.allow("favicon.ico")
            page = watch.page
            await page.goto(link())
            await join(page, "Ana")
            # Its words are seen before they are accepted, and only then do they outlive a reload.
            await settled(await say(page, SENTENCE))
            # The same guest, with a token of now.
            await page.reload()
            await connected(page)
            await expect(row(page, SENTENCE)).to_be_visible()
            # A guest's token is enough to have a language detected.
            await say(page, "Wir verschieben das auf Freitag.")
            note = page.get_by_test_id("composer-note")
            await expect(note).to_have_text("This looks like German, but English is chosen.")


async def values(options: Locator) -> list[str]:
    found: list[str] = await options.evaluate_all("options => options.map((option) => option.value)")
    return found


async def test_single_guest_is_offered_only_the_invites_languages(
    open_page: OpenPage, tmp_path: Path, artifacts: Path
) -> None:
    """The guest gets nothing to share."""
    with gateway_with_keys(tmp_path) as (gateway, link):
        async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
            watch.allow("favicon.ico")
            page = watch.page
            # Choices of another meeting.
            await page.evaluate("Object.assign(localStorage, { reads: 'fr,ja', lang: 'fr', speaks: 'fr' })")
            await page.goto(link("--langs", "ja,de", "--speaks", "en,es", "--once"))
            reads = page.get_by_role("dialog").get_by_label("I read").get_by_role("option")
            await expect(reads).to_have_count(2)
            assert sorted(await values(reads)) == ["de", "ja"]
            await join(page, "Ana", reads="ja")
            spoken = page.get_by_test_id("spoken-lang")
            assert sorted(await values(spoken.get_by_role("option"))) == ["auto", "en", "es"]
            await expect(spoken).to_have_value("en")
            pane = await show(page, "reading")
            chips = pane.get_by_role("group", name="Languages you read").get_by_role("checkbox")
            await expect(chips.locator("visible=true")).to_have_count(2)
            await expect(pane.get_by_test_id("originals")).to_be_hidden()
            for testid in ("share", "empty-invite"):
                await expect(page.get_by_test_id(testid)).to_have_count(0)
            await page.screenshot(path=artifacts / "page-invited-languages-empty.png")

            await settled(await say(page, SENTENCE))
            await expect(cell(row(page, SENTENCE), "ja")).to_have_text(f"[ja] {SENTENCE}")
            await expect(page.get_by_role("log").locator(".heading")).to_have_count(1)
            await expect(alert(page)).to_be_hidden()
            await page.screenshot(path=artifacts / "page-invited-languages.png")
            assert not (await scan(page)).serious


async def test_host_shares_the_invite_for_guests_and_never_the_own_one(visit: Any) -> None:
    for guests, shared in ((f"&guests={OUTDATED}", f"#invite={OUTDATED}"), ("", None)):
        async with visit("speak", "read", "host", name="Ana", **DESKTOP) as visited:
            page = visited.page
            await visited.goto(f"#invite={INVITE}{guests}")
            await page.get_by_role("dialog").get_by_role("button", name="Join").click()
            await connected(page)
            share = page.locator("button[data-testid=share]")
            if shared is None:
                await expect(share).to_have_count(0)
                continue
            await share.click()
            link = page.get_by_label("Meeting link", exact=True)
            await expect(link).to_have_value(f"{visited.gateway.url}/{shared}")
