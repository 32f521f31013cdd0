"""Records and enumerations of the event contract (values only, no I/O)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA_MAJOR = 1
SCHEMA_MINOR = 4  # major version of the contract; readers quarantine any other

EVENT_TYPE_PREFIX = "io.statewarden."


class Kind(StrEnum):
    """What a record is; the CloudEvents type is `io.statewarden.<kind>.v1`."""

    TRANSITION = "transition"
    FINDING = "finding"
    SUMMARY = "summary"
    HEARTBEAT = "heartbeat"
    CONFIGURATION = "configuration"
    LIFECYCLE = "lifecycle"
    DROP = "drop"
    DIGEST = "digest"


class Source(StrEnum):
    """How an observation came about."""

    INOTIFY = "inotify"
    RESCAN = "rescan"
    TIMER = "timer"
    BASELINE = "baseline"


class Change(StrEnum):
    """What changed, seen from one reading to the next."""

    APPLICATION_SEEN = "application-seen"
    APPLICATION_GONE = "application-gone"
    PROCESS_STARTED = "process-started"
    PROCESS_ENDED = "process-ended"
    TASK_CREATED = "task-created"
    TASK_DELETED = "task-deleted"
    TASK_HELD = "task-held"
    TASK_RELEASED = "task-released"
    CHECKPOINT_WRITTEN = "checkpoint-written"
    CHECKPOINT_DELETED = "checkpoint-deleted"
    CHECKPOINT_MALFORMED = "checkpoint-malformed"
    STORE_CREATED = "store-created"
    STORE_DELETED = "store-deleted"
    STORE_OPENED = "store-opened"
    STORE_FLUSHED = "store-flushed"
    STORE_CLOSED = "store-closed"


class Level(StrEnum):
    """What kind of statement a finding makes."""

    EXPOSURE = "exposure"
    DAMAGE = "damage"
    EVENT = "event"
    SELF = "self"


class Severity(StrEnum):
    """How severe a finding is; order by `rank`."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Position in the order info < warning < critical."""
        return ("info", "warning", "critical").index(self.value)


class Confidence(StrEnum):
    """How sure a finding is; order by `rank`."""

    CONFIRMED = "confirmed"
    SUSPECTED = "suspected"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Position in the order unknown < suspected < confirmed."""
        return ("unknown", "suspected", "confirmed").index(self.value)


class Status(StrEnum):
    """Life of a finding."""

    OPEN = "open"
    RESOLVED = "resolved"


class Affected(StrEnum):
    """Whether this directory's release is one that the upstream issue affects."""

    YES = "yes"
    POSSIBLY = "possibly"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who speaks: the identity that every record of one agent process carries.

    `boot_id` changes with every start of the agent, `sequence` counts from 1 within one boot.
    """

    pod_uid: str
    boot_id: str
    pod: str
    namespace: str = ""
    node: str = ""
    agent_version: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One record before it is stamped with origin and sequence."""

    kind: Kind  # what the record is
    observed_at_us: int  # microseconds since the epoch, UTC: when the agent saw it
    body: Mapping[str, object] = field(default_factory=dict)
    """Field name -> value; names and types are those of `fields.FIELDS`."""
