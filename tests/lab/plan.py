"""What one run uses: release, guarantee, stores; and what is known of releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.inventory.settings import KEYS_BY_NAME

EOS = "exactly_once"
ALOS = "at_least_once"
EACH_POD = "<pod>"
"""Value of a setting that is to be the pod's name."""
TRANSACTIONAL = "enable.transactional.statestores"
TRANSACTIONAL_SINCE = "4.4.0"
"""Oldest release that has transactional stores; earlier ones ignore the setting."""
# fmt: off
RELEASES = (
    "2.0.1", "2.2.2", "2.3.1", "2.5.1", "2.6.0", "2.8.2", "3.0.2", "3.2.3", "3.4.1", "3.5.2", "3.6.1", "3.6.2",
    "3.7.2", "3.8.1", "3.9.0", "3.9.2", "4.0.0", "4.1.0", "4.2.0", "4.2.1", "4.2.2", "4.3.0", "4.3.1", "4.4.0",
)
# fmt: on
"""Releases that tests run, oldest first: first and last of each way to keep state. A new one is added here, and
nowhere else: `--wide`, chains of upgrades, downgrades and what the hunt and `verify` run are taken from it."""


def numbers(release: str) -> tuple[int, ...]:
    """Make a release comparable."""
    return tuple(int(part) for part in release.split("."))


NEWEST = RELEASES[-1]
LAST_OF_MINORS = tuple({numbers(release)[:2]: release for release in RELEASES}.values())
"""The last patch release of each minor one, oldest first."""
CHAIN = LAST_OF_MINORS[::-2][::-1]
"""Releases that upgrades go through: every second minor one up to the newest."""
FILES, STORES = "3.9.2", "4.3.0"
"""One release that keeps offsets in a file for a standing comparison; the first that keeps them in the stores."""


def downgrade_of(release: str) -> str | None:
    """Give the release that can open what this one left; None: it cannot, or nobody tried.

    4.2 does not know the column family that 4.3 keeps offsets in.
    """
    place = RELEASES.index(release) if release in RELEASES else 0
    if not place or numbers(release) < (3, 8) or release == STORES:
        return None
    return RELEASES[place - 1]


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run uses."""

    release: str  # of Kafka Streams
    guarantee: str = ALOS  # `ALOS` or `EOS`; spelled for the release by `guarantee_name`
    stores: str = "kv"  # as `App.java` takes them
    partitions: int = 2  # of the input topics
    # Kafka Streams settings beside or instead of the usual ones; None takes a usual one away
    settings: Mapping[str, object] = field(default_factory=dict)
    before: str = ""  # release that runs first, where the plan's own takes over what it left
    # Settings that come with the plan's own release then
    later: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_transactional(self) -> bool:
        """Whether stores are transactional in the end."""
        return is_transactional({**self.settings, **self.later}, self.release)

    def guarantee_name(self, release: str) -> str:
        """Spell the guarantee as a release wants it."""
        if self.guarantee == ALOS:
            return ALOS
        return "exactly_once_v2" if numbers(release) >= (3, 0) else "exactly_once"


def is_transactional(settings: Mapping[str, object], release: str) -> bool:
    """Tell whether stores are transactional with some settings on a release."""
    chosen = str(settings.get(TRANSACTIONAL, "")).lower() == "true"
    return chosen and numbers(release) >= numbers(TRANSACTIONAL_SINCE)


def is_exposed(release: str) -> bool:
    """Tell whether a release has KAFKA-20685."""
    return (3, 8) <= numbers(release) <= (4, 1, 2) or (4, 2) <= numbers(release) <= (4, 2, 1)


def configured(settings: Mapping[str, object], release: str) -> dict[str, str]:
    """Give what an operator would tell an agent (`--set`), from the application's settings in Kafka's names."""
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
