"""Facts of a pod in which all is well, to change one thing at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.config import load_config
from agent.observe.volume import Mount, Space
from agent.preflight import checks
from agent.preflight.facts import Directory, Facts, State, survey
from agent.watch.limits import Limit

NOW_US = 1_800_000_000_000_000
STATE_DIR = str(Path(__file__).parent)
ROOT = Directory(STATE_DIR, 1000, 2000, 0o2770, True, NOW_US)
APPLICATION = Directory("/state/app", 1000, 2000, 0o2750, True, NOW_US)
STATE = State(
    Mount("/state", "ext4", True), root=ROOT, below=[APPLICATION], applications=["app"], tasks=3, directories=13
)  # fmt: skip
FLAGS = {"state_dir": STATE_DIR, "spool": "/var/lib/statewarden/spool", "ship_to": "https://example.com"}
GOOD = Facts(
    load_config(flags=FLAGS), STATE, NOW_US, uid=65532, gid=65532, groups=[2000], is_synchronised=True
)


class Queue:
    """An inotify queue that takes a watch, or refuses it."""

    def __init__(self, code: int = 0) -> None:
        self._code = code

    def add(self, descriptor: int, role: object) -> None:
        if self._code:
            raise OSError(self._code, "refused")

    def close(self) -> None: ...


WORLD: dict[str, Any] = {
    "find_mount": Mount("/var/lib/statewarden", "ext4", False), "measure_space": Space(500 << 20),
    "try_to_write": None, "other_format": "", "refusals": [], "find_spec": "there", "InotifyQueue": Queue,
    "watch_limit": Limit("fs.inotify.max_user_watches", 8192),
    "instance_limit": Limit("fs.inotify.max_user_instances", 128),
}  # fmt: skip
"""What the checks themselves are told by kernel, volume and network."""


def live_in(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let the checks read this world; a function is called, everything else is the answer."""
    for name, told in {**WORLD, **changes}.items():
        answer = told if callable(told) else lambda *_, told=told, **__: told
        monkeypatch.setattr(checks, name, answer)


def state(facts: Facts = GOOD, **changes: Any) -> Facts:
    """Make facts with another state directory."""
    return replace(facts, state=replace(STATE, **changes))


def agent(**changes: Any) -> Facts:
    """Make facts with other settings of the agent."""
    return replace(GOOD, config=replace(GOOD.config, agent=replace(GOOD.config.agent, **changes)))


def facts_of(root: Path, **flags: object) -> Facts:
    """Read a real directory."""
    return Facts(load_config(flags={"state_dir": str(root), **flags}), survey(root), NOW_US)


def levels(facts: Facts, names: Sequence[str] = tuple(checks.CHECKS)) -> dict[str, str]:
    """Give what is not well."""
    results = (checks.check(name, facts) for name in names)
    return {x.check: x.level.value for x in results if x.level is not checks.OK}
