"""The eras of a task's life: rows of booleans, each asked of `agent.layout.facts` for one release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.layout.releases import Release, ReleaseRange

MANY_OFFSETS = 10_000
"""StateManagerUtil.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT, 2.7.0 to 4.2.x."""


@dataclass(frozen=True)
class Era:
    """One release under one guarantee, with or without transactional stores; and the kind of its store.

    `segments`: how many a windowed store makes at most.
    """

    name: str
    release: str
    eos: bool
    transactional: bool = False
    windowed: bool = False
    versioned: bool = False
    segments: int = 1

    @cached_property
    def _profile(self) -> Profile:
        transactional = Truth.YES if self.transactional else Truth.NO
        return Profile(ReleaseRange.of(self.release), transactional=transactional)

    def _holds(self, fact: Fact) -> bool:
        answer = self._profile.says(fact)
        assert answer is not Truth.MAYBE, f"{fact} of {self.release}"
        return answer is Truth.YES

    @cached_property
    def old(self) -> bool:
        """Up to 2.5: a restoration reopens its store, and no task is recycled, revived or closed while restoring."""
        return self._holds(Fact.BULK_LOAD_REOPEN)

    @property
    def reopens(self) -> bool:
        """A restoration reopens its store; in 2.0 not the segments of a windowed one (RocksDBSegmentedBytesStore)."""
        return self.old and not (self.windowed and Release.parse(self.release) < (2, 1))

    @property
    def loads_standbys(self) -> bool:
        """A new segment of a standby is reopened, too (AbstractRocksDBSegmentedBytesStore.getWriteBatches)."""
        return Release.parse(self.release) < (2, 5, 1)

    @cached_property
    def opens_twice(self) -> bool:
        """A new store with timestamps is opened twice."""
        return self._holds(Fact.NEW_TIMESTAMPED_STORE_OPENS_TWICE)

    @cached_property
    def next_offset(self) -> bool:
        """A checkpoint holds the next offset to read; of a store that nothing was read for it has no entry."""
        return self._holds(Fact.OFFSET_IS_NEXT)

    @cached_property
    def reads_again(self) -> bool:
        """A rebalance has a standby read again what it has read since it was opened."""
        return self._holds(Fact.STANDBY_READS_AGAIN)

    @cached_property
    def suspends_standbys(self) -> bool:
        """A rebalance suspends a standby: its checkpoint is written."""
        return self._holds(Fact.STANDBY_SUSPENDED)

    @cached_property
    def closes_first(self) -> bool:
        """A close writes the checkpoint once the stores are closed, and under exactly-once nothing else does."""
        return self.old and not self._holds(Fact.CHECKPOINT_AT_SUSPEND_EOS)

    @cached_property
    def remembers(self) -> bool:
        """A thread that restored a partition does not do so again (KAFKA-7672)."""
        return self._holds(Fact.RESTORED_PARTITIONS_REMEMBERED)

    @cached_property
    def wiped_standby(self) -> bool:
        """A standby without an offset is wiped, too."""
        return self.eos and self._holds(Fact.WIPE_STANDBY)

    @cached_property
    def updater(self) -> bool:
        """A state updater restores: it writes checkpoints on its way, at a pause and at a removal."""
        return self._holds(Fact.STATE_UPDATER)

    @cached_property
    def pauses(self) -> bool:
        """A pause writes a checkpoint."""
        return self.updater and self._holds(Fact.PAUSE)

    @cached_property
    def in_store(self) -> bool:
        """Stores keep their offsets themselves."""
        return self._holds(Fact.OFFSETS_IN_STORE)

    @cached_property
    def oldest_answers(self) -> bool:
        """The oldest segment with an offset answers for its store; later the newest one."""
        return self._holds(Fact.OLDEST_SEGMENT_OFFSET)

    @cached_property
    def status(self) -> bool:
        """Stores say whether they were closed."""
        return self._holds(Fact.STATUS_MARKER)

    @cached_property
    def every_change(self) -> bool:
        """A commit after any change writes a checkpoint; else only after 10,000 offsets."""
        return self.every_commit or self._holds(Fact.CHECKPOINT_AT_CHANGED_COMMIT)

    @cached_property
    def every_commit(self) -> bool:
        """So does one after no change."""
        return self._holds(Fact.CHECKPOINT_AT_EVERY_COMMIT)

    @cached_property
    def restored_checkpoints(self) -> int:
        """How many checkpoints the end of a restoration writes."""
        if self.in_store:
            return 1  # into the memtable: not seen
        if self.eos:
            return int(self._holds(Fact.CHECKPOINT_AT_RESTORE_END_EOS))
        return int(self._holds(Fact.CHECKPOINT_AT_RESTORE_END_ALOS)) + int(self.updater)

    @cached_property
    def kept(self) -> bool:
        """The checkpoint of a restoration's end stays while the task processes."""
        return not self.eos or self.in_store or self._holds(Fact.CHECKPOINT_KEPT_IN_RUNNING)

    @cached_property
    def kept_at_resume(self) -> bool:
        """The checkpoint of a suspension stays after it."""
        return not self.eos or self.in_store or self._holds(Fact.CHECKPOINT_KEPT_AT_RESUME)

    @cached_property
    def deleted_at_init(self) -> bool:
        """The initialization of a task deletes the checkpoint that it read."""
        if not self.eos:
            return self._holds(Fact.CHECKPOINT_DELETED_AT_INIT_ALOS)
        facts = (Fact.CHECKPOINT_DELETED_AT_INIT_EOS, Fact.CHECKPOINT_DELETED_BEFORE_LOCK)
        return any(self._holds(fact) for fact in facts)

    @cached_property
    def stale_recorder(self) -> bool:
        """A revived task still knows the offset from before its wipe."""
        return self.eos and self._holds(Fact.STALE_RECORDER_OFFSETS)

    @cached_property
    def wiped_without_offset(self) -> bool:
        """A store that is not empty and has no offset is wiped."""
        return self.eos and self._holds(Fact.WIPE_ON_MISSING_CHECKPOINT)

    @cached_property
    def corrupted_checkpoint(self) -> bool:
        """A corrupted running task writes its present offset just before its wipe."""
        return self._holds(Fact.CHECKPOINT_AT_CORRUPTED_CLOSE)

    @property
    def unsent_corrupts(self) -> bool:
        """Records that were not sent in time corrupt their task; before 2.8.0 they end its thread."""
        return Release.parse(self.release) >= (2, 8)

    @cached_property
    def keeps_locks(self) -> bool:
        """The start-up pass keeps the lock of what it opened until a task is assigned (KAFKA-20663)."""
        return self._holds(Fact.STARTUP_LOCK_KEPT)

    @cached_property
    def hasty_cleaner(self) -> bool:
        """The cleaner judges a directory by the age of its creation (KAFKA-20805)."""
        return self._holds(Fact.CLEANER_SEES_CREATION_TIME)


EOS_3_8 = Era("exactly-once 3.8 to 4.2.1", "4.1.2", eos=True)
EOS_3_6_2 = Era("exactly-once 3.6.2 to 3.7", "3.6.2", eos=True)
EOS_2_6_2 = Era("exactly-once 2.6.2 to 3.6.1", "3.4.1", eos=True)
EOS_4_2_2 = Era("exactly-once 4.2.2", "4.2.2", eos=True)
EOS_2_6_0 = Era("exactly-once 2.6.0 and 2.6.1", "2.6.1", eos=True)
EOS_2_5 = Era("exactly-once 2.5.1", "2.5.1", eos=True)
EOS_2_5_0 = Era("exactly-once 2.5.0", "2.5.0", eos=True)
EOS_2_3 = Era("exactly-once 2.2 and 2.3", "2.3.1", eos=True)
EOS_2_1 = Era("exactly-once 2.1", "2.1.1", eos=True)
EOS_2_0_1 = Era("exactly-once 2.0.1", "2.0.1", eos=True)
EOS_2_0_0 = Era("exactly-once 2.0.0", "2.0.0", eos=True)
ALOS_2_3 = Era("at-least-once 2.2 and 2.3", "2.3.1", eos=False)
ALOS_2_1 = Era("at-least-once 2.1", "2.1.1", eos=False)
ALOS_2_0 = Era("at-least-once 2.0.1", "2.0.1", eos=False)
EOS_2_4 = Era("exactly-once 2.4", "2.4.1", eos=True)
ALOS_2_4 = Era("at-least-once 2.4", "2.4.1", eos=False)
ALOS_2_5 = Era("at-least-once 2.5", "2.5.1", eos=False)
ALOS_3_8 = Era("at-least-once 3.8 to 4.2", "3.9.2", eos=False)
ALOS_2_6 = Era("at-least-once 2.7 to 3.4", "3.4.1", eos=False)
EOS_4_3 = Era("exactly-once 4.3.1", "4.3.1", eos=True)
EOS_4_3_0 = Era("exactly-once 4.3.0", "4.3.0", eos=True)
ALOS_4_3_0 = Era("at-least-once 4.3.0", "4.3.0", eos=False)
EOS_4_4 = Era("exactly-once 4.4", "4.4.0", eos=True)
EOS_4_4_T = Era("exactly-once 4.4, transactional", "4.4.0", eos=True, transactional=True)
ALOS_4_3 = Era("at-least-once 4.3.1", "4.3.1", eos=False)
ALOS_4_4 = Era("at-least-once 4.4", "4.4.0", eos=False)
ALOS_4_4_T = Era("at-least-once 4.4, transactional", "4.4.0", eos=False, transactional=True)

ERAS = (
    EOS_3_8, EOS_3_6_2, EOS_2_6_2, EOS_4_2_2, EOS_2_6_0, ALOS_3_8, ALOS_2_6, EOS_4_3, EOS_4_4, EOS_4_4_T, ALOS_4_3,
    ALOS_4_4, ALOS_4_4_T, EOS_2_5, EOS_2_5_0, ALOS_2_5, EOS_2_4, ALOS_2_4, EOS_2_3, ALOS_2_3, EOS_2_1, ALOS_2_1,
    EOS_2_0_1, EOS_2_0_0, ALOS_2_0, EOS_4_3_0, ALOS_4_3_0,
)  # fmt: skip
WINDOWED = tuple(replace(x, name=f"{x.name}, windowed", windowed=True) for x in ERAS)
"""The same with a windowed store of one segment."""
SEGMENTED = tuple(
    replace(x, name=f"{x.name}, two segments", windowed=True, segments=2) for x in ERAS if x.in_store
)
"""With two segments, each with an offset of its own (4.3 and later)."""
VERSIONED = tuple(
    replace(x, name=f"{x.name}, versioned", versioned=True)
    for x in ERAS
    if Profile(ReleaseRange.of(x.release)).says(Fact.VERSIONED_STORES) is Truth.YES
)
"""The same with a versioned store (3.5 and later): each record makes two puts."""
BEFORE = {
    kind[EOS_4_2_2.name]: kind[EOS_3_8.name]
    for kind in ({x.name.partition(",")[0]: x for x in same} for same in (ERAS, WINDOWED, VERSIONED))
}
"""An era -> the one that ships the same RocksDB and went before it: 4.2.1."""
