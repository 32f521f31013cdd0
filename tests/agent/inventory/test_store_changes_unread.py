"""Store level of the reducer: what could not be read, or has no IDENTITY, is never the same as nothing there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.events import Source
from agent.inventory.disk import Unseen
from agent.inventory.observations import StoreOffsets
from agent.inventory.stores import Database
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    FREE,
    GONE,
    HELD,
    Reducing,
    database_look,
    flush,
    lock_look,
    task_look,
)

SHORT = "000008.sst: corrupt: file is too short"
TORN = "MANIFEST-000005: cut: it ends inside the record at byte 9"
OFFSETS = StoreOffsets(status=1, offsets=(("app-s-changelog-0", 41, 9),))


def whole(seconds: float):
    """A look that reads everything."""
    look = database_look(
        seconds, born=1, puts=50, opened_puts=20, flushes=(flush(6, 50, 1),), offsets=OFFSETS
    )
    more: dict[str, Any] = {
        "files": 3,
        "size_bytes": 300,
        "entries_low": 10,
        "entries_high": 40,
        "opened_sequence": 20,
    }
    return replace(look, missing_files=("000004.sst",), **more)


def unread(seconds: float, reason: str = "raced", *problems: str):
    """A look that reads nothing but the names."""
    look = database_look(seconds, born=1, manifest=None)
    return replace(look, manifest_problem=reason, problems=problems, offsets_unread=True)


def seen(*looks) -> Database:
    """The database after these looks."""
    one = Reducing()
    one.see(task_look(0.5), *looks)
    return one.store.databases[""]


@pytest.mark.parametrize("reason", ["raced", "vanished", "MANIFEST-000005: denied"])
def test_nothing_read_changes_nothing(reason):
    """Files, counters, offsets and what is missing stay what they were; that they are old is known."""
    before, after = seen(whole(1)), seen(whole(1), unread(9, reason))
    for name in [
        "files",
        "size_bytes",
        "entries_low",
        "entries_high",
        "puts",
        "opened_puts",
        "opened_sequence",
    ]:
        assert getattr(after, name) == getattr(before, name) != 0
    assert (after.offsets, after.missing, after.missing_since_us) == (OFFSETS, ("000004.sst",), at(1))
    assert (before.knows_puts, before.problems) == (True, ())
    assert not after.knows_puts
    assert after.manifest_problem == reason


@pytest.mark.parametrize(("before", "left"), [((whole(1),), (3, 50, 20, False)), ((), (1, 30, 10, False))])
def test_torn_manifest_takes_nothing_back(before, left):
    """It names fewer files than the whole one did; where none was whole, what it says is a lower bound, and says so."""
    look = database_look(9, born=1, puts=30, opened_puts=10, manifest=5)
    after = seen(*before, replace(look, manifest_problem=TORN, problems=(TORN,), files=1))
    assert (after.files, after.puts, after.opened_puts, after.knows_puts) == left


def test_problems_have_a_beginning():
    """Each is known since the first of all looks in a row that found it."""
    one = Reducing()
    one.see(task_look(0.5), whole(1))
    files = one.store.databases[""]
    for seconds, problems in [(5, (SHORT,)), (7, (SHORT, TORN)), (9, (TORN,)), (11, (SHORT, TORN))]:
        one.see(replace(whole(seconds), problems=problems))
    assert files.problem_since_us == {SHORT: at(11), TORN: at(7)}
    assert files.lasting_problems(at(12), for_us=5_000_000) == (TORN,)
    assert files.lasting_problems(at(16), for_us=5_000_000) == (SHORT, TORN)
    one.see(whole(20))
    assert (files.problems, files.problem_since_us) == ((), {})


# -- a store whose sequence numbers were compacted to 0 ----------------------------------------------------


def zeroed(seconds: float, puts: int = 0, *, source: Source = Source.INOTIFY, flushes=()):
    """A store of 5000 puts, compacted into the last level, opened, and flushed since."""
    flushed = (flush(3, 0, 1), *flushes)
    look = database_look(seconds, born=1, puts=puts, opened_puts=5000, flushes=flushed, manifest=6)
    return replace(look, source=source, zeroed_puts=5000, opened_sequence=5000)


def test_zeroed_and_flushed_before_the_first_reading():
    """The same where the flush was there already: what came before it came before it."""
    one = Reducing()
    one.see(task_look(2), zeroed(9, 5300, flushes=(flush(4, 5300, 8),)))
    assert (one.store.puts, one.store.puts_at(at(7)), one.store.puts_at(at(8))) == (5300, 5000, 5300)


@pytest.mark.parametrize(("source", "puts"), [(Source.INOTIFY, 4900), (Source.BASELINE, 5000)])
def test_zeroed_store_that_was_known(source, puts):
    """Watched: the rest of what was given out went with a crash. While the agent was away all may have been flushed."""
    one = Reducing()
    one.see(
        task_look(0.5),
        database_look(1, born=1, puts=4900, flushes=(flush(2, 4900, 1),)),
        zeroed(9, source=source),
    )
    assert one.store.puts == puts


# -- sessions ---------------------------------------------------------------------------------------------


def test_unread_offsets_show_no_close():
    """Where the `offsets` family cannot be read, nobody knows whether the store was closed: not that it was not."""
    one = Reducing()
    look = replace(database_look(1, born=1, lock=HELD), offsets_unread=True)
    one.see(task_look(0.5), look)
    one.see(replace(look, at_us=at(9), lock=FREE), lock_look(9, FREE))
    assert one.store.sessions[-1].released_us is not None
    assert one.store.sessions[-1].closed is None


FOUND = database_look(1, None, lock=None, manifest=None)
AGAIN = database_look(5, None, lock=None, manifest=None)


@pytest.mark.parametrize(
    ("looks", "bare"),
    [
        ((FOUND, AGAIN), {"s": at(1)}),  # since the first look that found it so
        ((FOUND, database_look(7, unseen=Unseen.DENIED)), {"s": at(1)}),
        ((FOUND, database_look(9, born=9)), {}),  # until something of a database is in it
        ((FOUND, database_look(9, None, leftovers=2)), {}),
        ((FOUND, database_look(9, unseen=GONE)), {}),  # or it goes
        ((FOUND, task_look(5, unseen=GONE)), {}),
        (
            (database_look(1, None, path="app/0_0/w/w.0", lock=None, manifest=None),),
            {},
        ),  # a segment says nothing
        ((database_look(1, born=1, lock=FREE), AGAIN), {"s": at(5)}),  # a store that was emptied
    ],
)
def test_empty_directory(looks, bare):
    """Noted with its beginning; no store is made of it."""
    one = Reducing()
    one.see(task_look(0.5), *looks)
    assert one.task.bare == bare
    assert not any(x.databases for x in one.task.stores.values() if bare)
