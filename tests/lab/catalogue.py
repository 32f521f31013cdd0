"""Runs of the catalogue of scenarios, and which of them `make prove` plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.lab.design import Run, parse_name
from tests.lab.draw import draw
from tests.lab.plan import ALOS, EOS, NEWEST, Plan
from tests.lab.planted import PLANTED
from tests.lab.scenarios import SCENARIOS

LEAN: tuple[tuple[str, str, str], ...] = (
    ("k20685", "4.2.1", EOS),
    ("k20685", "3.7.2", EOS),
    ("dirty-close", "4.3.1", EOS),
    ("torn-cleanup", "3.9.2", ALOS),
    ("torn-cleanup", "4.3.1", ALOS),
    ("k20805", "4.3.0", ALOS),
    ("k20805", "4.2.1", ALOS),
    ("k7672", "2.0.1", EOS),
    ("life", "2.5.1", EOS),
    ("life", "4.3.1", ALOS),
    ("scale-standby", "3.6.2", EOS),
    ("upgrade", "3.4.1", ALOS),
    ("life-odd", "3.9.2", EOS),
    ("scale-odd", "4.3.1", EOS),
    ("compacted-log-elsewhere", "2.0.1", ALOS),
    ("life-idle", "4.3.1", EOS),
    ("lost-segment", "4.3.1", ALOS),
    ("lost-segment", "4.2.1", ALOS),
    ("lost-segment-close", "4.3.1", EOS),
    ("versioned-crash", "4.2.1", EOS),
    ("reset", "3.9.2", ALOS),
    ("life", NEWEST, ALOS),
    ("scale-standby-txn", NEWEST, EOS),
    ("upgrade-txn", "4.2.2", EOS),
    ("downgrade-txn", NEWEST, EOS),
    ("k20805", NEWEST, ALOS),
    ("dirty-close", NEWEST, EOS),
    ("dirty-close-txn", NEWEST, EOS),
    ("corrupt-kill", NEWEST, EOS),
    ("corrupt-kill-txn", NEWEST, EOS),
    ("upgraded-crash-txn", NEWEST, EOS),
    ("enabled-crash-txn", NEWEST, EOS),
    ("k20685-upgraded", NEWEST, EOS),
    ("lost-segment", NEWEST, ALOS),
    ("lost-segment-wiped", NEWEST, EOS),
    ("lost-segment-wiped-txn", NEWEST, EOS),
    *((name, release, x.guarantees[0]) for name, x in PLANTED.items() for release in ("3.9.2", "4.3.1")),
)
"""What `make prove` plays: of every damage one affected and one other release, benign lives, those among them that were
once taken for damage, and faults that nobody reported."""


def run_of(name: str, release: str, guarantee: str, twist: Mapping[str, str] | None = None) -> Run:
    """Give a run of the catalogue; `twist` as in `Scenario.planned`."""
    plan = SCENARIOS[name].planned(release, guarantee, twist)
    label = " ".join((name, *(f"{key}={value}" for key, value in (twist or {}).items())))
    stores, steps = tuple(plan.stores.split(",")), SCENARIOS[name].play.steps
    return Run(label, release, guarantee, stores, plan.partitions, (), plan.settings, steps)


def named_run(name: str) -> Run:
    """Give the run of a name, written or drawn; `ValueError`: it is none."""
    release, guarantee, seed = parse_name(name)
    return run_of(seed, release, guarantee) if seed in SCENARIOS else draw(int(seed), release, guarantee)


def plan_of(run: Run) -> Plan:
    plan = SCENARIOS[run.label.split()[0]].planned(run.release, run.guarantee)
    return replace(plan, stores=",".join(run.stores), settings=run.settings)
