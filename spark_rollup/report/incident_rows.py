"""Incidents as rows of the table `incidents`, and the incident of each finding."""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.audited import FleetIncident, Row
from agent.contract.codec import rfc3339
from spark_rollup.schemas import EVIDENCE

_KEY = ("namespace", "id", "pod")
"""What distinguishes rows of `findings`: several agents may report one finding, of a volume that moved."""


def homes(incidents: Iterable[FleetIncident]) -> dict[tuple[object, ...], str]:
    """Give by `_KEY` the incident of every row: the one that it belongs to, else the oldest that it is evidence of."""
    oldest = sorted(incidents, key=lambda x: (x.since_us, x.id))
    found = {key(member.row): one.id for one in oldest for member in one.members}
    for one in oldest:
        for _, evidence in one.findings:
            found.setdefault(key(evidence.row), one.id)
    return found


def key(row: Row) -> tuple[object, ...]:
    """Return what distinguishes a row of `findings`."""
    return tuple(row[name] for name in _KEY)


def row_of(one: FleetIncident) -> dict[str, object]:
    """Write an incident as a row of `INCIDENT`."""
    return {
        "id": one.id,
        "absorbed": list(one.absorbed),
        "title": one.title,
        "mechanism": one.mechanism,
        "detector": one.lead.detector,
        "severity": one.severity.value,
        "confidence": one.confidence.value,
        "status": one.status.value,
        "cluster": one.cluster,
        "namespace": one.namespace,
        "application_id": one.application_id or None,
        "pods": list(one.pods),
        "tasks": list(one.tasks),
        "stores": list(one.stores),
        "since": rfc3339(one.since_us),
        "ended": None if one.ended_us is None else rfc3339(one.ended_us),
        "upstream": list(one.upstream),
        "affected": one.affected.value,
        "sentence": one.sentence,
        "next_action": one.next_action,
        "findings": [
            {name: role.value if name == "role" else found.row.get(name) for name in EVIDENCE.names}
            for role, found in one.findings
        ],
    }
