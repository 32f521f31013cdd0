"""What each Kafka Streams release does on disk, as far as scenarios need it.

Written from `docs` of the state format and from recordings, not from `agent.layout.facts`: a scenario must not
agree with a wrong row of that table.
"""

from __future__ import annotations

from dataclasses import dataclass

_ROCKSDB = (
    ((2, 1), "5.7.3"),
    ((2, 2), "5.14.2"),
    ((2, 3), "5.15.10"),
    ((2, 6), "5.18.3"),
    ((3, 0), "5.18.4"),
    ((3, 1), "6.19.3"),
    ((3, 2), "6.22.1"),
    ((3, 3), "6.29.4"),
    ((3, 5), "7.1.2"),
    ((4, 0), "7.9.2"),
    ((4, 2), "9.7.3"),
    ((9, 9), "10.1.3"),
)
"""First line of releases that no longer ships it -> RocksDB version."""


@dataclass(frozen=True, slots=True)
class Habits:
    """One release under one processing guarantee, with or without transactional stores (4.4+)."""

    release: str
    exactly_once: bool
    transactional: bool = False

    @property
    def number(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.release.split("."))

    def since(self, *number: int) -> bool:
        return self.number >= number

    @property
    def rocksdb(self) -> str:
        return next(version for below, version in _ROCKSDB if self.number < below)

    @property
    def task_lock(self) -> bool:
        """`.lock` in each task directory."""
        return not self.since(3, 0)

    @property
    def application_lock(self) -> bool:
        """`.lock` and process metadata in the application directory."""
        if self.number[:2] in ((2, 6), (2, 7)):
            return self.since(2, 7, 1) or (self.number[:2] == (2, 6) and self.since(2, 6, 2))
        return self.since(2, 8)

    @property
    def reads_before_lock(self) -> bool:
        """The checkpoint is read, and under exactly-once deleted, before the lock is taken."""
        return not self.since(2, 6)

    @property
    def deletes_under_lock(self) -> bool:
        """The checkpoint is deleted once it was read, after the stores were opened."""
        if self.offsets_in_store or not self.since(2, 6):
            return False
        return self.exactly_once or not self.since(2, 7)

    @property
    def bulk_load(self) -> bool:
        """A restoration reopens its store twice."""
        return not self.since(2, 6)

    @property
    def wipes_stores(self) -> bool:
        """A wipe deletes single stores under the task lock; later the whole task directory."""
        return not self.since(2, 6)

    @property
    def positions(self) -> bool:
        return self.since(3, 2) and not self.since(4, 3)

    @property
    def offsets_in_store(self) -> bool:
        return self.since(4, 3)

    @property
    def writes_status(self) -> bool:
        """A store says whether it is open."""
        return self.offsets_in_store and not self.transactional

    @property
    def late_manifest(self) -> bool:
        """A new database keeps its first manifest until the first flush."""
        return not self.since(2, 2)

    @property
    def opens_twice(self) -> bool:
        """A new timestamped store is opened, closed and opened again."""
        return self.since(2, 3) and not self.since(3, 8)

    @property
    def closes_before_checkpoint(self) -> bool:
        return self.exactly_once and not self.since(2, 2)

    @property
    def checkpoints_twice_at_close(self) -> bool:
        return not self.exactly_once and not self.since(2, 2)

    @property
    def restore_end_checkpoints(self) -> int:
        """How often the end of a restoration writes the checkpoint."""
        if self.offsets_in_store:
            return 0
        if self.exactly_once:
            return 1 if self.since(3, 8) else 0
        return 2 if self.since(3, 9) else 1 if self.since(3, 5) else 0

    @property
    def dirty_close_deletes(self) -> bool:
        """Exactly-once from 2.2 to 2.5: a dirty close deletes the checkpoint."""
        return self.exactly_once and self.since(2, 2) and not self.since(2, 6)

    @property
    def cleaner_keeps_lock_file(self) -> bool:
        return self.since(2, 5) and not self.since(3, 0)

    @property
    def startup_pass(self) -> bool:
        return self.since(4, 3)

    @property
    def new_identity_for_new_database(self) -> bool:
        """Where CURRENT is gone, a new database gets a new IDENTITY even if an old one is there."""
        return self.since(3, 0)
