"""Dossiers built by hand, for the exact boundary of a detector's condition: values in, verdicts out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from agent.contract.events import Severity
from agent.detectors import BY_ID
from agent.inventory.disk import LockState
from agent.inventory.model import (
    Application,
    CheckpointClaim,
    CheckpointFact,
    Database,
    Inventory,
    PastDatabase,
    Session,
    Shape,
    Store,
    Task,
)
from agent.inventory.settings import ApplicationSettings, Setting
from agent.judging.base import AgentCase, TaskCase, Verdict
from agent.layout.profile import Profile
from agent.layout.releases import ANY_RELEASE, ReleaseRange

BEGIN_US = 1_790_000_000_000_000
SECOND_US = 1_000_000
IDENTITY = "identity-1"
TIMESTAMPED = ("default", "keyValueWithTimestamp")
PLAIN = ("default",)
OTHER = frozenset({"identity-2"})
"""What another incarnation of the store is known by."""

T = TypeVar("T")


def at(seconds: float) -> int:
    """A time, in seconds after the beginning."""
    return BEGIN_US + round(seconds * SECOND_US)


def having(made: T, **fields: Any) -> T:
    """The same, with other values in these fields."""
    for name, value in fields.items():
        assert hasattr(made, name), name
        setattr(made, name, value)
    return made


def mark(seconds: float, offset: int, puts: int) -> CheckpointClaim:
    """A checkpoint entry in a session."""
    return CheckpointClaim(at(seconds), offset, puts)


def session(
    opened: float,
    released: float | None = None,
    *,
    puts: int = 0,
    first: CheckpointClaim | None = None,
    last: CheckpointClaim | None = None,
    created: bool = False,
    identity: str = IDENTITY,
    offset_at_open: int | None = None,
    puts_at_open: int = 0,
    **fields: Any,
) -> Session:
    """A session; `puts` at its release."""
    known = frozenset({identity})
    made = Session(
        opened_us=at(opened),
        identities=known,
        puts_at_open=puts_at_open,
        offset_at_open=offset_at_open,
        created=created,
        first=first or last,
        last=last or first,
        released_us=None if released is None else at(released),
        puts_at_release=puts,
        final_identities=known,
    )
    return having(made, **fields)


def database(
    *,
    puts: int = 0,
    flushed: Iterable[tuple[int, float]] = (),
    born: float = 0,
    identity: str = IDENTITY,
    segment: str | None = None,
    lock: LockState | None = LockState.FREE,
    families: tuple[str, ...] = TIMESTAMPED,
    entries: int | None = None,
    **fields: Any,
) -> Database:
    """A database; `flushed` is its timeline of (puts, seconds). By default of a kind that puts once per record.

    What it holds is as old as itself, to the second.
    """
    path = f"app/0_0/w/{segment}" if segment else "app/0_0/rocksdb/s"
    made = Database(path, segment, identity=identity, born_us=at(born), puts=puts, lock=lock)
    made.flushed += tuple((count, at(seconds)) for count, seconds in flushed)
    made.seen_us = at(born)
    made.families, made.entries_low = families, entries
    made.oldest_data_us = at(int(born)) if puts else 0
    return having(made, **fields)


def store(
    databases: Iterable[Database] = (),
    sessions: Iterable[Session] = (),
    *,
    segmented: bool = False,
    name: str = "s",
    **fields: Any,
) -> Store:
    made = Store(name, segmented, {x.segment or "": x for x in databases})
    made.sessions += tuple(sessions)
    return having(made, **fields)


def past(
    ended: float,
    *,
    shape: Shape = Shape.CLEANER_WALK,
    puts: int = 0,
    entries_low: int | None = None,
    released: float | None = None,
    segment: str | None = None,
    flushed: float = 0,
    incarnation: int = 1,
) -> PastDatabase:
    """An incarnation that ended, of a task directory's; data last reached its disk at `flushed`."""
    released_us = None if released is None else at(released)
    return PastDatabase(
        segment, "identity-0", at(0), at(ended), shape, puts, entries_low, 0, released_us, incarnation,
        at(flushed),
    )  # fmt: skip


def checkpoint(
    written: float,
    offset: int | None,
    *,
    ended: float | None = None,
    deleted: bool = False,
    in_walk: bool = False,
    incarnation: int = 1,
    name: str = "s",
) -> CheckpointFact:
    """A content of `.checkpoint`."""
    offsets = {} if offset is None else {name: offset}
    ended_us = None if ended is None else at(ended)
    return CheckpointFact(
        at(written), at(written), offsets, (), incarnation, True, ended_us, deleted, in_walk
    )


def task(
    *stores: Store,
    checkpoints: Iterable[CheckpointFact] = (),
    task_id: str = "0_0",
    exists: bool = True,
    **fields: Any,
) -> Task:
    made = Task("app", task_id, f"app/{task_id}", exists=exists, incarnation=1)
    made.stores = {x.name: x for x in stores}
    made.checkpoints += tuple(checkpoints)
    return having(made, **fields)


def profile(release: str | None) -> Profile:
    """What is known of one release, or of any."""
    return Profile(ANY_RELEASE if release is None else ReleaseRange.of(release))


def case(
    *tasks: Task,
    now: float = 100,
    release: str | None = "4.1.2",
    guarantee: str | None = "exactly_once_v2",
    standbys: int | None = 0,
    application: Application | None = None,
    told: Mapping[str, object] | None = None,
) -> TaskCase:
    """The case of the first task (an empty one without any); settings that are None are unknown."""
    app = application or Application("app", exists=True, first_seen_us=at(0))
    app.tasks.update({x.id: x for x in tasks})
    values: dict[str, object | None] = {
        "kafka_streams_version": release,
        "processing_guarantee": guarantee,
        "num_standby_replicas": standbys,
        **(told or {}),
    }
    settings = ApplicationSettings({k: Setting(str(v), "flag") for k, v in values.items() if v is not None})
    inventory = Inventory({"app": app}, started_us=at(0))
    first = tasks[0] if tasks else task()
    return TaskCase(inventory, at(now), app, first, settings=settings, profile=profile(release))


def judge(detector: str, one: AgentCase) -> list[Verdict]:
    """What a detector says of a case."""
    one.answers.clear()  # tests change what was judged before
    return list(BY_ID[detector].judge(one))


def severities(detector: str, one: AgentCase) -> list[Severity]:
    """How loud it says it."""
    return [verdict.severity for verdict in judge(detector, one)]
