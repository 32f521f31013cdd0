"""Blind intervals: when something may have been missed."""

from __future__ import annotations

import pytest

from agent.inventory.blindness import begin_blind, blind_seconds, end_blind, is_blind
from agent.inventory.model import BlindInterval, Inventory


def test_the_same_blindness_is_one_interval():
    """A cause that lasts is not begun twice; another cause, or one of a single place, is another one."""
    inventory = Inventory()
    inventory.blind.append(BlindInterval(5, "overflow", None, "app", "0_0"))
    first = begin_blind(inventory, 10, "overflow")
    assert begin_blind(inventory, 20, "overflow") is first
    assert begin_blind(inventory, 20, "limit") is not first
    assert len(inventory.blind) == 3


def test_end():
    """All open intervals of the cause end, and no others."""
    inventory = Inventory()
    begin_blind(inventory, 10, "overflow")
    begin_blind(inventory, 11, "limit")
    assert [x.cause for x in end_blind(inventory, 30, "overflow")] == ["overflow"]
    assert [x.ended_us for x in inventory.blind] == [30, None]
    assert end_blind(inventory, 40, "overflow") == []


def test_seconds_by_cause():
    """Ended and running intervals together; one that a clock puts into the future takes nothing away."""
    inventory = Inventory(blind_us={"overflow": 1_000_000})
    begin_blind(inventory, 10_000_000, "overflow")
    begin_blind(inventory, 12_000_000, "limit")
    begin_blind(inventory, 99_000_000, "denied")
    assert blind_seconds(inventory, 14_000_000) == {"overflow": 5.0, "limit": 2.0, "denied": 0.0}


@pytest.mark.parametrize(
    ("application", "task", "from_us", "to_us", "blind"),
    [
        ("app", "0_0", 12, 15, True),
        ("app", "0_0", 0, 11, True),
        ("app", "0_0", 0, 10, False),
        ("app", "0_0", 20, 30, False),
        ("app", "0_0", 19, 30, True),
        ("app", "0_1", 12, 15, False),
        ("other", "0_0", 12, 15, False),
    ],
)
def test_whom_and_when_it_concerns(application, task, from_us, to_us, blind):
    """An interval concerns its own task and every period that overlaps it."""
    inventory = Inventory()
    inventory.blind.append(BlindInterval(10, "denied", 20, "app", "0_0"))
    assert is_blind(inventory, application, task, from_us, to_us) is blind


@pytest.mark.parametrize(
    ("store", "ended_us", "blind"),
    [("s", None, True), ("t", None, False), (None, None, True), ("s", 20, False), (None, 20, False)],
)
def test_one_store(store, ended_us, blind):
    """What hides one store hides no other, and nothing once it was read again: the manifest has the past."""
    inventory = Inventory()
    inventory.blind.append(BlindInterval(10, "store-unread", ended_us, "app", "0_0", "", "s"))
    assert is_blind(inventory, "app", "0_0", 12, 15, store) is blind
