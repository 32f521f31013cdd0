"""Findings for programs: `scan --json` and `replay --json`, one JSON object per line. docs/scan.md has the fields.

A line per finding, a line per incident, and one summary at the end, also where nothing was found. A finding names its
incident and an incident has no findings, so that the size grows with what was found and not with its square. Every list
has a bound, and says how much there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from agent.contract.codec import rfc3339
from agent.contract.events import Severity, Status
from agent.contract.exit_codes import Exit
from agent.contract.finding import Finding
from agent.contract.incidents import Incident

VERSION = 1  # of the lines: a field may be added; one that goes or changes its meaning makes another version
MOST_FINDINGS = 10_000  # lines of findings at most, the worst; with those of their incidents about 30 MiB
MOST_LISTED = 100  # tasks, stores and places that one line lists at most


def finding_line(finding: Finding, pod: str, role: str = "") -> str:
    """Write one finding: the fields of its record, times as RFC 3339; and what it is for its incident, if given."""
    row: dict[str, object] = {"line": "finding", "version": VERSION}
    for name, value in finding.body().items():
        if name.endswith("_at_us"):
            row[name.removesuffix("_us")] = rfc3339(value) if isinstance(value, int) else None
        else:
            row["id" if name == "finding_id" else name] = value
    row["pod"] = pod
    if role:
        row["role"] = role
    return json.dumps(row, ensure_ascii=True)


def json_lines(
    findings: Sequence[Finding],
    incidents: Sequence[Incident[Finding]],
    pod: str,
    code: Exit,
    reason: str,
    read: str,
    unread: Mapping[str, str],
) -> Iterator[str]:
    """Write all lines.

    `findings`: what was found, in the order of opening. `incidents`: the same as incidents, the worst first.
    `read`: what was read, in a sentence. `unread`: place -> why it could not be read.
    """
    roles = {finding.id: role.value for incident in incidents for role, finding in incident.findings}
    worst = sorted(findings, key=lambda x: (x.status is not Status.OPEN, -x.severity.rank))[:MOST_FINDINGS]
    kept = {finding.id for finding in worst}
    for finding in findings:
        if finding.id in kept:
            yield finding_line(finding, pod, roles[finding.id])
    shown = [x for x in incidents if any(finding.id in kept for _, finding in x.findings)]
    for incident in shown:
        yield incident_line(incident, pod)
    is_open = [x for x in findings if x.status is Status.OPEN]
    summary = {
        "line": "summary", "version": VERSION, "pod": pod, "exit_code": code.value, "reason": reason, "read": read,
        "open": {severity.value: sum(x.severity is severity for x in is_open) for severity in Severity},
        "findings": len(findings), "incidents": len(incidents), "left_out": len(findings) - len(kept),
        "unread": [{"path": x, "why": why} for x, why in list(unread.items())[:MOST_LISTED]],
        "unread_count": len(unread),
    }  # fmt: skip
    yield json.dumps(summary, ensure_ascii=True)


def incident_line(incident: Incident[Finding], pod: str) -> str:
    """Write one incident; its findings are the lines that name it."""
    row = {
        "line": "incident", "version": VERSION, "id": incident.id, "detector": incident.lead.detector,
        "severity": incident.severity.value, "confidence": incident.confidence.value,
        "status": incident.status.value, "configured_exposure": incident.configured_exposure.value,
        "application_id": incident.application_id or None, "tasks": incident.tasks[:MOST_LISTED],
        "task_count": len(incident.tasks), "stores": incident.stores[:MOST_LISTED],
        "store_count": len(incident.stores), "finding_count": len(incident.findings), "title": incident.title,
        "sentence": incident.sentence, "next_action": incident.next_action, "since": rfc3339(incident.since_us),
        "ended": None if incident.ended_us is None else rfc3339(incident.ended_us), "pod": pod,
    }  # fmt: skip
    return json.dumps(row, ensure_ascii=True)
