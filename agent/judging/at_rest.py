"""A checkpoint and a store that no agent watched: by file times and content, is the offset that of an older store?"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Confidence, Severity
from agent.inventory.copied import is_birth_known, is_copied, times_are_copied
from agent.inventory.model import CheckpointFact, Database, Store
from agent.judging.base import Evidence, Fact, TaskCase, Truth, seconds
from agent.judging.rule import IncarnationStory, Loudness, Proof, Rule, derived, graded
from agent.judging.upstream import TORN_DELETION
from agent.judging.wording import checkpoint_of
from agent.layout import names
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import may_hold_all

JUDGE_THE_ORIGINAL = (
    "Check the original, or a copy that kept its file times (cp -a, rsync -a, tar). Before an application runs on a"
    " copy that did not keep them, remove its task directories: it then restores."
)


class AtRest(IncarnationStory):
    """Artefacts alone, nothing was seen: a checkpoint names the store; `is_sure` = file times tell its birth."""

    issues = (TORN_DELETION,)
    upstream = ()  # how it came about, one reading cannot show
    fact: CheckpointFact
    database: Database
    is_sure: bool
    opened_at_us = derived(lambda x: x.born_us)

    @property
    def born_us(self) -> int:
        """When it was made, by the time of its IDENTITY; without one not after its oldest data."""
        return self.database.born_us or self.database.oldest_data_us

    @property
    def offset(self) -> int:
        """What the checkpoint says."""
        return self.fact.offsets[self.store.name]


class Empty(AtRest):
    """One to which nothing was ever written."""

    opened_at_us = derived(lambda x: x.fact.written_us)


class Older(AtRest):
    """One whose birth can be compared with its checkpoint."""

    @property
    def is_likely(self) -> bool:
        """No owner wiped it; its node's clock may have been ahead when it was made."""
        return self.is_sure and not wipes_stores(self.case)

    @property
    def is_certain(self) -> bool:
        """Nor was it ever put as often as its offset says."""
        markers = self.case.settings.exactly_once is not False
        holds_all = may_hold_all(self.database.puts, self.offset, markers=markers)
        return self.is_likely and not self.database.unnamed and not holds_all


class Copied(AtRest):
    """One whose file times are no birth."""


def at_rest(case: TaskCase, store: Store) -> Iterator[AtRest]:
    """List what a store at rest is judged as, at most one."""
    fact, database = case.task.checkpoint, store.databases.get("")
    if fact is None or database is None or not is_real(fact.offsets.get(store.name)):
        return
    birth = is_birth_known(case.task, database)
    if _was_never_written(database) and (birth is not True or (fact.written_us >= database.born_us)):
        kind: type[AtRest] = Empty
    else:
        kind = Copied if birth is False else Older
    yield kind(case, store, fact, database, birth is True)


def _was_never_written(database: Database) -> bool:
    """Return whether no file ever held a record; what could not be read held anything."""
    is_read = bool(database.manifest) and not database.manifest_problem and not database.problems
    return is_read and not database.puts and (not database.files or database.entries_high == 0)


def wipes_stores(case: TaskCase) -> bool:
    """Return whether an owner may wipe a store, and leave its checkpoint."""
    return case.says(Fact.WIPE_STORE) is not Truth.NO and case.settings.exactly_once is not False


# What they say


def _written_and_born(x: AtRest, _: Proof | None) -> Iterator[Evidence]:
    oldest_us, identity = x.database.oldest_data_us, f"{x.database.path}/{names.IDENTITY_FILE}"
    if oldest_us and is_copied(x.database):
        yield Evidence(oldest_us, "oldest data of the store, by its own properties", x.place)
    what = f"file time of the checkpoint with offset {x.offset}"
    yield Evidence(x.fact.written_us, what, checkpoint_of(x.task))
    if x.database.born_us:
        yield Evidence(x.born_us, "file time of the store's IDENTITY", identity)
    else:
        yield Evidence(x.born_us, "oldest data of the store, whose IDENTITY can't be read", x.place)


EMPTY = Rule[Empty](
    "a checkpoint claims an offset of a store to which nothing was ever written",
    about=Empty,
    proofs=(lambda _: Proof("nothing was ever put", certain=False),),
    summary=lambda x, _: (
        f"Task {x.task.id}: the checkpoint says offset {x.offset}, but nothing was ever written to store"
        f" {x.store.name}; unless every key was deleted, state is missing."
    ),
    evidence=lambda x, _: (
        Evidence(x.fact.written_us, f"checkpoint with offset {x.offset}", checkpoint_of(x.task)),
        Evidence(x.fact.seen_us, "no file of the store ever held a record", x.place),
    ),
)

OLDER = Rule[Older](
    "a checkpoint at rest is older than its store",
    about=Older,
    innocents={"its store was there before": lambda x: x.fact.written_us >= x.born_us},
    proofs=(lambda x: Proof("its birth came later", certain=x.is_certain),),
    loudness=lambda x, proof: (
        Loudness(Severity.CRITICAL, Confidence.SUSPECTED)
        if x.is_likely and not x.is_certain
        else graded(proof)
    ),
    summary=lambda x, _: (
        f"Task {x.task.id}: the checkpoint (offset {x.offset}) is older than store {x.store.name}, which was made"
        f" {seconds(x.born_us - x.fact.written_us)} later."
    ),
    evidence=_written_and_born,
)

COPIED = Rule[Copied](
    "file times are those of a copy: whether the checkpoint is older is unknown, said once for the task",
    about=Copied,
    innocents={
        "its checkpoint's file time is no copy's": lambda x: not times_are_copied(x.task, x.fact.written_us),
        "a process opened the task since": lambda x: any(y.sessions for y in x.task.stores.values()),
    },
    loudness=lambda _x, _: Loudness(Severity.INFO, Confidence.UNKNOWN, next_action=JUDGE_THE_ORIGINAL),
    summary=lambda x, _: (
        f"Task {x.task.id}: it is unknown whether its checkpoint is older than its stores: their file times are"
        " those of a copy that kept none."
    ),
    evidence=_written_and_born,
)
