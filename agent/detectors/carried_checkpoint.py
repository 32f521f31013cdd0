"""Detector `carried-checkpoint`: a half-restored store is trusted by the checkpoint of the owner before.

Fires under exactly-once up to 2.5 when an owner wiped a store under its lock while an older owner's checkpoint
stayed, let go of it without writing its own, and the next owner trusted the old offset on that store.

Source:
    ProcessorStateManager at 2.0.1 and 2.1.1 (reads the checkpoint in its constructor, wipes under the lock
    without deleting the file); recorded as `kafka-8574-2.1.1`, twin `benign-8574-finished-2.1.1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from agent.contract.events import Affected
from agent.contract.units import WRONG_RESULTS, Twin
from agent.inventory.model import CheckpointFact, Session
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth
from agent.judging.rule import Docket, IncarnationStory, Proof, Rule, derived, detector, first_of, graded
from agent.judging.upstream import KAFKA_8574
from agent.judging.wording import checkpoint_of
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import gave_back

META = DetectorMeta(
    id="carried-checkpoint",
    title="Partly restored store trusted because of an older owner's checkpoint",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(KAFKA_8574,),
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again"
        " and check that the restoration begins at the first offset of the changelog."
        " Leave the other pods' copies alone. What the task"
        " wrote to its changelog and output topics since the store was opened must be reprocessed."
    ),
    consequence=WRONG_RESULTS,
    twin=Twin(
        "the second owner wiped and restored beside the old checkpoint, and finished",
        "benign-8574-finished-2.1.1",
    ),
    silent_where=((Fact.CHECKPOINT_READ_BEFORE_LOCK, Truth.NO),),
)


class Trusted(IncarnationStory):
    """A store that an owner wiped and let go, and the opening by the next one."""

    issues = (KAFKA_8574,)
    before: Session
    after: Session
    # the checkpoint that the next owner found; None = forgotten, the history of checkpoints is bounded
    fact: CheckpointFact | None
    born_us: int  # when the new store was made
    held: int | None  # how many live entries the store had before the wipe, at least; None = not known
    opened_at_us = derived(lambda x: x.after.opened_us)

    @property
    def offset(self) -> int:
        """What the next owner trusted."""
        return self.after.offset_at_open or 0

    @property
    def restored(self) -> int:
        """Puts of the restoration that was let go."""
        return self.before.puts_at_release


def _stories(case: TaskCase) -> Iterator[Trusted]:
    for store in () if case.settings.exactly_once is False else case.task.stores.values():
        database, held = store.databases.get(""), store.past[-1].entries_low if store.past else None
        for before, after in pairwise(store.sessions):
            if database and before.wiped and before.final_identities & after.identities:
                fact = case.task.checkpoint_at(after.opened_us)
                yield Trusted(case, store, before, after, fact, database.born_us, held)


def _was_cut_short(x: Trusted) -> Proof:
    told = x.affected is Affected.YES and x.case.settings.exactly_once is True
    return Proof(
        "fewer puts than the offset says, and than it held live", certain=told and x.held is not None
    )


# What it says


def _evidence(x: Trusted, _: Proof | None) -> Iterator[Evidence]:
    if x.fact is not None:
        what = f"an owner wrote offset {x.offset} and released the task"
        yield Evidence(x.fact.written_us, what, checkpoint_of(x.task))
    yield Evidence(x.born_us, "the next owner wiped the store; the checkpoint stayed", x.place)
    let_go = f"it released the task with {x.restored} puts restored, without its own checkpoint"
    yield Evidence(x.before.released_us or x.born_us, let_go, x.place)
    again = f"opened again, without a wipe, to continue from offset {x.offset}"
    yield Evidence(x.after.opened_us, again, x.place)


RULE = Rule[Trusted](
    "a store whose restoration was let go half way is trusted by an older owner's checkpoint",
    innocents={
        "it was let go with a checkpoint of its own": lambda x: x.before.last is not None,
        "the next owner wiped it again": lambda x: x.after.wiped,
        "no offset was trusted": lambda x: not is_real(x.offset),
        "the checkpoint is younger than the wipe": lambda x: (
            x.fact is not None and x.fact.written_us >= x.born_us
        ),
        "restored in full: its puts come with the offset": lambda x: gave_back(x.restored, x.offset),
        "its live entries came back from a compacted changelog": lambda x: (
            x.held is not None and gave_back(x.restored, x.held)
        ),
    },
    unknowns={
        "its puts are not known": lambda x: not x.store.knows_puts,
        "the checkpoint is not known": lambda x: x.fact is None,
    },
    proofs=(_was_cut_short,),
    loudness=lambda x, proof: graded(
        proof, ("processing_guarantee",) if x.case.settings.exactly_once is None else ()
    ),
    summary=lambda x, _: (
        f"{x.named} was wiped and restored only in part ({x.restored} puts), then trusted"
        f" at the old offset {x.offset}; the rest is missing."
    ),
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_stories, (RULE,), first_of(lambda x: x.store.name)))
