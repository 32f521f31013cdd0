"""The kernel's limits on inotify, for messages that say which number to raise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIMITS = Path("/proc/sys/fs/inotify")


@dataclass(frozen=True, slots=True)
class InotifyLimits:
    """Limits per user; None where the kernel does not say.

    Args of the dataclass:
        max_user_watches: Directories that all processes of this user may watch.
        max_user_instances: Queues that all processes of this user may have.
        max_queued_events: Notifications that one queue holds before it overflows.
    """

    max_user_watches: int | None = None
    max_user_instances: int | None = None
    max_queued_events: int | None = None


def read_limits(directory: Path = LIMITS) -> InotifyLimits:
    """Read the limits that hold now."""
    return InotifyLimits(
        max_user_watches=_read(directory / "max_user_watches"),
        max_user_instances=_read(directory / "max_user_instances"),
        max_queued_events=_read(directory / "max_queued_events"),
    )


def describe_limit(name: str, value: int | None) -> str:
    """Name a limit and its value the way `sysctl` does."""
    return f"fs.inotify.{name}={'unknown' if value is None else value}"


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
