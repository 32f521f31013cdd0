"""What an operator can configure about an application: the settings that are not on disk. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from agent.contract.reporting import ACCEPTS, GUARANTEES, REPORTED_SETTINGS
from agent.layout.releases import Release


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One setting that detectors may ask for."""

    name: str  # key in `--set KEY=VALUE` and in the file
    kafka_name: str  # the Kafka Streams (or topic) setting it mirrors
    check: Callable[[str], object]  # raises ValueError with a readable reason for a bad value
    meaning: str  # one sentence

    @property
    def kafka_names(self) -> tuple[str, ...]:
        """Names under which it counts in the settings of an application, the strongest first."""
        return tuple(f"{prefix}{self.kafka_name}" for prefix in _PREFIXES.get(self.kafka_name, ("",)))


_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "session.timeout.ms": ("main.consumer.", "consumer.", ""),
    "delete.retention.ms": ("topic.",),
}
"""Under which prefixes a setting counts, the strongest first. Of others: under its bare name.

Source:
    StreamsConfig.getMainConsumerConfigs (a bare name holds for every client, `consumer.` over it, `main.consumer.` over
    both) and StreamsConfig.TOPIC_PREFIX (a bare topic setting is ignored).
"""


def _guarantee(text: str) -> str:
    if text not in GUARANTEES:
        raise ValueError(f"must be one of {', '.join(GUARANTEES)}")
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("must be a whole number, 0 or more")
    return int(text)


def _milliseconds(text: str, least: int = 0, why: str = "") -> int:
    if not text.removeprefix("-").isdecimal() or int(text) < least:
        raise ValueError(f"must be a whole number of milliseconds, {least} or more{why}")
    return int(text)


def _flag(text: str) -> bool:
    """Check a boolean as Kafka's ConfigDef reads it: `true` or `false`, in any case."""
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value == "true"


def listed(text: str) -> tuple[str, ...]:
    """Read names that are separated by commas; ValueError if one is empty."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("must be ids of detectors, separated by commas")
    return names


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "processing_guarantee": _guarantee,
    "kafka_streams_version": Release.parse,
    # KafkaStreams.start at 2.1.0, 3.9.1 and 4.3.0: the period of scheduleAtFixedRate; StreamsConfig has no bound
    "state_cleanup_delay_ms": partial(_milliseconds, least=1, why=": with less KafkaStreams.start throws"),
    "num_standby_replicas": _count,
    # StreamsConfig: atLeast(0) at 2.8.2 and later; what a negative one does at 2.1.0 no detector can allow for
    # (StreamThread.maybeCommit)
    "commit_interval_ms": partial(
        _milliseconds, why="; leave it out where a negative one switches commits by time off"
    ),
    "delete_retention_ms": _milliseconds,
    "session_timeout_ms": _milliseconds,
    "max_warmup_replicas": _count,
    "probing_rebalance_interval_ms": _milliseconds,
    "upgrade_from": Release.parse,
    "state_cleanup_dir_max_age_ms": partial(_milliseconds, least=-1, why=" (-1: off)"),
    "enable_transactional_statestores": _flag,
    ACCEPTS: listed,
}
KEYS: tuple[SettingKey, ...] = tuple(
    SettingKey(row.name, row.kafka_name, _CHECKS[row.name], row.meaning) for row in REPORTED_SETTINGS
)
KEYS_BY_NAME: Mapping[str, SettingKey] = {key.name: key for key in KEYS}
# by those that Kafka has for it (`processing.guarantee`), too
KEYS_BY_ANY_NAME: Mapping[str, SettingKey] = {
    name: key for key in KEYS if "." in key.kafka_name for name in (key.kafka_name, *key.kafka_names)
} | {**KEYS_BY_NAME}

DEFAULTS: Mapping[str, int] = {
    "num_standby_replicas": 0,
    "state_cleanup_delay_ms": 600_000,
    "delete_retention_ms": 86_400_000,
}
"""Kafka's defaults, the same in every release from 2.0 to 4.3 (StreamsConfig, TopicConfig)."""
COMMIT_INTERVAL_MS: Mapping[bool, int] = {False: 30_000, True: 100}
"""Default of `commit.interval.ms`, by exactly-once (StreamsConfig)."""
DEFAULT = "default"
"""Origin of a value that was not configured."""
TRIED = "possible"
"""Origin of a value that a possible world has, where nobody gave one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An effective value and where it came from (`flag`, `file`, `environment`, `properties`, `default`)."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class ApplicationSettings:
    """The effective settings of one application: what was configured, else Kafka's documented default; else unknown."""

    values: Mapping[str, Setting] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Value as text, as it was configured; None = it was not."""
        setting = self.values.get(name)
        return setting.value if setting else None

    def number(self, name: str) -> int | None:
        """Value as a whole number, as it was configured; None = it was not."""
        value = self.text(name)
        return None if value is None else int(value)

    def assumed(self, name: str) -> int | None:
        """Value as a whole number: what was configured, else the documented default; None = it has no default."""
        configured = self.number(name)
        return self.default(name) if configured is None else configured

    def is_configured(self, name: str) -> bool:
        """Whether this setting was configured; otherwise a default is an assumption, and nothing is confirmed by it."""
        return name in self.values

    def default(self, name: str) -> int | None:
        """Kafka's documented default; None = there is none, or it depends on something that is not known."""
        if name == "commit_interval_ms":
            return None if self.exactly_once is None else COMMIT_INTERVAL_MS[self.exactly_once]
        return DEFAULTS.get(name)

    def effective(self) -> Mapping[str, Setting]:
        """Every setting that is configured or has a default, with its origin."""
        assumed = {name: self.default(name) for name in (*DEFAULTS, "commit_interval_ms")}
        known = {name: Setting(str(value), DEFAULT) for name, value in assumed.items() if value is not None}
        return {**known, **self.values}

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

    def told(self) -> Mapping[str, str]:
        """Values that were configured; two names of one guarantee are one value."""
        return {
            name: str(self.exactly_once) if name == "processing_guarantee" else setting.value
            for name, setting in self.values.items()
        }

    @property
    def transactional_stores(self) -> bool | None:
        """What `enable.transactional.statestores` was said to be; None = nothing was said."""
        value = self.text("enable_transactional_statestores")
        return None if value is None else _flag(value)

    @property
    def accepts(self) -> frozenset[str]:
        """Detectors whose lasting exposures the operator accepted."""
        value = self.text(ACCEPTS)
        return frozenset() if value is None else frozenset(listed(value))


@dataclass(frozen=True, slots=True)
class SettingsBook:
    """Settings for all applications and for single ones; the single ones win."""

    common: Mapping[str, Setting] = field(default_factory=dict)  # key -> setting, for every application
    own: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)  # application id -> key -> setting

    def of(self, application_id: str) -> ApplicationSettings:
        """Settings that hold for one application."""
        own = self.own.get(application_id)
        return ApplicationSettings({**self.common, **own} if own else self.common)

    def accepts(self, application_id: str) -> frozenset[str]:
        """Detectors whose lasting exposures are accepted for one application; empty name = for the agent itself."""
        return self.of(application_id).accepts

    def accepted(self) -> frozenset[str]:
        """Detectors whose lasting exposures are accepted for any application."""
        return frozenset().union(*map(self.accepts, ("", *self.own)))
