"""What an operator can tell about an application: the settings that are not on disk. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.layout.releases import Release

GUARANTEES = ("at_least_once", "exactly_once", "exactly_once_beta", "exactly_once_v2")


@dataclass(frozen=True, slots=True)
class Key:
    """One setting that detectors may ask for.

    Args of the dataclass:
        name: Key in `--set KEY=VALUE` and in the file.
        kafka_name: The Kafka Streams (or topic) setting it mirrors.
        check: Raises ValueError with a readable reason for a bad value.
        meaning: One sentence.
    """

    name: str
    kafka_name: str
    check: Callable[[str], object]
    meaning: str


def _guarantee(text: str) -> str:
    if text not in GUARANTEES:
        raise ValueError(f"must be one of {', '.join(GUARANTEES)}")
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("must be a whole number, 0 or more")
    return int(text)


def _milliseconds(text: str) -> int:
    if not text.lstrip("-").isdecimal() or int(text) < -1:
        raise ValueError("must be a whole number of milliseconds")
    return int(text)


KEYS: tuple[Key, ...] = (
    Key("processing_guarantee", "processing.guarantee", _guarantee, "At-least-once or exactly-once."),
    Key("kafka_streams_version", "kafka-streams jar", Release.parse, "Release of the Kafka Streams library."),
    Key("state_cleanup_delay_ms", "state.cleanup.delay.ms", _milliseconds, "Age before the cleaner deletes."),
    Key("num_standby_replicas", "num.standby.replicas", _count, "Standby copies per task."),
    Key("commit_interval_ms", "commit.interval.ms", _milliseconds, "Time between commits."),
    Key("delete_retention_ms", "delete.retention.ms", _milliseconds, "How long changelog tombstones live."),
    Key("session_timeout_ms", "session.timeout.ms", _milliseconds, "When a silent member is evicted."),
    Key("max_warmup_replicas", "max.warmup.replicas", _count, "Extra copies that warm up before a move."),
    Key(
        "probing_rebalance_interval_ms",
        "probing.rebalance.interval.ms",
        _milliseconds,
        "How often warm-ups are looked at.",
    ),
    Key("upgrade_from", "upgrade.from", Release.parse, "Release upgraded from."),
    Key(
        "state_cleanup_dir_max_age_ms",
        "state.cleanup.dir.max.age.ms",
        _milliseconds,
        "4.3+: age at which a start purges a directory.",
    ),
)
KEYS_BY_NAME: Mapping[str, Key] = {key.name: key for key in KEYS}


@dataclass(frozen=True, slots=True)
class Setting:
    """An effective value and where it came from (`flag`, `file`, `environment`)."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class ApplicationSettings:
    """The effective settings of one application; a key that is absent is unknown."""

    values: Mapping[str, Setting] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Value as text; None = unknown."""
        setting = self.values.get(name)
        return setting.value if setting else None

    def number(self, name: str) -> int | None:
        """Value as a whole number; None = unknown."""
        value = self.text(name)
        return None if value is None else int(value)

    @property
    def release(self) -> Release | None:
        """Operator's Kafka Streams release; None = unknown."""
        value = self.text("kafka_streams_version")
        return None if value is None else Release.parse(value)

    @property
    def exactly_once(self) -> bool | None:
        """Whether the application runs exactly-once; None = unknown."""
        value = self.text("processing_guarantee")
        return None if value is None else value != "at_least_once"


@dataclass(frozen=True, slots=True)
class SettingsBook:
    """Settings for all applications and for single ones; the single ones win.

    Args of the dataclass:
        common: Key -> setting, for every application.
        own: Application id -> key -> setting.
    """

    common: Mapping[str, Setting] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)

    def of(self, application_id: str) -> ApplicationSettings:
        """Settings that hold for one application."""
        own = self.own.get(application_id)
        return ApplicationSettings({**self.common, **own} if own else self.common)
