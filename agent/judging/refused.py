"""Openings of a store that Kafka Streams itself refused, and stores that its start-up pass leaves locked (4.3+).

Under exactly-once a store whose status says open is refused: every opening after the last flush of such a store was.

Source:
    AbstractColumnFamilyAccessor.open and close, RocksDBStore.openDB (4.3.0 to 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.inventory.disk import LockState
from agent.inventory.model import Application, Database
from agent.inventory.segments import OPEN
from agent.judging.base import Fact, TaskCase, Truth
from agent.judging.reopening import SETTLED_US
from agent.judging.rule import NamedStoreStory, derived
from agent.judging.upstream import KAFKA_21034, KIP_1035, REFUSED_OPEN

REFUSALS = 5
"""A process that wipes is refused twice: by its start-up pass, and by the task that it then wipes. Two more are left
for a task that goes to another thread between. One that does not wipe came to 73 in 26 s (recorded)."""
BURST_US = 5_000_000
"""Where no process was seen: not even processes that end after their start-up pass follow so closely (it is reached 3 s
after the start, recorded)."""
STARTS = 2  # global stores are refused once by each process; a second one shows that a start does not help
GOES_ON_US = 1_000_000
"""An end that is not announced is found by the next lock poll, 250 ms later; a second covers a busy agent."""
SEEN_LATE_US = 1_000_000  # a lock poll sees a process up to a second after its first work


@dataclass(frozen=True, slots=True)
class Leak:
    """A segment that was deleted while its own process held it: it had opened it, and was refused a later one."""

    at_us: int  # when it was deleted
    opened_us: int  # when the store was opened
    store: str  # its store
    path: str  # the segment
    refused: str  # path of the segment whose status said open


def leaks(case: TaskCase) -> Iterator[Leak]:
    """List segments that were deleted while the process that deleted the task held them itself.

    A windowed store opens its segments oldest first. The refusal of one leaves those before it open: the store is not
    registered, so nothing closes it, and the wipe of the task deletes them under their lock.

    Source:
        AbstractSegments.openExisting and getOrCreateSegment, StateDirectory.initializeStartupStores, StateManagerUtil
        (4.3.0, 4.3.1, 4.4.0); recorded as `startup-leaked-segment-4.4.0`.
    """
    if case.settings.exactly_once is False:
        return
    for at_us, name, path in case.task.taken:
        store = case.task.stores.get(name)
        before = [x for x in store.openings if x.at_us <= at_us] if store is not None else []
        segments = before[-1].segments if before else ()
        refused = next((number for number, one in enumerate(segments) if one.status == OPEN), None)
        if refused is not None and path in [one.path for one in segments[:refused]]:
            yield Leak(at_us, before[-1].at_us, name, path, segments[refused].path)


class Refused(NamedStoreStory):
    """A store that Kafka Streams may be refusing: the status of this database says open, and it was opened since.

    A refused opening renames RocksDB's LOG, takes and frees `LOCK`, and writes neither data nor a status.
    """

    database: Database
    # the opening that decided
    opened_at_us = derived(lambda x: x.counted[0][x.counted[1] - 1] if x.counted[1] else x.flushed_us)
    subject = derived(lambda x: f"refused {x.database.identity}")
    identity = derived(lambda x: x.database.identity)
    issues = derived(
        lambda x: (KAFKA_21034 if x.task.is_global else REFUSED_OPEN if x.transactional else KIP_1035,)
    )

    @property
    def flushed_us(self) -> int:
        """Its last flush, status and data."""
        offsets, newest_us = (
            self.database.offsets,
            self.database.flushed[-1][1] if self.database.flushed else 0,
        )
        return max(newest_us, self.database.undated_us, offsets.written_us if offsets else 0)

    @cached_property
    def tried_us(self) -> list[int]:
        """When it was opened after its last flush, and its store tried in vain.

        Segments that were opened before it stay locked by their own process: each further try ends at the first of
        them, with a new LOG and nothing else. RocksDB writes OPTIONS last of all in an opening.
        """
        times_us = [x for x in self.database.reopened_us if x > self.flushed_us]
        if times_us and self.database.lock is LockState.FREE:
            for other in self.store.databases.values():
                if other.lock is LockState.HELD and other.options_written_us:
                    first_us = max(other.options_written_us, times_us[0])
                    times_us += [x for x in other.reopened_us if x > first_us]
        return sorted(times_us)

    @property
    def is_opened_for_good(self) -> bool:
        """A process has held it for longer than a wipe takes."""
        since_us = max(self.tried_us[-1], self.database.lock_since_us, self.database.closed_us)
        return self.database.lock is LockState.HELD and self.case.waited_us(since_us) >= SETTLED_US

    @cached_property
    def counted(self) -> tuple[list[int], int, bool]:
        """The openings that count, the number of the one that decided (0 = none), and whether they are proven.

        Proven: the guarantee is configured, and the processes were seen; else it may have been a tool of an operator.
        """
        times_us, application = self.tried_us, self.case.application
        if self.case.settings.exactly_once is None:  # at-least-once goes on with such a store
            late = times_us[-REFUSALS:]
            return late, REFUSALS if _burst(late) else 0, False
        lives = [x for x in _by_process(application, times_us) if x]
        if self.task.is_global:
            if len(lives) >= STARTS:
                return [x for one in lives for x in one], len(lives[0]) + 1, True
            return times_us, REFUSALS if len(times_us) >= REFUSALS else 0, False
        for one in lives:
            if len(one) >= REFUSALS:
                return one, REFUSALS, True
        burst = _burst([x for x in times_us if x < self.case.inventory.started_us or not application.lives])
        return burst, REFUSALS if burst else 0, False

    @cached_property
    def transactional(self) -> bool:
        """Whether the process may have transactional stores; without them a wipe would follow."""
        is_known = self.case.says(Fact.TRANSACTIONAL_STORES) is not Truth.NO
        return not self.task.is_global and is_known and self.case.settings.transactional_stores is not False


def refused(case: TaskCase) -> Iterator[Refused]:
    """List the databases of a task that say open and were opened again."""
    for store in case.task.stores.values():
        for x in store.databases.values():
            if x.offsets is not None and x.offsets.status == OPEN and x.reopened_us:
                yield Refused(case, store, x)


def _by_process(application: Application, times_us: Sequence[int]) -> Iterator[list[int]]:
    for life in application.lives:
        from_us, to_us = life.started_us - SEEN_LATE_US, life.ended_us
        yield [x for x in times_us if from_us <= x and (to_us is None or x <= to_us)]


def _burst(times_us: Sequence[int]) -> list[int]:
    """Return the first openings that follow too closely for starts of a process, and all after them."""
    for number in range(len(times_us) - REFUSALS + 1):
        if times_us[number + REFUSALS - 1] - times_us[number] <= BURST_US:
            return list(times_us[number:])
    return []
