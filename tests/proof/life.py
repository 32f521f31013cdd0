"""One task on one disk, with one logged store: what is true of it, seen or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

COMMITTED, ABORTED, OPEN, UNSENT, MARKER = "committed", "aborted", "open", "unsent", "marker"
"""Kinds of a block of records: OPEN = of a transaction that runs, or not acknowledged; UNSENT = in the store only."""

NOBODY, RESTORING, RUNNING, STANDBY, SUSPENDED = "nobody", "restoring", "running", "standby", "suspended"
LEAKED = "leaked"
"""A start-up pass has left a segment open: the process can't open the task."""
UNKNOWN = -4
"""OffsetCheckpoint.OFFSET_UNKNOWN, 2.6.0 and later."""
GONE, GONE_ALONE = -5, -6
"""In the memtable: the offset was deleted, right behind records or behind the commit before."""

FEW, MANY = 100, 10_500
"""How many records are written at once: below and above the rule of 10,000."""

DAMAGED, EXPOSED = "damaged", "exposed"

Word = tuple
"""What an agent sees: a name and amounts."""


class Block(NamedTuple):
    """Records of the changelog that are written, committed or lost together.

    Args of the tuple:
        kind: What became of them.
        records: How many.
        each: Offsets that one takes; two where each is a transaction of its own: its marker takes one, too.
        window: The segment that takes them: 0 = the first one, 1 = the next.
    """

    kind: str
    records: int
    each: int = 1
    window: int = 0


class Part(NamedTuple):
    """A segment behind the newest one: as in `Life`."""

    disk: frozenset[int] = frozenset()
    memory: frozenset[int] = frozenset()
    checkpoint: int | None = None
    offset: int | None = None
    late: frozenset[int] = frozenset()
    status: int | None = None


class Life(NamedTuple):
    """The hidden state.

    Args of the tuple:
        log: The changelog.
        alive: Whether the process runs.
        role: What the process does with the task.
        directory: Whether the task's directory exists.
        store: Whether its store does.
        disk: Blocks (their numbers) in SST files.
        memory: Blocks in the memtable.
        checkpoint: The offset that a start would trust, on disk; None = there is none.
        position: The last offset applied; -1 = none.
        snapshot: The offset at the task's last checkpoint; 0 = it has written none.
        recorded: The offset that the recorder of a revived task still knows, up to 2.5 that of any that has written, up
            to 2.4 a standby; None = none.
        paused: Whether the state updater was paused.
        truth: DAMAGED, EXPOSED: what was ever the case.
        offset: 4.3+: the offset in the memtable; None = none.
        late: 4.3+: blocks of the memtable that were put after it.
        status: 4.3+: 1 = a reopening finds the store open, 0 = closed, None = not told.
        buffer: Transactional stores: blocks that wait for their commit.
        segment: Windowed stores: whether a segment exists; what is said of disk and memory is said of the newest one.
        window: Which one that is.
        older: The segment behind it; None = there is none.
        locked: 4.3.0: the start-up pass keeps the task's lock.
        opened: Up to 2.5: the offset with which a task was opened.
        forgot: Up to 2.5: a task was resumed that has not written since it was opened: what it restored is not known.
        remembered: Up to 2.1: the process has restored this task before.
    """

    log: tuple[Block, ...] = ()
    alive: bool = False
    role: str = NOBODY
    directory: bool = False
    store: bool = False
    disk: frozenset[int] = frozenset()
    memory: frozenset[int] = frozenset()
    checkpoint: int | None = None
    position: int = -1
    snapshot: int = 0
    recorded: int | None = None
    paused: bool = False
    truth: frozenset[str] = frozenset()
    offset: int | None = None
    late: frozenset[int] = frozenset()
    status: int | None = None
    buffer: frozenset[int] = frozenset()
    segment: bool = False
    window: int = 0
    older: Part | None = None
    locked: bool = False
    opened: int = -1
    forgot: bool = False
    remembered: bool = False


class Move(NamedTuple):
    """One step: its name, what an agent sees of it, and the life after it."""

    name: str
    seen: tuple[Word, ...]
    life: Life


NONE: frozenset[int] = frozenset()


# -- the changelog ----------------------------------------------------------------------------------------


def lasts(log: tuple[Block, ...]) -> list[int]:
    """Give the last offset of each block; that of an unsent one is the one before it."""
    found, end = [], -1
    for kind, records, each, _ in log:
        end += 0 if kind == UNSENT else records * each
        found.append(end)
    return found


def end(log: tuple[Block, ...]) -> int:
    """Give the last offset."""
    return sum(records * each for kind, records, each, _ in log if kind != UNSENT) - 1


def of(life: Life, *kinds: str) -> frozenset[int]:
    """List blocks of these kinds."""
    return frozenset([number for number, block in enumerate(life.log) if block.kind in kinds])


def size(life: Life, blocks: Iterable[int]) -> int:
    """Count records."""
    return sum(life.log[number].records for number in blocks)


def newest_window(life: Life) -> int:
    """Give the newest window of which the changelog has records."""
    return max((block.window for block in life.log), default=0)


def written(life: Life, records: int, kind: str, *, marker: bool = False) -> Life:
    """Append records of the newest window."""
    block = Block(kind, records, window=newest_window(life))
    return life._replace(log=(*life.log, block, *([Block(MARKER, 1)] if marker else [])))


def resolved(life: Life, kind: str, *, marker: bool) -> Life:
    """End the open transaction, or have what was sent acknowledged."""
    if not of(life, OPEN):
        return life
    log = tuple(block._replace(kind=kind) if block.kind == OPEN else block for block in life.log)
    return life._replace(log=log + ((Block(MARKER, 1),) if marker else ()))


def unsent(life: Life) -> Life:
    """The open transaction's records never reach the changelog: the position is what was acknowledged before."""
    after = resolved(life, UNSENT, marker=False)
    ends = lasts(after.log)
    return after._replace(position=max((ends[x] for x in of(after, COMMITTED)), default=-1))


def writes(life: Life) -> int:
    """Count how often records were written."""
    return sum(block.kind != MARKER for block in life.log)


def to_apply(life: Life) -> list[int]:
    """List committed blocks beyond the position, in order."""
    ends = lasts(life.log)
    return [x for x in sorted(of(life, COMMITTED)) if ends[x] > life.position]


def applied(life: Life, blocks: Iterable[int]) -> Life:
    """Put blocks of the changelog into the memtables."""
    chosen = frozenset(blocks)
    if not chosen:
        return life
    ends = lasts(life.log)
    return put(life, chosen)._replace(position=max(ends[x] for x in chosen))


def put(life: Life, blocks: frozenset[int]) -> Life:
    """Put blocks into the memtables of their segments, behind what is there."""
    if life.older is not None:
        old = of_window(life, blocks, 1 - life.window)
        older = life.older._replace(memory=life.older.memory | old, late=life.older.late | old)
        life, blocks = life._replace(older=older), blocks - old
    return life._replace(memory=life.memory | blocks, late=life.late | blocks)


def of_window(life: Life, blocks: frozenset[int], window: int) -> frozenset[int]:
    """Choose the blocks of one segment."""
    return frozenset([x for x in blocks if life.log[x].window == window])


def turned(life: Life) -> Life:
    """Have the fields of a life speak of its other segment."""
    assert life.older is not None
    part = Part(life.disk, life.memory, life.checkpoint, life.offset, life.late, life.status)
    return life._replace(older=part, **life.older._asdict())


# -- the truth --------------------------------------------------------------------------------------------


def told(life: Life, *truth: str) -> Life:
    """Add to what was the case."""
    return life._replace(truth=life.truth | set(truth))


def uncommitted(life: Life) -> frozenset[int]:
    """List blocks on disk that were never committed."""
    return (life.disk | (life.older.disk if life.older else NONE)) & of(life, ABORTED, UNSENT)


def beyond(life: Life) -> frozenset[int]:
    """List blocks on disk beyond the checkpoint."""
    ends = lasts(life.log)
    return frozenset(x for x in life.disk if ends[x] > max(life.checkpoint or -1, -1))


def missing(life: Life) -> frozenset[int]:
    """List committed blocks up to the position that the store does not hold."""
    ends = lasts(life.log)
    held = life.disk | life.memory | (life.older.disk | life.older.memory if life.older else NONE)
    return frozenset(x for x in of(life, COMMITTED) if ends[x] <= life.position and x not in held)


def trusted(life: Life, *, eos: bool) -> Life:
    """A task was opened on what is on disk: tell what is wrong with it."""
    if missing(life) or (eos and uncommitted(life)):
        return told(life, DAMAGED)
    return life
