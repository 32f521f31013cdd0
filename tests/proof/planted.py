"""Wrong conditions, planted in the rules of the detectors: the model alone has to find them.

    python tests/proof/planted.py

Each silence is asked again without the condition that it rests on, and each suspicion is taken for certain: what would
be said then is held against the lives of the class. Exit code 1: one of `PLANTED` is not found.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from agent.contract.events import Confidence, Level, Severity  # noqa: E402 - the repository goes on the path first
from agent.detectors import DETECTORS  # noqa: E402
from agent.judging.base import AgentCase, ApplicationCase, Detector, Verdict  # noqa: E402
from agent.judging.rule import Rule, Silence  # noqa: E402
from tests.proof import eras  # noqa: E402
from tests.proof.classes import Classes, Lives, Script, kind  # noqa: E402
from tests.proof.figures import MORE_WRITES, Miss, missed  # noqa: E402
from tests.proof.play import DECIDED_S, Said, Stage, Told, scenario  # noqa: E402

CERTAIN = "taken for certain"
Planted = tuple[str, str]
"""Detector, and the condition that is missing; or `CERTAIN`."""
PLANTED: frozenset[Planted] = frozenset({
    ("data-beyond-changelog", "as many puts as there may be records"),
    ("data-beyond-changelog", "the next stored offset, as long as the store is open"),
    ("false-clean-store", "closed with its offset"),
    ("false-clean-store", "killed open"),
    ("false-clean-store", CERTAIN),
    ("frozen-checkpoint", "at most 10,000 records were flushed since"),
    ("frozen-checkpoint", "fewer than five commits were missed"),
    ("interrupted-wipe", CERTAIN),
    ("lost-segment", CERTAIN),
    ("offset-beyond-durable", CERTAIN),
    ("premature-cleanup", "exactly-once wipes a task right after its close"),
    ("premature-cleanup", "the cleaner waited for its delay"),
    ("resurrected-checkpoint", "a new topology added it: no checkpoint names it"),
    ("skipped-eos-wipe", "nothing was flushed beyond the checkpoint"),
    ("skipped-eos-wipe", CERTAIN),
    ("stale-eos-checkpoint", "nothing was flushed beyond the checkpoint"),
    ("stale-eos-checkpoint", CERTAIN),
    ("stale-segment-offset", "the oldest segment is hardly behind the newest"),
    ("store-shrank", CERTAIN),
    ("torn-store", "a deletion may go on"),
    ("unrestored-store", CERTAIN),
    ("zombie-state", "tombstones of that time still live"),
})  # fmt: skip
"""They were found; one that is no longer found shows that the model got blind."""
WORDS, WRITES, SAMPLED, DRAWS = 7, 1, 60, 4
OF_SEGMENTS = 9, 2
"""Words and writes where there are two segments: each has to be made, and takes records of its own."""


def without(detector: Detector, case: AgentCase) -> Iterator[tuple[Planted, Verdict]]:
    """Give what a detector would say of a case if one of its conditions were missing, or a suspicion were proof."""
    for docket in detector.dockets:
        for story, rule, decision in docket.decisions(case):
            if isinstance(decision, Verdict):
                sure = replace(decision, severity=Severity.CRITICAL, confidence=Confidence.CONFIRMED)
                if decision.severity is not Severity.INFO and decision.confidence is Confidence.SUSPECTED:
                    yield (detector.meta.id, CERTAIN), sure
            else:
                yield from _asked_again(detector, rule, story, decision)


def _asked_again(
    detector: Detector, rule: Rule[Any], story: Any, silence: Silence
) -> Iterator[tuple[Planted, Verdict]]:
    changed = replace(
        rule,
        innocents={name: x for name, x in rule.innocents.items() if name != silence.name},
        unknowns={name: x for name, x in rule.unknowns.items() if name != silence.name},
    )
    with suppress(TypeError, ValueError, AttributeError, IndexError, AssertionError):
        decision = changed.decide(story)
        if isinstance(decision, Verdict) and decision.severity is not Severity.INFO:
            yield (detector.meta.id, silence.name), decision


class Listener:
    """Stands in for a detector, and notes what it would have said."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self.said: list[tuple[int, Planted, Said]] = []

    def of(self, detector: Detector) -> Detector:
        """Give a detector that says what it says, and tells the rest here."""

        def judge(case: AgentCase) -> list[Verdict]:
            if not (isinstance(case, ApplicationCase) and case.is_silent(detector.meta)):
                for planted, verdict in without(detector, case):
                    level = verdict.level or detector.meta.level or Level.DAMAGE
                    what = Said(planted[0], level, verdict.severity, verdict.confidence, at_end=False)
                    self.said.append((case.now_us, planted, what))
            return list(detector.judge(case))

        return replace(detector, judge=judge)


def found_in(era: eras.Era, script: Script, lives: Lives, *, sibling: bool) -> dict[Planted, Miss]:
    """Play a class: which planted conditions would miss a goal there."""
    listener = Listener()
    run = scenario(era, Told.ALL, tuple(listener.of(x) for x in DETECTORS))
    stage, last_us = Stage(run, sibling=sibling), 0
    for word in script:
        last_us = run.world.now_us
        stage.plays(word)
    run.wait(DECIDED_S)
    found = {}
    for at_us, planted, said in listener.said:
        for miss in missed(lives, [said._replace(at_end=at_us >= last_us)]):
            found[planted] = miss
    return found


def search(era: eras.Era, draw: int, *, sibling: bool) -> dict[Planted, tuple[Miss, Script]]:
    """Give the planted conditions that classes of an era show to be wrong, each with one of them."""
    words, writes = OF_SEGMENTS if era.segments > 1 else (WORDS, WRITES)
    classes, more = Classes(era, writes), Classes(era, writes + MORE_WRITES)
    by_kind: dict[str, list[tuple[Script, Lives]]] = {}
    for script, lives in classes.up_to(words):
        by_kind.setdefault(kind(lives), []).append((script, lives))
    dice, found = random.Random(f"{era.name}{draw}"), {}
    for some in by_kind.values():
        for script, lives in dice.sample(some, min(SAMPLED, len(some))):
            for planted, miss in found_in(era, script, lives, sibling=sibling).items():
                if planted not in found and (
                    miss is Miss.FALSE_CERTAINTY or kind(more.along(script)) == "benign"
                ):
                    found[planted] = miss, script
    return found


def main() -> int:
    """Draw classes of the eras, with and without a sibling task, until all of `PLANTED` are found; print what was."""
    found: dict[Planted, Miss] = {}
    two_segments = [x for x in eras.SEGMENTED if not x.eos]
    for draw, era in product(range(DRAWS), (*eras.ERAS, *two_segments)):
        for sibling in (False, True) if PLANTED - set(found) else ():
            for planted, (miss, script) in search(era, draw, sibling=sibling).items():
                if planted not in found:
                    found[planted] = miss
                    words = ", ".join(" ".join(str(part) for part in word) for word in script)
                    sys.stdout.write(f"{planted[0]}: {planted[1]}: {miss}: {era.name}: {words}\n")
    missing = PLANTED - set(found)
    sys.stdout.write(f"{len(found)} wrong conditions of {len({x for x, _ in found})} detectors found\n")
    sys.stdout.writelines(f"NOT FOUND: {name}: {condition}\n" for name, condition in sorted(missing))
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
