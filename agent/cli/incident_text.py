"""One incident as text for a terminal."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence

from agent.contract.codec import moment, printable, rfc3339
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import EvidenceRole, Incident
from agent.contract.runbooks import NAMES
from agent.contract.units import Remedy
from agent.contract.wording import bugs, continued, named
from agent.detectors import BY_ID
from agent.detectors.undecided import META as UNDECIDED
from agent.engine.one_reading import plural
from agent.judging.decision import in_kafkas_words

_COLOURS = {Severity.CRITICAL: "\x1b[1;31m", Severity.WARNING: "\x1b[33m", Severity.INFO: "\x1b[36m"}
_RESET = "\x1b[0m"
_INDENT = "    "
MOST_FINDINGS = 100  # findings of an incident that are written at most; 10,000 tasks may have one each
WIDTH = 100  # columns at most: longer lines are hard to read


def incident_text(
    incident: Incident[Finding],
    *,
    paint: bool,
    width: int,
    verbose: bool,
    read_us: int | None = None,
    source: str = "",
) -> str:
    """Write an incident: how bad, where, what, since when, how sure, and the one next step.

    `read_us`: when it was read, if it is of one reading, whose ids are seldom those of an agent: say how the agent's
    is found. What disk keeps no time of was seen then.
    `source`: where it is recorded, as words of a command line.
    """
    mark = incident.severity.value.upper().ljust(8)
    if paint:
        mark = f"{_COLOURS[incident.severity]}{mark}{_RESET}"
    what = incident.lead.detector
    if incident.lead.detector == UNDECIDED.id:
        return _question(incident, width=width, verbose=verbose)
    state = [incident.confidence.value, incident.status.value]
    state += ["accepted by configuration"] if incident.is_accepted else []
    lines = [
        "  ".join(filter(None, (f"{mark} {what}", printable(address(incident)), f"({', '.join(state)})"))),
        wrapped(printable(incident.sentence), width),
        wrapped(_since(incident, read_us), width),
    ]
    if incident.title:
        lines.append(wrapped(f"{incident.claim}. {_cause(incident)}", width))
    elif incident.upstream:
        lines.append(wrapped(_cause(incident), width))
    if verbose:
        lines += [_finding(role, finding, width) for role, finding in incident.findings[:MOST_FINDINGS]]
        if len(incident.findings) > MOST_FINDINGS:
            lines.append(f"{_INDENT}and {len(incident.findings) - MOST_FINDINGS} more findings (--json)")
    elif len(incident.findings) > 1:
        lines.append(wrapped(f"evidence: {_evidence(incident.findings)}", width))
    if incident.lead.missing_facts:
        lines.append(wrapped(f"for a clearer verdict, give: {', '.join(incident.lead.missing_facts)}", width))
    what_next = "its step was" if is_past(incident) else "next"
    lines.append(_step(what_next, incident, width))
    page = f"rules/{what}" if f"rules/{what}" in NAMES and what not in BY_ID else what
    lines.append(f"{_INDENT}incident {incident.id}; statewarden explain {page}")
    is_scripted = (
        incident.remedy in (Remedy.RESTORE, Remedy.CHECK_FIRST) and incident.severity is not Severity.INFO
    )
    if is_scripted and incident.status is Status.OPEN:
        lines.append(_command("as a script", f"statewarden plan {incident.id} {source or 'SOURCE'}", width))
    if read_us is not None and incident.about_state:
        where = "/".join(x for x in (incident.application_id, incident.lead.task_id) if x)
        asked = f"statewarden explain {shlex.quote(printable(where))} --events SOURCE"
        lines.append(f"{_INDENT}what an agent saw, if one ran: {asked}")
    return "\n".join(lines) + "\n\n"


def _question(incident: Incident[Finding], *, width: int, verbose: bool) -> str:
    """Write what depends on a setting that was not given."""
    decides = in_kafkas_words(incident.lead.missing_facts)
    lines = [
        f"UNDECIDED {printable(address(incident))}: can't tell without {decides}",
        wrapped(printable(incident.sentence), width),
    ]
    if verbose:
        lines += [_finding(role, finding, width) for role, finding in incident.findings[:MOST_FINDINGS]]
    lines.append(_step("next", incident, width))
    lines.append(f"{_INDENT}incident {incident.id}; statewarden explain {UNDECIDED.id}")
    return "\n".join(lines) + "\n\n"


def address(incident: Incident[Finding]) -> str:
    """Say where: application, tasks, and the store if there is one only."""
    tasks = named(incident.tasks)
    store = incident.stores[0] if len(incident.stores) == 1 else ""
    return "/".join(x for x in (incident.application_id, tasks, store) if x)


def wrapped(text: str, width: int, indent: str = _INDENT) -> str:
    """Break a text into lines; an option stays with its value."""
    return textwrap.fill(
        re.sub(r"(--[a-z-]+) (?=[^-\s])", "\\1\0", text), width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    ).replace("\0", " ")  # fmt: skip


def _step(label: str, incident: Incident[Finding], width: int) -> str:
    text = wrapped(f"{label}: {printable(incident.next_action)}", width - len(" \\"))
    return "\n".join(continued(text.splitlines()))


def _command(label: str, command: str, width: int) -> str:
    """Break a command into lines of which the shell makes one again."""
    words = (shlex.quote(printable(word)).replace(" ", "\0") for word in shlex.split(command))
    lines = wrapped(f"{label}: {' '.join(words)}", width - len(" \\")).splitlines()
    return f" \\\n{_INDENT}".join(lines)


def is_past(incident: Incident[Finding]) -> bool:
    """Tell whether it has ended; one that is a moment has not, and its step is still to be followed."""
    return incident.status is Status.RESOLVED and incident.ended_us != incident.since_us


def _since(incident: Incident[Finding], read_us: int | None) -> str:
    if read_us is not None and read_us <= incident.since_us and incident.status is Status.OPEN:
        return f"seen at {moment(incident.since_us)}"
    ended = f", resolved {moment(incident.ended_us)}" if incident.ended_us is not None else ""
    same = incident.status is Status.RESOLVED and not is_past(incident)
    return f"at {moment(incident.since_us)}" if same else f"since {moment(incident.since_us)}{ended}"


def _cause(incident: Incident[Finding]) -> str:
    if not incident.upstream:
        return "Not a known bug of Kafka Streams"
    return bugs(incident.upstream, incident.affected, incident.confidence)


def _evidence(findings: Sequence[tuple[EvidenceRole, Finding]]) -> str:
    counted = Counter(finding.detector for _, finding in findings)
    return ", ".join(f"{detector} ({plural(count, 'finding')})" for detector, count in counted.items())


def _finding(role: EvidenceRole, finding: Finding, width: int) -> str:
    place = "/".join(x for x in (finding.task_id, finding.store) if x)
    said = f"{finding.severity.value}, {finding.confidence.value}, {finding.status.value}"
    head = f"{role.value}: {finding.detector} {place} ({said}; id {finding.id})"
    steps = (
        f"{_INDENT}  {rfc3339(step.at_us)[:23].replace('T', ' ')}Z  {printable(step.what)}  ({printable(step.where)})"
        for step in finding.evidence
    )
    return "\n".join([wrapped(printable(head), width), *steps])
