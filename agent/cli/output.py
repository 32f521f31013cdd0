"""Findings for people and for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from agent.cli.incident_text import WIDTH, incident_text, wrapped
from agent.contract.codec import printable, rfc3339
from agent.contract.events import Level, Severity, Status
from agent.engine.one_reading import plural
from agent.findings.finding import Finding
from agent.findings.incidents import Accepts, Incident, about_state, gather


def finding_line(finding: Finding, pod: str, incident: Incident | None = None) -> str:
    """Write one finding as one JSON line: the fields of its record, times as RFC 3339; and its incident, if given."""
    row: dict[str, object] = {}
    for name, value in finding.body().items():
        if name.endswith("_at_us"):
            row[name.removesuffix("_us")] = rfc3339(value) if isinstance(value, int) else None
        else:
            row["id" if name == "finding_id" else name] = value
    row["pod"] = pod
    if incident is not None:
        row["incident"] = _incident_fields(incident, finding)
    return json.dumps(row, ensure_ascii=True)


def _incident_fields(incident: Incident, finding: Finding) -> dict[str, object]:
    """Give the whole incident, the same with each of its findings, and what this one is for it."""
    return {
        "id": incident.id,
        "role": next(role.value for role, own in incident.findings if own is finding),
        "detector": incident.lead.detector,
        "severity": incident.severity.value,
        "confidence": incident.confidence.value,
        "status": incident.status.value,
        "lasting": incident.lasting,
        "accepted": incident.accepted,
        "application_id": incident.application_id or None,
        "tasks": incident.tasks,
        "stores": incident.stores,
        "title": incident.title,
        "sentence": incident.sentence,
        "next_action": incident.next_action,
        "since": rfc3339(incident.since_us),
        "ended": None if incident.ended_us is None else rfc3339(incident.ended_us),
    }


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person or a program wants to see.

    Args of the dataclass:
        as_json: One line per finding with its incident, in the order of opening, and nothing else.
        verbose: Remarks, too, and every finding with its evidence.
        top: At most so many incidents; 0 = all.
        of_reading: One reading found them, not a watch.
    """

    as_json: bool = False
    verbose: bool = False
    top: int = 0
    of_reading: bool = False


def print_findings(
    findings: Sequence[Finding],
    pod: str,
    *,
    shown: Shown,
    closing: str,
    accepts: Accepts = lambda application: (),
    out: TextIO | None = None,
) -> None:
    """Print what was found: a summary, incidents, the worst first, and which settings would decide more.

    Args:
        findings: What was found.
        pod: Where.
        shown: How much of it.
        closing: What was read, and what cannot be seen that way: nothing found is worth no more than that.
        accepts: What the operator accepted: it is shown, and marked.
        out: Where to; None = standard output.
    """
    stream = out or sys.stdout
    everything = gather(findings, accepts)
    if shown.as_json:
        of_finding = {finding.id: incident for incident in everything for _, finding in incident.findings}
        for finding in findings:
            stream.write(finding_line(finding, pod, of_finding[finding.id]) + "\n")
        return
    incidents = [x for x in everything if not x.lead.missing_facts or about_state(x)]
    wanted = incidents if shown.verbose else [x for x in incidents if is_severe(x)]
    listed = wanted[: shown.top] if shown.top else wanted
    paint = stream.isatty() and "NO_COLOR" not in os.environ
    width = width_of(stream)
    undecided = [x for x in findings if x.missing_facts and x.level is Level.SELF and x.status is Status.OPEN]
    head = f"{_summary(incidents, listed, unsure=bool(undecided))}\n{closing}"
    if stream.isatty():  # a program finds each of these lines in one piece
        head = "\n".join(wrapped(line, width, indent="") for line in head.splitlines())
    stream.write(f"{head}\n\n")
    for incident in listed:
        stream.write(_text(incident, shown, paint=paint, width=width))
    for finding in undecided:
        said = printable(finding.summary)
        if "processing_guarantee" in finding.missing_facts:
            said += " Without processing_guarantee most bugs of exactly-once go unreported."
        said += f" Add --set KEY=VALUE for each; statewarden explain {finding.detector}"
        stream.write(wrapped(said, width, indent="") + "\n")


def _text(incident: Incident, shown: Shown, *, paint: bool, width: int) -> str:
    return incident_text(
        incident, paint=paint, width=width, verbose=shown.verbose, of_reading=shown.of_reading
    )


def width_of(stream: TextIO) -> int:
    """Return how many columns a line may have; a terminal that does not know its size says 0 or nothing."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        columns = 0
    return min(columns or WIDTH, WIDTH)


def is_severe(incident: Incident) -> bool:
    """Return whether an incident is more than a remark."""
    return incident.severity is not Severity.INFO


def _summary(incidents: Sequence[Incident], listed: Sequence[Incident], *, unsure: bool) -> str:
    """Say it all in one line: what is open by severity, what was, and what is not listed.

    Nothing open is no all-clear where settings were not given (`unsure`).
    """
    severe = [x for x in incidents if is_severe(x)]
    is_open = [x for x in severe if x.status is Status.OPEN]
    counts = [(s.value, sum(x.severity is s for x in is_open)) for s in (Severity.CRITICAL, Severity.WARNING)]
    words = ", ".join(f"{count} {name}" for name, count in counts if count)
    parts = [f"{plural(len(is_open), 'incident')} open: {words}" if is_open else "no incident open"]
    if unsure and not is_open:
        parts.append("no all-clear: settings were not given, see the end")
    if resolved := len(severe) - len(is_open):
        parts.append(f"{resolved} resolved")
    if remarks := len(incidents) - len(severe):
        hidden = len([x for x in listed if not is_severe(x)]) < remarks
        parts.append(plural(remarks, "remark") + (" (--verbose)" if hidden else ""))
    if hidden_incidents := len(severe) - sum(map(is_severe, listed)):
        parts.append(f"{hidden_incidents} not listed (--top)")
    return "; ".join(parts)


def exit_code(findings: Sequence[Finding], fail_on: str) -> int:
    """Return 1 if an open finding is at least as severe as asked for, else 0; momentary ones are not open."""
    limit = Severity(fail_on).rank
    return int(any(x.severity.rank >= limit and x.status is Status.OPEN for x in findings))
