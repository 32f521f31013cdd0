"""The table of layout facts: one row per fact, the releases in which it holds, and how that is known.

Evidence: `recorded` = seen in runs of the released jars, `source` = read in the source at the release tag.
"EOS" = exactly-once, "ALOS" = at-least-once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.layout.releases import ReleaseRange

_between, _since, _until = ReleaseRange.between, ReleaseRange.since, ReleaseRange.until


class Fact(StrEnum):
    """Ids of the facts; what each says is in `FACTS`."""

    # locks and directories
    TASK_LOCK = "task-lock"
    GLOBAL_LOCK = "global-lock"
    APPLICATION_LOCK = "application-lock"
    REBALANCE_LOCK_SWEEP = "rebalance-lock-sweep"
    OLD_TASK_LOCKS_REMOVED = "old-task-locks-removed"
    FIXED_DEFAULT_DIRECTORY = "fixed-default-directory"
    GROUP_MODE = "group-mode"
    # cleaner and start
    CLEANER_REMOVES_DIRECTORY = "cleaner-removes-directory"
    CLEANER_KEEPS_LOCK_FILE = "cleaner-keeps-lock-file"
    CLEANER_SEES_CREATION_TIME = "cleaner-sees-creation-time"
    CLOSE_TOUCHES_DIRECTORY = "close-touches-directory"
    STARTUP_PASS = "startup-pass"  # noqa: S105 - a pass over the directories
    STARTUP_LOCK_KEPT = "startup-lock-kept"
    STARTUP_PURGE = "startup-purge"
    # content of checkpoints
    OFFSET_IS_NEXT = "offset-is-next"
    OFFSET_IS_LAST = "offset-is-last"
    UNKNOWN_OFFSET = "unknown-offset"
    FOREIGN_ENTRIES = "foreign-entries"
    # where offsets are kept
    CHECKPOINT_FILE = "checkpoint-file"
    OFFSETS_IN_STORE = "offsets-in-store"
    STORE_CHECKPOINT_FILES = "store-checkpoint-files"
    STATUS_MARKER = "status-marker"
    POSITION_FILES = "position-files"
    # when a checkpoint is written
    CHECKPOINT_AT_EVERY_COMMIT = "checkpoint-at-every-commit"
    CHECKPOINT_AT_CHANGED_COMMIT = "checkpoint-at-changed-commit"
    TEN_THOUSAND_RULE = "ten-thousand-rule"
    CHECKPOINT_AT_RESTORE_END_ALOS = "checkpoint-at-restore-end-alos"
    CHECKPOINT_AT_RESTORE_END_EOS = "checkpoint-at-restore-end-eos"
    CHECKPOINT_AT_SUSPEND_EOS = "checkpoint-at-suspend-eos"
    CHECKPOINT_AT_CORRUPTED_CLOSE = "checkpoint-at-corrupted-close"
    STALE_RECORDER_OFFSETS = "stale-recorder-offsets"
    # when a checkpoint is deleted, or not
    CHECKPOINT_DELETED_BEFORE_LOCK = "checkpoint-deleted-before-lock"
    CHECKPOINT_READ_BEFORE_LOCK = "checkpoint-read-before-lock"
    CHECKPOINT_DELETED_AT_INIT_EOS = "checkpoint-deleted-at-init-eos"
    CHECKPOINT_DELETED_AT_INIT_ALOS = "checkpoint-deleted-at-init-alos"
    CHECKPOINT_DELETED_AT_DIRTY_CLOSE = "checkpoint-deleted-at-dirty-close"
    EMPTY_CHECKPOINT_DELETED = "empty-checkpoint-deleted"
    CHECKPOINT_KEPT_IN_RUNNING = "checkpoint-kept-in-running"
    CHECKPOINT_KEPT_AT_RESUME = "checkpoint-kept-at-resume"
    # wipes
    WIPE_ON_MISSING_CHECKPOINT = "wipe-on-missing-checkpoint"
    WIPE_STORE = "wipe-store"
    WIPE_TASK_DIRECTORY = "wipe-task-directory"
    WIPE_STANDBY = "wipe-standby"
    WIPE_UNDER_ALOS = "wipe-under-alos"
    # restoration and RocksDB
    BULK_LOAD_REOPEN = "bulk-load-reopen"
    RESTORED_PARTITIONS_REMEMBERED = "restored-partitions-remembered"
    UNINITIALIZED_STANDBY_RUNS = "uninitialized-standby-runs"
    STANDBY_READS_AGAIN = "standby-reads-again"
    STANDBY_SUSPENDED = "standby-suspended"
    STATE_UPDATER = "state-updater"
    PAUSE = "pause"
    NEW_TIMESTAMPED_STORE_OPENS_TWICE = "new-timestamped-store-opens-twice"
    MANIFEST_KEPT_UNTIL_FLUSH = "manifest-kept-until-flush"
    EXPLICIT_FLUSH = "explicit-flush"
    OLDEST_SEGMENT_OFFSET = "oldest-segment-offset"
    SEGMENT_ANSWERS_FOR_STORE = "segment-answers-for-store"
    VERSIONED_STORES = "versioned-stores"
    INDEXED_WINDOW_STORES = "indexed-window-stores"
    WINDOWED_RESTORE_SKIPS = "windowed-restore-skips"
    TRANSACTIONAL_STORES = "transactional-stores"


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact."""

    statement: str  # what holds, one sentence
    holds: tuple[ReleaseRange, ...]  # releases in which it holds
    source: str  # class, KIP or issue
    evidence: str = "source"  # `recorded` or `source`
    unsure: tuple[ReleaseRange, ...] = ()  # releases that were not checked
    not_transactional: bool = False  # it does not hold with transactional stores


_R = "recorded"

FACTS: dict[Fact, FactRow] = {
    Fact.TASK_LOCK: FactRow(
        "A task's `.lock` is held from its initialization to its close.",
        (_until("2.8.x"),), "StateDirectory.lock", _R),
    Fact.GLOBAL_LOCK: FactRow(
        "`global/.lock` is held while the global thread runs.",
        (_until("2.8.x"),), "StateDirectory.lockGlobalState"),
    Fact.APPLICATION_LOCK: FactRow(
        "The application directory holds `.lock` (held from construction to close) and the process file.",
        (_between("2.6.2", "2.6.x"), _between("2.7.1", "2.7.x"), _since("2.8.0")), "KAFKA-10716", _R),
    Fact.REBALANCE_LOCK_SWEEP: FactRow(
        "Each rebalance locks every non-empty task directory for a while, owned or not.",
        (_between("2.6.0", "2.8.x"),), "TaskManager.tryToLockAllNonEmptyTaskDirectories", _R),
    Fact.OLD_TASK_LOCKS_REMOVED: FactRow(
        "`.lock` files that older releases left in task directories are deleted.",
        (_since("3.0.0"),), "StateDirectory.taskDirIsEmpty", _R),
    Fact.FIXED_DEFAULT_DIRECTORY: FactRow(
        "`state.dir` is /tmp/kafka-streams by default (later: below the JVM's temporary directory).",
        (_until("2.7.x"),), "StreamsConfig.STATE_DIR_CONFIG"),
    Fact.GROUP_MODE: FactRow(
        "State and application directory get mode rwxr-x---.",
        (_between("2.6.1", "2.6.x"), _between("2.7.1", "2.7.x"), _since("2.8.0")), "StateDirectory"),
    Fact.CLEANER_REMOVES_DIRECTORY: FactRow(
        "The cleaner removes the task directory itself.",
        (_until("2.4.x"), _since("3.0.0")), "StateDirectory.cleanRemovedTasks", _R),
    Fact.CLEANER_KEEPS_LOCK_FILE: FactRow(
        "The cleaner empties a task directory and leaves it with its `.lock`.",
        (_between("2.5.0", "2.8.x"),), "KAFKA-6647", _R),
    Fact.CLEANER_SEES_CREATION_TIME: FactRow(
        "Nothing touches a task directory in operation: the cleaner judges it by the age of its creation.",
        (_between("4.3.0", "4.3.1"),), "KAFKA-20805", _R),
    Fact.CLOSE_TOUCHES_DIRECTORY: FactRow(
        "Closing a task sets the modification time of its directory.",
        (_since("4.4.0"),), "KAFKA-20805, ProcessorStateManager.close", _R, unsure=(_between("4.3.2", "4.3.x"),)),
    Fact.STARTUP_PASS: FactRow(
        "Every start opens, reads and closes all stores on disk, task by task, before any thread runs.",
        (_since("4.3.0"),), "KAFKA-19434", _R),
    Fact.STARTUP_LOCK_KEPT: FactRow(
        "A directory that the start-up pass opened and that is not assigned is never cleaned.",
        (_between("4.3.0", "4.3.0"),), "KAFKA-20663", _R),
    Fact.STARTUP_PURGE: FactRow(
        "`state.cleanup.dir.max.age.ms` lets a start delete old task directories (off by default).",
        (_since("4.3.0"),), "KIP-1259, KAFKA-19943"),
    Fact.OFFSET_IS_NEXT: FactRow(
        "A checkpoint holds the next offset to read.",
        (_until("2.5.x"),), "ProcessorStateManager", _R),
    Fact.OFFSET_IS_LAST: FactRow(
        "A checkpoint holds the offset of the last record applied.",
        (_since("2.6.0"),), "ProcessorStateManager", _R),
    Fact.UNKNOWN_OFFSET: FactRow(
        "-4 marks a registered store of unknown offset; it counts as present: no EOS wipe.",
        (_since("2.6.0"),), "OffsetCheckpoint.OFFSET_UNKNOWN", _R),
    Fact.FOREIGN_ENTRIES: FactRow(
        "A checkpoint may list changelog partitions of other tasks of the same thread.",
        (_until("2.2.1"), _between("2.3.0", "2.3.0")), "KAFKA-5998", _R),
    Fact.CHECKPOINT_FILE: FactRow(
        "Built-in persistent stores keep their offsets in the task's `.checkpoint`.",
        (_until("4.2.x"),), "ProcessorStateManager.checkpoint", _R),
    Fact.OFFSETS_IN_STORE: FactRow(
        "RocksDB stores keep offsets in their column family `offsets`; `.checkpoint` is gone.",
        (_since("4.3.0"),), "KIP-1035", _R),
    Fact.STORE_CHECKPOINT_FILES: FactRow(
        "A custom persistent store has its own file, `.checkpoint_<store>`.",
        (_since("4.3.0"),), "LegacyCheckpointingStateStore", _R),
    Fact.STATUS_MARKER: FactRow(
        "A RocksDB store says whether it was closed: entry `status`, 1 from open, 0 from close.",
        (_since("4.3.0"),), "KIP-1035, AbstractColumnFamilyAccessor", _R, not_transactional=True),
    Fact.POSITION_FILES: FactRow(
        "`<store>.position` is written with each checkpoint (4.3 leaves an old one behind).",
        (_between("3.2.0", "4.2.x"),), "RocksDBStore, StoreQueryUtils", _R),
    Fact.CHECKPOINT_AT_EVERY_COMMIT: FactRow(
        "ALOS: the checkpoint is rewritten at every commit, also when idle.",
        (_until("2.0.x"),), "ProcessorStateManager", _R),
    Fact.CHECKPOINT_AT_CHANGED_COMMIT: FactRow(
        "ALOS: the checkpoint is rewritten at a commit if something changed.",
        (_between("2.1.0", "2.6.x"),), "AbstractTask.updateOffsetLimits, StreamTask", _R),
    Fact.TEN_THOUSAND_RULE: FactRow(
        "ALOS and standbys: the checkpoint is rewritten at a commit only after 10 000 further offsets.",
        (_between("2.7.0", "4.2.x"),), "StateManagerUtil.checkpointNeeded", _R),
    Fact.CHECKPOINT_AT_RESTORE_END_ALOS: FactRow(
        "ALOS: the end of restoration writes the checkpoint.",
        (_between("3.5.0", "4.2.x"),), "KAFKA-12634"),
    Fact.CHECKPOINT_AT_RESTORE_END_EOS: FactRow(
        "EOS: the end of restoration writes the checkpoint.",
        (_between("3.8.0", "4.2.x"),), "DefaultStateUpdater", _R),
    Fact.CHECKPOINT_AT_SUSPEND_EOS: FactRow(
        "EOS: suspending a task writes the checkpoint.",
        (_between("2.2.0", "4.2.x"),), "StreamTask.suspend, KAFKA-7672"),
    Fact.CHECKPOINT_AT_CORRUPTED_CLOSE: FactRow(
        "EOS: a corrupted running task writes a full checkpoint (4.3: its offset) just before its wipe.",
        (_between("3.8.0", "4.3.x"),), "TaskManager.closeDirtyAndRevive", _R),
    Fact.STALE_RECORDER_OFFSETS: FactRow(
        "EOS: closing a restoring task after a wipe writes the end offset from before the wipe.",
        (_until("2.7.x"), _between("2.8.2", "2.8.x"), _between("3.0.1", "3.5.x"), _between("3.6.0", "3.6.1")),
        "KAFKA-16017; StreamTask.closeDirty and maybeWriteCheckpoint (2.8.0 and 2.8.1, 3.0.0: not)", _R),
    Fact.CHECKPOINT_DELETED_BEFORE_LOCK: FactRow(
        "EOS: constructing a task deletes the checkpoint before the task's lock is taken.",
        (_until("2.5.x"),), "ProcessorStateManager constructor", _R),
    Fact.CHECKPOINT_READ_BEFORE_LOCK: FactRow(
        "The checkpoint is read before the task's lock is taken.",
        (_until("2.5.x"),), "KAFKA-8574", _R),
    Fact.CHECKPOINT_DELETED_AT_INIT_EOS: FactRow(
        "EOS: initializing a task deletes the checkpoint under the lock, after reading it.",
        (_between("2.6.0", "4.2.x"),), "ProcessorStateManager.initializeStoreOffsetsFromCheckpoint", _R),
    Fact.CHECKPOINT_DELETED_AT_INIT_ALOS: FactRow(
        "ALOS: initializing a task deletes the checkpoint under the lock, after reading it.",
        (_between("2.6.0", "2.6.x"),), "ProcessorStateManager.initializeStoreOffsetsFromCheckpoint"),
    Fact.CHECKPOINT_DELETED_AT_DIRTY_CLOSE: FactRow(
        "EOS: a dirty close deletes the checkpoint.",
        (_between("2.2.0", "2.5.x"),), "StreamTask.closeSuspended"),
    Fact.EMPTY_CHECKPOINT_DELETED: FactRow(
        "A checkpoint without entries is deleted instead of left in place.",
        (_between("2.7.0", "4.2.x"),), "OffsetCheckpoint.write"),
    Fact.CHECKPOINT_KEPT_IN_RUNNING: FactRow(
        "EOS: the checkpoint of the end of restoration stays while the task runs.",
        (_between("3.8.0", "3.9.x"), _between("4.0.0", "4.0.x"), _between("4.1.0", "4.1.2"),
         _between("4.2.0", "4.2.1")), "KAFKA-20685", _R),
    Fact.CHECKPOINT_KEPT_AT_RESUME: FactRow(
        "EOS: the checkpoint of a suspension stays after the task is resumed.",
        (_between("2.6.0", "2.6.1"),), "KAFKA-10362", _R),
    Fact.WIPE_ON_MISSING_CHECKPOINT: FactRow(
        "EOS: an active task without a trusted offset starts from wiped stores.",
        (_since("2.0.1"),), "KAFKA-7192, ProcessorStateManager.initializeStoreOffsets", _R, not_transactional=True),
    Fact.WIPE_STORE: FactRow(
        "A wipe deletes one store below the task directory, under the task's lock.",
        (_between("2.0.1", "2.5.x"),), "AbstractStateManager.reinitializeStateStoresForPartitions", _R),
    Fact.WIPE_TASK_DIRECTORY: FactRow(
        "A wipe deletes the whole task directory; it is recreated at once.",
        (_since("2.6.0"),), "StateManagerUtil.closeStateManager", _R),
    Fact.WIPE_STANDBY: FactRow(
        "EOS: a standby without a trusted offset is wiped, too.",
        (_since("2.5.1"),), "KAFKA-9891", _R, not_transactional=True),
    Fact.WIPE_UNDER_ALOS: FactRow(
        "ALOS: an offset out of range wipes the store (later: the changelog is replayed over it).",
        (_until("2.5.x"),), "StoreChangelogReader"),
    Fact.BULK_LOAD_REOPEN: FactRow(
        "A restoration reopens its RocksDB store twice: bulk loading on at its start, off at its end.",
        (_until("2.5.x"),), "RocksDBStore.toggleDbForBulkLoading", _R),
    Fact.RESTORED_PARTITIONS_REMEMBERED: FactRow(
        "A thread that once completed a changelog partition never restores it again.",
        (_between("2.0.1", "2.1.x"),), "KAFKA-7672", _R),
    Fact.UNINITIALIZED_STANDBY_RUNS: FactRow(
        "A thread may go RUNNING while an assigned standby could not take its lock, and never tries again.",
        (_until("2.2.1"),), "KAFKA-8187", _R),
    Fact.STANDBY_READS_AGAIN: FactRow(
        "After every rebalance a standby reads its changelog again from the offset that it was opened with.",
        (_until("2.4.x"),), "StandbyTask.checkpointedOffsets, TaskManager.assignStandbyPartitions"),
    Fact.STANDBY_SUSPENDED: FactRow(
        "Every rebalance suspends a standby, and so writes its checkpoint.",
        (_until("2.3.x"),), "TaskManager.suspendTasksAndState"),
    Fact.STATE_UPDATER: FactRow(
        "A state updater thread restores tasks and runs standbys, by default.",
        (_since("3.8.0"),), "DefaultStateUpdater"),
    Fact.PAUSE: FactRow(
        "`KafkaStreams.pause()` stops tasks, also in the middle of their restoration.",
        (_since("3.3.0"),), "KIP-834"),
    Fact.NEW_TIMESTAMPED_STORE_OPENS_TWICE: FactRow(
        "A new timestamped store is opened, closed and opened again within milliseconds.",
        (_between("2.3.0", "3.7.x"),), "RocksDBTimestampedStore.openRocksDB", _R,
        unsure=(_between("3.8.0", "3.8.x"),)),
    Fact.MANIFEST_KEPT_UNTIL_FLUSH: FactRow(
        "A new database stays on MANIFEST-000001 until its first flush.",
        (_until("2.1.x"),), "RocksDB 5.7, 5.14", _R),
    Fact.EXPLICIT_FLUSH: FactRow(
        "Stores are flushed before a checkpoint is written.",
        (_until("4.2.x"),), "ProcessorStateManager.flush"),
    Fact.OLDEST_SEGMENT_OFFSET: FactRow(
        "After a crash a segmented store restores from the offset of its oldest segment.",
        (_between("4.3.0", "4.3.0"),), "KAFKA-20663", _R),
    Fact.SEGMENT_ANSWERS_FOR_STORE: FactRow(
        "One segment's offset answers for a segmented store; what another one had not flushed is not read again.",
        (_between("4.3.0", "4.3.1"), _between("4.4.0", "4.4.0")), "AbstractSegments.committedOffset", _R,
        unsure=(_between("4.3.2", "4.3.x"), _since("4.4.1"))),
    Fact.VERSIONED_STORES: FactRow(
        "There are versioned stores, of which a restoration puts only the newest record of a key and batch.",
        (_since("3.5.0"),), "RocksDBVersionedStoreRestoreWriteBuffer", _R),
    Fact.INDEXED_WINDOW_STORES: FactRow(
        "A windowed store may keep an index of its entries in the same segment: two puts a record.",
        (_since("3.2.0"),), "AbstractDualSchemaRocksDBSegmentedBytesStore, KIP-825"),
    Fact.WINDOWED_RESTORE_SKIPS: FactRow(
        "A windowed store without an offset is restored from the newest time minus its retention (4.2.2: also one whose"
        " offset is far behind).",
        (_between("4.2.2", "4.2.x"), _since("4.4.0")),
        "StoreChangelogReader.seekNewPartitions, KAFKA-13499, KAFKA-20940", unsure=(_between("4.3.2", "4.3.x"),)),
    Fact.TRANSACTIONAL_STORES: FactRow(
        "`enable.transactional.statestores` (off by default) lets a store commit data and offset together; such a store"
        " writes no status and is wiped only where it was marked as corrupted.",
        (_since("4.4.0"),), "KIP-892, RocksDBTransactionBuffer, AbstractColumnFamilyAccessor, StateManagerUtil", _R),
}  # fmt: skip
