"""Findings for people and for programs."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

from agent.contract.codec import printable, rfc3339
from agent.contract.events import Level, Severity, Status
from agent.findings.ledger import Finding

_COLOURS = {Severity.CRITICAL: "\x1b[1;31m", Severity.WARNING: "\x1b[33m", Severity.INFO: "\x1b[36m"}
_RESET = "\x1b[0m"
_WIDTH = 100


def finding_line(finding: Finding, pod: str) -> str:
    """Write one finding as one JSON line: the fields of its record, times as RFC 3339."""
    row: dict[str, object] = {}
    for name, value in finding.body().items():
        if name.endswith("_at_us"):
            row[name.removesuffix("_us")] = rfc3339(value) if isinstance(value, int) else None
        else:
            row["id" if name == "finding_id" else name] = value
    return json.dumps(row | {"pod": pod}, ensure_ascii=True)


def print_findings(
    findings: Sequence[Finding], pod: str, *, as_json: bool, closing: str, out: TextIO | None = None
) -> None:
    """Print findings, those about state before those about the agent, the most severe first.

    Args:
        findings: What was found.
        pod: Where.
        as_json: One line per finding, in the order of opening, and nothing else.
        closing: What was read, and what cannot be seen that way: nothing found is worth no more than that.
        out: Where to; None = standard output.
    """
    stream = out or sys.stdout
    if as_json:
        for finding in findings:
            stream.write(finding_line(finding, pod) + "\n")
        return
    colour = stream.isatty() and "NO_COLOR" not in os.environ
    ordered = sorted(findings, key=lambda x: (x.level is Level.SELF, -x.severity.rank, x.opened_at_us))
    for finding in ordered:
        stream.write(_paragraph(finding, colour=colour))
    counts = {s: sum(x.severity is s for x in findings) for s in reversed(Severity)}
    stream.write(", ".join(f"{count} {severity.value}" for severity, count in counts.items()) + "\n")
    stream.write(f"{closing}\n")


def exit_code(findings: Sequence[Finding], fail_on: str) -> int:
    """Return 1 if an open finding is at least as severe as asked for, else 0; momentary ones are not open."""
    limit = Severity(fail_on).rank
    return int(any(x.severity.rank >= limit and x.status is Status.OPEN for x in findings))


def _paragraph(finding: Finding, *, colour: bool) -> str:
    mark = finding.severity.value.upper().ljust(8)
    if colour:
        mark = f"{_COLOURS[finding.severity]}{mark}{_RESET}"
    place = "/".join(printable(x) for x in (finding.application_id, finding.task_id, finding.store) if x)
    issues = (
        f"  [{', '.join(finding.upstream)}; affected: {finding.affected.value}]" if finding.upstream else ""
    )
    lines = [
        f"{mark} {finding.detector}  {place}  ({finding.confidence.value}, {finding.status.value}){issues}",
        _wrapped(printable(finding.summary)),
    ]
    lines += [
        f"    {rfc3339(step.at_us)[11:23]}  {printable(step.what)}  ({printable(step.where)})"
        for step in finding.evidence
    ]
    if finding.missing_facts:
        lines.append(_wrapped(f"would decide more: {', '.join(finding.missing_facts)}"))
    lines.append(_wrapped(f"next: {printable(finding.next_action)}"))
    lines.append(f"    id {finding.id}; statewarden explain {finding.detector}")
    return "\n".join(lines) + "\n\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
