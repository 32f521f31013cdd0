"""What is known of an application, as rows: each kind with its columns.

All times are microseconds since the epoch; None = not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Release = Sequence[int]
"""Such as (3, 9, 2)."""


class Entry(NamedTuple):
    """One entry of an evidence chain."""

    at: str
    what: str
    where: str


class Hold(NamedTuple):
    """A pod held a task."""

    task_id: str
    pod: str
    from_us: int
    to_us: int
    lasting: bool
    cleaner: bool


class Mark(NamedTuple):
    """Something changed on disk."""

    task_id: str
    pod: str
    at_us: int
    observed_at_us: int
    sequence: int | None
    change: str
    store: str | None
    segment: str | None
    identity: str | None
    offset_before: int | None
    offset_after: int | None
    puts: int | None
    shape: str | None
    detail: str | None = None
    bytes: int | None = None


class Reading(NamedTuple):
    """How far a copy of a store had come."""

    task_id: str
    pod: str
    store: str | None
    at_us: int
    identity: str | None
    offset: int | None
    puts: int | None
    entries_low: int | None
    unsaved_puts: int | None
    anchor: bool
    bytes: int | None = None
    entries_high: int | None = None
    segmented: bool = False
    comparable: bool = False
    checkpoint: bool = False


class Copy(NamedTuple):
    """A copy whose offset and files are of the same moment."""

    task_id: str
    store: str | None
    offset: int
    pod: str
    identity: str | None
    entries_low: int
    entries_high: int
    first_us: int
    last_us: int
    comparable: bool
    seen_from_us: int | None
    seen_to_us: int | None


class Latest(NamedTuple):
    """What is known last of a copy of a store."""

    task_id: str
    store: str | None
    pod: str
    offset: int | None
    bytes: int | None
    most_bytes: int | None
    offset_at_us: int | None = None


class Saved(NamedTuple):
    """The last checkpoint of a copy of a task in a slot of time."""

    task_id: str
    pod: str
    at_us: int
    offset: int | None = None


class Life(NamedTuple):
    """A Streams process lived on a pod."""

    pod: str
    from_us: int
    to_us: int


class Sighting(NamedTuple):
    """A process id or a store's IDENTITY was before an agent's eyes."""

    what: str
    key: str
    task_id: str | None
    store: str | None
    pod: str
    from_us: int
    to_us: int


class Settings(NamedTuple):
    """Effective settings of an application."""

    num_standby_replicas: int | None
    processing_guarantee: str | None
    commit_interval_ms: int | None
    release_low: Release | None
    release_high: Release | None
    session_ms: int
    probing_ms: int
    not_given: Sequence[str] = ()
    disabled: Sequence[tuple[str, str, str | None]] = ()

    @property
    def release(self) -> str:
        """Name the release for people: one, a range, or unknown."""
        low, high = (
            None if x is None else ".".join(map(str, x)) for x in (self.release_low, self.release_high)
        )
        if low is None:
            return "unknown" if high is None else f"up to {high}"
        if high is None:
            return f"{low} or later"
        return low if low == high else f"{low} to {high}"


class Said(NamedTuple):
    """An agent's finding, as it was said last."""

    finding_id: str
    detector: str
    level: str
    severity: str
    confidence: str
    status: str
    task_id: str | None
    store: str | None
    pod: str
    identity: str | None
    opened_at_us: int
    observed_at_us: int
    resolved_at_us: int | None
    upstream: Sequence[str] | None
    affected: str
    missing_facts: Sequence[str] | None
    summary: str
    evidence: Sequence[Entry] | None
    next_action: str
    mechanism: str | None
    incident_id: str | None
    application_id: str | None = None
    heard_us: int = 0
    heard_boot: str = ""
    heard_sequence: int = 0
    remedy: str | None = None


class Gap(NamedTuple):
    """Nothing may be concluded about a pod in this time."""

    pod: str
    application_id: str | None
    task_id: str | None
    from_us: int
    to_us: int
    cause: str
    missing: int | None


class Unwatched(NamedTuple):
    """A pod was not watched in this closed interval."""

    pod: str
    application_id: str | None
    task_id: str | None
    from_us: int
    until_us: int


class Heard(NamedTuple):
    """When a pod was heard last, and what its agent counts."""

    pod: str
    last_us: int
    stopped: bool
    boot_us: int | None
    level_us: int | None
    missed_criticals: int
    missed_warnings: int
    missed: Sequence[str]
    missed_tasks: int
    tasks: int | None
    open_ids: Sequence[str] = ()
