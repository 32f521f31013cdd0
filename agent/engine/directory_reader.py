"""Hints -> readings -> transitions: decides what to read, and when once is enough.

No I/O: it asks the observer, and the observer asks the disk. The same code serves live watching,
scan and replay.
"""

from __future__ import annotations

from collections import Counter

from agent.contract.events import Source
from agent.engine import rereads
from agent.engine.listing import REPORTED_AT_ONCE, Report, databases_below, directories, not_found
from agent.engine.lock_polls import LockPolls
from agent.engine.rereads import SETTLE_US, databases
from agent.engine.schedule import Schedule
from agent.engine.unreadable_paths import UnreadablePaths
from agent.inventory.absence import Absence
from agent.inventory.blindness import end_blind, note_blind
from agent.inventory.disk import SEEN, Disk, LockState, Unseen
from agent.inventory.hints import LOSSES, Hint, HintKind
from agent.inventory.model import Inventory, Task
from agent.inventory.observations import Observation, Removal
from agent.inventory.reduce import reduce_observation
from agent.inventory.task_changes import REPLACEABLE
from agent.inventory.transitions import Transition
from agent.layout import names
from agent.layout.paths import DATABASE_ROLES, PathRole, StatePath, classify, join
from agent.observe.observer import Observer


class DirectoryReader:
    """Owns the inventory and keeps it in step with the disk."""

    def __init__(self, disk: Disk, started_us: int) -> None:
        self.inventory = Inventory(started_us=started_us)
        self.observer = Observer(disk)
        self.outcomes: Counter[str] = Counter()
        self._read_tasks: set[tuple[str, str]] = set()
        self.readings: dict[str, int] = {}  # path of a task -> how often anything of it was read
        self._disk = disk
        self._settling = Schedule()
        self.polls = LockPolls(self.inventory, self.observer, self._application, self.read_task, started_us)
        self.refusals = UnreadablePaths(self.inventory)
        self._absence: Absence | None = None

    def resume(self, known: Inventory, until_us: int) -> None:
        """Go on with what an earlier agent knew; the next walk over everything finds what has changed since."""
        self.inventory.applications.update(known.applications)
        for interval in known.blind:
            self.inventory.blind.append(interval)
        self.inventory.root_seen = known.root_seen
        self._absence = Absence(self.inventory, until_us)

    def pop_read_tasks(self) -> set[tuple[str, str]]:
        """Take (application, task) of every task that was read since the last call."""
        tasks, self._read_tasks = self._read_tasks, set()
        return tasks

    @property
    def is_resuming(self) -> bool:
        """Whether the walk over everything after a restart is still to come."""
        return self._absence is not None

    # -- hints ------------------------------------------------------------------------------------------

    def hint(self, hint: Hint, now_us: int, report: Report | None = None) -> list[Transition]:
        """Follow one hint.

        `hint`: what to read; its own time orders removals.
        """
        if hint.kind is HintKind.RESCAN:
            since_us = hint.since_us or hint.at_us
            return self.rescan(hint.path, now_us, Source.RESCAN, hint.cause, since_us, report)
        place = classify(hint.path)
        if place.role is PathRole.TEMPORARY:
            return []  # the rename is what counts
        if hint.kind in (HintKind.DELETED, HintKind.MOVED_OUT):
            return self._removed(place, hint, now_us)
        if hint.kind is HintKind.SELF_GONE:
            return self._directory(place, now_us, Source.INOTIFY)
        if place.role in (PathRole.SST, PathRole.IDENTITY, PathRole.OPTIONS):
            self.observer.note_written(place, hint.at_us)
        return self._changed(place, hint, now_us)

    def _removed(self, place: StatePath, hint: Hint, now_us: int) -> list[Transition]:
        removal = Removal(place, hint.at_us, Source.INOTIFY)
        changes: list[Transition] = []
        if place.role in (PathRole.IDENTITY, PathRole.CURRENT, PathRole.STORE_LOCK) and place.database:
            self._settling.schedule(place.database, now_us + SETTLE_US)
        elif place.role in REPLACEABLE and place.database and rereads.seems_idle(self._task_of(place), place):
            # an open that has not been read yet drops old files, too: only a free LOCK makes it a deletion
            changes += self._database(classify(place.database), now_us, Source.INOTIFY)
        elif place.role is PathRole.CHECKPOINT and place.task_path is not None:
            # an owner that has just opened deletes it, too: whether a process holds the task must be known first
            changes += self._read_waiting(place.task_path, now_us)
        removed = self._reduce(removal)
        changes += removed
        if place.role is PathRole.APPLICATION or (place.role is PathRole.TASK and not removed):
            # it may be younger than its removal: a successor, or the clock was set back
            changes += self._directory(place, now_us, Source.INOTIFY)
        elif place.role is PathRole.CHECKPOINT and not removed and place.task_path is not None:
            changes += self._read_checkpoint(place.task_path, now_us, Source.INOTIFY)
        elif place.role in (PathRole.STORE, PathRole.SEGMENT):
            changes += self._database(place, now_us, Source.INOTIFY)
        elif place.role is PathRole.TASK_LOCK:
            changes += self._reduce(self.observer.lock(place, now_us, Source.INOTIFY))
        return changes

    def _changed(self, place: StatePath, hint: Hint, now_us: int) -> list[Transition]:
        role, kind = place.role, hint.kind
        if role in (PathRole.CHECKPOINT, PathRole.STORE_CHECKPOINT):
            if kind is HintKind.WRITTEN or kind is HintKind.CREATED:
                return []  # written under its temporary name: the rename is what counts
            return self._checkpoint(place, now_us, hint.at_us)
        if role in (PathRole.APPLICATION, PathRole.APPLICATION_LOCK, PathRole.PROCESS_FILE):
            return self._application(place, now_us, Source.INOTIFY)
        if role in (PathRole.TASK, PathRole.TOPOLOGY):
            return self._appeared(place, now_us) + self.rescan(place.path, now_us, Source.INOTIFY, "")
        if role is PathRole.TASK_LOCK:
            return self._task_lock(place, kind, now_us)
        if role in DATABASE_ROLES:
            self._settling.schedule(place.path, now_us + SETTLE_US)
        elif role in rereads.EVENTS and (role is not PathRole.SST or kind is HintKind.WRITTEN):
            if role is PathRole.STORE_LOCK and kind is HintKind.WRITTEN:
                return self._closed(place, hint, now_us)
            if place.database is not None:
                self._settling.schedule(place.database, now_us + SETTLE_US)
        return []

    def _appeared(self, place: StatePath, now_us: int) -> list[Transition]:
        """Read the application where it was not known as one: the first task in it is a sign."""
        known = self.inventory.applications.get(place.application or "")
        return [] if known and known.exists else self._application(place, now_us, Source.INOTIFY)

    def _closed(self, place: StatePath, hint: Hint, now_us: int) -> list[Transition]:
        """A process closed a store. What it left is read first, then whether that process lives."""
        database = classify(place.database or "")
        self._settling.drop(database.path)
        changes = self._database(database, now_us, Source.INOTIFY, announced_us=hint.at_us)
        application = self.inventory.applications.get(place.application or "")
        if application is not None and application.lock_ever_held:
            changes += self.polls.ask_application(application, now_us, Source.INOTIFY)
        return changes

    def _directory(self, place: StatePath, now_us: int, source: Source) -> list[Transition]:
        if place.role is PathRole.STATE_DIRECTORY:
            return self.rescan("", now_us, Source.RESCAN, "")  # the watch reports the loss when it is over
        if place.role is PathRole.APPLICATION:
            return self._application(place, now_us, source)
        if place.role is PathRole.TASK:
            return self._reduce(self.observer.task(place, now_us, source))
        if place.role in DATABASE_ROLES:
            return self._database(place, now_us, source)
        return []

    # -- readings ---------------------------------------------------------------------------------------

    def _reduce(self, reading: Observation) -> list[Transition]:
        self.outcomes[reading.unseen.value if reading.unseen else SEEN] += 1
        if reading.unseen is Unseen.VANISHED and isinstance(self._disk.stat(""), Unseen):
            return []  # the whole volume is away: nothing was removed from it
        if reading.unseen is not None or self.refusals.open:
            self.refusals.note(reading.place, reading.unseen, reading.at_us)
        if reading.unseen is Unseen.VANISHED:
            self.refusals.forget_below(reading.place.path, reading.at_us)
        if self._absence is not None and reading.source is Source.BASELINE:
            self._absence.prepare(reading, self.observer)
        if reading.place.task is not None and reading.place.application is not None:
            self._read_tasks.add((reading.place.application, reading.place.task))
            path = f"{reading.place.application}/{reading.place.task}"
            self.readings[path] = self.readings.get(path, 0) + 1
        return reduce_observation(self.inventory, reading)

    def _application(self, place: StatePath, now_us: int, source: Source) -> list[Transition]:
        assert place.application is not None
        known = self.inventory.applications.get(place.application)
        before = known.lock if known else None
        reading = self.observer.application(classify(place.application), now_us, source)
        self.refusals.note(
            classify(f"{place.application}/{names.PROCESS_FILE}"), reading.process_hidden, now_us
        )
        changes = self._reduce(reading)
        application = self.inventory.applications.get(place.application)
        if application is None or not application.exists:
            return changes
        if before is LockState.HELD and application.lock is not LockState.HELD:
            for task in list(application.tasks.values()):
                changes += self.read_task(task, now_us, source)
        return changes

    def read_application(self, application_id: str, now_us: int) -> list[Transition]:
        """Read an application's own files only: lock, process metadata."""
        return self._application(classify(application_id), now_us, Source.RESCAN)

    def _task_tree(self, place: StatePath, now_us: int, source: Source) -> list[Transition]:
        with self._disk.stay_in(place.path):
            changes = self._reduce(self.observer.task(place, now_us, source))
            below, unread = databases_below(self._disk, place.path, self._task_of(place))
            self.refusals.note_inside(place.path, unread, now_us)
            for database in below:
                changes += self._database(database, now_us, source)
            return changes + self._read_checkpoint(place.path, now_us, source)

    def _read_checkpoint(self, task_path: str, now_us: int, source: Source) -> list[Transition]:
        checkpoint = classify(f"{task_path}/{names.CHECKPOINT_FILE}")
        return self._reduce(self.observer.checkpoint(checkpoint, now_us, source))

    def _task_lock(self, place: StatePath, kind: HintKind, now_us: int) -> list[Transition]:
        task, written = self._task_of(place), kind is HintKind.WRITTEN
        stores = task.database_paths if task is not None and written else []
        changes = self._read_databases(stores, now_us, Source.INOTIFY)
        return changes + self._reduce(self.observer.lock(place, now_us, Source.INOTIFY, announced=written))

    def _checkpoint(self, place: StatePath, now_us: int, heard_us: int) -> list[Transition]:
        source = Source.INOTIFY
        task = self._task_of(place)
        if task is None:
            changes = self._task_tree(classify(f"{place.application}/{place.task}"), now_us, source)
            return changes + self._reduce(self.observer.checkpoint(place, now_us, source))
        reading = self.observer.checkpoint(place, now_us, source, heard_us=heard_us)
        if reading.unseen is None:
            self.observer.note_checkpoint(task.database_paths, reading.mtime_us)
        # flushes precede the checkpoint: what waits to be read in this task is part of its story
        changes = self._read_waiting(task.path, now_us) if self._settling.due else []
        return changes + self._reduce(reading)

    def _read_waiting(self, task_path: str, now_us: int) -> list[Transition]:
        return self._read_databases(self._settling.below(f"{task_path}/"), now_us, Source.INOTIFY)

    def _read_databases(self, paths: list[str], now_us: int, source: Source) -> list[Transition]:
        changes: list[Transition] = []
        for path in paths:
            self._settling.drop(path)
            changes += self._database(classify(path), now_us, source)
        return changes

    def _database(
        self, place: StatePath, now_us: int, source: Source, *, announced_us: int = 0
    ) -> list[Transition]:
        # Taking an existing `.lock` makes no notification, but the open of a store that follows it does.
        task = self._task_of(place)
        changes: list[Transition] = []
        if task is not None and task.lock is not None:
            lock = classify(f"{task.path}/{names.LOCK_FILE}")
            changes += self._reduce(self.observer.lock(lock, now_us, source))
        reading = self.observer.database(place, now_us, source, announced_us=announced_us)
        changes += self._reduce(reading)
        database = rereads.database_at(self.inventory, place)
        if not (is_deleted := rereads.is_being_deleted(task, now_us)):
            self.refusals.note_content(place, database, now_us)
        if again_us := rereads.reread_us(reading, database, is_deleted=is_deleted):
            self._settling.schedule(place.path, now_us + again_us)
        return changes

    def confirm(self, now_us: int) -> list[Transition]:
        """Read long manifests to their ends, and read a second time what may be passing, as if it were later."""
        changes: list[Transition] = []
        while waiting := [x for x in databases(self.inventory) if x.goes_on]:
            changes += [y for x in waiting for y in self._database(classify(x.path), now_us, Source.RESCAN)]
        later_us = now_us + rereads.TORN_AGAIN_US
        again = [x for x in databases(self.inventory) if x.problems]
        return changes + [y for x in again for y in self._database(classify(x.path), later_us, Source.RESCAN)]

    def read_task(self, task: Task, now_us: int, source: Source) -> list[Transition]:
        """Read a known task: its stores, its checkpoint, then its lock and directory; all of a directory made anew."""
        found = self._disk.stat(task.path)
        if not isinstance(found, Unseen) and found.inode != task.inode:
            return self._task_tree(classify(task.path), now_us, source)
        changes = self._read_databases(task.database_paths, now_us, source)
        changes += self._read_checkpoint(task.path, now_us, source)
        return changes + self._reduce(self.observer.task(classify(task.path), now_us, source))

    def _task_of(self, place: StatePath) -> Task | None:
        application = self.inventory.applications.get(place.application or "")
        return application.tasks.get(place.task or "") if application else None

    # -- listing ----------------------------------------------------------------------------------------

    def rescan(
        self,
        path: str,
        now_us: int,
        source: Source,
        cause: str,
        since_us: int = 0,
        report: Report | None = None,
    ) -> list[Transition]:
        """Read a directory and everything below it; a loss that it repairs becomes a blind interval.

        `path`: relative; empty = the whole state directory. `cause`: cause of the rescan; a loss is one that leaves
        a blind interval. `since_us`: when the loss began; 0 = now. `report`: takes what changed, task by task: of
        ten thousand tasks all at once are 14 MiB. Gives what changed and was not reported.
        """
        absence = self._absence if not path and not isinstance(self._disk.stat(""), Unseen) else None
        changes = self._rescan(path, now_us, source if absence is None else Source.BASELINE, report)
        if absence is not None:
            changes += absence.conclude(now_us)
            self._absence = None
            end_blind(self.inventory, now_us, "agent-away")
        if cause in LOSSES:
            place = classify(path)
            note_blind(self.inventory, since_us or now_us, now_us, cause, place.application, place.task)
        if cause in LOSSES or cause == "start":
            # a file may be closed whose manifest edit is not yet written; nothing will announce it any more
            for database in databases(self.inventory):
                if database.lock is LockState.HELD:
                    self._settling.schedule(database.path, now_us + SETTLE_US)
        return changes

    def _rescan(
        self, path: str, now_us: int, source: Source, report: Report | None = None
    ) -> list[Transition]:
        place = classify(path)
        if place.role is PathRole.TASK:
            return self._task_tree(place, now_us, source)
        if place.database is not None:
            return self._database(classify(place.database), now_us, source)
        if place.task is not None:
            return self._task_tree(classify(place.task_path or ""), now_us, source)
        entries = self._disk.list(path)
        self.refusals.note_listing(place, entries, now_us)
        if isinstance(entries, Unseen):
            return self._directory(place, now_us, source) if path else []
        self.inventory.root_seen = True
        changes: list[Transition] = []
        if place.role is PathRole.APPLICATION:
            changes += self._application(place, now_us, source)
        found = {join(path, entry.name) for entry in directories(entries)}
        for child in sorted(found):
            role = classify(child).role
            if role in (PathRole.APPLICATION, PathRole.TOPOLOGY, PathRole.TASK):
                changes += self._rescan(child, now_us, source, report)
            if report is not None and len(changes) >= REPORTED_AT_ONCE:
                report(changes)
                changes = []
        return changes + self._vanished(place, found, now_us, source)

    def _vanished(self, place: StatePath, found: set[str], now_us: int, source: Source) -> list[Transition]:
        applications, tasks = not_found(self.inventory, place, found)
        changes = [x for id_ in applications for x in self._application(classify(id_), now_us, source)]
        for task in tasks:
            changes += self._reduce(self.observer.task(classify(task.path), now_us, source))
        return changes

    # -- the agent's own clock --------------------------------------------------------------------------

    def next_us(self, *, but_locks: bool = False) -> int:
        """When `tick` has something to do; `but_locks`: beside the locks that are asked for often."""
        polls_us = self.polls.slow_poll_us if but_locks else self.polls.next_us
        settled_us = self._settling.next_us()
        return polls_us if settled_us is None else min(polls_us, settled_us)

    def shift(self, by_us: int) -> None:
        """Move every time that is planned: the clock was set."""
        self._settling.shift(by_us)
        self.polls.shift(by_us)

    def tick(self, now_us: int) -> list[Transition]:
        """Read where a burst has settled, and poll locks."""
        changes: list[Transition] = []
        for path in self._settling.pop_due(now_us):
            changes += self._database(classify(path), now_us, Source.INOTIFY)
        return changes + self.polls.poll(now_us)
