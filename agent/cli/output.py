"""Findings for people and for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from agent.cli.incident_text import WIDTH, incident_text, wrapped
from agent.cli.json_lines import json_lines
from agent.contract.codec import printable
from agent.contract.events import Level, Severity, Status
from agent.contract.exit_codes import Exit, answer
from agent.contract.finding import Finding
from agent.contract.incidents import Accepts, Incident, gather
from agent.engine.one_reading import plural
from agent.engine.unread import how_much, unread, which
from agent.inventory.model import Inventory

MOST_UNDECIDED = 10  # applications without settings that are named at most
MOST_INCIDENTS = 1_000  # incidents that are printed at most where `--top` does not say


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person or a program wants to see."""

    as_json: bool = False  # lines for a program, see `json_lines`, and nothing else
    verbose: bool = False  # remarks, too, and every finding with its evidence
    top: int = 0  # at most so many incidents; 0 = up to `MOST_INCIDENTS`
    of_reading: bool = False  # one reading found them, not a watch


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, and what was not: nothing found is worth no more than that."""

    pod: str  # where
    closing: str  # what was read, and what cannot be seen that way
    unread: Mapping[str, str] = field(default_factory=dict)  # place -> why it could not be read
    how_much: str = ""  # of how much `unread` is, in a sentence

    @classmethod
    def of(cls, inventory: Inventory, pod: str, closing: str) -> Reading:
        """Say what of an inventory could not be read."""
        places = unread(inventory)
        return cls(pod, closing, places, how_much(inventory, places))


def print_findings(
    findings: Sequence[Finding],
    reading: Reading,
    *,
    shown: Shown,
    fail_on: str,
    accepts: Accepts = lambda application: (),
    out: TextIO | None = None,
) -> Exit:
    """Print what was found: a summary, incidents, the worst first, and which settings would decide more.

    `fail_on`: severity from which an open finding counts. `accepts`: what the operator accepted: it is shown, and
    marked. `out`: where to; None = standard output.
    """
    stream = out or sys.stdout
    everything = gather(findings, accepts)
    code, reason = exit_code(findings, fail_on, reading)
    if shown.as_json:
        for line in json_lines(
            findings, everything, reading.pod, code, reason, reading.closing, reading.unread
        ):
            stream.write(f"{line}\n")
        return code
    incidents = [x for x in everything if not x.lead.missing_facts or x.about_state]
    wanted = incidents if shown.verbose else [x for x in incidents if is_severe(x)]
    listed = wanted[: shown.top or MOST_INCIDENTS]
    paint = stream.isatty() and "NO_COLOR" not in os.environ
    width = width_of(stream)
    undecided = [x for x in findings if x.missing_facts and x.level is Level.SELF and x.status is Status.OPEN]
    head = (
        f"{_summary(incidents, listed, unsure=bool(undecided), how_much=reading.how_much)}\n{reading.closing}"
    )
    if reading.unread:
        head += f"\n{printable(which(reading.unread))}"
    if stream.isatty():  # a program finds each of these lines in one piece
        head = "\n".join(wrapped(line, width, indent="") for line in head.splitlines())
    stream.write(f"{head}\n\n")
    for incident in listed:
        stream.write(
            incident_text(
                incident, paint=paint, width=width, verbose=shown.verbose, of_reading=shown.of_reading
            )
        )
    for finding in undecided[:MOST_UNDECIDED]:
        said = printable(finding.summary)
        if "processing_guarantee" in finding.missing_facts:
            said += " Without processing_guarantee most bugs of exactly-once go unreported."
        said += f" Add --set KEY=VALUE for each; statewarden explain {finding.detector}"
        stream.write(wrapped(said, width, indent="") + "\n")
    if len(undecided) > MOST_UNDECIDED:
        stream.write(f"Settings lack for {len(undecided) - MOST_UNDECIDED} more applications (--json).\n")
    return code


def width_of(stream: TextIO) -> int:
    """Return how many columns a line may have; a terminal that does not know its size says 0 or nothing."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        columns = 0
    return min(columns or WIDTH, WIDTH)


def is_severe(incident: Incident[Finding]) -> bool:
    """Return whether an incident is more than a remark."""
    return incident.severity is not Severity.INFO


def _summary(
    incidents: Sequence[Incident[Finding]],
    listed: Sequence[Incident[Finding]],
    *,
    unsure: bool,
    how_much: str,
) -> str:
    """Say it all in one line: what is open by severity, what was, and what is not listed.

    Nothing open is no all-clear where settings were not given (`unsure`), or not all was read (`how_much`).
    """
    severe = [x for x in incidents if is_severe(x)]
    is_open = [x for x in severe if x.status is Status.OPEN]
    counts = [(s.value, sum(x.severity is s for x in is_open)) for s in (Severity.CRITICAL, Severity.WARNING)]
    words = ", ".join(f"{count} {name}" for name, count in counts if count)
    parts = [f"{plural(len(is_open), 'incident')} open: {words}" if is_open else "no incident open"]
    if how_much:
        parts.append(how_much if is_open else f"no all-clear: {how_much}")
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


def exit_code(findings: Sequence[Finding], fail_on: str, reading: Reading) -> tuple[Exit, str]:
    """Give the exit code and why: open findings at least as severe as asked for count; momentary ones do not."""
    limit = Severity(fail_on).rank
    count = sum(x.severity.rank >= limit and x.status is Status.OPEN for x in findings)
    code = answer(found=count > 0, unread=bool(reading.unread))
    if code is Exit.FOUND:
        return code, f"{plural(count, 'open finding')} at or above {fail_on}"
    return code, reading.how_much or f"no open finding is at or above {fail_on}, and all was read"
