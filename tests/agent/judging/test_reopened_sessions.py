"""Which sessions count as reopenings of the same store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.inventory.model import BlindInterval, Store
from agent.judging.reopening import is_settled, reopenings
from tests.support.scenario_case import at, case, database, mark, session, store


def pair(**after: Any) -> Store:
    """Released at 20 s, opened again at 30 s."""
    return store([database()], [session(0, 20), session(30, **after)])


def test_kept():
    """The same incarnation, opened again after a release that was seen."""
    found = list(reopenings(case(now=40), pair()))
    assert [(before.released_us, after.opened_us) for before, after in found] == [(at(20), at(30))]


def test_not_kept():
    """A wipe, another incarnation at either end, one that is gone since, a release that nobody saw: no reopening."""
    wiped = pair()
    wiped.sessions[1].wiped = True
    assert list(reopenings(case(now=100), wiped)) == []
    assert list(reopenings(case(now=100), pair(identity="identity-2"))) == []
    replaced = pair()
    replaced.sessions[0].final_identities = frozenset({"identity-2"})
    assert list(reopenings(case(now=100), replaced)) == []
    gone = pair()
    gone.databases.clear()
    assert list(reopenings(case(now=100), gone)) == []
    unseen = pair()
    unseen.sessions[0].released_us = None
    assert list(reopenings(case(now=100), unseen)) == []


@pytest.mark.parametrize(("now", "settled"), [(39.9, False), (40, True)])
def test_ten_seconds_settle_it(now, settled):
    """A wipe comes within seconds of the opening; after ten it is clear that none will come."""
    assert is_settled(case(now=now), session(30)) is settled


def test_a_short_session_stays_open_to_a_wipe():
    """What counts after a release is the release: the wipe may have come with it."""
    assert not is_settled(case(now=48.9), session(30, 39))
    assert is_settled(case(now=49), session(30, 39))


def test_work_settles_it_at_once():
    """A checkpoint or a stored offset shows that the store was kept."""
    assert is_settled(case(now=31), session(30, first=mark(31, 5, 5)))
    working = session(30)
    working.stored_offset = 7
    assert is_settled(case(now=31), working)


def test_clock_that_was_set_forward_settles_nothing():
    """An hour that no one lived is no waiting."""
    one = case(now=3_635)
    one.inventory.blind.append(BlindInterval(at(34), "clock-step", at(3_634)))
    assert not is_settled(one, session(30))
    assert is_settled(replace(one, now_us=at(3_640), answers={}), session(30))
