"""Transitions: what changed from one reading to the next. The reducer makes them, detectors and events use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.events import Change, Source
from agent.inventory.observations import Seen


@dataclass(frozen=True, slots=True)
class Transition:
    """One change."""

    change: Change  # what changed
    at_us: int  # when it was seen
    source: Source  # how it was seen
    application: str  # application id
    task: str | None = None  # task id; None for the application itself
    store: str | None = None  # store name
    segment: str | None = None  # segment directory
    # further fields of the event contract, by their names in `agent.contract.fields`
    facts: Mapping[str, object] = field(default_factory=dict)


def change_of(
    change: Change, reading: Seen, store: str | None = None, segment: str | None = None, **facts: object
) -> Transition:
    """Report a change that a reading shows, of the application and task that were read."""
    place = reading.place
    assert place.application is not None
    return Transition(
        change, reading.at_us, reading.source, place.application, place.task, store, segment, facts
    )
