"""The world of a built scenario: a virtual clock, a disk in memory, and an agent that watches it.

Every operation goes the way of a replayed trace: disk, player, pipeline. The clock moves only by operations and
by `wait`; nothing here asks the machine for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from agent.contract.events import Record
from agent.contract.finding import Finding
from agent.detectors import DETECTORS
from agent.engine.pipeline import Pipeline
from agent.inventory.disk import EntryKind, Unseen
from agent.inventory.hints import Hint, HintKind
from agent.inventory.settings import Setting, SettingsBook
from agent.judging.base import Detector
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import Player
from agent.replay.trace import Operation

BEGIN_US = 1_790_000_000_000_000
STEP_US = 200
"""One file operation; recorded runs do several within a millisecond."""
SECOND_US = 1_000_000


class World:
    """One state directory over time, and the agent beside it.

    `through` is what notifications pass on their way to the agent; a test may lose, double or delay them there.
    `unlink_us` is how long a removal takes: a slow volume needs a third of a second.
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        *,
        watched: bool = True,
        detectors: tuple[Detector, ...] = DETECTORS,
    ) -> None:
        """Begin with an empty state directory; `watched=False` leaves the agent out until `watch`."""
        self.detectors = detectors
        self.now_us = BEGIN_US
        self.disk = MemoryDisk()
        self.operations: list[Operation] = []
        self.records: list[Record] = []
        self.faults: list[str] = []
        self.settings = {key: str(value) for key, value in settings.items()}
        self.pipeline: Pipeline | None = None
        self.through: Callable[[Sequence[Hint]], Sequence[Hint]] = lambda hints: hints
        self.unlink_us = STEP_US
        self._player = Player()
        if watched:
            self.watch()

    # -- the agent --------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Start the agent: it looks at everything once and follows from now on."""
        self.pipeline = self.agent()
        self.pipeline.scan(self.now_us)

    def agent(self) -> Pipeline:
        """Make an agent that has not looked yet."""
        book = SettingsBook({key: Setting(value, "flag") for key, value in self.settings.items()})
        return Pipeline(
            self.disk,
            book,
            self.now_us,
            self.records.append,
            on_fault=lambda detector, error: self.faults.append(f"{detector}: {error!r}"),
            detectors=self.detectors,
        )

    def attached_at(self, index: int) -> World:
        """Tell the same story to an agent that is started just before the operation with this index."""
        other = World(self.settings, watched=False, detectors=self.detectors)
        for number, operation in enumerate(self.operations):
            if number == index:
                other.now_us = operation.at_us - 1
                other.watch()
            other.take(operation)
        other._run_until(self.now_us)
        if other.pipeline is None:
            other.watch()
        return other

    @contextmanager
    def unheard(self) -> Iterator[None]:
        """Let notifications get lost for a while; what the agent's own clock does goes on."""
        before, self.through = self.through, lambda hints: ()
        yield
        self.through = before

    def overflows(self) -> None:
        """Tell the agent that notifications were lost: it reads everything again."""
        assert self.pipeline is not None
        self.pipeline.handle([Hint("", HintKind.RESCAN, self.now_us, cause="queue-overflow")], self.now_us)

    def wait(self, seconds: float) -> None:
        self._run_until(self.now_us + round(seconds * SECOND_US))

    def _run_until(self, until_us: int) -> None:
        if self.pipeline is not None:
            self.pipeline.run_until(until_us)
        self.now_us = until_us

    def findings(self) -> list[Finding]:
        """All findings up to now, each in its present state; a detector that failed fails the test."""
        assert self.pipeline is not None
        assert not self.faults
        return self.pipeline.ledger.findings()

    # -- file operations --------------------------------------------------------------------------------

    def play(
        self,
        op: str,
        path: str = "",
        *,
        to: str = "",
        data: bytes = b"",
        size: int = 0,
        nameless: bool = False,
        killed: bool = False,
        version: str | None = None,
    ) -> None:
        """Do one operation; it takes a fifth of a millisecond."""
        at_us = self.now_us + (self.unlink_us if op == "unlink" else STEP_US)
        self.take(Operation(at_us, op, path, to, data, None, size, nameless, False, version, killed))

    def take(self, operation: Operation) -> None:
        """Let an operation happen at its time."""
        self._run_until(max(self.now_us, operation.at_us))
        self.operations.append(operation)
        self.disk.apply(operation)
        hints = self.through(self._player.hints(operation))
        if hints and self.pipeline is not None:
            self.pipeline.handle(hints, self.now_us)

    def has(self, path: str) -> bool:
        return not isinstance(self.disk.stat(path), Unseen)

    def mkdir(self, path: str) -> None:
        """Make a directory, unless it is there."""
        if not self.has(path):
            self.play("mkdir", path)

    def write(self, path: str, data: bytes) -> None:
        self.play("create", path)
        self.play("open_w", path)
        if data:
            self.play("write", path, data=data)
        self.play("close_w", path)

    def replace(self, path: str, data: bytes, temporary: str) -> None:
        """Write a file under another name and rename it over its place."""
        self.write(temporary, data)
        self.play("rename", temporary, to=path)

    def lock(self, path: str) -> None:
        """Open a lock file, make it if missing, and lock it."""
        if not self.has(path):
            self.play("create", path)
        self.play("open_w", path)
        self.play("lock", path)

    def unlock(self, path: str, *, nameless: bool = False) -> None:
        """Let a lock go by closing its file."""
        self.play("unlock", path, nameless=nameless)
        self.play("close_w", path, nameless=nameless)

    def children(self, path: str) -> list[tuple[str, bool]]:
        """List names with whether each is a directory."""
        entries = self.disk.list(path)
        assert not isinstance(entries, Unseen)
        return [(entry.name, entry.kind is EntryKind.DIRECTORY) for entry in entries]
