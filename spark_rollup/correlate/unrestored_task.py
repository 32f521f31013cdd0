"""A task moved and ran before its new owner can have restored it: the previous owner's size shows it.

Signal: an agent's `unrestored-store` finding, which decides by mechanism on the new owner's disk.
Fires when: that finding is there; the previous owner had far more live entries at no higher an
    offset: confirmed, unless the pod was unwatched or messages were lost between the store's opening and the finding.
Clears when: the agent's finding is resolved.
Stays quiet when: no agent reports it (sizes alone never raise it: a copy restored from a compacted changelog is small),
    or the agent also calls the same store a `resurrected-checkpoint`: one damage, one finding.
Source: KAFKA-7672 (2.0.1 to 2.1.1), KAFKA-16017 (up to 3.5.2 and 3.6.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRONG_RESULTS, Twin
from spark_rollup.fleet.application import (
    OFFSET_SLACK,
    Application,
    OwnSize,
    Rule,
    Task,
    far_less,
    same_store,
)
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import Entry, Hold, Reading, Said
from spark_rollup.fleet.words import chain, entry, finding, of_store, place, words_of_agent

META = RuleMeta(
    id="unrestored-task",
    title="A task ran before its new owner had restored it",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    upstream=("KAFKA-7672", "KAFKA-16017"),
    asks=("unrestored-store",),
    consequence=WRONG_RESULTS,
    twin=Twin("N7 and N15, the new owner restored in full", "benign-move-3.9.2"),
)

_REPORTED_WITHIN_US = 3_600_000_000
"""By then the agent has said all that it calls this damage (microseconds); what it says later it says again."""


def find(app: Application) -> Iterator[Row]:
    """Compare agents' `unrestored-store` findings with the previous owner of the task."""
    for task, said in app.suspects("unrestored-store"):
        if not _is_reported_as_carried(task, said):
            yield _judged(app, task, said)


def _is_reported_as_carried(task: Task, said: Said) -> bool:
    """Return whether the agent itself says that the store carries an old offset: one damage, one finding."""
    return said.identity is not None and any(
        x.detector == "resurrected-checkpoint" and (x.pod, x.identity) == (said.pod, said.identity)
        for x in task.said
    )


def _judged(app: Application, task: Task, said: Said) -> Row:
    pod, opened_us = said.pod, said.opened_at_us
    own = task.own_size(said)
    owner = _previous_owner(task, said)
    held = _readings_of(owner, task, said)
    fullest = max(held, key=lambda x: (x.puts, x.at_us, -1 if x.offset is None else x.offset), default=None)
    counted = [x for x in held if x.entries_low is not None]
    richest = max(
        counted, key=lambda x: (x.entries_low, x.at_us, -1 if x.offset is None else x.offset), default=None
    )
    comparison = None
    if owner and own and fullest and far_less(own.puts, fullest.puts) and _reaches(own, fullest):
        comparison = (
            f"{owner.pod} held {fullest.puts} puts at offset {fullest.offset}, {pod} claims offset {own.offset}"
            f" with {own.puts} puts"
        )
    # puts count overwritten keys, which a compacted changelog does not bring back: only live entries prove
    fuller = bool(own and richest and far_less(own.puts, richest.entries_low) and _reaches(own, richest))
    # the agent's `resurrected-checkpoint` of this store may be what was lost: then this is the wrong name
    reported_us = min(said.observed_at_us, opened_us + _REPORTED_WITHIN_US)
    proved = fuller and task.cut_us is None and not app.was_unwatched(pod, task.id, opened_us, reported_us)
    keep = f" If {owner.pod} still has its directory, keep it as the reference." if owner else ""
    loud = {"severity": Severity.CRITICAL.value, "confidence": Confidence.CONFIRMED.value} if proved else {}
    return finding(
        META, app.where, opened_us, **words_of_agent(said) | loud,
        task_id=task.id, store=said.store, pod=pod, identity=said.identity,
        summary=f"{pod} ran {task.id}{of_store(said.store)}, without having restored it"
        f"{f' after {owner.pod}' if owner else ''}{f': {comparison}' if comparison else ''}",
        evidence=chain(
            *_of_owner(owner, fullest, opened_us),
            entry(own.at_us, comparison, place(app.name, task.id, said.store)) if own and comparison else None,
            then=said.evidence or (),
        ),
        next_action=f"On {pod}, for task {task.id}: {said.next_action}{keep}",
        pods=[pod, owner.pod] if owner else [pod],
        confirms=[said.finding_id],
    )  # fmt: skip


def _of_owner(owner: Hold | None, fullest: Reading | None, opened_us: int) -> Iterator[Entry]:
    if owner is None:
        yield entry(
            opened_us, "no earlier owner was watched: the agent's verdict is the only evidence", "rollup"
        )
        return
    held = f"{owner.pod} held the task from {moment(owner.from_us)} to {moment(owner.to_us)}"
    yield entry(owner.from_us, held, owner.pod)
    if fullest:
        yield entry(fullest.at_us, f"{owner.pod}'s copy had {fullest.puts} puts", owner.pod)


def _previous_owner(task: Task, said: Said) -> Hold | None:
    """Find the other pod that held the task last before the finding opened."""
    earlier = [x for x in task.owners if x.pod != said.pod and x.from_us < said.opened_at_us]
    return max(earlier, key=lambda x: (x.to_us, x.from_us, x.pod), default=None)


def _readings_of(owner: Hold | None, task: Task, said: Said) -> list[Reading]:
    """List the readings of the previous owner's copy while it was the owner."""
    return [
        x for x in task.readings
        if owner and x.puts is not None and x.pod == owner.pod and same_store(said.store, x.store)
        and owner.from_us <= x.at_us <= said.opened_at_us
    ]  # fmt: skip


def _reaches(own: OwnSize, other: Reading) -> bool:
    """The new owner must claim at least the offset that the previous one had; unknown offsets prove nothing."""
    return other.offset is not None and own.offset * (1 + OFFSET_SLACK) >= other.offset


RULE = Rule(META, find)
