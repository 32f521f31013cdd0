"""Standbys are configured, and yet a task has no healthy second copy anywhere.

Signal: who holds each task at the end of the input, how far each copy is, and which copies carry damage.
Fires when: with standbys configured and at least two live pods, fewer than two healthy copies of a task are held; a
    copy is not healthy if an agent reports open damage on it, if `verify` proved that it does not hold what its
    changelog does (`--verified`), or if it lags far behind. Without standbys, or with one
    pod, once per application as information.
Clears when: a second healthy copy is held.
Stays quiet when: a process started or a copy was let go within session timeout plus probing interval, and ten seconds
    more: clocks of two pods may differ by that. Counted from when every pod had spoken: one that is heard every thirty
    seconds may have taken the copy since.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.fleet.application import Application, Rule, Task
from spark_rollup.fleet.copies import Held, Horizon, copies, horizon
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.words import chain, entry, finding, place

META = RuleMeta(
    id="unprotected-task",
    title="A task has no healthy second copy",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    mechanism=Mechanism.TOO_FEW_COPIES,
    joined_by=(("application_id",), ("application_id", "task_id")),
    needs=("num_standby_replicas", "session_timeout_ms", "probing_rebalance_interval_ms"),
    twin=Twin("N6, a rolling restart with standbys", "benign-rolling-standby-3.9.2"),
)


def find(app: Application) -> Iterator[Row]:
    """Count healthy copies where several are promised; name applications that promise none."""
    known = horizon(app)
    standbys = app.settings.num_standby_replicas if app.settings else None
    if known is None or standbys is None:
        return
    if standbys == 0:
        yield _application(app, known, "num.standby.replicas is 0")
    elif known.alive == 1:
        yield _application(app, known, "standbys are configured, but one pod runs alone")
    if standbys < 1 or known.alive < 2 or known.restless:
        return
    settled_us = known.spoken_us - known.patience_us
    for task, held in copies(app, known, known.spoken_us):
        # the first hold is the same in every later run: the finding keeps its id while it lasts
        first_us = min(x.from_us for x in task.owners)
        if sum(x.healthy for x in held) < 2 and first_us < settled_us:
            yield _finding(app, task, known, held, first_us)


def _finding(app: Application, task: Task, known: Horizon, held: list[Held], first_us: int) -> Row:
    assert app.settings
    settled_us = known.spoken_us - known.patience_us
    # a pod that fell silent after the application's last sign has its copy, as far as is known
    silent = {x.pod for x in held if not x.watched}
    unwatched = sorted({*app.unwatched(task.id, settled_us, known.horizon_us), *silent})
    good = [x.pod for x in held if x.healthy]
    listed = ", ".join(f"{x.pod} {' and '.join(x.ill)}" for x in held)
    if good:
        step = (
            f"Do not restart {good[0]} before another pod has caught up with {task.id}: find out why its standby is"
            " missing, damaged or behind."
        )
    else:
        step = (
            f"No copy of {task.id} can be trusted: keep the directories, stop the application if wrong output does"
            " harm, and rebuild one copy from the changelog."
        )
    unsure = known.leaving or known.presumed or sum(x.healthy or x.guessed for x in held) > 1
    sure = Confidence.SUSPECTED if unsure else Confidence.CONFIRMED
    return finding(
        META, app.where, first_us, task_id=task.id,
        severity=(Severity.INFO if unwatched or known.leaving else Severity.WARNING).value,
        confidence=(Confidence.UNKNOWN if unwatched else sure).value,
        affected=Affected.NO.value,
        summary=f"healthy copies of {task.id}: {len(good)}, with {known.alive} live pods and num.standby.replicas ="
        f" {app.settings.num_standby_replicas}",
        evidence=chain(
            entry(
                known.horizon_us, f"copies held at {moment(known.horizon_us)}: {listed or 'none'}",
                place(app.name, task.id),
            ),
            entry(settled_us, f"not watched all the time: {', '.join(unwatched)}", "rollup") if unwatched else None,
        ),
        next_action=step,
        pods=[x.pod for x in held],
        explains=sorted({one for x in held for one in x.damage}),
    )  # fmt: skip


def _application(app: Application, known: Horizon, why: str) -> Row:
    """Say once per application that tasks have one copy by configuration, or because one pod runs."""
    return finding(
        META, app.where, known.since_us,
        severity=Severity.INFO.value,
        affected=Affected.NO.value,
        summary=f"tasks of {app.name} have one copy each: {why}; a lost pod is restored from the changelog",
        evidence=[entry(known.since_us, why, "configuration")],
        next_action="Nothing, if restoring on failover is quick enough; else configure a standby.",
        pods=known.pods_seen,
    )  # fmt: skip


RULE = Rule(META, find)
