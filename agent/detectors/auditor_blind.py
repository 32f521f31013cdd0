"""Detector `auditor-blind`: the agent itself missed something, or has nothing to watch.

Fires while a blind interval lasts and for five minutes after its end; while changes are seen later than they could
be (polling, a limit of the kernel or of the agent); and when there is nothing to watch: no application directory for
five minutes (the most common first-hour mistake is an application whose `state.dir` is not on the volume that the agent
watches, or a level below it), or no task for an hour and no process that could have one.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.blind_causes import BY_SLUG, CLOCK_DIFFERS, why_unread
from agent.inventory.disk import LockState
from agent.inventory.model import Application, BlindInterval
from agent.inventory.nested import in_words
from agent.judging.base import AgentCase, DetectorMeta, Evidence, Kind, Scope, Twin, Verdict, seconds

META = DetectorMeta(
    id="auditor-blind",
    title="The statewarden agent missed something, or has nothing to watch",
    level=Level.SELF,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.AGENT,
    next_action=(
        "Treat what happened in that time as unknown: findings that rest on it say so. `statewarden explain"
        " auditor-blind` lists causes and remedies."
    ),
    consequence="Anything may have happened in that time. No alerts does not mean no problem.",
    twin=Twin("a state directory without a persistent store", "benign-inmemory-4.1.2", Severity.INFO),
)

NOTHING_AFTER_US = 300_000_000
"""No source: some minutes, in which an application may still start, and in which a short interval is scraped."""
NO_TASK_US = 3_600_000_000
"""Of an hour without any task nothing was watched. An instance whose tasks are all elsewhere holds its `.lock`."""
LISTED_APART = 8  # Intervals of one cause that are reported one by one; more are one finding; no source
_PER_POD = (
    "Give the agent the state directory of its own pod: STATEWARDEN_STATE_DIR with $(POD_NAME) at the end, or on its"
    " mount the subPathExpr of the application's. Never one directory for all pods."
)
_PLANNED = frozenset({"agent-away", "store-being-read"})
"""Every rollout restarts agents, and each has to read first: blind all the same, but it must not page anyone."""
_AWAITED = "root-missing"
"""A sidecar starts before its application, which makes its `state.dir` only then: until an application has been seen
there is nothing to be blind for."""
_REFUSED = "watch-refused"
_STEPPED = "self-limit"  # each step is reported
_LIMITS = frozenset({"watch-limit", _STEPPED})


def judge(case: AgentCase) -> Iterable[Verdict]:
    """Judge the agent itself."""
    by_cause: dict[str, list[BlindInterval]] = {}
    for interval in case.inventory.blind:
        if interval.ended_us is None or case.waited_us(interval.ended_us) < NOTHING_AFTER_US:
            by_cause.setdefault(interval.cause, []).append(interval)
    for cause, intervals in by_cause.items():
        severities = [Severity.INFO if _is_planned(case, x) else Severity.WARNING for x in intervals]
        if len(intervals) > LISTED_APART:
            yield _many(
                cause, intervals, Severity.WARNING if Severity.WARNING in severities else Severity.INFO
            )
        else:
            yield from map(_missed, intervals, severities)
    for cause, (since_us, sentence) in case.inventory.slowed.items():
        yield _slow(cause, since_us, sentence)
    there = [application for application in case.inventory.applications.values() if application.exists]
    if not any(map(_has_work, there)):
        last_us = max((x.last_activity_us for x in case.inventory.applications.values()), default=0)
        since_us = max(case.inventory.started_us, last_us)
        waited_us = case.waited_us(since_us)
        if waited_us >= (NO_TASK_US if there else NOTHING_AFTER_US):
            yield _nothing(case, len(there), since_us, waited_us)


def _whom(interval: BlindInterval) -> str:
    if interval.application is None:
        return "the whole state directory"
    return "/".join(filter(None, (interval.application, interval.task, interval.store)))


def _remedy(cause: str, *, unread: bool = False) -> str:
    """Say what to do: of a place that cannot be read, and of a time in which something was missed."""
    known = BY_SLUG.get(cause)
    if known is None:
        return ""
    remedy = f"{known.remedy[:1].upper()}{known.remedy[1:]}."
    if unread:
        return f"{remedy} Until then verdicts rest on what was read before, if anything was."
    return f"Treat what happened in that time as unknown: findings that rest on it say so. {remedy}"


def _is_planned(case: AgentCase, interval: BlindInterval) -> bool:
    known_before = (x.first_seen_us < interval.started_us for x in case.inventory.applications.values())
    return interval.cause in _PLANNED or (interval.cause == _AWAITED and not any(known_before))


def _missed(interval: BlindInterval, severity: Severity) -> Verdict:
    whom, cause = _whom(interval), interval.cause
    lasted = "" if interval.ended_us is None else f" for {seconds(interval.ended_us - interval.started_us)}"
    steps = [Evidence(interval.started_us, f"blind: {cause}", whom)]
    if interval.ended_us is not None:
        steps.append(Evidence(interval.ended_us, "everything read again", whom))
    if interval.place is not None:
        could = "Could not" if lasted else "Can't"
        summary = f"{could} read {interval.place or whom}{lasted}: {why_unread(interval)}."
    else:
        be = "have been" if lasted else "be"
        why = ": ".join(filter(None, (BY_SLUG[cause].what if cause in BY_SLUG else "", interval.detail)))
        summary = f"Changes of {whom} may {be} missed{lasted} ({cause}): {why}."
    return Verdict(
        subject=f"{cause}@{interval.started_us}" + (f" {whom}" if interval.application else ""),
        opened_at_us=interval.started_us,
        summary=summary,
        evidence=tuple(steps),
        severity=severity,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
        next_action=_remedy(cause, unread=interval.place is not None),
    )


def _many(cause: str, intervals: list[BlindInterval], severity: Severity) -> Verdict:
    """One cause in many places is one trouble, and one finding."""
    first_us = min(x.started_us for x in intervals)
    unread = all(x.place is not None for x in intervals)
    places = sorted({x.place or _whom(x) for x in intervals})
    names = ", ".join(places[:LISTED_APART]) + (" and more" if len(places) > LISTED_APART else "")
    what = f"Can't read {len(places)} places" if unread else f"Changes may be missed, {len(intervals)} times"
    return Verdict(
        subject=f"{cause} in many places",
        opened_at_us=first_us,
        summary=f"{what} ({cause}): {names}.",
        evidence=(Evidence(first_us, f"blind: {cause}, the first of {len(intervals)}", places[0]),),
        severity=severity,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
        next_action=_remedy(cause, unread=unread),
    )


_SLOWED = {CLOCK_DIFFERS: "File times are those of a file server"}


def _slow(cause: str, since_us: int, sentence: str) -> Verdict:
    """Only what is shorter than the time between two readings is missed; a kernel limit is for an operator to raise."""
    known = BY_SLUG.get(cause)
    return Verdict(
        subject=f"{cause}: {sentence}" if cause == _STEPPED else cause,
        opened_at_us=since_us,
        summary=f"{_SLOWED.get(cause, 'Changes are seen later than they could be')} ({cause}): {sentence}.",
        evidence=(Evidence(since_us, f"slowed: {cause}", "state directory"),),
        severity=Severity.WARNING if cause in _LIMITS else Severity.INFO,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
        next_action=f"Nothing is wrong with the application. To see them sooner: {known.remedy}."
        if known
        else "",
    )


def _has_work(application: Application) -> bool:
    """Return whether there is a task, or a process that may get one."""
    may_be_held = application.lock in (LockState.HELD, LockState.UNKNOWN)
    return may_be_held or bool(application.processes) or any(x.exists for x in application.tasks.values())


def _nothing(case: AgentCase, applications: int, since_us: int, waited_us: int) -> Verdict:
    inventory = case.inventory
    refused = any(x.cause == _REFUSED and x.ended_us is None for x in inventory.blind)
    known = True
    if applications:
        summary = (
            f"No task for {seconds(waited_us)}: none of {applications} application directories has one, and no process"
            " holds one. Either no instance runs, or its state.dir is another directory."
        )
        known = False
    elif inventory.nested:
        summary = f"Nothing is watched: {in_words(inventory.nested)}."
    elif inventory.root_seen:
        summary = (
            f"No application directory for {seconds(waited_us)}: an application without persistent stores makes"
            " none; otherwise its state.dir is not the directory that is watched (default: /tmp/kafka-streams up to"
            " 2.7, kafka-streams below the JVM's temporary directory since 2.8)."
        )
        known = False
    elif refused:
        summary = f"The agent has no permission to read the state directory: {BY_SLUG[_REFUSED].remedy}."
    else:
        summary = "The state directory does not exist: mount the application's state volume here, or correct the path."
    return Verdict(
        subject="nothing-to-watch",
        opened_at_us=since_us + (NO_TASK_US if applications else NOTHING_AFTER_US),
        summary=summary,
        evidence=(Evidence(case.now_us, f"no task seen for {seconds(waited_us)}", "state directory"),),
        severity=Severity.WARNING if known or waited_us >= NO_TASK_US else Severity.INFO,
        confidence=Confidence.CONFIRMED if known else Confidence.UNKNOWN,
        affected=Affected.NO,
        next_action=_PER_POD if inventory.nested and not applications else "",
    )
