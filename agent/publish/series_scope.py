"""Which series of a detector can ever be more than zero: only those exist, as zeros, before anything was found.

A detector that is disabled is not asked. Of the others a finding on an application is possible unless the detector
judges the agent itself, whose findings name none, or applications with another processing guarantee; its severity is at
most the detector's highest; and it is never open if the detector reports moments, whose findings close at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract.events import Severity
from agent.judging.base import DetectorMeta, Kind, Scope


@dataclass(frozen=True, slots=True)
class SeriesScope:
    """What a detector can report."""

    detector: str
    severities: tuple[str, ...]  # those that its findings can have
    stays: bool = True  # whether its findings can be open
    about_applications: bool = True  # whether its findings name an application
    exactly_once: bool | None = None  # the processing guarantee that it judges; None = any

    def places(self, applications: Mapping[str, bool | None]) -> list[str]:
        """List the applications that it can report on; the empty name where it judges the agent itself.

        `applications`: application -> whether it runs exactly-once; None = that was not given.
        """
        if not self.about_applications:
            return [""]
        return [x for x, guarantee in applications.items() if self.exactly_once in (None, guarantee)]


def reach_of(meta: DetectorMeta) -> SeriesScope:
    """Read off a detector's metadata what it can report."""
    return SeriesScope(
        meta.id,
        tuple(x.value for x in Severity if x.rank <= meta.severity.rank),
        stays=meta.kind is not Kind.EVENT,
        about_applications=meta.scope is not Scope.AGENT,
        exactly_once=meta.exactly_once,
    )


def series_of(reach: SeriesScope) -> tuple[int, int]:
    """Count a detector's series: its own, and those once per application that it judges."""
    by_severity = len(reach.severities) * (1 + reach.stays)
    return (3, by_severity) if reach.about_applications else (3 + by_severity, 0)
