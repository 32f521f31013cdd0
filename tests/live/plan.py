"""What one run uses: release, guarantee, stores; and what is known of releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EOS = "exactly_once"
ALOS = "at_least_once"
EACH_POD = "<pod>"
"""Value of a setting that is to be the pod's name."""
# fmt: off
RELEASES = (
    "2.0.1", "2.2.2", "2.3.1", "2.5.1", "2.6.0", "2.8.2", "3.0.2", "3.2.3", "3.4.1", "3.5.2", "3.6.1", "3.6.2",
    "3.7.2", "3.8.1", "3.9.0", "3.9.2", "4.0.0", "4.1.0", "4.2.0", "4.2.1", "4.2.2", "4.3.0", "4.3.1",
)
# fmt: on
"""Releases that `--wide` goes through: first and last of each way to keep state."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run uses.

    Args of the dataclass:
        release: Of Kafka Streams.
        guarantee: `ALOS` or `EOS`; spelled for the release by `guarantee_name`.
        stores: As `App.java` takes them.
        partitions: Of the input topics.
        settings: Kafka Streams settings beside or instead of the usual ones; None takes a usual one away.
    """

    release: str
    guarantee: str = ALOS
    stores: str = "kv"
    partitions: int = 2
    settings: Mapping[str, object] = field(default_factory=dict)

    def guarantee_name(self, release: str) -> str:
        """Spell the guarantee as a release wants it."""
        if self.guarantee == ALOS:
            return ALOS
        return "exactly_once_v2" if numbers(release) >= (3, 0) else "exactly_once"


def numbers(release: str) -> tuple[int, ...]:
    """Make a release comparable."""
    return tuple(int(part) for part in release.split("."))


def is_exposed(release: str) -> bool:
    """Tell whether a release has KAFKA-20685."""
    return (3, 8) <= numbers(release) <= (4, 1, 2) or (4, 2) <= numbers(release) <= (4, 2, 1)
