"""Blind intervals: when the agent may have missed something, kept as facts. Pure."""

from __future__ import annotations

from agent.inventory.model import BlindInterval, Inventory


def begin_blind(inventory: Inventory, at_us: int, cause: str, detail: str = "") -> BlindInterval:
    """Open a blind interval of the whole directory, unless one of that cause is open already."""
    for interval in inventory.blind:
        if interval.ended_us is None and interval.cause == cause and interval.application is None:
            return interval
    interval = BlindInterval(at_us, cause, None, None, None, detail)
    inventory.blind.append(interval)
    return interval


def end_blind(inventory: Inventory, at_us: int, cause: str) -> list[BlindInterval]:
    """Close every open interval of a cause (a rescan has read everything since)."""
    ended = [x for x in inventory.blind if x.ended_us is None and x.cause == cause]
    for interval in ended:
        close_blind(inventory, interval, at_us)
    return ended


def close_blind(inventory: Inventory, interval: BlindInterval, at_us: int) -> None:
    """Close one interval; a clock that was set back makes it end where it began."""
    interval.ended_us = max(at_us, interval.started_us)
    lasted_us = interval.ended_us - interval.started_us
    inventory.blind_us[interval.cause] = inventory.blind_us.get(interval.cause, 0) + lasted_us


def note_blind(
    inventory: Inventory,
    from_us: int,
    to_us: int,
    cause: str,
    application: str | None = None,
    task: str | None = None,
    detail: str = "",
) -> BlindInterval:
    """Take down an interval that is over; one that touches the newest of the same kind makes that longer."""
    for known in reversed(inventory.blind):
        if (known.cause, known.application, known.task) != (cause, application, task):
            continue
        if known.ended_us is None:
            known.started_us = min(known.started_us, from_us)
            return known
        if known.started_us <= from_us <= known.ended_us:
            more_us = max(0, to_us - known.ended_us)
            known.ended_us += more_us
            inventory.blind_us[cause] = inventory.blind_us.get(cause, 0) + more_us
            return known
        break
    interval = BlindInterval(from_us, cause, None, application, task, detail)
    inventory.blind.append(interval)
    close_blind(inventory, interval, to_us)
    return interval


def blind_seconds(inventory: Inventory, now_us: int) -> dict[str, float]:
    """Return by cause for how long the agent was blind since it started, running intervals included."""
    total_us = dict(inventory.blind_us)
    for interval in inventory.blind:
        if interval.ended_us is None:
            lasts_us = max(0, now_us - interval.started_us)
            total_us[interval.cause] = total_us.get(interval.cause, 0) + lasts_us
    return {cause: value_us / 1_000_000 for cause, value_us in total_us.items()}


def is_blind(
    inventory: Inventory, application: str, task: str, from_us: int, to_us: int, store: str | None = None
) -> bool:
    """Return whether anything about a task, or of one of its stores, may have been missed in a period.

    A store that could not be read for a while hides nothing when it can be again: its manifest shows what was flushed.
    """
    for interval in inventory.blind:
        if interval.store is not None and interval.ended_us is not None:
            continue
        end_us = interval.ended_us if interval.ended_us is not None else to_us
        concerns = interval.application in (None, application) and interval.task in (None, task)
        concerns = concerns and (store is None or interval.store in (None, store))
        if concerns and interval.started_us < to_us and end_us > from_us:
            return True
    return False
