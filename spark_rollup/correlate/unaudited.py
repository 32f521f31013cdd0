"""Pods and times that no agent watched: there "no finding" means "unknown", not "fine".

Signal: holes in an agent's sequence, blind intervals in its heartbeats, silence, an agent that did not run, a clock
    that is ahead of all others; heartbeats that count more open findings than are in the input; tasks of which more is
    known than a worker can hold.
Fires when: any such interval or count exists in the input; one finding per pod and cause.
Clears when: the interval is before the look-back; what is counted is in the input.
Stays quiet when: the last thing an agent said is that it stops, and nothing came after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from spark_rollup.fleet.application import Application, Rule
from spark_rollup.fleet.events import MICROS
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.pods import CUT, DROPPED, EARLIER, FAST, LOST, SILENT, STOPPED, TOO_MANY, has_ended
from spark_rollup.fleet.rows import Entry, Gap, Heard
from spark_rollup.fleet.words import entry, finding, whole_seconds

META = RuleMeta(
    id="unaudited",
    title="Pods and times that no agent watched",
    level=Level.SELF,
    severity=Severity.WARNING,
    joined_by=(("next_action",),),  # it says what happened to the agent
    consequence="For these pods and times, no finding means unknown, not fine.",
    twin=Twin("agents that said that they stop", "benign-move-3.9.2"),
)

SHORT_US = 60 * MICROS
"""Up to this much unwatched time in all (microseconds) is worth a note, not a warning."""

MAX_INTERVALS = 20
"""How many intervals the evidence lists; the summary counts them all."""

MISSED = "missed-findings"
"""Cause of what is no interval: the agent counts open findings that are not in the input."""

_SENTENCES = {
    LOST: "events were lost on the way and no agent announced it",
    DROPPED: "the agent dropped events because its spool was full",
    EARLIER: "the input starts in the middle of the agent's stream",
    MISSED: "its agent counts open findings that are not in the input",
    SILENT: "the agent said nothing",
    STOPPED: "the agent was stopped",
    TOO_MANY: "some tasks have more readings than one worker can hold; the oldest were not read",
    CUT: "the file with the end of what its agent said could not be read",
    FAST: "its clock is ahead of all others, or all others fell silent at once; the audit ends where they do",
}

_ACTIONS = {
    LOST: "Find the missing segments (spool directory, sink, retention) and audit again: sending twice is harmless.",
    DROPPED: "Give the agent's spool more room, or find out why shipping was behind.",
    EARLIER: "Nothing, if the input was cut on purpose; else add the earlier segments.",
    SILENT: "Check the agent on that pod: does it run, does it ship? Then audit again.",
    STOPPED: "Nothing, if the agent was restarted on purpose; what changed meanwhile is unknown.",
    MISSED: "Read on that pod what is open: its page, or `statewarden scan`. Add the missing segments, or wait:"
    " an agent says again what is open at each start and every 6 hours.",
    TOO_MANY: "Run `statewarden-rollup compact --snapshots` once a day: it keeps less of days that are over.",
    CUT: "Make the file readable, or send it again; then audit again.",
    FAST: "Set the clock of that pod's node (is NTP running there?). If its clock is right, check the other agents.",
}

_OTHERWISE = "Read the agent's log for the cause. A rescan repaired its view; what it missed stays unknown."


def find(app: Application) -> Iterator[Row]:
    """Group gaps per pod and cause, and add what agents count."""
    for pod in app.pods.values():
        groups: dict[str, list[Gap]] = defaultdict(list)
        for gap in pod.gaps:
            if gap.application_id == app.name:
                groups[gap.cause].append(gap)
        for cause, gaps in groups.items():
            yield _of_gaps(app, pod.name, cause, gaps)
        if app.name is None and pod.heard and pod.heard.missed_criticals + pod.heard.missed_warnings > 0:
            yield _of_counts(app, pod.heard)


def _of_gaps(app: Application, pod: str, cause: str, gaps: list[Gap]) -> Row:
    unwatched_us = sum(max(x.to_us - x.from_us, 0) for x in gaps)
    known = [x.missing for x in gaps if x.missing is not None]
    harmless = cause in (EARLIER, STOPPED)
    loud = not harmless and (unwatched_us > SHORT_US or cause in (LOST, SILENT, FAST, CUT))
    seen, there = ("read", "left out") if cause == TOO_MANY else ("watched", "missing")
    lost = f", {sum(known)} events {there}" if known else ""
    counted = (
        f"{len(gaps)} interval{'' if len(gaps) == 1 else 's'}, {whole_seconds(unwatched_us)} s un{seen}{lost}"
    )
    shown = sorted(_entry(x) for x in gaps)[:MAX_INTERVALS]
    return _finding(app, pod, cause, min(x.from_us for x in gaps), f"; {counted}", shown, loud=loud)


def _entry(gap: Gap) -> Entry:
    missing = "" if gap.missing is None else f", {gap.missing} events missing"
    task = "" if gap.task_id is None else f", task {gap.task_id}"
    who = "not all is read" if gap.cause == TOO_MANY else "no agent watched"
    what = f"{who} from {moment(gap.from_us)} to {moment(gap.to_us)}{missing}{task}"
    return entry(gap.from_us, what, gap.pod)


def _of_counts(app: Application, heard: Heard) -> Row:
    """Say that an agent counts open findings that are not in the input."""
    number = heard.missed_criticals + heard.missed_warnings
    ids = ", ".join(heard.missed[:MAX_INTERVALS])
    what = (
        f"of what the agent counts as open, {heard.missed_criticals} critical and {heard.missed_warnings} warnings are"
        f" not in the input{f': {ids}' if ids else ''}"
    )
    shown = [entry(heard.level_us, what, heard.pod)] if heard.level_us is not None else []
    opened_us = heard.boot_us if heard.boot_us is not None else heard.last_us
    loud = not has_ended(heard, app.as_of_us)
    return _finding(app, heard.pod, MISSED, opened_us, f": {number}", shown, loud=loud)


def _finding(
    app: Application, pod: str, cause: str, opened_us: int, counted: str, shown: list[Entry], *, loud: bool
) -> Row:
    return finding(
        META, app.where, opened_us, pod=pod, identity=cause,  # the cause is part of the finding's identity
        confidence=(Confidence.SUSPECTED if cause == FAST else Confidence.CONFIRMED).value,
        severity=(Severity.WARNING if loud else Severity.INFO).value,
        affected="no",
        summary=f"{pod}: {_SENTENCES.get(cause, f'the agent was blind: {cause}')}{counted}",
        evidence=shown,
        next_action=_ACTIONS.get(cause, _OTHERWISE),
    )  # fmt: skip


RULE = Rule(META, find)
