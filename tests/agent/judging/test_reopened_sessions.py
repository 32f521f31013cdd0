"""Which sessions count as reopenings of the same store."""

from __future__ import annotations

from typing import Any

import pytest

from agent.inventory.model import Store
from agent.judging.reopening import is_settled, reopenings
from tests.support.scenario_case import at, database, mark, session, store


def pair(**after: Any) -> Store:
    """Released at 20 s, opened again at 30 s."""
    return store([database()], [session(0, 20), session(30, **after)])


def test_kept():
    """The same incarnation, opened again after a release that was seen."""
    found = list(reopenings(pair(), at(40)))
    assert [(before.released_us, after.opened_us) for before, after in found] == [(at(20), at(30))]


def test_not_kept():
    """A wipe, another incarnation at either end, one that is gone since, a release that nobody saw: no reopening."""
    wiped = pair()
    wiped.sessions[1].wiped = True
    assert list(reopenings(wiped, at(100))) == []
    assert list(reopenings(pair(identity="identity-2"), at(100))) == []
    replaced = pair()
    replaced.sessions[0].final_identities = frozenset({"identity-2"})
    assert list(reopenings(replaced, at(100))) == []
    gone = pair()
    gone.databases.clear()
    assert list(reopenings(gone, at(100))) == []
    unseen = pair()
    unseen.sessions[0].released_us = None
    assert list(reopenings(unseen, at(100))) == []


@pytest.mark.parametrize(("now", "settled"), [(39.9, False), (40, True)])
def test_ten_seconds_settle_it(now, settled):
    """A wipe comes within seconds of the opening; after ten it is clear that none will come."""
    assert is_settled(session(30), at(now)) is settled


def test_a_short_session_stays_open_to_a_wipe():
    """What counts after a release is the release: the wipe may have come with it."""
    assert not is_settled(session(30, 39), at(48.9))
    assert is_settled(session(30, 39), at(49))


def test_work_settles_it_at_once():
    """A checkpoint or a stored offset shows that the store was kept."""
    assert is_settled(session(30, first=mark(31, 5, 5)), at(31))
    working = session(30)
    working.stored_offset = 7
    assert is_settled(working, at(31))
