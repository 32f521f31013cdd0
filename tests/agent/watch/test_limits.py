"""The kernel's limits, as read and as told."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.watch.limits import (
    Limit,
    budget,
    enough_instances,
    enough_watches,
    instance_limit,
    queue_room,
    read_limits,
    watch_limit,
)


def write(sysctls: Path, **values: object) -> Path:
    """Write limits: `fs__max_user_watches=5` or `user__max_inotify_watches=5`."""
    for name, value in values.items():
        group, _, key = name.partition("__")
        path = sysctls / ("fs/inotify" if group == "fs" else group) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return sysctls


def test_limits_are_read(tmp_path: Path) -> None:
    """Each limit comes from the file of its name."""
    write(tmp_path, fs__max_user_watches=1, fs__max_user_instances=2, fs__max_queued_events=3)
    limits = {"max_user_watches": 1, "max_user_instances": 2, "max_queued_events": 3}
    assert read_limits(tmp_path) == limits
    assert queue_room(tmp_path) == 3


def test_missing_or_odd_limits_are_unknown(tmp_path: Path) -> None:
    """A kernel that does not say leaves the limit unknown."""
    write(tmp_path, fs__max_user_watches="many")
    assert read_limits(tmp_path) == {}
    assert budget(watch_limit(tmp_path)) is None
    assert queue_room(tmp_path) == 0


@pytest.mark.parametrize(
    ("user", "namespace", "name"), [(5, 9, "fs.inotify"), (9, 5, "user"), (5, 5, "fs.inotify")]
)
def test_the_lower_limit_is_the_one_to_raise(tmp_path: Path, user: int, namespace: int, name: str) -> None:
    """A container may have a lower limit of its own than the node."""
    write(tmp_path, fs__max_user_watches=user, user__max_inotify_watches=namespace)
    write(tmp_path, fs__max_user_instances=user, user__max_inotify_instances=namespace)
    assert watch_limit(tmp_path).name.startswith(name)
    assert instance_limit(tmp_path).name.startswith(name)
    assert watch_limit(tmp_path).value == instance_limit(tmp_path).value == 5


def test_limit_is_named_like_sysctl_does() -> None:
    """The text can be pasted into a sysctl call."""
    assert str(Limit("fs.inotify.max_user_watches", 8192)) == "fs.inotify.max_user_watches=8192"
    assert str(Limit("user.max_inotify_watches", None)) == "user.max_inotify_watches=unknown"


def test_advice_leaves_room_to_grow() -> None:
    """At least twice the need, and never less than what a small node has anyway."""
    assert enough_watches(10) == 8192
    assert enough_watches(30_000) == 65_536
    assert all(enough_watches(need) >= 2 * need for need in range(1, 100_000, 997))
    assert enough_instances(Limit("x", 128)) == 512
    assert enough_instances(Limit("x", 512)) == 1024
    assert budget(Limit("x", 1000)) == 900
