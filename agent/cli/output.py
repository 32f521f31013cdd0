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
from agent.findings.incidents import Incident, about_state, gather


def finding_line(finding: Finding, pod: str) -> str:
    """Write one finding as one JSON line: the fields of its record, times as RFC 3339."""
    row: dict[str, object] = {}
    for name, value in finding.body().items():
        if name.endswith("_at_us"):
            row[name.removesuffix("_us")] = rfc3339(value) if isinstance(value, int) else None
        else:
            row["id" if name == "finding_id" else name] = value
    return json.dumps(row | {"pod": pod}, ensure_ascii=True)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person or a program wants to see.

    Args of the dataclass:
        as_json: One line per finding, in the order of opening, and nothing else.
        verbose: Remarks, too, and every finding with its evidence.
        top: At most so many incidents; 0 = all.
    """

    as_json: bool = False
    verbose: bool = False
    top: int = 0


def print_findings(
    findings: Sequence[Finding], pod: str, *, shown: Shown, closing: str, out: TextIO | None = None
) -> None:
    """Print what was found: a summary, incidents, the worst first, and which settings would decide more.

    Args:
        findings: What was found.
        pod: Where.
        shown: How much of it.
        closing: What was read, and what cannot be seen that way: nothing found is worth no more than that.
        out: Where to; None = standard output.
    """
    stream = out or sys.stdout
    if shown.as_json:
        for finding in findings:
            stream.write(finding_line(finding, pod) + "\n")
        return
    incidents = [x for x in gather(findings) if not x.lead.missing_facts or about_state(x)]
    wanted = incidents if shown.verbose else [x for x in incidents if is_severe(x)]
    listed = wanted[: shown.top] if shown.top else wanted
    stream.write(f"{_summary(incidents, listed)}\n{closing}\n\n")
    paint = stream.isatty() and "NO_COLOR" not in os.environ
    width = _width(stream)
    for incident in listed:
        stream.write(incident_text(incident, paint=paint, width=width, verbose=shown.verbose))
    for finding in findings:
        if finding.missing_facts and finding.level is Level.SELF and finding.status is Status.OPEN:
            said = f"{printable(finding.summary)} Add --set KEY=VALUE for each; statewarden explain {finding.detector}"
            stream.write(wrapped(said, width, indent="") + "\n")


def _width(stream: TextIO) -> int:
    try:
        return min(os.get_terminal_size(stream.fileno()).columns, WIDTH) if stream.isatty() else WIDTH
    except (OSError, ValueError):  # a terminal that does not say how wide it is
        return WIDTH


def is_severe(incident: Incident) -> bool:
    """Return whether an incident is more than a remark."""
    return incident.severity is not Severity.INFO


def _summary(incidents: Sequence[Incident], listed: Sequence[Incident]) -> str:
    """Say it all in one line: what is open by severity, what was, and what is not listed."""
    severe = [x for x in incidents if is_severe(x)]
    is_open = [x for x in severe if x.status is Status.OPEN]
    counts = [(s.value, sum(x.severity is s for x in is_open)) for s in (Severity.CRITICAL, Severity.WARNING)]
    words = ", ".join(f"{count} {name}" for name, count in counts if count)
    parts = [f"{plural(len(is_open), 'incident')} open: {words}" if is_open else "no incident open"]
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
