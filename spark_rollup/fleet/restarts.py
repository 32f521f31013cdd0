"""May a pod be restarted? For each task on it: how its copy is, who else has a good one, what a kill does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent.contract.codec import moment
from agent.contract.events import Change, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Remedy
from spark_rollup.fleet import copies
from spark_rollup.fleet.alone import is_refuted
from spark_rollup.fleet.answers import CLEAN_ONLY, DAMAGED, KEEP, NOT_RUNNING, RESTORE, SAFE, UNKNOWN
from spark_rollup.fleet.application import Application, Task, at_least, at_most
from spark_rollup.fleet.copies import Held
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.pods import doubt, has_ended, unrepaired
from spark_rollup.fleet.rows import Release, Said

KEPT = (((2, 6), (2, 6, 1)), ((3, 8), (4, 1, 2)), ((4, 2), (4, 2, 1)))
"""First and last releases on which an exactly-once task keeps its checkpoint while it runs, so that a kill leads to no
wipe (KAFKA-10362, KAFKA-20685)."""

WALKS_AWAY = ((4, 3), (4, 3, 1))
"""First and last release on which a task that moves away may be deleted before it comes back (KAFKA-20805)."""

UNDECIDED = "undecided"
"""Detector of agents that asks for a setting."""

EXPOSED = "stale-eos-checkpoint"
"""Detector of agents whose copies are well, as long as nobody kills their process."""

_TRUSTED = "the next start trusts what is there, committed or not (KAFKA-20685)"


@dataclass(slots=True)
class _State:
    """A copy of a task on a pod, and whose step is to be followed first."""

    pod: str
    copy: Held | None = None
    now: bool = False
    is_exposed: bool = False
    follow: list[str] = field(default_factory=list)
    doubt: str | None = None
    gone: bool = False

    @property
    def healthy(self) -> bool:
        return self.copy is not None and self.copy.healthy and self.now and not self.follow

    @property
    def is_known(self) -> bool:
        return self.doubt is None

    @property
    def why(self) -> str:
        """Why the copy is none to rely on, for people."""
        ill = self.copy.ill if self.copy else ()
        parts = (
            copies.DAMAGED if self.follow or copies.DAMAGED in ill else None,
            next((x for x in ill if copies.BEHIND in x), None),
            None if self.now else "(not held)",
            None if self.is_known else f"({self.doubt})",
        )
        return " and ".join(part for part in parts if part)


def restarts(app: Application, findings: list[Row]) -> Iterator[Row]:
    """Answer for every task that every pod holds or has damaged: rows of `RESTARTS`.

    One row per copy of a task, and one without a task where a finding is about all of an application on a pod. What
    `findings` refute must not count in `app`.
    """
    follow = _to_follow(app, findings)
    for task, states in _states(app, follow, _suspected(app, findings, follow)):
        saved = _saved(task)
        for state in states.values():
            yield _answered(
                app, task, state, [x for x in states.values() if x is not state], saved.get(state.pod)
            )
    for (task_id, pod), detectors in follow.items():
        if task_id is None:
            yield _row(app, None, pod, [DAMAGED], detectors)


Follow = dict[tuple[str | None, str], list[str]]
"""By task (None = the whole application there) and pod: detectors to follow; `report` has their incident's step."""


def _loud(app: Application, severity: Severity) -> Iterator[Said]:
    """List what agents say is open and as severe, and nothing refutes."""
    for x in app.local:
        is_open = (x.status, x.severity) == (Status.OPEN.value, severity.value)
        if is_open and not is_refuted(x.identity, x.pod, app.refuted.get(x.finding_id)):
            yield x


def _to_follow(app: Application, findings: list[Row]) -> Follow:
    """Take what has to be done first: open criticals, by every pod that one without a task names.

    One that settles what several pods' agents said names one of the pods; it is to be done first on each.
    """
    said: dict[str, set[tuple[str | None, str]]] = defaultdict(set)
    for x in _loud(app, Severity.CRITICAL):
        said[x.finding_id].add((x.task_id, x.pod))
    found: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    for row in findings:
        if row["status"] == Status.OPEN.value and row["severity"] == Severity.CRITICAL.value:
            pods = row["pods"] if row["task_id"] is None else [row["pod"]]
            places = {(row["task_id"], pod) for pod in pods if pod is not None}
            for place in places.union(*(said[one] for one in (*row["confirms"], *row["explains"]))):
                found[place].add(row["detector"])
    return {key: sorted(detectors) for key, detectors in found.items()}


def _suspected(app: Application, findings: list[Row], follow: Follow) -> dict[tuple[str, str], str]:
    """Say per task and pod what is open and not critical, and makes its copy none to rely on.

    Damage; and what is still to come of a copy's files, such as of a store that the next start cannot open. Where two
    copies differ, either may be the wrong one; and whoever holds a task now may have what should have been wiped.
    What settles an agent's suspicion may be about another pod, or about the task.
    """
    holders = {(task.id, x.pod) for task in app.tasks.values() for x in task.owners if x.lasting}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in findings:
        spreads = row["mechanism"] == Mechanism.UNCOMMITTED_DATA.value
        loud = row["severity"] == Severity.WARNING.value
        loud |= spreads and row["severity"] == Severity.CRITICAL.value
        if (
            row["status"] == Status.OPEN.value
            and loud
            and row["task_id"] is not None
            and _is_of_files(row["detector"], row["level"], row["remedy"])
        ):
            differ = row["mechanism"] == Mechanism.UNEQUAL_COPIES.value
            for pod in dict.fromkeys([row["pod"], *row["pods"]]):
                copy = row["task_id"], pod
                has_it = pod == row["pod"] or differ or (spreads and copy in holders)
                if has_it and copy not in follow:
                    found[copy].add(row["detector"])
    for x in _loud(app, Severity.WARNING):
        if x.task_id is not None and _is_of_files(x.detector, x.level, x.remedy):
            copy = x.task_id, x.pod
            if copy not in found and copy not in follow:
                found[copy].add(x.detector)
    return {copy: f"open: {', '.join(sorted(detectors))}" for copy, detectors in found.items()}


def _is_of_files(detector: str, level: str, remedy: str | None) -> bool:
    """Return whether a finding speaks of a copy's files; an agent of an older contract names no remedy."""
    damages = level == Level.DAMAGE.value or remedy != Remedy.OTHER.value
    return damages and detector != EXPOSED and level != Level.SELF.value


def _states(
    app: Application, follow: Follow, suspected: dict[tuple[str, str], str]
) -> Iterator[tuple[Task, dict[str, _State]]]:
    """List the copies that are held, and those that no process holds but that may be damaged, exposed or undecided."""
    known = copies.horizon(app)
    held = {task.id: rows for task, rows in copies.copies(app, known, known.horizon_us)} if known else {}
    exposed, undecided = _exposed(app), _undecided(app)
    named: dict[str | None, set[str]] = defaultdict(set)
    for task_id, pod in (*follow, *exposed, *suspected, *undecided):
        named[task_id].add(pod)
    unseen = [Task(name) for name in named if name is not None and name not in app.tasks]
    for task in (*app.tasks.values(), *unseen):
        states = {x.pod: _State(x.pod, x) for x in held.get(task.id, ())}
        for pod in named.get(task.id, ()):
            state = states.setdefault(pod, _State(pod))
            state.follow = list(follow.get((task.id, pod), ()))
            state.is_exposed = (task.id, pod) in exposed
        now = {x.pod for x in task.owners if x.lasting}
        for state in states.values():
            state.now = state.pod in now
            if state.is_exposed and not state.now:
                # of a process that is gone an exposure is no longer a risk: the next start trusts what is there
                state.follow = list(dict.fromkeys([*state.follow, EXPOSED]))
            copy = task.id, state.pod
            _add_doubt(app, task, state, undecided.get(copy) or suspected.get(copy))
        if states:
            yield task, states


def _exposed(app: Application) -> set[tuple[str, str]]:
    """Find the copies, by task and pod, that a kill would leave with records that were never committed."""
    return {
        (x.task_id, x.pod) for x in app.local
        if x.detector == EXPOSED and x.status == Status.OPEN.value and x.task_id is not None
        and not is_refuted(x.identity, x.pod, app.refuted.get(x.finding_id))
    }  # fmt: skip


def _add_doubt(app: Application, task: Task, state: _State, said: str | None) -> None:
    """Say why the present state of a copy is unknown."""
    pod = app.pods.get(state.pod)
    if pod is None:
        return
    unseen = max((x.from_us for x in unrepaired(pod) if app.concerns(x, task.id)), default=None)
    state.doubt = (
        doubt(pod, app.as_of_us)
        or (None if unseen is None else f"not watched at {moment(unseen)}")
        or said
        or ("its agent reports fewer tasks than its events show" if state.pod in app.miscounted else None)
        or ("not named since events were lost" if state.now and (task.id, state.pod) in app.unnamed else None)
        or ("its stores are not read yet" if state.now and _is_unread(task, state.pod) else None)
        or (None if task.cut_us is None else f"readings up to {moment(task.cut_us)} were too many to be read")
    )
    state.gone = pod.heard is not None and has_ended(pod.heard, app.as_of_us)


def _is_unread(task: Task, pod: str) -> bool:
    """Return whether of other copies a reading is known, and of this one none: it may be empty, or anything."""
    read = {x.pod for x in task.latest}
    return bool(read) and pod not in read


def _undecided(app: Application) -> dict[tuple[str, str], str]:
    """Name per task and pod the settings without which its agent cannot tell whether the copy is damaged."""
    found: dict[tuple[str, str], str] = {}
    for x in app.local:
        if x.detector == UNDECIDED and x.status == Status.OPEN.value:
            said = f"undecided: {' and '.join(x.missing_facts or ())} not given"
            for entry in x.evidence or ():
                for task_id in entry.where.partition("/")[2].split(", "):
                    found.setdefault((task_id, x.pod), said)
    return found


def _answered(app: Application, task: Task, state: _State, others: list[_State], saved: bool | None) -> Row:
    fit = sorted(x.pod for x in others if x.healthy and x.is_known)
    ill = [x for x in others if not (x.healthy and x.is_known)]
    # a bad copy works; who said goodbye has no copy that works
    ill_held = any(x.now and x.is_known for x in ill)
    unwatched = any(not x.is_known and not x.gone for x in ill)
    doubtful = state.doubt is not None or (not fit and unwatched)
    only = state.now and not doubtful and state.healthy and not fit and ill_held
    kinds = [
        kind for kind, holds in (
            (DAMAGED, bool(state.follow)),
            (CLEAN_ONLY, state.now and state.is_exposed),
            (KEEP, only),
            (UNKNOWN, (state.now and doubtful) or state.doubt is not None),
            (RESTORE, state.now and not fit and not doubtful and not only),
        )
        if holds
    ]  # fmt: skip
    return _row(
        app, task.id, state.pod, kinds or [SAFE if state.now else NOT_RUNNING], state.follow,
        healthy_elsewhere=fit, ill_elsewhere=sorted(" ".join((x.pod, x.why)) for x in ill),
        restore_bytes=None if fit or state.copy is None else state.copy.bytes,
        unclean_stop=_unclean(app, state, saved), doubt=state.doubt,
    )  # fmt: skip


def _row(
    app: Application,
    task: str | None,
    pod: str,
    kinds: list[str],
    follow: list[str],
    **more: object,
) -> Row:
    row: Row = {
        "namespace": app.namespace, "application_id": app.name, "task_id": task, "pod": pod, "answer": kinds[0],
        "kinds": kinds, "follow": follow, "first_action": None, "healthy_elsewhere": [], "ill_elsewhere": [],
        "restore_bytes": None, "unclean_stop": "", "doubt": None,
    }  # fmt: skip
    return row | more


def _saved(task: Task) -> dict[str, bool]:
    """Say per pod whether the task's checkpoint is there, by what was last seen of it."""
    gone = (Change.CHECKPOINT_DELETED.value, Change.TASK_DELETED.value)
    steps = [(x.at_us, True, x.pod) for x in task.saved]
    steps += [(x.at_us, False, x.pod) for x in task.marks if x.change in gone]
    return {pod: there for _, there, pod in sorted(steps)}


def _unclean(app: Application, state: _State, saved: bool | None) -> str:
    """Say what happens to this copy if the process is killed instead of stopped."""
    if not state.now:
        return "not running: no process holds it there"
    low = app.settings.release_low if app.settings else None
    high = app.settings.release_high if app.settings else None
    walks = (
        "; if the task moves away meanwhile, its directory may be deleted before it comes back (KAFKA-20805)"
        if _may_be(low, high, *WALKS_AWAY)
        else ""
    )
    return f"{_after_kill(app, state, saved, low, high)}{walks}"


def _after_kill(
    app: Application, state: _State, saved: bool | None, low: Release | None, high: Release | None
) -> str:
    guarantee = app.settings.processing_guarantee if app.settings else None
    if state.is_exposed:
        return "uncommitted records may stay in the store and are trusted (KAFKA-20685)"
    if guarantee is None:
        return "depends on the processing guarantee, which is not known"
    if not guarantee.startswith("exactly_once"):
        return "records since the last checkpoint are replayed onto the store"
    if saved is not False and any(_is_surely(low, high, *ends) for ends in KEPT):
        return (
            f"the store is not wiped: {_TRUSTED}"
            if saved
            else f"if it has a checkpoint, the store is not wiped: {_TRUSTED}"
        )
    if saved is not False and _unknown_or_kept(low, high):
        return f"depends on the release, which is not known for sure: up to 4.2.1 it may be that {_TRUSTED}"
    return "the store is wiped at the next start and restored"


def _unknown_or_kept(low: Release | None, high: Release | None) -> bool:
    """Return whether some release that keeps checkpoints is possible; where the release is not known one may be."""
    return any(_may_be(low, high, *ends) is not False for ends in KEPT)


def _may_be(low: Release | None, high: Release | None, first: Release, last: Release) -> bool | None:
    """Return whether one of these releases is possible; None = not known."""
    return _both(at_most(low, last), at_least(high, first))


def _is_surely(low: Release | None, high: Release | None, first: Release, last: Release) -> bool:
    return bool(at_least(low, first)) and bool(at_most(high, last))


def _both(one: bool | None, other: bool | None) -> bool | None:
    """And, where a half may be unknown."""
    if one is False or other is False:
        return False
    return None if None in (one, other) else True
