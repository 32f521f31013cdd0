"""The kernel's limits on inotify, for messages that say which number to raise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SYSCTLS = Path("/proc/sys")
SHARE = 0.9
"""Of the watches that the agent takes at most: all processes of the user on the node share them."""

_QUEUED = "fs/inotify/max_queued_events"
LEAST_WATCHES, LEAST_INSTANCES = 8192, 512


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that holds: its name as `sysctl` spells it, and its value; None where the kernel does not say."""

    name: str
    value: int | None

    def __str__(self) -> str:
        """Name it and its value the way `sysctl` does."""
        return f"{self.name}={'unknown' if self.value is None else self.value}"


def read_limits(sysctls: Path = SYSCTLS) -> dict[str, int]:
    """Read the limits that hold now for the user, as far as the kernel says: sysctl -> value."""
    found = {
        "max_user_watches": watch_limit(sysctls).value,
        "max_user_instances": instance_limit(sysctls).value,
        "max_queued_events": _read(sysctls / _QUEUED),
    }
    return {name: value for name, value in found.items() if value is not None}


def queue_room(sysctls: Path = SYSCTLS) -> int:
    """Return how many notifications a queue that is opened now holds before it overflows; 0 = unknown."""
    return _read(sysctls / _QUEUED) or 0


def watch_limit(sysctls: Path = SYSCTLS) -> Limit:
    """Return what limits the watches: the user's limit, or that of the user namespace if it is lower."""
    return _lower(sysctls, "max_user_watches", "max_inotify_watches")


def instance_limit(sysctls: Path = SYSCTLS) -> Limit:
    """Return what limits the queues, as for `watch_limit`."""
    return _lower(sysctls, "max_user_instances", "max_inotify_instances")


def budget(limit: Limit) -> int | None:
    """Return how many directories the agent may watch; None = unknown."""
    return None if limit.value is None else int(limit.value * SHARE)


def enough_watches(need: int) -> int:
    """Return which limit is enough for `need` directories with room to grow: a power of two."""
    return max(LEAST_WATCHES, 1 << (2 * need - 1).bit_length())


def enough_instances(limit: Limit) -> int:
    """Return which limit to try when there are no queues left."""
    return max(LEAST_INSTANCES, 2 * (limit.value or 0))


def _lower(sysctls: Path, of_user: str, of_namespace: str) -> Limit:
    """Pick the lower one.

    Source:
        Linux, kernel/ucount.c: inotify's counters are held against every user namespace above, too.
    """
    user = Limit(f"fs.inotify.{of_user}", _read(sysctls / "fs/inotify" / of_user))
    namespace = Limit(f"user.{of_namespace}", _read(sysctls / "user" / of_namespace))
    if namespace.value is not None and (user.value is None or namespace.value < user.value):
        return namespace
    return user


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
