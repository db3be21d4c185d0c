"""Engine port over an engine that several workers share, in a process that their parent has started.

Tokens come straight from the engine's host, and this process makes text of them. How the engine is, and where it
is reached, is the parent's word: it alone sees a crash or a stall, and starts the engine again.
Knows: the messages of `host.messages`, the parent's word.
Must not know: processes, other workers, which engine it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.domain.engine import EngineCapacity, EngineHealth, EngineProfile, EngineState
from gateway.domain.errors import EngineUnavailable, StartupError
from gateway.engines.host.answers import Window
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import Demand, Slots, Started, ToGateway, ToHost, Wanted
from gateway.engines.host.sharing import DEMAND_S
from gateway.engines.lifecycle import Generations, Lifecycle
from gateway.engines.prompting.completions import OnNews, Prompt
from gateway.runtime import cancelled

# Time between two attempts to reach the host, and the longest for one.
_AGAIN_S, _CONNECT_S = 0.05, 10.0

# Time between two looks at what waits, while something is generated.
_LOOK_S = 0.05

_AGAIN = "The engine died and is being started again."


class SharedEngine(Window):
    """Engine port. `follow_parent` is to be called with all that the parent says of it.

    on_change: called once for each new state. on_slots: called when this worker may run more or fewer sequences.
    waiting: which translations of this worker wait for a slot.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[EngineHealth], None] = lambda _: None
        self.on_slots: Callable[[], None] = lambda: None
        super().__init__(Lifecycle(tried_again=True, on_change=lambda health: self.on_change(health)), 1)
        # Where the host is. None: the parent says that there is none.
        self._path: Path | None = None
        # Whether there is a host, and no connection to it.
        self._missing = asyncio.Event()
        self._ready = asyncio.Event()
        self._connecting: asyncio.Task[None] | None = None
        # Cancelled by `stop`.
        self._translates: asyncio.Task[None] | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._said, self._said_s = Wanted(), 0.0

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Returns once it is ready, even if the engine fails before. Raises `StartupError` once it is stopped."""
        if self._life.state is not EngineState.STOPPED:
            await self._ready.wait()
        if self._life.state is EngineState.STOPPED:
            raise StartupError("The engine was stopped while it started.")

    async def stop(self) -> None:
        self._life.become(EngineState.STOPPED, "the engine was stopped")
        self._disconnect("The engine was stopped.")
        self._ready.set()
        tasks = self._connecting, self._translates
        self._connecting = self._translates = None
        await cancelled(*tasks)

    def follow_parent(self, health: EngineHealth, path: Path | None, profile: EngineProfile | None = None) -> None:
        """The parent says how the engine is, and where it is reached while it is ready.

        profile: what it could do when it was last ready, if the parent knows.
        """
        self._profile = profile or self._profile
        self._path = path if health.state is EngineState.READY else None
        if health.state is EngineState.READY:
            self._missing.set()
            if self._connecting is None and self._life.state is not EngineState.STOPPED:
                # Awaited by `stop`.
                self._connecting = asyncio.create_task(self._stay_connected(), name="shared engine")
            return
        self._missing.clear()
        state = health.state
        if self._profile is None and state is EngineState.RESTARTING:
            # Where it has not been ready yet, it is still being started.
            state = EngineState.STARTING
        elif state is EngineState.STOPPED:
            state = EngineState.RESTARTING
        self._life.become(state, health.reason)
        self._disconnect(_AGAIN)

    async def until_reached(self) -> None:
        """Returns once it is ready, if the parent says that the engine is."""
        if self._path is not None:
            await self._ready.wait()

    async def _stay_connected(self) -> None:
        while True:
            await self._missing.wait()
            if self._path is not None:
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(_CONNECT_S):
                        await self._connect(self._path)
            await asyncio.sleep(_AGAIN_S)

    async def _connect(self, path: Path) -> None:
        def heard(message: ToGateway) -> None:
            if self._channel is channel:
                self._heard(message)

        def lost() -> None:
            if self._channel is channel:
                self._broken("The engine's process ended.")

        channel: Channel[ToHost, ToGateway] = Channel(ToGateway, heard, lost)
        # Before it is connected: the host may answer before this goes on.
        self._generations = Generations()
        self._channel = channel
        self._missing.clear()
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: channel, str(path))
        except BaseException:
            if self._channel is channel:
                self._disconnect(_AGAIN)
            raise
        if self._channel is not channel:
            channel.close()

    def _broken(self, reason: str) -> None:
        """The engine is gone, which the parent has not said yet."""
        if self._profile is not None:
            self._life.become(EngineState.RESTARTING, _AGAIN)
        self._disconnect(reason)

    def _disconnect(self, reason: str) -> None:
        if (channel := self._channel) is not None:
            self._channel = None
            channel.close()
        if self._path is not None:
            self._missing.set()
        self._generations.end(reason)

    # ------------------------------------------------------------ messages

    def _heard(self, message: ToGateway) -> None:
        match message:
            case Started():
                self._capacity = EngineCapacity(message.max_running, 0, 0)
                if self._translates is not None:
                    self._translates.cancel()
                self._translates = asyncio.create_task(self._be_ready(message))
            case Slots():
                before = self._capacity.max_running
                super()._heard(message)
                if message.granted != before:
                    self.on_slots()
            case _:
                super()._heard(message)

    async def _be_ready(self, started: Started) -> None:
        """Become ready once prompts can be made, if it has not lost its host meanwhile."""
        channel = self._channel
        if self._model != started.model:
            self._model, self._translator = started.model, None
        try:
            await self.prepare()
        except StartupError as error:
            self._life.become(EngineState.FAILED, error.message)
            return
        if self._channel is channel:
            self._profile = started.profile
            self._ready.set()
            self._life.become(EngineState.READY)

    def _look(self) -> None:
        """Tell the host how much waits, if that has changed or was said a while ago, as long as something runs."""
        self._looking = None
        loop = asyncio.get_running_loop()
        waiting = self.waiting()
        if waiting != self._said or (waiting != Wanted() and loop.time() - self._said_s > DEMAND_S / 2):
            self._said, self._said_s = waiting, loop.time()
            if self._channel is not None:
                self._channel.say(Demand(waiting))
        if self._answers:
            self._looking = loop.call_later(_LOOK_S, self._look)

    # ------------------------------------------------------------ generations

    async def _begin(self, prompt: Prompt, on_news: OnNews) -> None:
        generations = self._generations
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)
        try:
            await super()._begin(prompt, on_news)
        except EngineUnavailable:
            # The engine may have died in a host that still runs; the parent will see it.
            if generations is self._generations:
                self._broken(_AGAIN)
            raise

    # ------------------------------------------------------------ state

    async def metrics(self, _names: Sequence[str] = ()) -> bytes:
        """None: the parent has those of the engine, once for all workers."""
        return b""
