"""The kernel's limits, as read and as told."""

from __future__ import annotations

from pathlib import Path

from agent.watch.limits import InotifyLimits, describe_limit, read_limits


def test_limits_are_read(tmp_path: Path) -> None:
    """Each limit comes from the file of its name."""
    for number, name in enumerate(("max_user_watches", "max_user_instances", "max_queued_events"), start=1):
        (tmp_path / name).write_text(f"{number}\n")
    assert read_limits(tmp_path) == InotifyLimits(1, 2, 3)


def test_missing_or_odd_limits_are_unknown(tmp_path: Path) -> None:
    """A kernel that does not say leaves the limit unknown."""
    (tmp_path / "max_user_watches").write_text("many")
    assert read_limits(tmp_path) == InotifyLimits()


def test_limit_is_named_like_sysctl_does() -> None:
    """The text can be pasted into a sysctl call."""
    assert describe_limit("max_user_watches", 8192) == "fs.inotify.max_user_watches=8192"
    assert describe_limit("max_user_watches", None) == "fs.inotify.max_user_watches=unknown"
