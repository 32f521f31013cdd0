"""What the page shows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_rollup.judging.incidents import FleetIncident

Row = Mapping[str, object]

TaskKey = tuple[str, str, str]
"""Namespace, application, task."""

PodKey = tuple[str, str]
"""Namespace, pod."""

SEVERITIES = ("critical", "warning", "info")
"""The most severe first, as the page lists them."""

WORDS = {"critical": "critical", "warning": "warning", "info": "remark"}
"""How the page calls an incident of each severity."""


def severity_rank(severity: object) -> int:
    """Rank a severity, the most severe first; one that a newer version may have is ranked with warnings."""
    return SEVERITIES.index(str(severity)) if severity in SEVERITIES else SEVERITIES.index("warning")


def level(severity: object) -> str:
    """Name the severity that a severity counts as."""
    return SEVERITIES[severity_rank(severity)]


@dataclass(frozen=True, slots=True)
class PageData:
    """Rows of the audit's tables, as far as the page shows them.

    Args of the dataclass:
        as_of_us: The audit's time, microseconds since the epoch.
        version: Version of the rollup.
        incidents: What went wrong, with its findings.
        findings: `schemas.FINDING` rows, in the order of the page: they are counted and drawn.
        coverage: `schemas.COVERAGE` rows.
        pods: `schemas.PODS` rows.
        timelines: `schemas.TIMELINE` rows of the tasks that have findings, and of pods as a whole.
        local: `schemas.LOCAL_FINDING` rows.
        quarantine: Number of unusable lines by reason.
        releases: namespace, application_id and release (as text) of every application.
        disabled: namespace, application_id, pod, detector and reason of detectors that agents have disabled.
        restarts: `schemas.RESTARTS` rows.
        answers: What each answer of `restarts` means, from harmless to dangerous.
        known_pods: namespace, pod, doubt (null: none) and gone of every pod; empty: only the tables are known.
        written_us: When the page was written, microseconds since the epoch; 0 = not known.
        took_s: How long the run took until then, seconds; None = not known.
    """

    as_of_us: int
    version: str
    incidents: Sequence[FleetIncident]
    findings: Sequence[Row]
    coverage: Sequence[Row]
    pods: Sequence[Row]
    timelines: Sequence[Row]
    local: Sequence[Row]
    quarantine: Mapping[str, int]
    releases: Sequence[Row] = ()
    disabled: Sequence[Row] = ()
    restarts: Sequence[Row] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    known_pods: Sequence[Row] = ()
    written_us: int = 0
    took_s: float | None = None
