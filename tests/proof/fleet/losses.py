"""What may happen to events on their way: lost at any place, sent twice, or a pod without an agent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from spark_rollup.fleet.events import Event

STRETCHES = (2, 3, 5, 8, 13, 21)
SHARES = (0.1, 0.3, 0.6)


def losses(events: Sequence[Event], dice: random.Random) -> Iterator[tuple[str, list[Event]]]:
    """Lose each event alone; all of a pod before or after each; some stretches and shares; all of a pod."""
    for number, lost in enumerate(events):
        yield f"{told_as(lost)} lost", [*events[:number], *events[number + 1 :]]
    for share in SHARES:
        yield f"{share:.0%} lost", [x for x in events if dice.random() >= share]
    for pod in sorted({x.pod for x in events}):
        own = [number for number, x in enumerate(events) if x.pod == pod]
        yield f"no agent on {pod}", _without(events, own)
        for at in range(1, len(own)):
            yield f"{pod}: lost from {told_as(events[own[at]])} on", _without(events, own[at:])
            yield f"{pod}: lost before {told_as(events[own[at]])}", _without(events, own[:at])
        for count in STRETCHES:
            at = dice.randrange(1, max(len(own) - count, 2))
            lost_here = own[at : at + count]
            yield f"{pod}: {count} lost from {told_as(events[own[at]])} on", _without(events, lost_here)


def in_any_order(events: Sequence[Event], dice: random.Random) -> list[Event]:
    """Tell everything in any order, and late; what comes twice is dropped by its id when it is read."""
    return dice.sample(events, len(events))


def _without(events: Sequence[Event], numbers: Sequence[int]) -> list[Event]:
    lost = set(numbers)
    return [x for number, x in enumerate(events) if number not in lost]


def told_as(event: Event) -> str:
    """Name an event."""
    what = event.change or event.detector or event.phase or ""
    return f"{event.pod} {event.sequence} {event.kind} {what}".rstrip()
