"""What the metrics are computed from: one immutable value of plain numbers.

The pipeline builds a fresh `MetricsSnapshot` when something changed; a scrape reads the latest one and never
waits for the pipeline. Every default is what an agent that has done nothing yet would report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.contract.incidents import Configured
from agent.engine.detector_runner import DetectorStats
from agent.engine.rows import TaskRow
from agent.findings.ledger import Reported
from agent.ship.shipper import ShipStats
from agent.ship.values import SpoolStats

Counts = Mapping[tuple[str, ...], int]
"""Labels of a series -> how many; combinations that are missing count as 0."""


class IncidentRow(NamedTuple):
    """One incident, as pages are made of it: open, or a moment of the last hour. First the labels of its series."""

    application_id: str  # empty for the agent itself
    incident_id: str
    tasks: str
    """Tasks of which the naming finding is true, for a line of text; empty = the application as a whole."""
    detector: str  # whose alert it raises; it stays the same while the incident lasts
    severity: str  # of the finding that names it
    confidence: str  # of that finding
    level: str  # of that finding
    configured_exposure: str = Configured.NO  # whether it is an exposure by release or settings alone
    do_first: str = ""
    """Incident, or detector of another of its findings, whose instruction comes first; empty = none."""
    named_by: str = ""
    """Detector of the finding that names it by now, if it is another; severity, confidence, level and tasks are of
    that finding."""
    summary: str = ""  # one line for a chat
    next_step: str = ""  # whole, or where to read it


INCIDENT_LABELS = IncidentRow._fields[:-2]


@dataclass(frozen=True, slots=True)
class WatchMetrics:
    """Work and blindness of the watch since the agent started; mappings are slug -> value."""

    watches: int = 0
    unwatched: int = 0
    events: int = 0
    queue_overflows: int = 0
    restarts: int = 0
    canary: bool = False  # whether one is in place
    canaries_missed: int = 0
    missed_changes: Mapping[str, int] = field(default_factory=dict)
    rescans: Mapping[str, int] = field(default_factory=dict)
    blind_s: Mapping[str, float] = field(default_factory=dict)
    blind_now: frozenset[str] = frozenset()
    slowed_now: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)  # sysctl -> value
    waiting: int = 0
    coalesced: int = 0
    dropped: int = 0
    reconcile_entries: int = 0
    reconcile_round_s: float = 0.0
    clock_steps: int = 0
    self_limited: frozenset[str] = frozenset()  # steps that are taken now
    baselines_written: int = 0
    baseline_failures: int = 0


@dataclass(frozen=True, slots=True)
class DigestMetrics:
    """Digests since the agent started: outcome -> closes of stores, and the CPU seconds that making them took."""

    outcomes: Mapping[str, int]
    cpu_s: float


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """Everything that a scrape reports, at one moment."""

    agent_version: str = ""
    up: bool = False  # whether the worker's own heartbeat is recent
    ready: bool = False  # whether the watch is armed and the first scan done
    applications: tuple[str, ...] = ()
    """Applications that have, or had, a task below the state directory, the liveliest first."""
    tasks: tuple[TaskRow, ...] = ()  # one row per task directory; of two rows for one task the last counts
    tasks_seen_at_us: int = 0  # when the directories that are there were there; 0 = never
    findings: Counts = field(default_factory=dict)  # application, detector, severity -> open findings
    reported: Mapping[tuple[str, ...], Reported] = field(default_factory=dict)
    """Application, detector, severity at the opening -> findings since the start."""
    task_findings: Counts = field(default_factory=dict)
    """Application, task (empty = the application), detector, severity -> open or just reported, the worst, bounded."""
    unlisted: int = 0  # findings that this bound leaves out
    incidents: tuple[IncidentRow, ...] = ()  # what pages are made of, the worst first, bounded
    incidents_unlisted: int = 0  # incidents that this bound leaves out
    incident_counts: Mapping[tuple[str, str, bool], int] = field(default_factory=dict)
    """Application, severity, whether the operator accepted them -> open incidents."""
    exposures: Counts = field(default_factory=dict)
    """Application, detector, its releases, whether accepted -> tasks that are exposed by release or settings."""
    exactly_once: Mapping[str, bool | None] = field(default_factory=dict)
    """Application -> whether it runs exactly-once; missing = that was not given."""
    detectors: Mapping[str, DetectorStats] = field(default_factory=dict)
    disabled: Mapping[str, str] = field(default_factory=dict)  # detectors that are disabled -> the reason
    watch: WatchMetrics = WatchMetrics()
    observations: Mapping[str, int] = field(default_factory=dict)  # outcome slug -> observations
    last_delay_s: float = 0.0  # newest hint: from the notification to the snapshot that shows it
    spool: SpoolStats = field(default_factory=SpoolStats)
    ship: ShipStats = field(default_factory=ShipStats)
    heartbeat_at_us: int = 0  # when the worker's loop last completed a turn
    resident_memory_bytes: int | None = None  # of the agent; None = not measured
    kubernetes_events: Mapping[str, int] = field(default_factory=dict)  # outcome slug -> Kubernetes Events
    preflight: Mapping[str, int] = field(default_factory=dict)  # check -> 0 ok, 1 warning, 2 failed
    digests: DigestMetrics | None = None  # None = they are switched off
    collector_errors: int = 0  # families that could not be computed since the agent started
