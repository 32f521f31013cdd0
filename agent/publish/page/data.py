"""What the page shows: one immutable value, bounded however big the state directory is. Times in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from agent.contract.events import Severity
from agent.contract.finding import Finding
from agent.contract.incidents import Incident
from agent.engine.rows import StoreRow

TASKS_SHOWN = 200
"""Tasks with their own rows, the worst first; the rest is a number."""

INCIDENTS_SHOWN = 100
EVIDENCE_SHOWN = 12
"""Findings of one incident, the others are a number."""
APPLICATIONS_SHOWN = 50
STORES_SHOWN = 24
BLIND_SHOWN = 50


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task directory; `stores_left_out` counts stores beyond the bound."""

    id: str
    worst: Severity | None
    held: bool | None
    held_since_us: int
    released_us: int | None
    checkpoint_us: int | None
    checkpoint_problem: str | None
    incarnation: int
    stores: tuple[StoreRow, ...]
    stores_left_out: int = 0


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: `value` None = not given."""

    name: str
    value: str | None
    origin: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """One application directory, its bounded tasks, and what is known of it."""

    id: str
    releases: str
    process_id: str | None
    processes: tuple[str, ...]
    tasks: tuple[TaskRow, ...]
    tasks_total: int
    settings: tuple[SettingRow, ...]


@dataclass(frozen=True, slots=True)
class BlindRow:
    """One blind interval; `ended_us` None = it lasts."""

    started_us: int
    ended_us: int | None
    cause: str
    where: str


@dataclass(frozen=True, slots=True)
class PageData:
    """Everything that the page shows, at one moment.

    Args of the dataclass:
        at_us: When it was true.
        agent_version: Version of the agent.
        pod: Pod, with its namespace where known.
        state_dir: What is watched.
        volume: Kind of volume; empty = not known.
        ready: Whether the first reading is done.
        started_us: When the agent started.
        watches: Directories with a kernel watch.
        applications: Bounded.
        applications_total: All there are.
        incidents: Open ones, the worst first, bounded.
        counts: Severity -> open incidents, all of them.
        facts_missing: Settings that detectors need and that are not configured, over all applications.
        undecided: Detectors that cannot decide everything because of that.
        missing_counts: Severity -> open incidents that only say that a fact is missing; `counts` has them, too.
        disabled: Detectors that open no finding, each with the reason.
        blind: Newest first, bounded.
        settings: The agent's own.
        runbooks: Base of the links to runbooks; empty = none is known.
    """

    at_us: int
    agent_version: str
    pod: str
    state_dir: str
    volume: str
    ready: bool
    started_us: int
    watches: int
    applications: tuple[ApplicationRow, ...]
    applications_total: int
    incidents: tuple[Incident[Finding], ...]
    counts: tuple[tuple[Severity, int], ...]
    blind: tuple[BlindRow, ...]
    settings: tuple[SettingRow, ...]
    runbooks: str
    facts_missing: int = 0
    undecided: int = 0
    missing_counts: tuple[tuple[Severity, int], ...] = ()
    disabled: tuple[tuple[str, str], ...] = ()
