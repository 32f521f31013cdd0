"""What tells that a copy did not keep file times, and up to when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.copied import dated, is_birth_known, is_copied, times_are_copied
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Store, Task

SECOND_US = 1_000_000
BORN_US = 1_790_000_000_400_000
COPIED_US = BORN_US + 3_600 * SECOND_US


def database(born_us: int, oldest_us: int = 0, *reopened_us: int) -> Database:
    """A database; RocksDB keeps whole seconds of its oldest data."""
    oldest_us -= oldest_us % SECOND_US
    return Database(
        "a/0_0/rocksdb/s", None, born_us=born_us, oldest_data_us=oldest_us, reopened_us=reopened_us
    )


def task(*databases: Database) -> Task:
    """A task with one store per database."""
    found = Task("a", "0_0", "a/0_0")
    for number, one in enumerate(databases):
        found.stores[f"s{number}"] = Store(f"s{number}", False, {"": one})
    return found


@given(st.integers(0, 10 * SECOND_US), st.integers(0, SECOND_US - 1))
def test_an_original_is_never_a_copy(age_us: int, part_us: int):
    """RocksDB writes IDENTITY first: the data of a store is as old or younger, to the second."""
    assert not is_copied(database(BORN_US + part_us, BORN_US + part_us + age_us))


@given(st.integers(2 * SECOND_US, 10**13))
def test_a_copy_that_is_made_two_seconds_later_is_reported(later_us: int):
    """Its data is older than its IDENTITY."""
    assert is_copied(database(BORN_US + later_us, BORN_US))


def test_the_log_of_a_torn_store_is_no_sign_of_a_copy():
    """What a torn deletion left of it is renamed right before the new store's IDENTITY is written."""
    assert not is_copied(database(BORN_US, 0, BORN_US - 3_000))


def test_a_copy_that_no_one_opened_is_not_over():
    """Every time below it is in doubt."""
    assert times_are_copied(task(database(COPIED_US, BORN_US)), COPIED_US + 10**15)


@pytest.mark.parametrize(
    ("own", "sibling", "known"),
    [
        (database(BORN_US, BORN_US), database(COPIED_US, BORN_US), True),
        (database(COPIED_US, BORN_US), database(BORN_US, BORN_US), False),
        (database(COPIED_US), database(COPIED_US, BORN_US), False),
        (database(COPIED_US), database(BORN_US, BORN_US), True),
        (database(COPIED_US + 99 * SECOND_US), database(COPIED_US, BORN_US, COPIED_US + 9 * SECOND_US), True),
        (database(COPIED_US), database(COPIED_US), None),
    ],
    ids=["own data", "own old data", "sibling copied", "sibling kept", "made after the copy", "no data"],
)
def test_own_data_decides_before_that_of_siblings(own: Database, sibling: Database, known: bool | None):
    """A store without data was copied with the others, or not; one that was made after the copy was not."""
    assert is_birth_known(task(own, sibling), own) is known


def test_a_directory_in_which_all_times_are_set_to_one_is_a_copy():
    """Its own time, too. One that was written to after all flushes that are known (a bulk load, compacted) is none."""
    store = database(BORN_US, COPIED_US)
    store.lock = LockState.FREE
    store.flushed += ((1, BORN_US + SECOND_US),)
    assert is_copied(store)
    store.touched_us = COPIED_US
    assert not is_copied(store)
    store.touched_us, store.lock = 0, LockState.HELD
    assert not is_copied(store)


@pytest.mark.parametrize(
    ("written_us", "heard_us", "expected"),
    [
        (5_000_000, 5_999_999, 5_999_999),
        (5_000_000, 5_000_000, 5_000_000),
        (5_000_000, 6_000_000, 5_000_000),
        (5_000_000, 4_999_999, 5_000_000),
        (5_000_001, 5_999_999, 5_000_001),
        (5_000_000, 0, 5_000_000),
    ],
)
def test_whole_second_is_dated_to_when_it_was_heard_of(written_us: int, heard_us: int, expected: int):
    """Within that second only, and only where the file time has no parts of one."""
    assert dated(written_us, heard_us) == expected
