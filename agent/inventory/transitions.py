"""Transitions: what changed from one reading to the next. The reducer makes them, detectors and events use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.events import Change, Source


@dataclass(frozen=True, slots=True)
class Transition:
    """One change.

    Args of the dataclass:
        change: What changed.
        at_us: When it was seen.
        source: How it was seen.
        application: Application id.
        task: Task id; None for the application itself.
        store: Store name.
        segment: Segment directory.
        facts: Further fields of the event contract, by their names in `agent.contract.fields`.
    """

    change: Change
    at_us: int
    source: Source
    application: str
    task: str | None = None
    store: str | None = None
    segment: str | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
