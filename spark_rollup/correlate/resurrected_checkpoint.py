"""An old changelog offset was carried over onto a fresh store: who deleted, who re-created, and what is missing.

Signal: an agent's `resurrected-checkpoint` finding, or transitions that show the same: a task deleted at offset P,
    its store recreated on that pod, and a first checkpoint at or beyond P.
Fires when: the agent saw it; or the new store holds less than half of what a replica held at about the same offset,
    and no more puts than offsets since P.
Clears when: the agent's finding is resolved.
Stays quiet when: a new store was restored (its puts cover the time before P).
Source: KAFKA-8187 (up to 2.2.1); torn deletions (any release up to 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRITTEN_SINCE, WRONG_RESULTS, Remedy, Twin
from spark_rollup.fleet.application import (
    NOISE_PUTS,
    OFFSET_SLACK,
    Application,
    Rule,
    Task,
    far_less,
    same_store,
)
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import Entry, Mark, Reading, Said
from spark_rollup.fleet.words import chain, entry, finding, lowered, of_store, place, words_of_agent

META = RuleMeta(
    id="resurrected-checkpoint",
    title="An old offset was carried over onto a fresh store",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    joined_by=(("application_id", "task_id", "pod"),),
    upstream=("KAFKA-8187", "KAFKA-5998"),
    asks=("resurrected-checkpoint", "unrestored-store"),
    consequence=WRONG_RESULTS,
    twin=Twin("N8, cleaned and restored in full elsewhere", "control-8187-2.2.2"),
)

_LOOK_BACK_US = 3_600_000_000
"""How long before the damage other holders are listed (microseconds)."""

_AFTER_US = 1_000_000
"""A deletion or creation this long after the finding opened still belongs to it: readings are not instants."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A store under an old offset: by an agent's finding (`said`), or by what transitions show (`old_offset`)."""

    pod: str
    store: str | None
    identity: str | None
    opened_at_us: int
    old_offset: int | None = None
    said: Said | None = None


def find(app: Application) -> Iterator[Row]:
    """Compare local findings, and what transitions show without one, with the rest of the fleet."""
    for task, said in app.suspects(META.id):
        yield from _judged(
            app, task, _Suspect(said.pod, said.store, said.identity, said.opened_at_us, said=said)
        )
    for task in app.tasks.values():
        reported = {x.pod for x in task.said if x.level == Level.DAMAGE.value}
        for shown in _carried_over(task):
            if shown.pod not in reported:
                yield from _judged(app, task, shown)


def _carried_over(task: Task) -> Iterator[_Suspect]:
    """Find first checkpoints at or beyond the offset at which the same pod's copy had been deleted.

    Tasks whose damage the agent itself reports are left to its finding.
    """
    deleted: dict[str, Mark] = {}
    created: dict[str, Mark] = {}
    found: set[tuple[str, int]] = set()
    for mark in sorted(task.marks, key=lambda x: (x.observed_at_us, x.sequence or 0)):
        pod = mark.pod
        if mark.change == Change.TASK_DELETED.value:
            deleted[pod] = mark
        elif mark.change == Change.STORE_CREATED.value:
            created[pod] = mark
        elif mark.change == Change.CHECKPOINT_WRITTEN.value and pod in deleted and pod in created:
            gone, made = deleted[pod], created[pod]
            old = gone.offset_before or 0
            carried = 0 < old <= (mark.offset_after or 0) and made.at_us >= gone.at_us
            if carried and (pod, gone.at_us) not in found:
                found.add((pod, gone.at_us))
                store = made.store if mark.store is None else mark.store
                identity = made.identity if mark.identity is None else mark.identity
                yield _Suspect(pod, store, identity, mark.observed_at_us, old)


def _judged(app: Application, task: Task, x: _Suspect) -> Iterator[Row]:
    deletion, creation = _deletion_and_creation(task, x)
    since_us = deletion.at_us if deletion else x.opened_at_us - _LOOK_BACK_US
    elsewhere, others = task.elsewhere(x.pod, since_us, x.opened_at_us)
    own = task.own_size(x)
    replica = _closest_replica(task, x, own.offset) if own else None
    less = bool(own and replica and far_less(own.puts, replica.puts))
    # a replica's live keys alone are far more than this store ever got: no compaction explains that
    fuller = bool(own and replica and replica.entries_low is not None and replica.entries_low > own.puts * 2)
    # among what is left out may be a closer replica, and more of the store itself
    proved = fuller and task.cut_us is None
    if x.said is None:
        # far less than a replica, and nothing from before the old offset
        no_history = own is not None and own.puts <= (own.offset - (x.old_offset or 0)) * 1.1 + 1
        if not (less and (no_history or fuller)):
            return
    comparison = None
    if own and replica:
        comparison = (
            f"{replica.pod} held {replica.puts} puts at offset {replica.offset}, {x.pod} holds {own.puts} at offset"
            f" {own.offset}"
        )
    twins = _twins(task, x)
    keep = f" {replica.pod} has the fuller copy: do not delete that one first." if replica and less else ""
    compared_us = own.at_us if own else x.opened_at_us
    yield finding(
        META, app.where, x.opened_at_us,
        **_loudness(app, task, x, since_us, less=less, proved=proved),
        task_id=task.id, store=x.store, pod=x.pod, identity=x.identity,
        summary=f"{x.pod} serves {task.id}{of_store(x.store)}, from a fresh store under an old offset; records before"
        f" that offset are missing{f': {comparison}' if comparison else ''}",
        evidence=chain(
            *_steps(app, task, x, deletion, creation),
            entry(compared_us, comparison, replica.pod) if comparison and replica else None,
            *elsewhere,
            then=(x.said.evidence if x.said else None) or (),
        ),
        next_action=f"Stop the instance on {x.pod}, keep a copy of its directory of {task.id}, remove that directory"
        f" only, start it again: it then restores from the changelog.{keep} {WRITTEN_SINCE}",
        pods=list(dict.fromkeys([x.pod, *([replica.pod] if replica else []), *others])),
        confirms=[x.said.finding_id, *twins] if x.said else [],
    )  # fmt: skip


def _twins(task: Task, x: _Suspect) -> list[str]:
    """List what the agent says of the same store by another name: it is explained with it."""
    return sorted(
        {
            y.finding_id for y in task.said
            if y.detector == "unrestored-store" and x.identity is not None
            and (y.pod, y.identity) == (x.pod, x.identity)
        }
    )  # fmt: skip


def _deletion_and_creation(task: Task, x: _Suspect) -> tuple[Mark | None, Mark | None]:
    """Find the last deletion and creation before the finding opened.

    The whole directory's deletion says more than its stores'; prefer the last of those.
    """
    marks = [y for y in task.marks if y.pod == x.pod and y.at_us <= x.opened_at_us + _AFTER_US]
    whole, store = Change.TASK_DELETED.value, Change.STORE_DELETED.value
    gone = [y for y in marks if y.change in (whole, store)]
    made = [y for y in marks if y.change == Change.STORE_CREATED.value]
    return (
        max(gone, key=lambda y: (y.change == whole, y.at_us), default=None),
        max(made, key=lambda y: y.at_us, default=None),
    )


def _closest_replica(task: Task, x: _Suspect, own_offset: int) -> Reading | None:
    """Find the other pod's reading that is closest to the suspect's offset, and not beyond it.

    A copy at a higher offset may hold more for good reason, so it proves nothing.
    """
    limit = own_offset * (1 + OFFSET_SLACK) + NOISE_PUTS
    near = [
        (abs(y.offset - own_offset), -y.puts, y.at_us, y.pod, y) for y in task.readings
        if y.offset is not None and y.puts is not None and y.pod != x.pod and y.offset <= limit
        and same_store(x.store, y.store)
    ]  # fmt: skip
    return min(near, key=lambda y: y[:4])[4] if near else None


def _loudness(app: Application, task: Task, x: _Suspect, since_us: int, *, less: bool, proved: bool) -> Row:
    """Decide severity and confidence.

    Puts count overwritten keys too: more of them on a replica do not turn an agent's suspicion into a proof.
    """
    sure = Confidence.CONFIRMED.value
    if x.said:
        words = words_of_agent(x.said)
        confirmed = words["confidence"] == sure or (less and proved)
        confidence = sure if confirmed else words["confidence"]
    else:
        words = {
            "severity": Severity.WARNING.value,
            "status": Status.OPEN.value,
            "affected": Affected.POSSIBLY.value,
        }
        unwatched = app.was_unwatched(x.pod, task.id, since_us, x.opened_at_us)
        confidence = lowered(sure if proved else Confidence.SUSPECTED.value, doubtful=unwatched)
    if words.get("upstream") is None:
        words["upstream"] = list(META.upstream)
    words["missing_facts"] = words.get("missing_facts") or []
    severity = Severity.CRITICAL.value if confidence == sure else words["severity"]
    return words | {"severity": severity, "confidence": confidence, "remedy": Remedy.RESTORE.value}


def _steps(
    app: Application, task: Task, x: _Suspect, deletion: Mark | None, creation: Mark | None
) -> Iterator[Entry]:
    where = place(app.name, task.id)
    if deletion:
        who = {"cleaner-walk": "the cleaner", "owner-walk": "the task's owner"}.get(
            deletion.shape or "", "an unseen process"
        )
        what = "the task directory" if deletion.change == Change.TASK_DELETED.value else "the store"
        at_offset = "" if deletion.offset_before is None else f" at offset {deletion.offset_before}"
        yield entry(deletion.at_us, f"{x.pod}: {who} deleted {what}{at_offset}", where)
    if creation:
        made = f"{x.pod}: a new store was made, identity {creation.identity or 'unknown'}"
        yield entry(creation.at_us, made, place(where, creation.store))
    if x.old_offset is not None:
        first = f"{x.pod}: first checkpoint of the new store at {x.old_offset} or beyond, the offset of the deleted one"
        yield entry(x.opened_at_us, first, where)


RULE = Rule(META, find)
