"""From what readers saw and counters say to the scores of each pair.

Knows: the scores and what they are made of. Pure. Must not know: sockets, clocks, how a result looks.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from gateway.domain.sessions import Stability
from loadtest.partials import scoring
from loadtest.partials.result import Display, PairScores, Phase, Spending
from loadtest.partials.scoring import State
from loadtest.partials.screens import Arm, Reading, broken, contradictions, states
from loadtest.talk.streams import Stream

# What may become of a revision, as `gateway_partials_total` has it.
_OUTCOMES = ("translated", "superseded", "unchanged", "rejected", "preempted", "refused", "failed")


def broken_promises(streams: Sequence[Stream], readings: Sequence[Reading]) -> list[str]:
    """Sentences on every reader who did not get what was promised."""
    revisions = {stream.id: len(stream.revisions) for stream in streams}
    together: defaultdict[tuple[str, str], list[Reading]] = defaultdict(list)
    for reading in readings:
        if reading.arm is Arm.OURS:
            together[reading.stream, reading.lang].append(reading)
    single = chain.from_iterable(
        broken(reading, revisions[reading.stream] + 1 if reading.arm is Arm.NAIVE else 1) for reading in readings
    )
    return [*single, *chain.from_iterable(map(contradictions, together.values()))]


def pair_scores(
    streams: Sequence[Stream],
    readings: Sequence[Reading],
    phases: Sequence[Phase],
    tokens: Callable[[str], int],
) -> list[PairScores]:
    """One entry for each pair, in the order of the phases. tokens: of a final text, its end included."""
    found: list[PairScores] = []
    for phase in phases:
        if phase.arm is Arm.OURS:
            spoken = [stream for stream in streams if stream.lang == phase.source]
            of_arm = {each.arm: each for each in phases if each.source == phase.source}
            for target in phase.targets:
                here = {(each.arm, each.stability, each.stream): each for each in readings if each.lang == target}
                found.append(_Pair(spoken, here, of_arm, target, tokens).scores())
    return found


@dataclass(frozen=True)
class _Pair:
    """All readings of one pair."""

    streams: Sequence[Stream]
    readings: Mapping[tuple[Arm, Stability, str], Reading]
    phases: Mapping[Arm, Phase]
    target: str
    tokens: Callable[[str], int]

    def scores(self) -> PairScores:
        ours, alone = self._finals(Arm.OURS, "stable"), self._finals(Arm.ALONE, "final")
        both = [stream.id for stream in self.streams if stream.id in ours and stream.id in alone]
        phase = self.phases[Arm.OURS]
        outcomes = {
            name: round(phase.counted("gateway_partials_total", lang=self.target, outcome=name))
            for name in _OUTCOMES
        }
        return PairScores(
            source=phase.source,
            target=self.target,
            streams=len(self.streams),
            revisions=sum(len(stream.revisions) for stream in self.streams),
            live=self._display(Arm.OURS, "live"),
            stable=self._display(Arm.OURS, "stable"),
            final_only=self._display(Arm.OURS, "final"),
            naive=self._display(Arm.NAIVE, "final"),
            ours=self._spending(Arm.OURS, ours),
            naively=self._spending(Arm.NAIVE, self._finals(Arm.NAIVE, "final")),
            alone=self._spending(Arm.ALONE, alone),
            outcomes={name: count for name, count in outcomes.items() if count},
            kept=self._kept(),
            chrf_alone=scoring.chrf([ours[id] for id in both], [alone[id] for id in both]),
        )

    def _screens(self, arm: Arm, stability: Stability) -> Iterator[tuple[Stream, list[State]]]:
        """Streams whose translation is complete, with what was shown of them."""
        for stream in self.streams:
            reading = self.readings.get((arm, stability, stream.id))
            if reading is not None and reading.finals and (shown := states(reading)):
                yield stream, shown

    def _finals(self, arm: Arm, stability: Stability) -> dict[str, str]:
        return {stream.id: shown[-1].text for stream, shown in self._screens(arm, stability)}

    def _display(self, arm: Arm, stability: Stability) -> Display:
        taken_back = before = total = 0
        behind: list[float] = []
        first: list[float] = []
        for stream, shown in self._screens(arm, stability):
            texts = [state.text for state in shown]
            final = len(scoring.units(texts[-1], self.target))
            total += final
            taken_back += scoring.erasure(texts, self.target)
            # In the naive arm the last word is one more revision.
            before += scoring.erasure(texts[:-1], self.target)
            source = len(scoring.units(stream.final.text, stream.lang))
            heard = [(float(r.at_ms), len(scoring.units(r.text, stream.lang))) for r in stream.revisions]
            on_screen = [(state.at_ms, len(scoring.units(state.text, self.target))) for state in shown]
            behind += scoring.lags(on_screen, heard, stream.final.at_ms, source, final)
            if (at_ms := scoring.first_ms(shown)) is not None:
                first.append(at_ms - stream.revisions[0].at_ms)
        return Display(
            erasure=round(taken_back / max(total, 1), 4),
            erasure_before=round(before / max(total, 1), 4),
            lag_median=round(statistics.median(behind), 3) if behind else None,
            first_ms=round(statistics.median(first), 3) if first else None,
        )

    def _spending(self, arm: Arm, finals: Mapping[str, str]) -> Spending:
        phase, lang = self.phases[arm], self.target
        generated = sum(
            phase.counted(f"gateway_{stage}_tokens_total", lang=lang) for stage in ("partial", "final")
        )
        engine_s = phase.counted("gateway_generation_seconds_total", lang=lang) / max(len(self.streams), 1)
        return Spending(round(generated), sum(map(self.tokens, finals.values())), round(engine_s, 4))

    def _kept(self) -> float:
        """Share of the finals that begin with what was committed before."""
        screens = [shown for _, shown in self._screens(Arm.OURS, "stable")]
        kept = sum(len(shown) < 2 or shown[-1].text.startswith(shown[-2].committed.rstrip()) for shown in screens)
        return round(kept / max(len(screens), 1), 4)
