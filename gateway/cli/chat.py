"""`gateway chat`: type a sentence, watch its translations grow.

Knows: the prompt, its commands, one session (`gateway.client`).
Must not know: how flags are spelled (`cli.flags`), the server's code.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, suppress

from gateway.cli.jobs import Job, TextOptions, open_session
from gateway.cli.sessions import LAST_WORDS, EngineWait, note, note_reconnection, sentence_about
from gateway.cli.terminal.drawing import LiveLines, can_redraw, printable
from gateway.client import ClientError, ClientSession, Reconnected, SessionClosed
from gateway.client.blocking import LoopThread
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import Unauthenticated
from gateway.domain.languages import language_name, normalise
from gateway.protocol.messages import Error, SessionUpdated, TranslationFailed, TranslationFinal

HELP = """\
Type a sentence to see it translated.
  /from LANG        the language you type in, such as /from de
  /to LANG,LANG     the languages you want to read, such as /to ja,fr
  /languages        what this gateway translates between
  /help             this list
  /quit             leave (so does Ctrl-D)"""


def chat(options: TextOptions) -> int:
    """Read sentences from stdin until it ends. Returns the exit status. Raises `ClientError`."""
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    with suppress(ImportError):
        # Importing it gives `input` line editing and history.
        import readline  # noqa: F401
    with LoopThread(masked=True) as loop:
        conversation = _Conversation(options)
        try:
            loop.run(conversation.open())
            if interactive:
                print(f"{conversation.direction}. Type a sentence; /help lists the commands.")
            while True:
                try:
                    line = input(f"{conversation.source}> " if interactive else "").strip()
                except EOFError:
                    if interactive:
                        print()
                    return 0
                if line in ("/quit", "/exit"):
                    return 0
                if line:
                    loop.run(conversation.carry_out(line))
        finally:
            loop.run(conversation.close())


class _Conversation:
    """One session, one sentence at a time. Its coroutines run on the loop's thread."""

    def __init__(self, options: TextOptions) -> None:
        self.source = options.source
        self._options = options
        self._wanted = options.targets
        self._targets: tuple[str, ...] = ()
        self._stack = AsyncExitStack()
        self._session: ClientSession | None = None
        self._sentences = 0

    @property
    def direction(self) -> str:
        """Source and target languages, for people."""
        return f"{self.source} → {', '.join(self._targets) or 'nothing'}"

    async def open(self) -> None:
        self._session, self._targets = await self._stack.enter_async_context(
            open_session(self._options, EngineWait(self._options.wait_s), growing=can_redraw(sys.stdout, 1))
        )

    async def close(self) -> None:
        await self._stack.aclose()

    async def carry_out(self, line: str) -> None:
        """Carry out a command, or translate a sentence."""
        session = self._session
        assert session is not None  # noqa: S101 -- opened before the first line is read
        command, _, argument = line.partition(" ")
        match command.lower():
            case "/help":
                print(HELP)
            case "/languages":
                for lang in session.started.languages:
                    print(f"  {lang:8}{language_name(lang)}")
            case "/from" if argument.strip():
                await self._change(session, source=normalise(argument), wanted=self._wanted)
            case "/to" if wanted := tuple(normalise(tag) for tag in argument.split(",") if tag.strip()):
                await self._change(session, source=self.source, wanted=wanted)
            case "/from" | "/to":
                note(f"{command} needs a language, such as {command} ja; /languages lists them.")
            case _ if command.startswith("/"):
                note(f"There is no command {command}; /help lists them.")
            case _:
                await self._say(session, line)

    async def _change(self, session: ClientSession, *, source: str, wanted: tuple[str, ...]) -> None:
        limit = session.started.limits.languages
        others = [lang for lang in wanted or session.started.languages if lang != source]
        reads = tuple(dict.fromkeys(others if wanted else others[:limit]))
        with suppress(ClientError):  # reading the session raises the reason
            await session.update(reads=reads, speaks=source)
        async for message in session:
            note_reconnection(message)
            match message:
                case SessionUpdated():
                    self.source, self._wanted, self._targets = source, wanted, tuple(message.reads)
                    print(self.direction)
                    return
                case Error(code=Unauthenticated.code):
                    note(sentence_about(message))
                case Error() if message.code not in LAST_WORDS and not message.retryable:
                    note(message.message)
                    return
        raise SessionClosed(session.url, CloseCode.NORMAL, None)

    async def _say(self, session: ClientSession, text: str) -> None:
        if not self._targets:
            note("There is no language to translate into; choose one with /to.")
            return
        self._sentences += 1
        job = Job(self._sentences, text, self._targets, EngineWait(self._options.wait_s))
        lines = LiveLines(sys.stdout, self._targets) if can_redraw(sys.stdout, len(self._targets)) else None
        await job.send(session)
        if job.refusal is not None:
            note(job.refusal.message)
            return
        async for message in session:
            note_reconnection(message)
            match message:
                case Reconnected():
                    await job.reconnected(session)
                case Error(utterance=job.id):
                    await job.refused(session, message)
                case Error() if message.code not in LAST_WORDS:
                    note(sentence_about(message))
                case _:
                    job.note_message(message)
            if job.done:
                break
            if lines is not None:
                lines.draw(job.shown)
        else:
            raise SessionClosed(session.url, CloseCode.NORMAL, None)
        if job.refusal is not None:
            note(job.refusal.message)
            return
        if lines is not None:
            lines.finish(job.shown)
        for lang in self._targets:
            match job.ended[lang]:
                case TranslationFinal() as final if lines is None:
                    print(f"{lang}\t{printable(final.text)}", flush=True)
                case TranslationFailed() as failed:
                    note(f"{lang}: {failed.message}")
