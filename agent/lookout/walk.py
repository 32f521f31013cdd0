"""The walk that never ends: every directory is read again and again, a little at a time.

What is cheap comes first: if inode and modification time of a task's directories are those of the last visit, nothing
was made, moved or deleted in them, and the walk reads no further. Cost is bounded twice, by a share of one core and by
entries per second; tasks that changed lately come first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

from agent.engine.pipeline import Pipeline
from agent.inventory.disk import EntryKind, ListableDisk, Unseen
from agent.inventory.hints import PERIODIC
from agent.inventory.model import Task
from agent.inventory.transitions import Transition
from agent.layout import names
from agent.layout.paths import PathRole, classify, join

SLICE_S = 0.005
"""Longest time that one slice may take before other work has its turn."""

HOT_US = 300_000_000
"""A task that changed within five minutes is visited in every round of the hot ones."""

RACY_US = 2_000_000
"""A directory that was changed this shortly before the visit may change again within the same tick of its clock."""

DEEP_EVERY = 16
"""Every so many rounds nothing is taken for unchanged: a time can be set back."""

READING_ENTRIES = 8
"""What a reading of a task with one store asks for beyond its signature."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much may be spent."""

    round_s: float  # least distance between two rounds
    share: float  # share of one core, at most
    entries_per_s: float  # directory entries read per second, at most

    def at_least(self, share: float) -> Pace:
        """Spend this share of one core at least."""
        return replace(self, share=share) if share > self.share else self

    def slower(self, factor: float) -> Pace:
        """Spend less."""
        return replace(
            self,
            round_s=self.round_s * factor,
            share=self.share / factor,
            entries_per_s=self.entries_per_s / factor,
        )


WATCHING = Pace(60.0, 0.001, 2_000.0)
"""Beside a watch: a tenth of a percent of one core."""

BUSY_SHARE = 0.02
"""Share of the agent's own CPU use, if larger. On busy tasks a visit costs a full read, about 50 times more."""

POLLING = Pace(5.0, 0.05, 20_000.0)
"""Instead of a watch: five percent of one core."""


@dataclass(slots=True)
class ReconcileCounters:
    """What was done: entries read, whole rounds, and how long the last one took."""

    entries: int = 0
    rounds: int = 0
    round_s: float = 0.0


Found = Callable[[list[Transition], int], None]
"""Takes what a visit found and the time of the visit before it."""


class Reconciler:
    """Visits directories in turn and hands the pipeline those that changed."""

    def __init__(
        self,
        pipeline: Pipeline,
        disk: ListableDisk,
        pace: Pace,
        clock_s: Callable[[], float],
        on_found: Found = lambda changes, since_us: None,
    ) -> None:
        """Prepare; the first round begins one `round_s` after the first `step`. The pace may be changed at any time."""
        self.pace = pace
        self.trusts_times = True
        self.counters = ReconcileCounters()
        self._pipeline, self._disk, self._clock_s, self._on_found = pipeline, disk, clock_s, on_found
        self._visited: dict[str, int] = {}  # path -> `_visit_mark`
        self._hot: deque[str] = deque()
        self._cold: deque[str] = deque()
        self._turn = 0
        self._next_s: float | None = None
        self._hot_at_s = self._began_s = 0.0
        self._began_us = self._last_began_us = 0

    def next_s(self, now_s: float) -> float:
        """When `step` has something to do."""
        return now_s if self._next_s is None else self._next_s

    @property
    def settled_us(self) -> int:
        """Everything has been visited since this time; 0 = there was no whole round yet."""
        return self._last_began_us

    def step(self, now_us: int) -> None:
        """Visit directories for a few milliseconds, then rest for as long as the pace demands."""
        began_s = self._clock_s()
        if self._next_s is None:
            self._next_s = self._hot_at_s = began_s + self.pace.round_s
            return
        if began_s < self._next_s:
            return
        before = self.counters.entries
        self._refill(began_s, now_us)
        while (path := self._next_path(now_us)) is not None:
            self._visit(path, now_us)
            if self._clock_s() - began_s >= SLICE_S:
                break
        ended_s = self._clock_s()
        spent = self.counters.entries - before
        rest_s = max((ended_s - began_s) / self.pace.share, spent / self.pace.entries_per_s)
        if not self._cold:  # hot ones come again every minute: where many tasks are busy they never end
            self._end_round(ended_s)
            rest_s = max(rest_s, self._began_s + self.pace.round_s - ended_s)
        self._next_s = ended_s + rest_s

    def _refill(self, now_s: float, now_us: int) -> None:
        """Begin a round of all, and more often one of the tasks that changed lately."""
        if not self._cold:
            self._hot.clear()  # they are the first ones of all
            self._began_s, self._began_us = now_s, now_us
            self._cold.append("")
            self._cold.extend(x.id for x in self._pipeline.inventory.applications.values() if x.exists)
            self._cold.extend(self._tasks(0))
            self._hot_at_s = now_s + self.pace.round_s
        elif now_s >= self._hot_at_s:
            self._hot_at_s = now_s + self.pace.round_s
            self._hot = deque(self._tasks(now_us - HOT_US))

    def _tasks(self, changed_after_us: int) -> list[str]:
        applications = self._pipeline.inventory.applications.values()
        chosen = [
            t for a in applications for t in a.tasks.values() if t.changed_us >= changed_after_us and t.exists
        ]
        chosen.sort(key=attrgetter("changed_us"), reverse=True)
        return [t.path for t in chosen]

    def _next_path(self, now_us: int) -> str | None:
        """Three hot ones, then one of the others that was not visited in this round: neither may starve."""
        self._turn += 1
        if self._hot and self._turn % 4:
            return self._hot.popleft()
        while self._cold:
            path = self._cold.popleft()
            visited_us = self._visited.get(path, 0) >> _SIGNATURE_BITS
            if not self._began_us <= visited_us <= now_us:  # the clock may have been set back since
                return path
        return None

    def _end_round(self, now_s: float) -> None:
        self.counters.rounds += 1
        self.counters.round_s = now_s - self._began_s
        self._last_began_us = self._began_us
        self._pipeline.rescans[PERIODIC] = self._pipeline.rescans.get(PERIODIC, 0) + 1

    # -- one directory ----------------------------------------------------------------------------------

    def _visit(self, path: str, now_us: int) -> None:
        application_id, slash, task_id = path.partition("/")
        if slash:
            self._visit_task(path, application_id, task_id, now_us)
        else:
            self._visit_list(path, now_us)

    def _visit_task(self, path: str, application_id: str, task_id: str, now_us: int) -> None:
        application = self._pipeline.inventory.applications.get(application_id)
        task = application.tasks.get(task_id) if application is not None else None
        if task is None or not task.exists:
            self._visited.pop(path, None)
            return
        mark = self._visited.get(path)
        # signed before the reading: what changes after it makes another signature
        signature, newest_us = self._sign(task, now_us)
        deep = self.counters.rounds % DEEP_EVERY == DEEP_EVERY - 1
        if mark is None:
            # the scan at the start has read it since; on a volume of another machine times do not compare
            is_same = self.trusts_times and newest_us + RACY_US < self._pipeline.started_us
        else:
            is_same = signature == mark & _SIGNATURE and not deep
        if not signature or not is_same:
            self._reread(path, self._since_us(path), now_us)
        self._visited[path] = _visit_mark(signature, now_us)

    def _since_us(self, path: str) -> int:
        """When it was visited before; else when the agent started."""
        mark = self._visited.get(path)
        return self._pipeline.started_us if mark is None else mark >> _SIGNATURE_BITS

    def _reread(self, path: str, since_us: int, now_us: int) -> None:
        self.counters.entries += READING_ENTRIES
        changes = self._pipeline.reread(path, now_us)
        if changes:
            self._on_found(changes, since_us)

    def _sign(self, task: Task, now_us: int) -> tuple[int, int]:
        """Sum up inode and time of a task's directories, and return the newest time; 0 = cannot be trusted."""
        directories = _directories(task)
        self.counters.entries += len(directories)
        stamps = self._disk.stamps(directories)
        if isinstance(stamps, Unseen):
            return 0, now_us
        newest_us = max(stamps[1::2])
        if now_us - newest_us < RACY_US:
            return 0, now_us
        return hash(stamps) & _SIGNATURE or 1, newest_us

    def _visit_list(self, path: str, now_us: int) -> None:
        """Look for tasks and applications that came or went."""
        since_us = self._since_us(path)
        entries = self._disk.list(path)
        if isinstance(entries, Unseen):
            self._reread(path, since_us, now_us)
            return
        self.counters.entries += len(entries)
        self._pipeline.looker.refusals.note_listing(classify(path), entries, now_us)
        gone = set(self._children(path))
        for entry in entries:  # one by one: with ten thousand tasks each copy of their paths is a MiB
            if entry.kind is not EntryKind.DIRECTORY:
                continue
            child = join(path, entry.name)
            if child in gone:
                gone.remove(child)
                continue
            role = classify(child).role
            if role is PathRole.TOPOLOGY:
                self._visit_list(child, now_us)
            elif role in (PathRole.APPLICATION, PathRole.TASK):
                self._reread(child, since_us, now_us)
        for child in sorted(gone):
            self._reread(child, since_us, now_us)
            for task in [] if path else sorted(self._children(child)):
                self._reread(task, since_us, now_us)
        if path:
            self._pipeline.read_application(path, now_us)
        else:
            self._pipeline.inventory.root_seen = True
        self._visited[path] = _visit_mark(0, now_us)

    def _children(self, path: str) -> Iterator[str]:
        """List what is known to be below a directory."""
        for application in self._pipeline.inventory.applications.values():
            if not path:
                if application.exists:
                    yield application.id
            elif classify(path).application == application.id:
                for task in application.tasks.values():
                    if task.exists and task.path.rpartition("/")[0] == path:
                        yield task.path


_SIGNATURE_BITS = 32
_SIGNATURE = (1 << _SIGNATURE_BITS) - 1


def _visit_mark(signature: int, at_us: int) -> int:
    """Put time and signature of a visit into one number: a pair takes three times the memory at ten thousand tasks."""
    return at_us << _SIGNATURE_BITS | signature


def _directories(task: Task) -> list[str]:
    """List the directories whose modification time shows that something was made, moved or deleted in a task."""
    found = [task.path]
    has_plain = False
    for store in task.stores.values():
        if store.segmented:
            found.append(f"{task.path}/{store.name}")
        else:
            has_plain = True
        found += [database.path for database in store.databases.values()]
    if has_plain:
        found.append(f"{task.path}/{names.ROCKSDB_DIRECTORY}")
    return found
