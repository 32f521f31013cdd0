"""What an audit found, for a terminal: a summary, then incidents, the worst first."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from agent.contract.audited import AGENT, FLEET, FleetFinding, FleetIncident
from agent.contract.codec import moment, printable
from agent.contract.events import Severity, Status
from agent.contract.runbooks import NAMES
from agent.contract.wording import bugs, continued, named
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.report.missed import in_words
from spark_rollup.report.page import PageData
from spark_rollup.report.page.data import counts_as
from spark_rollup.report.since_last import Change, in_a_line
from spark_rollup.report.story import texts

LINES = 20  # so many at most name what is missing or not open any more; `--verbose` has all

_INDENT = "    "
_COLOURS = {Severity.CRITICAL: "\x1b[1;31m", Severity.WARNING: "\x1b[33m", Severity.INFO: "\x1b[36m"}
_RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Shown:
    """How much is printed, and how."""

    verbose: bool = False  # remarks, too, and the findings of each incident
    top: int = 0  # so many incidents; 0 = all
    width: int = 100
    paint: bool = False


def readable(data: PageData, report: Path, shown: Shown) -> list[str]:
    """Print what was found: what is open and what was read, then incidents with one next step each."""
    wanted = [x for x in data.incidents if shown.verbose or _is_severe(x)]
    listed = wanted[: shown.top] if shown.top else wanted
    since = data.since_last
    first = "" if since else " (no earlier audit there to compare with)"
    lines = [f"{_verdict(data, listed)} ({_watched(data)})"]
    lines += [since.in_words()] if since else []
    lines += _named(data, shown)
    lines += [_read(data), f"report: {report}{first}"]
    for one in listed:
        changed = since.now.get((one.namespace, one.id)) if since else None
        lines += ["", *_incident(one, shown, changed)]
    return lines


def _named(data: PageData, shown: Shown) -> list[str]:
    """Name what was expected and is missing, and incidents of the last audit that are not open any more."""
    since = data.since_last
    lines = [": ".join(x) for x in data.expected.named()] if data.expected else []
    if since:
        lines += [f"not heard of any more: {in_a_line(x)}" for x in since.not_heard]
        lines += [f"gone: {in_a_line(x)}" for x in since.gone]
    cut = lines if shown.verbose else lines[:LINES]
    left = [f"and {len(lines) - len(cut)} lines more (--verbose)"] if len(lines) > len(cut) else []
    return [line for x in (*cut, *left) for line in _wrapped(x, shown)]


def _is_severe(one: FleetIncident) -> bool:
    return one.severity is not Severity.INFO


def _not_given(data: PageData) -> str:
    """Say which settings agents lack without which nothing found is no all-clear; empty if none."""
    lacking = [row for row in data.releases if row["not_given"]]
    keys = sorted({key for row in lacking for key in texts(row["not_given"])})
    applications = sorted({str(row["application_id"]) for row in lacking})
    return f"agents were not given {', '.join(keys)} for {printable(named(applications))}" if lacking else ""


def _verdict(data: PageData, listed: Sequence[FleetIncident]) -> str:
    incidents, not_given, missed = data.incidents, _not_given(data), in_words(data.coverage)
    severe = [x for x in incidents if _is_severe(x)]
    undecided = len(data.undecided())
    is_open = [x for x in severe if x.status is Status.OPEN and counts_as(x) != UNDECIDED]
    counts = ", ".join(
        f"{count} {level.value}"
        for level in (Severity.CRITICAL, Severity.WARNING)
        if (count := sum(x.severity is level for x in is_open))
    )
    parts = [f"{_number(len(is_open), 'incident')} open: {counts}"] if is_open else []
    if undecided or not is_open:
        parts.append(f"{undecided} undecided" if undecided else "no incidents found")
    doubts = "; ".join(filter(None, (data.lacking(), missed, "" if is_open else not_given)))
    if doubts:
        parts.append(printable(doubts if is_open else f"not an all-clear: {doubts}"))
    if over := len(severe) - len(is_open) - undecided:
        parts.append(f"{over} resolved")
    if remarks := len(incidents) - len(severe):
        hidden = sum(not _is_severe(x) for x in listed) < remarks
        parts.append(_number(remarks, "remark") + (" (shown with --verbose)" if hidden else ""))
    if left := len(severe) - sum(map(_is_severe, listed)):
        parts.append(f"{left} not listed (--top)")
    return "; ".join(parts)


def _watched(data: PageData) -> str:
    """Say what the verdict is about: an all-clear is worth no more than that."""
    pods = len(data.coverage)
    span_s, unknown_s = data.watched()
    share = f"{(1 - unknown_s / span_s) * 100:.1f} % of their time watched" if span_s else "no time watched"
    if share.startswith("100.0 ") and unknown_s:
        share = "not all of their time watched"
    unasked = ", ".join(data.undetected())
    without = printable(f"; disabled: {unasked}") if unasked else ""
    return f"{_number(pods, 'pod')}, {share}{without}"


def _read(data: PageData) -> str:
    """Say what was read."""
    names = data.applications()
    known = f"{_number(len(names), 'application')}: {printable(named(names))}" if names else "no application"
    since = f" from {moment(data.first_seen_us())}" if data.coverage else ""
    unused = sum(data.quarantine.values())
    lines = f"; {_number(unused, 'line or file', 'lines or files')} not used: see the table `quarantine`"
    skipped = lines if unused else ""
    return f"audited{since} to {moment(data.as_of_us)}; {known}{skipped}"


def _incident(one: FleetIncident, shown: Shown, changed: Change | None) -> list[str]:
    mark = counts_as(one).upper().ljust(8)
    if shown.paint:
        mark = f"{_COLOURS[one.severity]}{mark}{_RESET}"
    detector = "" if counts_as(one) == UNDECIDED else f" {printable(one.lead.detector)} "
    by = "; reported by its agent only" if one.lead.link.by_agent else ""
    since = f", {changed.value}" if changed in (Change.NEW, Change.WORSE) else ""
    said = f"({one.confidence.value}, {one.status.value}{since}{by})"
    lines = [
        f"{mark}{detector} {printable(_address(one))}  {said}",
        *_wrapped(one.sentence, shown),
        *_wrapped(_since(one), shown),
    ]
    cause = bugs(one.upstream, one.affected, one.confidence) if one.upstream else ""
    lines += _wrapped(". ".join(filter(None, (one.claim, cause))), shown)
    if shown.verbose:
        for role, found in one.findings:
            lines += _wrapped(f"{role.value}: {_finding(found)}", shown)
    elif len(one.findings) > 1:
        lines += _wrapped(f"evidence: {_evidence(one)}", shown)
    if _is_severe(one) or shown.verbose:
        lines += continued(_wrapped(f"next: {one.next_action}", shown))
    others = sorted(set(one.absorbed) - {one.id})
    also = f", of agents also {named(others)}" if others else ""
    page = f"; statewarden explain {one.lead.runbook}" if one.lead.runbook in NAMES else ""
    return [*lines, *_wrapped(f"incident {one.id}{also}{page}", shown)]


def _address(one: FleetIncident) -> str:
    """Say where: namespace, application, tasks, the store if there is one only, and pods."""
    store = one.stores[0] if len(one.stores) == 1 else ""
    where = "/".join(x for x in (one.namespace, one.application_id, named(one.tasks), store) if x)
    return f"{where} on {named(one.pods)}" if one.pods and where else where or named(one.pods)


def _since(one: FleetIncident) -> str:
    began = moment(one.since_us)
    if one.status is Status.OPEN or one.ended_us is None:
        return f"since {began}"
    lasted = timedelta(seconds=(one.ended_us - one.since_us) // 1_000_000)
    return f"from {began} to {moment(one.ended_us)} ({lasted})" if lasted else f"at {began}"


def _evidence(one: FleetIncident) -> str:
    counted = Counter((role.value, found.detector) for role, found in one.findings)
    return ", ".join(
        f"{_number(count, 'finding')} of {name} ({role})" for (role, name), count in counted.items()
    )


def _finding(one: FleetFinding) -> str:
    place = " ".join(x for x in (one.task_id, one.store, one.link.pod) if x)
    by = AGENT if one.link.by_agent else FLEET
    said = f"{one.severity.value}, {one.confidence.value}, {one.status.value}; by {by}; id {one.id}"
    return f"{one.detector} {place} ({said}): {one.summary}"


def _wrapped(text: str, shown: Shown) -> list[str]:
    return textwrap.wrap(
        printable(text), max(shown.width, 40), initial_indent=_INDENT, subsequent_indent=_INDENT,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _number(count: int, what: str, several: str = "") -> str:
    return f"{count} {what if count == 1 else several or what + 's'}"
