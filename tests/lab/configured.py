"""What an operator would tell an agent of an application: `--set` options."""

from __future__ import annotations

from collections.abc import Mapping

from agent.inventory.settings import KEYS_BY_NAME
from tests.lab.plan import TRANSACTIONAL_SINCE, is_transactional, numbers


def configured(settings: Mapping[str, object], release: str) -> dict[str, str]:
    """Give them, from the application's settings in Kafka's names."""
    facts = {
        "kafka_streams_version": release,
        "processing_guarantee": str(settings["processing.guarantee"]),
        "state_cleanup_delay_ms": str(settings["state.cleanup.delay.ms"]),
        "num_standby_replicas": str(settings["num.standby.replicas"]),
        "commit_interval_ms": str(settings["commit.interval.ms"]),
        "session_timeout_ms": str(settings.get("session.timeout.ms", 3000)),
    }
    if numbers(release) >= numbers(TRANSACTIONAL_SINCE):
        facts["enable_transactional_statestores"] = str(is_transactional(settings, release)).lower()
    return {name: value for name, value in facts.items() if name in KEYS_BY_NAME}
