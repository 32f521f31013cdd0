"""Findings for people and for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from agent.cli.incident_text import WIDTH, incident_text, wrapped
from agent.contract.codec import printable, rfc3339
from agent.contract.events import Confidence, Severity, Status
from agent.contract.exit_codes import Exit, answer
from agent.contract.finding import Finding
from agent.contract.incidents import Accepts, Incident, gather
from agent.contract.wording import BEYOND_FILES
from agent.detectors.undecided import META as UNDECIDED
from agent.engine.one_reading import may_go_on, plural
from agent.engine.pipeline import Pipeline
from agent.engine.unread import how_much, is_ahead, is_undated, tasks_of, unread, which
from agent.judging.decision import Decision

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
    in_use: Sequence[str],
) -> Iterator[str]:
    """Write all lines: one per finding and per incident, and one summary, also of nothing. docs/scan.md has the fields.

    A finding names its incident and an incident has no findings, so that the size grows with what was found and not
    with its square. Every list but that of applications has a bound, and says how much there is.

    `findings`: what was found, in the order of opening. `incidents`: the same as incidents, the worst first.
    `read`: what was read, in a sentence. `unread`: place -> why it could not be read. `in_use`: applications on which
    a process works, or may.
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
        "unread_count": len(unread), "in_use": list(in_use),
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


MOST_INCIDENTS = 1_000  # incidents that are printed at most where `--top` does not say


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person or a program wants to see."""

    as_json: bool = False  # lines for a program, see `json_lines`, and nothing else
    verbose: bool = False  # also print remarks, and every finding with its evidence
    top: int = 0  # at most so many incidents; 0 = up to `MOST_INCIDENTS`
    again: str = ""  # how the same is read again, where one reading found it; empty: a watch did
    may_be_undecided: bool = False  # what is undecided is no reason for an exit code


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, and what was not: nothing found is worth no more than that."""

    pod: str  # where
    closing: str  # what was read, and what cannot be seen that way
    unread: Mapping[str, str] = field(default_factory=dict)  # place -> why it could not be read
    how_much: str = ""  # of how much `unread` is, in a sentence
    decisions: Sequence[Decision] = ()  # what depends on settings that were not given
    in_use: Sequence[str] = ()  # applications on which a process works, or may
    read_us: int = 0  # when the reading began
    no_tasks: bool = False  # nothing was there to be judged

    @classmethod
    def of(cls, pipeline: Pipeline, pod: str, closing: str) -> Reading:
        """Say what of an inventory could not be read, and what is undecided."""
        places, partly = unread(pipeline.inventory), ", ".join(sorted(pipeline.worlds.partly))
        said = [how_much(pipeline.inventory, places)]
        if partly:
            said.append(f"{partly} was not judged under every release: give kafka_streams_version")
        tasks = tasks_of(pipeline.inventory)
        copied = sum(map(is_undated, tasks))
        if copied:
            said.append(
                f"{plural(copied, 'task')} judged without file times, which the copy lost (cp -a keeps them)"
            )
        read_us = pipeline.ledger.read_once_us
        ahead = 0 if read_us is None else sum(is_ahead(x, read_us) for x in tasks)
        if ahead:
            said.append(f"{plural(ahead, 'task')} with file times in the future: their order proves nothing")
        in_use = [x.id for x in pipeline.inventory.applications.values() if x.exists and may_go_on(x)]
        began_us = pipeline.inventory.started_us
        asked = pipeline.worlds.decisions()
        return cls(
            pod, closing, places, "; ".join(filter(None, said)), asked, sorted(in_use), began_us, not tasks
        )


def print_findings(
    findings: Sequence[Finding],
    reading: Reading,
    *,
    shown: Shown,
    fail_on: str,
    accepts: Accepts = lambda application: (),
    out: TextIO | None = None,
) -> Exit:
    """Print what was found: a summary, then incidents and what is undecided, the worst first.

    `fail_on`: severity from which an open finding counts. `accepts`: what the operator accepted: it is shown, and
    marked. `out`: where to; None = standard output.
    """
    stream = out or sys.stdout
    everything = gather(findings, accepts)
    code, reason = exit_code(findings, fail_on, reading, may_be_undecided=shown.may_be_undecided)
    if shown.as_json:
        lines = json_lines(
            findings, everything, reading.pod, code, reason, reading.closing, reading.unread, reading.in_use
        )
        for line in lines:
            stream.write(f"{line}\n")
        return code
    wanted = everything if shown.verbose else [x for x in everything if is_severe(x)]
    listed = wanted[: shown.top or MOST_INCIDENTS]
    paint = paints(stream)
    width = width_of(stream)
    nothing = "no tasks found" if reading.no_tasks and shown.again else "no incidents found"
    head = f"{_summary(everything, listed, nothing, reading)}\n{reading.closing}"
    if reading.unread:
        head += f"\n{printable(which(reading.unread))}"
    if shown.verbose:
        head += f"\n{BEYOND_FILES}"
    if stream.isatty():  # a program finds each of these lines in one piece
        head = "\n".join(wrapped(line, width, indent="") for line in head.splitlines())
    stream.write(f"{head}\n\n")
    for incident in listed:
        text = incident_text(
            incident, paint=paint, width=width, verbose=shown.verbose,
            read_us=reading.read_us if shown.again else None, source=shown.again,
        )  # fmt: skip
        stream.write(text)
    return code


def paints(stream: TextIO) -> bool:
    """Return whether text gets colour: on a terminal, or where FORCE_COLOR asks for it; NO_COLOR wins."""
    return "NO_COLOR" not in os.environ and (stream.isatty() or "FORCE_COLOR" in os.environ)


def width_of(stream: TextIO) -> int:
    """Return how many columns a line may have; a terminal that does not know its size says 0 or nothing."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        columns = 0
    return min(columns or WIDTH, WIDTH)


def is_undecided(incident: Incident[Finding]) -> bool:
    """Return whether an incident is a question."""
    return incident.lead.detector == UNDECIDED.id


def is_severe(incident: Incident[Finding]) -> bool:
    """Return whether an incident is more than a remark."""
    return incident.severity is not Severity.INFO


def _summary(
    incidents: Sequence[Incident[Finding]],
    listed: Sequence[Incident[Finding]],
    nothing: str,
    reading: Reading,
) -> str:
    """Say it all in one line: what is open by severity, what is undecided, what was, and what is not listed.

    `nothing`: the word for nothing open; no all-clear where something is undecided, or not all was read.
    """
    severe = [x for x in incidents if is_severe(x)]
    is_open = [x for x in severe if x.status is Status.OPEN and not is_undecided(x)]
    counts = [(s.value, sum(x.severity is s for x in is_open)) for s in (Severity.CRITICAL, Severity.WARNING)]
    words = ", ".join(f"{count} {name}" for name, count in counts if count)
    undecided = sum(x.status is Status.OPEN and is_undecided(x) for x in severe)
    parts = [f"{plural(len(is_open), 'incident')} open: {words}"] if is_open else []
    if undecided:
        parts.append(f"{undecided} undecided")
    elif unlisted := sum(x.severity is not Severity.INFO for x in reading.decisions):
        parts.append(f"{unlisted} undecided (not listed: the detector {UNDECIDED.id} is disabled)")
    elif not is_open:
        parts.append(nothing)
    if reading.how_much:
        parts.append(reading.how_much if is_open else f"not an all-clear: {reading.how_much}")
    if resolved := sum(x.status is Status.RESOLVED for x in severe):
        parts.append(f"{resolved} resolved")
    if remarks := len(incidents) - len(severe):
        hidden = len([x for x in listed if not is_severe(x)]) < remarks
        parts.append(plural(remarks, "remark") + (" (shown with --verbose)" if hidden else ""))
    if hidden_incidents := len(severe) - sum(map(is_severe, listed)):
        parts.append(f"{hidden_incidents} not listed (--top)")
    return "; ".join(parts)


def exit_code(
    findings: Sequence[Finding], fail_on: str, reading: Reading, *, may_be_undecided: bool = False
) -> tuple[Exit, str]:
    """Give the exit code and why: open findings at least as severe as asked for count; momentary ones do not.

    What is critical, or so severe in every possible world, counts; a suspected warning about whose task a question is
    open is undecided, like what was not read.
    """
    limit = Severity(fail_on).rank
    certain = [x for x in reading.decisions if x.least is not None and x.least.rank >= limit]
    doubtful = [x for x in reading.decisions if x.severity.rank >= limit and x not in certain]
    asked = {(x.application_id, task) for x in doubtful for task in x.tasks}
    severe = [x for x in findings if x.severity.rank >= limit and x.status is Status.OPEN]
    count = sum(
        x.severity is Severity.CRITICAL
        or x.confidence is Confidence.CONFIRMED
        or (x.application_id, x.task_id) not in asked
        for x in severe
        if x.detector != UNDECIDED.id
    )
    undecided = bool(doubtful) and not may_be_undecided
    code = answer(found=bool(count or certain), unread=bool(reading.how_much) or undecided)
    if code is Exit.FOUND:
        return code, f"{plural(count or len(certain), 'open finding')} at or above {fail_on}"
    if undecided and not reading.how_much:
        return code, f"undecided: {', '.join(x.application_id for x in doubtful)}"
    return code, reading.how_much or f"no open finding at or above {fail_on}, and everything was read"
