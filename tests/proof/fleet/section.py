"""The section of the page about two pods."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from tests.proof.eras import ALOS_3_8, EOS_2_6_2, EOS_3_6_2, EOS_3_8, EOS_4_2_2
from tests.proof.fleet.figures import FleetFigures, FleetMiss, FleetPlan, Jury

ERAS = (EOS_3_8, EOS_3_6_2, EOS_2_6_2, EOS_4_2_2, ALOS_3_8)
PLANS = (
    FleetPlan(words=9, severe=100, others=60, disturbed=20),
    FleetPlan(words=9, severe=40, others=30, disturbed=10, standbys=1),
)
_NAMES = " | ".join(FleetMiss)
HEAD = f"""
# Two pods

Lives of two pods on one changelog with one task (`tests/proof/fleet`), by what both agents ship: hand-over, standby,
an expelled owner that works on, crash, wipe, restore. Judged by the rules of the fleet audit and by `safe-to-restart`:
classes drawn of those of at most {PLANS[0].words} words. Of some every event is lost in turn, and all before or after
it, stretches, and a whole agent; nothing may become surer or safer by that. The goal of the last columns is 0; what
they count though no agent's word can tell it (`is_let_pass`) is in brackets.

| era | standbys | lives | classes | damaged, mixed, exposed, benign | judged | tellings | {_NAMES} |
|---|---:|---:|---:|---|---:|---:|{"---:|" * len(FleetMiss)}
"""


def section(words: Sequence[str]) -> tuple[str, bool]:
    """Judge the eras whose name contains a word, or all; returns the text, and whether all goals are met."""
    found = []
    for era in ERAS:
        for plan in PLANS if not words or any(word in era.name for word in words) else ():
            found.append(Jury(era, plan).draws())
            sys.stdout.write(_row(found[-1]))
            sys.stdout.flush()
    text = HEAD + "".join(map(_row, found)) + "".join(part for one in found for part in _stories(one))
    return text, not any(one.unsaid() for one in found)


def _row(found: FleetFigures) -> str:
    kinds = ", ".join(str(found.classes[what]) for what in ("damaged", "mixed", "exposed", "benign"))
    unsaid = [miss for miss, _, _ in found.unsaid()]
    misses = " | ".join(
        f"{unsaid.count(miss)} ({len(found.misses[miss]) - unsaid.count(miss)})" for miss in FleetMiss
    )
    return (
        f"| {found.era.name} ({found.era.release}) | {found.plan.standbys} | {found.lives} | {found.classes.total()} |"
        f" {kinds} | {found.judged.total()} | {found.tellings} | {misses} |\n"
    )


def _stories(found: FleetFigures) -> Iterator[str]:
    """Tell the shortest script that misses a goal."""
    unsaid = found.unsaid()
    for miss in FleetMiss:
        scripts = [(len(script), str(script), script, why) for one, script, why in unsaid if one is miss]
        if scripts:
            _, _, script, why = min(scripts)
            seen = ", ".join(" ".join(map(str, word)) for word in script)
            yield f"\n## {found.era.name}: {miss}\n\n{why}. Seen: {seen}.\n"
