"""What the page shows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Row = Mapping[str, object]

TaskKey = tuple[str, str, str]
"""Namespace, application, task."""

SEVERITIES = ("critical", "warning", "info")
"""The most severe first, as the page lists them."""


def severity_rank(severity: object) -> int:
    """Rank a severity, the most severe first; one that a newer version may have is ranked with warnings."""
    return SEVERITIES.index(str(severity)) if severity in SEVERITIES else SEVERITIES.index("warning")


@dataclass(frozen=True, slots=True)
class PageData:
    """Rows of the audit's tables, as far as the page shows them.

    Args of the dataclass:
        as_of_us: The audit's time, microseconds since the epoch.
        version: Version of the rollup.
        findings: `schemas.FINDING` rows, in the order of the page.
        coverage: `schemas.COVERAGE` rows.
        pods: `schemas.PODS` rows.
        timelines: `schemas.TIMELINE` rows of the tasks that have findings, and of pods as a whole.
        local: `schemas.LOCAL_FINDING` rows.
        quarantine: Number of unusable lines by reason.
        releases: namespace, application_id and release (as text) of every application.
        disabled: namespace, application_id, pod, detector and reason of detectors that agents have disabled.
    """

    as_of_us: int
    version: str
    findings: Sequence[Row]
    coverage: Sequence[Row]
    pods: Sequence[Row]
    timelines: Sequence[Row]
    local: Sequence[Row]
    quarantine: Mapping[str, int]
    releases: Sequence[Row] = ()
    disabled: Sequence[Row] = ()
