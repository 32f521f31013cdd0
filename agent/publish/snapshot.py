"""What the metrics are computed from: one immutable value of plain numbers.

The pipeline builds a fresh `MetricsSnapshot` when something changed; a scrape reads the latest one and never
waits for the pipeline. Every default is what an agent that has done nothing yet would report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.events import Confidence, Level, Severity
from agent.contract.incidents import Configured
from agent.engine.rows import TaskRow
from agent.ship.shipper import ShipStats
from agent.ship.stats import SpoolStats


@dataclass(frozen=True, slots=True)
class FindingCount:
    """Open findings of one application, detector and severity."""

    application_id: str
    detector: str
    severity: Severity
    count: int


@dataclass(frozen=True, slots=True)
class FindingsReported:
    """Findings of one application, detector and severity since the agent started, and the newest one's id."""

    application_id: str
    detector: str
    severity: Severity
    count: int
    newest_id: str


@dataclass(frozen=True, slots=True)
class TaskFindings:
    """What alerts are made of: findings of one task (None = of the application), open or just reported."""

    application_id: str
    task_id: str | None
    detector: str
    severity: Severity
    count: int


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """One incident, as pages are made of it: open, or a moment of the last hour.

    Args of the dataclass:
        incident_id: Its id.
        application_id: Application; empty for the agent itself.
        tasks: Tasks of which the naming finding is true, for a line of text; empty = the application as a whole.
        detector: Whose alert it raises; it stays the same while the incident lasts.
        severity: Of the finding that names it.
        confidence: Of that finding.
        level: Of that finding.
        configured_exposure: Whether it is an exposure by release or settings alone.
        do_first: Incident, or detector of another of its findings, whose instruction comes first; empty = none.
        named_by: Detector of the finding that names it by now, if it is another; severity, confidence, level and tasks
            are of that finding.
    """

    incident_id: str
    application_id: str
    tasks: str
    detector: str
    severity: Severity
    confidence: Confidence
    level: Level
    configured_exposure: Configured = Configured.NO
    do_first: str = ""
    named_by: str = ""


@dataclass(frozen=True, slots=True)
class IncidentCount:
    """Open incidents of one application and severity; accepted ones are counted by themselves."""

    application_id: str
    severity: Severity
    accepted: bool
    count: int


@dataclass(frozen=True, slots=True)
class Exposure:
    """Tasks of one application that one detector reports as exposed by release or settings.

    Args of the dataclass:
        application_id: Application.
        detector: Detector.
        release: Releases that the application may run.
        accepted: Whether the operator accepted it.
        tasks: How many tasks.
    """

    application_id: str
    detector: str
    release: str
    accepted: bool
    tasks: int


@dataclass(frozen=True, slots=True)
class DetectorMetrics:
    """Work of one detector since the agent started."""

    detector: str
    runs: int = 0
    failures: int = 0
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WatchMetrics:
    """Work and blindness of the watch since the agent started; mappings are slug -> value.

    Args of the dataclass:
        limits: sysctl -> value.
        self_limited: Steps that are taken now.
        canary: Whether one is in place.
    """

    watches: int = 0
    unwatched: int = 0
    events: int = 0
    queue_overflows: int = 0
    restarts: int = 0
    canary: bool = False
    canaries_missed: int = 0
    missed_changes: Mapping[str, int] = field(default_factory=dict)
    rescans: Mapping[str, int] = field(default_factory=dict)
    blind_s: Mapping[str, float] = field(default_factory=dict)
    blind_now: frozenset[str] = frozenset()
    slowed_now: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    coalesced: int = 0
    dropped: int = 0
    reconcile_entries: int = 0
    reconcile_round_s: float = 0.0
    clock_steps: int = 0
    self_limited: frozenset[str] = frozenset()
    baselines_written: int = 0
    baseline_failures: int = 0


@dataclass(frozen=True, slots=True)
class DigestMetrics:
    """Digests since the agent started: outcome -> closes of stores, and the CPU seconds that making them took."""

    outcomes: Mapping[str, int]
    cpu_s: float


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """Everything that a scrape reports, at one moment.

    Args of the dataclass:
        agent_version: Version of the agent.
        up: Whether the worker's own heartbeat is recent.
        ready: Whether the watch is armed and the first scan done.
        applications: Applications that have, or had, a task below the state directory, the liveliest first.
        tasks: One row per task directory; of two rows for one task the last counts.
        tasks_seen_at_us: When the directories that are there were there; 0 = never.
        findings: Open findings; combinations that are missing count as 0.
        reported: Findings since the start; combinations that are missing count as 0.
        task_findings: Findings by task, the worst first, bounded.
        unlisted: Findings that this bound leaves out.
        incidents: What pages are made of, the worst first, bounded.
        incidents_unlisted: Incidents that this bound leaves out.
        incident_counts: Open incidents; combinations that are missing count as 0.
        exposures: Tasks that are exposed by release or settings.
        exactly_once: Application -> whether it runs exactly-once; missing = that was not given.
        detectors: Work per detector; detectors that are missing count as 0.
        disabled: Detectors that are disabled -> the reason.
        observations: Outcome slug -> observations.
        last_delay_s: Newest hint: from the notification to the snapshot that shows it.
        heartbeat_at_us: When the worker's loop last completed a turn.
        resident_memory_bytes: Of the agent; None = not measured.
        kubernetes_events: Outcome slug -> Kubernetes Events.
        preflight: Check -> 0 ok, 1 warning, 2 failed.
        digests: None = they are switched off.
        collector_errors: Families that could not be computed since the agent started.
    """

    agent_version: str = ""
    up: bool = False
    ready: bool = False
    applications: tuple[str, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    tasks_seen_at_us: int = 0
    findings: tuple[FindingCount, ...] = ()
    reported: tuple[FindingsReported, ...] = ()
    task_findings: tuple[TaskFindings, ...] = ()
    unlisted: int = 0
    incidents: tuple[IncidentRow, ...] = ()
    incidents_unlisted: int = 0
    incident_counts: tuple[IncidentCount, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    exactly_once: Mapping[str, bool | None] = field(default_factory=dict)
    detectors: tuple[DetectorMetrics, ...] = ()
    disabled: Mapping[str, str] = field(default_factory=dict)
    watch: WatchMetrics = WatchMetrics()
    observations: Mapping[str, int] = field(default_factory=dict)
    last_delay_s: float = 0.0
    spool: SpoolStats = field(default_factory=SpoolStats)
    ship: ShipStats = field(default_factory=ShipStats)
    heartbeat_at_us: int = 0
    resident_memory_bytes: int | None = None
    kubernetes_events: Mapping[str, int] = field(default_factory=dict)
    preflight: Mapping[str, int] = field(default_factory=dict)
    digests: DigestMetrics | None = None
    collector_errors: int = 0
