"""Which sessions count as reopenings of the same store."""

from __future__ import annotations

from typing import Any

import pytest

from agent.inventory.model import Store
from agent.judging.reopening import is_settled, reopenings
from tests.support.scenario_case import OTHER, at, case, database, mark, session, store


def pair(before: dict[str, Any] | None = None, *, files: bool = True, **after: Any) -> Store:
    """Released at 20 s, opened again at 30 s."""
    sessions = [session(0, 20, **(before or {})), session(30, **after)]
    return store([database()] if files else [], sessions)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (pair(), [(at(20), at(30))]),
        (pair(wiped=True), []),
        (pair(identity="identity-2"), []),
        (pair({"final_identities": OTHER}), []),
        (pair(files=False), []),  # gone since
        (pair({"released_us": None}), []),  # a release that nobody saw
    ],
)
def test_reopenings(one, expected):
    """The same incarnation, opened again after a release that was seen."""
    found = reopenings(case(now=100), one)
    assert [(before.released_us, after.opened_us) for before, after in found] == expected


@pytest.mark.parametrize(
    ("one", "now", "settled"),
    [
        (session(30), 39.9, False),
        (session(30), 40, True),
        (session(30, 39), 48.9, False),  # what counts after a release is the release
        (session(30, 39), 49, True),
        (session(30, first=mark(31, 5, 5)), 31, True),  # work shows that the store was kept
        (session(30, stored_offset=7), 31, True),
    ],
)
def test_ten_seconds_settle_it(one, now, settled):
    """A wipe comes within seconds of the opening; after ten it is clear that none will come."""
    assert is_settled(case(now=now), one) is settled
