"""One process of an application in a scenario: what it does to task directories, in the order of its release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tests.support.scenario_cleaner import Cleaner
from tests.support.scenario_database import SimDatabase
from tests.support.scenario_tasks import IN_MEMORY, TIMESTAMPED, UNLOGGED, WINDOWED, SimTask, delete_tree

if TYPE_CHECKING:
    from tests.support.scenario import Scenario


class App:
    def __init__(self, run: Scenario) -> None:
        self.run = run
        self.world = run.world
        self.habits = run.habits
        self.held: set[str] = set()
        self.cleaner = Cleaner(self)

    # -- process ----------------------------------------------------------------------------------------

    def begins(self) -> None:
        """The process starts: application directory, lock, process metadata."""
        root = self.run.application
        self.world.play("start", version=self.habits.release)
        self.world.mkdir(root)
        if self.habits.application_lock:
            self.world.lock(f"{root}/.lock")
            metadata = f"{root}/kafka-streams-process-metadata"
            if not self.world.has(metadata):
                self.world.write(metadata, b'{"processId":"7f3e2a10-0000-4000-8000-000000000001"}')

    def crash(self) -> None:
        """SIGKILL: every lock goes, nothing is written."""
        root = self.run.application
        if self.habits.application_lock:
            self.world.play("unlock", f"{root}/.lock")
        for task in self._held_tasks():
            for database in task.databases.values():
                if database.is_open:
                    self.world.play("unlock", f"{database.path}/LOCK")
                    database.crash()
            if self.habits.task_lock and self.world.has(f"{task.path}/.lock"):
                self.world.play("unlock", f"{task.path}/.lock")
        self.cleaner.dies()
        self.held.clear()
        self.world.play("exit", killed=True)

    def ends(self) -> None:
        """The process ends by itself, with every task closed before."""
        if self.habits.application_lock:
            self.world.unlock(f"{self.run.application}/.lock")
        self.world.play("exit")

    def stops(self, offsets: Mapping[str, int] | None = None) -> None:
        """An orderly stop: every task closed clean, then the process ends; `offsets`: task -> last offset."""
        for task in self._held_tasks():
            self.closes(task.id, (offsets or {}).get(task.id))
        self.ends()

    def _held_tasks(self) -> list[SimTask]:
        return [self.run.task(task_id) for task_id in sorted(self.held)]

    # -- opening ----------------------------------------------------------------------------------------

    def constructs(self, task_id: str) -> None:
        """A task object is made: directory, and up to 2.5 the checkpoint is read (exactly-once: deleted)."""
        task = self.run.task(task_id)
        for path in self._parents(task.path):
            self.world.mkdir(path)
        if self.habits.reads_before_lock and self.habits.exactly_once:
            self._delete_checkpoint(task)

    def locks(self, task_id: str) -> None:
        """Take the task's lock, where the release has one."""
        self.held.add(task_id)
        if self.habits.task_lock:
            self.world.lock(f"{self.run.task(task_id).path}/.lock")
        elif self.world.has(f"{self.run.task(task_id).path}/.lock"):
            self.world.play("unlink", f"{self.run.task(task_id).path}/.lock")

    def opens(self, task_id: str, *, only: Iterable[str] | None = None) -> SimTask:
        """Initialize a task: directory, lock, stores; the checkpoint goes where the release deletes it."""
        self.constructs(task_id)
        self.locks(task_id)
        task = self.run.task(task_id)
        for name, kind in self.run.stores.items():
            if only is None or name in only:
                self._open_store(task, name, kind)
        if self.habits.deletes_under_lock:
            self._delete_checkpoint(task)
        return task

    def _parents(self, path: str) -> list[str]:
        parts = path.split("/")
        return ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]

    def _open_store(self, task: SimTask, name: str, kind: str) -> None:
        if kind == IN_MEMORY:
            return
        if kind == WINDOWED:
            self.world.mkdir(f"{task.path}/{name}")
            for (store, _), database in sorted(task.databases.items()):
                if store == name:
                    self._open_database(database)
            return
        self.world.mkdir(f"{task.path}/rocksdb")
        is_new = (name, "") not in task.databases
        database = self._new_database(task, name, "") if is_new else task.databases[name, ""]
        self._open_database(database)
        if is_new and kind == TIMESTAMPED and self.habits.opens_twice:
            self.world.unlock(f"{database.path}/LOCK")
            self._open_database(database)

    def _open_database(self, database: SimDatabase) -> None:
        database.habits, database.bulk_loading = self.habits, False
        if not self.world.has(f"{database.path}/CURRENT"):
            database.identity = self.run.identity()
        database.open()

    def _new_database(self, task: SimTask, name: str, segment: str) -> SimDatabase:
        windowed = self.run.stores[name] == WINDOWED
        path = f"{task.path}/{name}/{name}.{segment}" if windowed else f"{task.path}/rocksdb/{name}"
        timestamped = self.run.stores[name] == TIMESTAMPED and self.habits.since(2, 3)
        database = SimDatabase(self.world, self.habits, path, "", timestamped)
        task.databases[name, segment] = database
        return database

    def reopens(self, task_id: str, store: str, *, bulk_loading: bool = False) -> None:
        """Close and open one store under the task's lock, as bulk loading does up to 2.5."""
        for database in self._databases(task_id, store):
            database.close()
            database.bulk_loading = bulk_loading
            database.open()

    def drops_segment(self, task_id: str, store: str, segment: int) -> None:
        """An expired segment of a windowed store is closed and deleted."""
        task = self.run.task(task_id)
        database = task.databases.pop((store, str(segment)))
        database.close()
        self.delete_tree(database.path)

    # -- data -------------------------------------------------------------------------------------------

    def _databases(
        self, task_id: str, store: str | None = None, segment: int | None = None
    ) -> list[SimDatabase]:
        found = self.run.task(task_id).databases.items()
        of_store = [(part, x) for (name, part), x in found if store in (None, name)]
        return [x for part, x in of_store if segment is None or part == str(segment)]

    def puts(
        self, task_id: str, count: int, *, store: str | None = None, segment: int = 0, deletions: int = 0
    ) -> None:
        """Put records into the memtable of every store, or of one; of a windowed store into one segment."""
        task = self.run.task(task_id)
        for name, kind in self.run.stores.items():
            if store not in (None, name) or kind == IN_MEMORY:
                continue
            key = (name, str(segment) if kind == WINDOWED else "")
            if kind == WINDOWED and key not in task.databases:
                self._open_database(self._new_database(task, *key))
            task.databases[key].put(count, deletions=deletions)

    def flushes(self, task_id: str, store: str | None = None, segment: int | None = None) -> None:
        """Memtables become SST files."""
        for database in self._databases(task_id, store, segment):
            database.flush()

    def compacts(self, task_id: str) -> None:
        """Files are merged; nothing new is on disk."""
        for database in self._databases(task_id, None):
            database.compact()

    def checkpoints(
        self,
        task_id: str,
        offsets: int | Mapping[str, int],
        *,
        flush: bool = True,
        foreign: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        """Write the checkpoint (4.3+: put the offset into the stores' memtables).

        `offsets`: one for all stores, or per store; those left out get no entry. `flush` first, as every release
        before 4.3 does. `foreign`: further entries, (topic, partition) -> offset.
        """
        task = self.run.task(task_id)
        by_store = self._per_store(offsets)
        if self.habits.offsets_in_store:
            for (name, _), database in task.databases.items():
                if name in by_store:
                    database.put_offset(self._topic_partition(task, name), by_store[name])
            return
        if flush:
            self.flushes(task_id)
        if not by_store and not foreign and self.habits.since(2, 7):
            self._delete_checkpoint(task)
            return
        if self.habits.positions:
            for name in by_store:
                path = f"{task.path}/{name}.position"
                self.world.replace(path, b"0\n0\n", f"{path}.tmp")
        entries = {(self._topic(name), self._partition(task)): offset for name, offset in by_store.items()}
        self.write_checkpoint(task_id, {**entries, **(foreign or {})})

    def write_checkpoint(self, task_id: str, entries: Mapping[tuple[str, int], int]) -> None:
        """Write these entries and nothing else."""
        lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in entries.items()]
        path = f"{self.run.task(task_id).path}/.checkpoint"
        self.world.replace(path, f"0\n{len(lines)}\n{''.join(lines)}".encode(), f"{path}.tmp")

    def _per_store(self, offsets: int | Mapping[str, int]) -> dict[str, int]:
        if isinstance(offsets, int):
            return {
                name: offsets for name, kind in self.run.stores.items() if kind not in (IN_MEMORY, UNLOGGED)
            }
        return dict(offsets)

    def _topic(self, store: str) -> str:
        return f"{self.run.application}-{store}-changelog"

    def _partition(self, task: SimTask) -> int:
        return int(task.id.rpartition("_")[2])

    def _topic_partition(self, task: SimTask, store: str) -> str:
        return f"{self._topic(store)}-{self._partition(task)}"

    def restores(
        self, task_id: str, to: int | Mapping[str, int], *, puts: int | None = None, store: str | None = None
    ) -> None:
        """Replay the changelog into the stores and finish: what the end of it writes depends on the release.

        `to`: offset at the end. `puts`: records applied; None = `to`, a full restoration without commit markers.
        """
        self.begins_restoring(task_id, store)
        if count := max(self._per_store(to).values()) if puts is None else puts:
            self.puts(task_id, count, store=store)
        self.ends_restoring(task_id, store)
        self.run.wait(0.15)
        for _ in range(self.habits.restore_end_checkpoints):
            self.checkpoints(task_id, to)
            self.run.wait(0.05)

    def begins_restoring(self, task_id: str, store: str | None = None, *, on: bool = True) -> None:
        """Bulk loading on, where the release has it."""
        if self.habits.bulk_load:
            for name, kind in self.run.stores.items():
                if kind not in (IN_MEMORY, UNLOGGED) and store in (None, name):
                    self.reopens(task_id, name, bulk_loading=on)

    def ends_restoring(self, task_id: str, store: str | None = None) -> None:
        """Bulk loading off, where the release has it."""
        self.begins_restoring(task_id, store, on=False)

    def commits(self, task_id: str, offsets: int | Mapping[str, int]) -> None:
        """4.3+: a commit puts offset and position into the memtable."""
        self.checkpoints(task_id, offsets)
        for database in self._databases(task_id):
            database.put_position()

    # -- closing ----------------------------------------------------------------------------------------

    def closes(self, task_id: str, offset: int | Mapping[str, int] | None = None) -> None:
        """Close a task clean, in the order of its release; without an offset nothing new is written."""
        if self.habits.offsets_in_store:
            self._close_with_offsets(task_id, offset, clean=True)
        elif self.habits.closes_before_checkpoint or offset is None:
            self._close_stores(task_id)
            if offset is not None:
                self.checkpoints(task_id, offset)
        else:
            self.checkpoints(task_id, offset)
            self._close_stores(task_id)
            if self.habits.checkpoints_twice_at_close:
                self.checkpoints(task_id, offset)
        self.unlocks(task_id)

    def closes_dirty(self, task_id: str) -> None:
        """Close without a commit: RocksDB flushes all the same. A wipe that is due is the caller's to play."""
        if self.habits.offsets_in_store:
            self._close_with_offsets(task_id, None, clean=False)
        else:
            self._close_stores(task_id)
        if self.habits.dirty_close_deletes:
            self._delete_checkpoint(self.run.task(task_id))
        self.unlocks(task_id)

    def unlocks(self, task_id: str) -> None:
        """Let go of the task's lock, where the release has one."""
        self.held.discard(task_id)
        if self.habits.task_lock:
            self.world.unlock(f"{self.run.task(task_id).path}/.lock")

    def _close_stores(self, task_id: str) -> None:
        for database in self._databases(task_id):
            if database.is_open:
                database.close()

    def _close_with_offsets(
        self, task_id: str, offset: int | Mapping[str, int] | None, *, clean: bool
    ) -> None:
        task = self.run.task(task_id)
        by_store = self._per_store(offset) if offset is not None else {}
        for (name, _), database in task.databases.items():
            if not database.is_open:
                continue
            if clean and name in by_store:
                database.put_offset(self._topic_partition(task, name), by_store[name])
                database.put_position()
            database.put_status(0)
            database.close()

    def startup_pass(self, offset: int | None = None) -> None:
        """4.3+: every store on disk is opened once and closed, task by task; `offset` = what it takes for theirs."""
        for task_id in sorted(self.run.tasks):
            if not self.world.has(self.run.task(task_id).path):
                continue
            for database in self._databases(task_id):
                self._open_database(database)
            if offset is not None:
                self.checkpoints(task_id, offset)
            for database in self._databases(task_id):
                database.put_status(0)
                database.close()
            self.run.wait(0.02)

    def is_refused(self, task_id: str, times: int = 1, *, every_ms: int = 350) -> None:
        """4.3+: Kafka Streams refuses every store of a task that says open, the first of them each time."""
        for _ in range(times):
            self._databases(task_id)[0].refuse()
            self.run.wait(every_ms / 1000)

    # -- deleting ---------------------------------------------------------------------------------------

    def wipes(self, task_id: str, *, store: str | None = None, again: bool = True) -> None:
        """Exactly-once distrusts the state: per store under the lock up to 2.5, the whole directory from 2.6 on.

        `again`: initialize the task again at once (from 2.6 on).
        """
        if self.habits.wipes_stores:
            for name, kind in self.run.stores.items():
                if store in (None, name) and kind != IN_MEMORY:
                    self._wipe_store(task_id, name, kind)
            return
        self._close_stores(task_id)
        self.unlocks(task_id)
        self.run.wait(0.005)
        self.deletes_directory(task_id)
        if again:
            self.run.wait(0.4)
            self.opens(task_id)

    def _wipe_store(self, task_id: str, name: str, kind: str) -> None:
        task = self.run.task(task_id)
        for key in [key for key in task.databases if key[0] == name]:
            database = task.databases.pop(key)
            database.close()
            self.delete_tree(database.path)
        self._open_store(task, name, kind)

    def deletes_directory(self, task_id: str) -> None:
        """Walk and delete the whole task directory."""
        task = self.run.task(task_id)
        self.delete_tree(task.path)
        task.databases.clear()

    def cleans_up(self, *, stop_after: str | None = None) -> None:
        """`KafkaStreams.cleanUp()`: every task directory goes, before the start or after the stop."""
        for task_id in sorted(self.run.tasks):
            task = self.run.task(task_id)
            if self.world.has(task.path) and not self.delete_tree(task.path, stop_after):
                return
            task.databases.clear()

    def delete_tree(self, path: str, stop_after: str | None = None, *, keep: Iterable[str] = ()) -> bool:
        """Delete recursively; tells whether it went through (`scenario_tasks.delete_tree`)."""
        return delete_tree(self.world, path, stop_after, keep=keep)

    def _delete_checkpoint(self, task: SimTask) -> None:
        path = f"{task.path}/.checkpoint"
        if self.world.has(path):
            self.world.play("unlink", path)
