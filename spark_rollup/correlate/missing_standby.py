"""Fewer holders than the standby count promises, for longer than any rebalance explains.

Signal: holder intervals of all pods of the application, and its number of standbys.
Fires when: a task has fewer holders than 1 + min(standbys, pods - 1) for longer than session timeout plus probing
    rebalance interval, on pods that all lived through that time, and either sibling tasks of the subtopology are
    complete or a living pod has the task's directory and does not hold it.
Clears when: the task has all its holders again.
Stays quiet when: pods come or go (they are not counted while they do), or no agent can see the task's locks.
Source: KAFKA-8187 stage 1 (up to 2.2.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.fleet.application import SKEW_US, Application, Rule, Task, at_most
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import Entry, Said
from spark_rollup.fleet.shortages import Settled, Shortages, Unowned
from spark_rollup.fleet.words import chain, entry, finding, place, whole_seconds

META = RuleMeta(
    id="missing-standby",
    title="A task has fewer copies than its standby count promises",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.TOO_FEW_COPIES,
    joined_by=(("application_id", "pod"), ("application_id", "task_id")),
    upstream=("KAFKA-8187",),
    needs=(
        "num_standby_replicas",
        "kafka_streams_version",
        "session_timeout_ms",
        "probing_rebalance_interval_ms",
    ),
    consequence=("If the last copy goes, the task restores from its changelog; up to 2.2.1 it loses data."),
    twin=Twin("N6, a rolling restart with standbys", "benign-rolling-standby-3.9.2"),
)

_LAST_AFFECTED = (2, 2, 1)


def find(app: Application) -> Iterator[Row]:
    """Count holders over time and judge every shortage; name the missing setting where it cannot be judged."""
    pods = sorted({x.pod for x in app.lives})
    if app.settings is None or not pods:
        return
    patience_us = (app.settings.session_ms + app.settings.probing_ms) * 1_000
    standbys = app.settings.num_standby_replicas
    if standbys is not None and standbys >= 1:
        shortages = Shortages(app, standbys, len(pods), patience_us)
        for short in shortages.settled():
            if short.short.to_us >= app.since_us:
                yield from _judged(app, shortages, short)
    for task, said in app.suspects("unowned-task"):
        yield from _refuted(app, task, said, patience_us)
    if standbys is None and len(pods) > 1:
        yield _undecidable(app, pods)


def _affected(app: Application) -> Affected:
    assert app.settings
    if at_most(app.settings.release_high, _LAST_AFFECTED):
        return Affected.YES
    return Affected.NO if at_most(app.settings.release_low, _LAST_AFFECTED) is False else Affected.POSSIBLY


def _judged(app: Application, shortages: Shortages, x: Settled) -> Iterator[Row]:
    assert app.settings
    affected = _affected(app)
    unowned = shortages.unowned(x)
    # the bug's own signature
    signature = unowned if affected is not Affected.NO else None
    if not signature and not shortages.has_complete_sibling(x):
        return
    task = x.short.task
    unwatched = app.unwatched(task.id, x.since_us, x.settled_us)
    # begin and end are reported by two pods: their clocks may make this much of it
    brief = x.short.to_us - x.settled_us <= SKEW_US
    certain = bool(signature) and affected is Affected.YES and not unwatched and not brief
    sure = Confidence.SUSPECTED if brief or (signature and not certain) else Confidence.CONFIRMED
    quiet = Severity.WARNING if signature else Severity.INFO
    over = x.short.to_us < app.as_of_us
    of_task = {
        y.finding_id for y in task.said if y.detector == "unowned-task" and unowned and y.pod == unowned.pod
    }
    yield finding(
        META, app.where, x.since_us, task_id=task.id, pod=signature.pod if signature else None,
        severity=(Severity.CRITICAL if certain else quiet).value,
        confidence=(Confidence.UNKNOWN if unwatched else sure).value,
        status=(Status.RESOLVED if over else Status.OPEN).value,
        ended_us=x.short.to_us,
        affected=affected.value,
        missing_facts=["kafka_streams_version"] if app.settings.release_high is None else [],
        summary=f"{task.id} had {x.short.most} of {x.expected} expected copies for"
        f" {whole_seconds(x.until_us - x.since_us)} s{_where(signature)}",
        evidence=_evidence(app, x, signature, unwatched),
        next_action=_next_action(task, signature, over=over),
        pods=[signature.pod] if signature else [],
        confirms=sorted(of_task),
    )  # fmt: skip


def _where(signature: Unowned | None) -> str:
    if signature is None:
        return ""
    idle = (
        " is there and no process holds it"
        if signature.gone_us is None
        else " was unowned until its cleaner deleted it"
    )
    return f"; the directory on {signature.pod}{idle}"


def _evidence(app: Application, x: Settled, signature: Unowned | None, unwatched: list[str]) -> list[Entry]:
    task, where = x.short.task, place(app.name, x.short.task.id)
    shortage = (
        f"{task.id} has {x.short.most} of {x.expected} expected holders from {moment(x.since_us)} to"
        f" {moment(x.until_us)}; {x.alive} processes lived through it"
    )
    entries = [entry(x.since_us, shortage, where)]
    if signature:
        left = f"{signature.pod} released the task, its directory stayed, and no other pod took it"
        entries.append(entry(signature.since_us, left, where))
        if signature.gone_us is not None:
            gone = f"the cleaner of {signature.pod} deleted the unowned directory: its process was alive"
            entries.append(entry(signature.gone_us, gone, where))
    if unwatched:
        entries.append(entry(x.since_us, f"not watched all the time: {', '.join(unwatched)}", "rollup"))
    return chain(*entries)


def _next_action(task: Task, signature: Unowned | None, *, over: bool) -> str:
    if signature is None:
        return "Nothing urgent: check whether a warm-up or a long restoration explains it."
    if over:
        return (
            f"The shortage is over. Find out how {signature.pod} got its copy of {task.id} back before you trust it: a"
            " copy that was deleted and recreated under the old offset seems complete."
        )
    idle = (
        f"Stop the instance on {signature.pod} cleanly and start it again: its standby of {task.id} is assigned but was"
        " never started."
    )
    there = "Do it before the cleaner deletes its directory or a failover needs it."
    gone = "Until then the task has no second copy."
    return f"{idle} {there if signature.gone_us is None else gone} Upgrade to 2.2.2 or later."


def _refuted(app: Application, task: Task, said: Said, patience_us: int) -> Iterator[Row]:
    """Close agents' `unowned-task` suspicions where another pod took the task: that was an ordinary move."""
    # it took the task about when the suspect let go; who held it long before is no taker
    takers = [
        (x.from_us, x.pod) for x in task.owners
        if x.pod != said.pod and abs(x.from_us - said.opened_at_us) <= patience_us
    ]  # fmt: skip
    if not takers:
        return
    taken_us, taker = min(takers)
    moved = f"{taker} took {task.id} at {moment(taken_us)}"
    yield finding(
        META, app.where, said.opened_at_us, task_id=task.id, store=said.store, pod=said.pod, identity=said.identity,
        severity=Severity.INFO.value,
        status=Status.RESOLVED.value,
        ended_us=taken_us,
        affected=Affected.NO.value,
        summary=f"not missing: {moved}, so {said.pod} merely lost it",
        evidence=chain(entry(taken_us, moved, place(app.name, task.id)), then=said.evidence or ()),
        next_action="Nothing: an ordinary move.",
        pods=[said.pod, taker],
        refutes=[said.finding_id],
    )  # fmt: skip


def _undecidable(app: Application, pods: list[str]) -> Row:
    """Say once per application of several pods that the number of standbys is not known."""
    since_us = min(x.from_us for x in app.lives)
    return finding(
        META, app.where, since_us,
        severity=Severity.INFO.value,
        confidence=Confidence.UNKNOWN.value,
        missing_facts=["num_standby_replicas"],
        summary=f"how many copies each task of {app.name} should have is not known, so missing ones cannot be found",
        evidence=[entry(since_us, "no agent reported num_standby_replicas", "configuration")],
        next_action="Set num_standby_replicas for the agents, or for this command with --set.",
        pods=pods,
    )  # fmt: skip


RULE = Rule(META, find)
