"""Two pods hold one task, and the files of one are stalled while the other works: a zombie that was expelled.

Signal: holder intervals of a task on two pods that overlap, what moved in their files, and how far each had come.
Fires when: more pods than owner and standbys hold a task for longer than the session timeout, the files of one were
    stalled all that time, and the other wrote beyond what the first one has.
Clears when: one of the two releases the task; the finding is left out as soon as that was before the look-back.
Stays quiet when: the other one is a warm-up or a standby (it never gets beyond the first, or not beyond the records
    that an active may leave out of its checkpoint), or both move.
Source: consumer group membership (session.timeout.ms), warm-ups since 2.6 (KIP-441).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from agent.contract.codec import moment
from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from agent.contract.units import Twin
from spark_rollup.fleet.application import MOVES, SETTLE_US, SKEW_US, Application, Rule, Task, at_least
from spark_rollup.fleet.growth import course, growth
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import Entry, Hold, Mark, Reading
from spark_rollup.fleet.words import chain, entry, finding, place, whole_seconds

META = RuleMeta(
    id="split-owner",
    title="Two pods hold one task, and one of them is stalled",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    joined_by=(("application_id", "pod"),),
    needs=("num_standby_replicas", "session_timeout_ms", "processing_guarantee"),
    twin=Twin("N14, a frozen member comes back and finds itself fenced", "benign-eos-fencing-4.1.2"),
)

UNSAVED_RECORDS = 10_000
"""An active may be this many records past its checkpoint (OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT, since 2.6)."""

FIRST_WITH_WARM_UPS = (2, 6)

FIRST_TO_COMMIT_BEFORE_IT_CLAIMS = (2, 6)
"""Before it, an owner that lost its task writes a checkpoint behind the next one's records, then its commit fails."""


class _Overlap(NamedTuple):
    """Two pods hold one task: `pod` may be frozen."""

    pod: str
    other_pod: str
    from_us: int
    to_us: int
    lasting: bool


class _Ahead(NamedTuple):
    """How far the two are in a store in which the other one went beyond the first."""

    store: str
    own_offset: int | None
    other_offset: int | None
    other_grown: int | None


def find(app: Application) -> Iterator[Row]:
    """Find pairs of holders of which one is stalled."""
    for task in app.tasks.values() if app.settings else ():
        for pair in _overlaps(app, task):
            still_us = _still_until(app, task, pair)
            ahead = _ahead(app, task, pair, still_us) if still_us else None
            if still_us and ahead:
                yield _finding(app, task, pair, still_us, ahead)


def _overlaps(app: Application, task: Task) -> Iterator[_Overlap]:
    """Pair holders of one task, the one that may be frozen first; standbys that are promised do not count."""
    assert app.settings
    session_us = app.settings.session_ms * 1_000
    promised = 1 + (app.settings.num_standby_replicas or 0)
    owners = sorted(task.owners, key=lambda x: x.from_us)
    begun: dict[int, list[Hold]] = defaultdict(list)
    for hold in owners:
        begun[hold.from_us].append(hold)
    there: list[Hold] = []
    for hold in owners:
        there = [x for x in there if x.to_us >= hold.from_us]
        for other in there:
            from_us, to_us = hold.from_us, min(hold.to_us, other.to_us)
            if other.pod == hold.pod or to_us - from_us <= session_us:
                continue
            through = {x.pod for x in (*there, *begun[from_us]) if x.to_us >= to_us}
            if len(through) > promised:
                lasting = hold.lasting and other.lasting
                yield _Overlap(hold.pod, other.pod, from_us, to_us, lasting)
                yield _Overlap(other.pod, hold.pod, from_us, to_us, lasting)
        there.append(hold)


def _still_until(app: Application, task: Task, pair: _Overlap) -> int | None:
    """Say until when the first pod moved nothing; None = not for longer than the session timeout."""
    assert app.settings
    moved = [
        x.at_us for x in task.marks
        if x.pod == pair.pod and x.change in MOVES and pair.from_us + SETTLE_US < x.at_us < pair.to_us
    ]  # fmt: skip
    still_us = min(moved, default=pair.to_us)
    long = still_us - pair.from_us > app.settings.session_ms * 1_000
    return still_us if long and (pair.lasting or still_us >= app.since_us) else None


def _ahead(app: Application, task: Task, pair: _Overlap, still_us: int) -> _Ahead | None:
    """Find a store in which the second pod went beyond the first one meanwhile."""
    assert app.settings
    own: dict[str, list[Reading | Mark]] = defaultdict(list)
    theirs: dict[str, list[Reading | Mark]] = defaultdict(list)
    for x in _readings(task):
        if x.store is None or x.at_us > still_us:
            continue
        if x.pod == pair.pod:
            own[x.store].append(x)
        elif x.pod == pair.other_pod and x.at_us >= pair.from_us:
            theirs[x.store].append(x)
    warm_ups = _has_warm_ups(app)
    for store in sorted(own.keys() & theirs.keys()):
        mine, others = own[store], theirs[store]
        offsets, puts = {_offset(x) for x in others} - {None}, {x.puts for x in others} - {None}
        if len(offsets) < 2 and len(puts) < 2:
            continue
        own_offset, other_offset = _most(_offset(x) for x in mine), _most(offsets)
        own_puts, grown = _most(x.puts for x in mine), growth(course(others))
        limit = _most(x.unsaved_puts for x in others if isinstance(x, Reading)) if warm_ups else 0
        if own_offset is not None and other_offset is not None:
            beyond = other_offset > own_offset + (UNSAVED_RECORDS if warm_ups else 0)
        else:
            beyond = (
                grown is not None and own_puts is not None and limit is not None and grown > own_puts + limit
            )
        if beyond:
            return _Ahead(store, own_offset, other_offset, grown)
    return None


def _has_warm_ups(app: Application) -> bool:
    assert app.settings
    return at_least(app.settings.release_high, FIRST_WITH_WARM_UPS) is not False


def _readings(task: Task) -> Iterator[Reading | Mark]:
    """List all that shows how far a store of a copy is: readings, checkpoints and flushes.

    The flush of a segment says nothing of its store as a whole.
    """
    yield from task.readings
    yield from (x for x in task.marks if x.change == Change.STORE_FLUSHED.value and x.segment is None)


def _offset(x: Reading | Mark) -> int | None:
    return x.offset if isinstance(x, Reading) else None


def _most(values: Iterator[int | None] | set[int | None]) -> int | None:
    return max((x for x in values if x is not None), default=None)


def _finding(app: Application, task: Task, pair: _Overlap, still_us: int, ahead: _Ahead) -> Row:
    assert app.settings
    pod, other = pair.pod, pair.other_pod
    # among what is left out may be how far the first one came
    unseen = None if task.cut_us is None else f"readings up to {moment(task.cut_us)} were too many to be read"
    if any(app.was_unwatched(x, task.id, pair.from_us, still_us) for x in (pod, other)):
        unseen = "one of the two was not watched all the time"
    unknown = app.settings.num_standby_replicas is None
    # the overlap's ends are reported by two pods: their clocks may make this much of it
    brief = still_us - pair.from_us <= app.settings.session_ms * 1_000 + SKEW_US
    guarantee = app.settings.processing_guarantee
    exactly_once = (guarantee or "").startswith("exactly_once")
    warm_ups = _has_warm_ups(app)
    overtaken = warm_ups and (exactly_once or guarantee is None)  # by what follows it: its files stand still
    quiet = unseen is not None or (exactly_once and not pair.lasting)
    sure = Confidence.SUSPECTED if unknown or brief or overtaken else Confidence.CONFIRMED
    return finding(
        META, app.where, pair.from_us, task_id=task.id, pod=pod,
        severity=(Severity.INFO if quiet else Severity.WARNING).value,
        confidence=(Confidence.UNKNOWN if unseen else sure).value,
        status=(Status.OPEN if pair.lasting else Status.RESOLVED).value,
        ended_us=still_us,
        affected=Affected.POSSIBLY.value,
        missing_facts=[
            *(["num_standby_replicas"] if unknown else []),
            *(["processing_guarantee"] if overtaken and guarantee is None else []),
        ],
        summary=f"{pod} still holds {task.id} and changed no file of it for {whole_seconds(still_us - pair.from_us)} s,"
        f" while {other} works on it",
        evidence=_evidence(place(app.name, task.id), pair, still_us, ahead, unseen),
        next_action=_next_action(app, task, pair, still_us, exactly_once=exactly_once),
        pods=[pod, other],
    )  # fmt: skip


def _evidence(where: str, pair: _Overlap, still_us: int, ahead: _Ahead, unseen: str | None) -> list[Entry]:
    pod, other = pair.pod, pair.other_pod
    at = "" if ahead.own_offset is None else f"; it is at offset {ahead.own_offset}"
    to = "" if ahead.other_offset is None else f" to offset {ahead.other_offset}"
    more = "" if ahead.other_grown is None else f", {ahead.other_grown} puts more"
    both = f"{pod} and {other} both hold the task from {moment(pair.from_us)} to {moment(pair.to_us)}"
    return chain(
        entry(pair.from_us, both, where),
        entry(still_us, f"no file of {pod}'s copy changed until {moment(still_us)}{at}", pod),
        entry(still_us, f"{other}'s copy moved on{to}{more}", other),
        None if unseen is None else entry(pair.from_us, unseen, "rollup"),
    )


def _next_action(app: Application, task: Task, pair: _Overlap, still_us: int, *, exactly_once: bool) -> str:
    assert app.settings
    pod, other = pair.pod, pair.other_pod
    if pair.lasting and exactly_once and _has_warm_ups(app):
        return (
            f"Nothing, if {other} warms up or follows as a standby: under exactly-once {pod} saves nothing while it"
            f" works. If {other} processes, the process on {pod} is paused or cut off: restart it."
        )
    if pair.lasting:
        return (
            f"Check the process on {pod}: it is paused, stuck in garbage collection or cut off. Stop it before it"
            " wakes up, with SIGKILL if SIGTERM does nothing, then start it: under at-least-once what it still has in"
            " memory may be written twice."
        )
    over = (
        f"Find out what stopped {pod} for so long (throttling, garbage collection, node); under at-least-once compare"
        f" the output around {moment(still_us)}."
    )
    if exactly_once or at_least(app.settings.release_low, FIRST_TO_COMMIT_BEFORE_IT_CLAIMS):
        return over
    return (
        f"{over} Up to 2.5 its checkpoint may also cover what {other} wrote: stop the instance on {pod}, keep a copy of"
        f" its directory of {task.id}, remove that directory only, start it: it then restores in full."
    )


RULE = Rule(META, find)
