"""What agents promise and the rollup relies on: how often an agent reports, and which settings of an application."""

from __future__ import annotations

from dataclasses import dataclass

HEARTBEAT_S = 30  # seconds between two heartbeats of one agent

SILENT_AFTER_S = 3 * HEARTBEAT_S
"""Without any event for longer than this (seconds) an agent counts as silent."""

SUMMARY_S = 60
"""Seconds between two rounds of summaries: after that much time lost transitions no longer mislead."""

REPEAT_S = 6 * 3600
"""Seconds after which an agent says again, at the latest, what is open and which settings are in force."""

SEGMENT_NAME = r"-(\d+)-(\d+)(?:-k(\d+))?\.jsonl(\.gz)?$"
"""A segment's name ends with the first and last sequence that it holds; if it was thinned, with how many are left."""

OPEN_IDS = 100  # so many open findings a heartbeat names; it counts all

GUARANTEES = ("at_least_once", "exactly_once", "exactly_once_beta", "exactly_once_v2")
"""Values of `processing_guarantee`."""

ACCEPTS = "accepts"
"""The one setting that mirrors none of Kafka's: exposures by release or settings that the operator accepts."""

DISABLED_PREFIX = "detectors.disabled."
"""In a configuration record, with a detector's id behind it: the setting whose value is why it is disabled."""


@dataclass(frozen=True, slots=True)
class ReportedSetting:
    """One setting of an application, as a configuration record names it."""

    name: str  # key in `--set KEY=VALUE`, in files and in records
    kafka_name: str  # the Kafka Streams (or topic) setting it mirrors
    meaning: str  # one sentence
    is_number: bool = True  # whether its value is a whole number


# fmt: off
REPORTED_SETTINGS: tuple[ReportedSetting, ...] = (
    ReportedSetting("processing_guarantee", "processing.guarantee", "At-least-once or exactly-once.",
                    is_number=False),
    ReportedSetting("kafka_streams_version", "kafka-streams jar", "Release of the Kafka Streams library.",
                    is_number=False),
    ReportedSetting("state_cleanup_delay_ms", "state.cleanup.delay.ms", "Age before the cleaner deletes."),
    ReportedSetting("num_standby_replicas", "num.standby.replicas", "Standby copies per task."),
    ReportedSetting("commit_interval_ms", "commit.interval.ms", "Time between commits."),
    ReportedSetting("delete_retention_ms", "delete.retention.ms", "How long changelog tombstones live."),
    ReportedSetting("session_timeout_ms", "session.timeout.ms", "When a silent member is evicted."),
    ReportedSetting("max_warmup_replicas", "max.warmup.replicas", "Extra copies that warm up before a move."),
    ReportedSetting("probing_rebalance_interval_ms", "probing.rebalance.interval.ms",
                    "How often warm-ups are checked."),
    ReportedSetting("upgrade_from", "upgrade.from", "Release upgraded from.", is_number=False),
    ReportedSetting("state_cleanup_dir_max_age_ms", "state.cleanup.dir.max.age.ms",
                    "4.3+: age at which a start purges a directory."),
    ReportedSetting("enable_transactional_statestores", "enable.transactional.statestores",
                    "4.4+: whether stores commit data and offset together (default: false).", is_number=False),
    ReportedSetting(ACCEPTS, "-",
                    "Detectors, by commas, whose lasting exposures are accepted: they stay open and raise no alert.",
                    is_number=False),
)
# fmt: on
"""Every setting that detectors and rules may ask for."""
