"""Which series of a detector can ever be more than zero: only those exist, as zeros, before anything was found.

A detector that is disabled is not asked. Of the others a finding on an application is possible unless the detector
judges the agent itself, whose findings name none, or applications with another processing guarantee; its severity is at
most the detector's highest; and it is never open if the detector reports moments, whose findings close at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.contract.events import Severity
from agent.judging.base import DetectorMeta, Kind, Scope


def severities(meta: DetectorMeta) -> tuple[str, ...]:
    """List those that a detector's findings can have."""
    return tuple(x.value for x in Severity if x.rank <= meta.severity.rank)


def stays(meta: DetectorMeta) -> bool:
    """Return whether a detector's findings can be open."""
    return meta.kind is not Kind.EVENT


def places(meta: DetectorMeta, applications: Mapping[str, bool | None]) -> list[str]:
    """List the applications that a detector can report on; the empty name where it judges the agent itself.

    `applications`: application -> whether it runs exactly-once; None = that was not given.
    """
    if meta.scope is Scope.AGENT:
        return [""]
    return [x for x, guarantee in applications.items() if meta.exactly_once in (None, guarantee)]
