"""An offset that moved although nothing was put: only a fault does that from 2.6 on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.inventory.model import Database, Session, Store
from agent.inventory.observations import StoreOffsets
from agent.quantities.unmoved import Jump, jump_without_put
from tests.support.scenario_case import PLAIN, at, database, mark, profile, session, store


def jump(
    one: Store, release: str | None = "4.1.2", *, birth_seen: bool = True, volume: str = ""
) -> Jump | None:
    """How the offset of a store jumped."""
    return jump_without_put(one, profile(release), volume, birth_seen=birth_seen)


def read(puts: int = 3000, seen: float = 90, **more: Any) -> Database:
    """A database that was read whole."""
    return database(puts=puts, manifest=5, seen_us=at(seen), **more)


def opened(end: int = 5000, puts: int = 3000) -> Session:
    """A session that began at offset 3000 with 3,000 puts, and has written a checkpoint."""
    return session(20, offset_at_open=3000, puts_at_open=3000, last=mark(30, end, puts))


@pytest.mark.parametrize("release", ["2.6.0", "2.8.2", "3.9.2", "4.2.1", "5.1.0"])
def test_an_offset_moved_on_its_own(release):
    """The offset of another store, for example: nothing was put since the opening."""
    assert jump(store([read()], [opened()]), release) == Jump(3000, at(20), 5000, at(30))


WITHIN = session(20, first=mark(25, 3000, 3000), last=mark(30, 5000, 3000), created=True)


@pytest.mark.parametrize(
    ("made", "one", "release"),
    [
        (read(3001), opened(), "4.1.2"),  # one record, and compacted or aborted ones
        (read(), opened(3001), "4.1.2"),  # up to 2.5 it was the next one, in place of the last one
        (read(), opened(2000), "4.1.2"),
        (read(), opened(-4), "4.1.2"),
        (read(seen=30), opened(), "4.1.2"),  # not read since the checkpoint
        (read(manifest_problem="cut"), opened(), "4.1.2"),
        (read(families=PLAIN), opened(), "4.1.2"),  # a versioned store passes over what is too late
        (read(forgets=True), opened(), "4.1.2"),
        (read(), opened(), "2.5.1"),  # a position moves over markers
        (read(), opened(), None),
        (read(), session(20), "4.1.2"),
        (read(), WITHIN, "4.1.2"),  # what was on disk at a checkpoint is not known exactly
    ],
)
def test_silent(made, one, release):
    """Where anything else may have moved it."""
    assert jump(store([made], [one]), release) is None


NEVER = session(5, last=mark(30, 4022, 0), created=True)
JUMPED = Jump(None, at(0), 4022, at(30))


@pytest.mark.parametrize(
    ("one", "birth_seen", "expected"),
    [
        (store([read(0)], [NEVER]), True, JUMPED),
        (store([read(0, families=PLAIN)], [NEVER]), True, JUMPED),
        (store([read(0)], [NEVER]), False, None),
        (
            store([read(0, families_in_use=("default",))], [NEVER]),
            True,
            None,
        ),  # compacted before anybody saw it
        (store([], [NEVER]), True, None),
        # a windowed store passes over expired records; offsets of a source topic move with every record of it
        (store([read(0, segment="w.0")], [NEVER], segmented=True), True, None),
        (store([read(0)], [replace(NEVER, by_source_topic=True)]), True, None),
    ],
)
def test_a_store_into_which_nothing_was_ever_put(one, birth_seen, expected):
    """It can have no offset, of whatever kind it is."""
    assert jump(one, birth_seen=birth_seen) == expected


def stored(offset: int, *others: tuple[str, int, int], puts: int = 3000) -> Database:
    """4.3: a database with its own offset."""
    rows = (("app-s-changelog-0", offset, 0), *others)
    return read(puts, offsets=StoreOffsets(offsets=rows), offset_us=at(40))


LET_GO = session(1, 10, puts=3000, covering_offset=3000)


@pytest.mark.parametrize(
    ("made", "before", "expected"),
    [
        (stored(5000), [LET_GO], Jump(3000, at(10), 5000, at(40))),
        (stored(5000, puts=3001), [LET_GO], None),
        (stored(3000), [LET_GO], None),
        (stored(5000, ("other-0", 1, 0)), [LET_GO], None),
        (stored(-4), [LET_GO], None),
        (stored(5000, puts=0), [], Jump(None, at(0), 5000, at(40))),
    ],
)
@pytest.mark.parametrize("release", ["4.3.1", "5.1.0"])
def test_offsets_in_the_store(made, before, expected, release):
    """4.3: offset and data reach the disk together."""
    assert jump(store([made], [*before, session(20 if before else 1)]), release) == expected
