"""Blind intervals: when the agent may have missed something, kept as facts. Pure."""

from __future__ import annotations

from agent.inventory.model import BlindInterval, Inventory


def begin_blind(
    inventory: Inventory, at_us: int, cause: str, application: str | None = None, task: str | None = None
) -> BlindInterval:
    """Open a blind interval, unless the same one is open already."""
    for interval in inventory.blind:
        if interval.ended_us is None and (interval.cause, interval.application, interval.task) == (
            cause,
            application,
            task,
        ):
            return interval
    interval = BlindInterval(at_us, cause, None, application, task)
    inventory.blind.append(interval)
    return interval


def end_blind(inventory: Inventory, at_us: int, cause: str) -> list[BlindInterval]:
    """Close every open interval of a cause (a rescan has looked at everything since)."""
    ended = [x for x in inventory.blind if x.ended_us is None and x.cause == cause]
    for interval in ended:
        interval.ended_us = at_us
    return ended


def is_blind(inventory: Inventory, application: str, task: str, from_us: int, to_us: int) -> bool:
    """Tell whether anything about a task may have been missed in a period."""
    for interval in inventory.blind:
        end_us = interval.ended_us if interval.ended_us is not None else to_us
        concerns = interval.application in (None, application) and interval.task in (None, task)
        if concerns and interval.started_us < to_us and end_us > from_us:
            return True
    return False
