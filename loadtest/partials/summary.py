"""From what readers saw and counters say to the scores of each pair.

Knows: the scores and what they are made of. Pure. Must not know: sockets, clocks, how a result looks.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from gateway.domain.sessions import Stability
from loadtest.partials import scoring
from loadtest.partials.result import Display, PairScores, Phase, Spending
from loadtest.partials.scoring import State
from loadtest.partials.screens import Arm, Reading, broken, contradictions, states
from loadtest.results import nearest_rank
from loadtest.talk.streams import Stream

__all__ = ["broken_promises", "pair_scores"]

# A revision with one of these outcomes was one whole request to the engine.
_REQUESTED = ("translated", "rejected")

_Key = tuple[Arm, str, Stability]


def broken_promises(streams: Sequence[Stream], readings: Sequence[Reading]) -> list[str]:
    """Sentences on every reader who did not get what was promised."""
    revisions = {stream.id: len(stream.revisions) for stream in streams}
    together: defaultdict[tuple[Arm, str, str], list[Reading]] = defaultdict(list)
    for reading in readings:
        together[reading.arm, reading.stream, reading.lang].append(reading)
    single = chain.from_iterable(
        broken(reading, revisions[reading.stream] + 1 if reading.arm is Arm.NAIVE else 1) for reading in readings
    )
    between = chain.from_iterable(
        contradictions(group) for (arm, _, _), group in together.items() if arm is Arm.OURS
    )
    return [*single, *between]


def pair_scores(
    streams: Sequence[Stream],
    readings: Sequence[Reading],
    phases: Sequence[Phase],
    tokens: Callable[[str], int],
) -> list[PairScores]:
    """One entry for each pair, in the order of the phases. tokens: of a final text, its end included."""
    found: list[PairScores] = []
    for phase in phases:
        if phase.arm is not Arm.OURS:
            continue
        spoken = [stream for stream in streams if stream.lang == phase.source]
        mine = {stream.id for stream in spoken}
        of_arm = {each.arm: each for each in phases if each.source == phase.source}
        for target in phase.targets:
            here = [each for each in readings if each.lang == target and each.stream in mine]
            found.append(_Pair(spoken, here, of_arm, target, tokens).scores())
    return found


class _Pair:
    """All readings of one pair."""

    def __init__(
        self,
        streams: Sequence[Stream],
        readings: Sequence[Reading],
        phases: dict[Arm, Phase],
        target: str,
        tokens: Callable[[str], int],
    ) -> None:
        self._streams = streams
        self._phases = phases
        self._target = target
        self._tokens = tokens
        self._readings: dict[tuple[_Key, str], Reading] = {
            ((each.arm, each.lang, each.stability), each.stream): each for each in readings
        }

    def scores(self) -> PairScores:
        ours, alone = self._finals(Arm.OURS, "stable"), self._finals(Arm.ALONE, "final")
        both = [stream for stream in self._streams if stream.id in ours and stream.id in alone]
        known = [stream for stream in both if self._target in stream.references]
        references = [stream.references[self._target] for stream in known]
        outcomes = self._phases[Arm.OURS].counters.by("gateway_partials_total", "outcome", lang=self._target)
        return PairScores(
            source=self._phases[Arm.OURS].source,
            target=self._target,
            streams=len(self._streams),
            revisions=sum(len(stream.revisions) for stream in self._streams),
            live=self._display(Arm.OURS, "live"),
            stable=self._display(Arm.OURS, "stable"),
            final_only=self._display(Arm.OURS, "final"),
            naive=self._display(Arm.NAIVE, "final"),
            ours=self._spending(Arm.OURS, sum(outcomes.get(name, 0) for name in _REQUESTED)),
            naively=self._spending(Arm.NAIVE, 0),
            alone=self._spending(Arm.ALONE, 0),
            outcomes={name: round(count) for name, count in sorted(outcomes.items())},
            kept=self._kept(),
            same=_share([ours[stream.id] == alone[stream.id] for stream in both]),
            chrf_alone=scoring.chrf([ours[s.id] for s in both], [alone[s.id] for s in both]),
            chrf_reference=scoring.chrf([ours[s.id] for s in known], references),
            alone_reference=scoring.chrf([alone[s.id] for s in known], references),
        )

    def _reading(self, arm: Arm, stability: Stability, stream: Stream) -> Reading | None:
        return self._readings.get(((arm, self._target, stability), stream.id))

    def _screens(self, arm: Arm, stability: Stability) -> Iterator[tuple[Stream, list[State]]]:
        """Streams whose translation is complete, with what was shown of them."""
        for stream in self._streams:
            reading = self._reading(arm, stability, stream)
            if reading is not None and reading.finals and (shown := states(reading)):
                yield stream, shown

    def _finals(self, arm: Arm, stability: Stability) -> dict[str, str]:
        return {stream.id: shown[-1].text for stream, shown in self._screens(arm, stability)}

    def _display(self, arm: Arm, stability: Stability) -> Display:
        taken_back = before = total = 0
        behind: list[float] = []
        first: list[float] = []
        laal: list[float] = []
        laal_ms: list[float] = []
        for stream, shown in self._screens(arm, stability):
            texts = [state.text for state in shown]
            final = len(scoring.units(texts[-1], self._target))
            total += final
            taken_back += scoring.erasure(texts, self._target)
            # In the naive arm the last word is one more revision.
            before += scoring.erasure(texts[:-1], self._target)
            source = len(scoring.units(stream.final.text, stream.lang))
            heard = [(float(r.at_ms), len(scoring.units(r.text, stream.lang))) for r in stream.revisions]
            on_screen = [(state.at_ms, len(scoring.units(state.text, self._target))) for state in shown]
            behind += scoring.lags(on_screen, heard, stream.final.at_ms, source, final)
            if (at_ms := scoring.first_ms(shown)) is not None:
                first.append(at_ms - stream.revisions[0].at_ms)
            if waits := scoring.delays(shown, self._target):
                length = len(scoring.units(stream.references.get(self._target, texts[-1]), self._target))
                words = [
                    source if at_ms >= stream.final.at_ms else min(scoring.heard_at(heard, at_ms), source)
                    for at_ms in waits
                ]
                laal.append(scoring.laal(words, source, length))
                laal_ms.append(scoring.laal(waits, stream.final.at_ms, length))
        return Display(
            erasure=round(taken_back / max(total, 1), 4),
            erasure_before=round(before / max(total, 1), 4),
            lag_median=_rounded(statistics.median, behind),
            lag_mean=_rounded(statistics.fmean, behind),
            first_ms=_rounded(statistics.median, first),
            first_p90_ms=_rounded(lambda values: nearest_rank(values, 0.9), first),
            laal=_rounded(statistics.fmean, laal),
            laal_ms=_rounded(statistics.fmean, laal_ms),
        )

    def _spending(self, arm: Arm, partials: float) -> Spending:
        counters = self._phases[arm].counters
        stability: Stability = "stable" if arm is Arm.OURS else "final"
        readings = [self._reading(arm, stability, stream) for stream in self._streams]
        finals = sum(len(reading.finals) for reading in readings if reading is not None)
        generated = sum(
            counters.total(f"gateway_{stage}_tokens_total", lang=self._target) for stage in ("partial", "final")
        )
        count = max(len(self._streams), 1)
        return Spending(
            generated=round(generated),
            final=sum(map(self._tokens, self._finals(arm, stability).values())),
            engine_s=round(counters.total("gateway_generation_seconds_total", lang=self._target) / count, 4),
            requests=round((partials + finals) / count, 2),
        )

    def _kept(self) -> float:
        kept: list[bool] = []
        for _, shown in self._screens(Arm.OURS, "stable"):
            committed = shown[-2].committed.rstrip() if len(shown) > 1 else ""
            kept.append(shown[-1].text.startswith(committed))
        return _share(kept)


def _share(holds: Sequence[bool]) -> float:
    return round(sum(holds) / max(len(holds), 1), 4)


def _rounded(of: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return round(of(values), 3) if values else None
