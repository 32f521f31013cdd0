"""Facts of a pod in which all is well, to change one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.observe.volume import Mount, Space
from agent.preflight.checks import judge
from agent.preflight.facts import (
    Directory,
    EndpointFacts,
    Facts,
    Identity,
    InotifyFacts,
    OwnVolume,
    StateFacts,
)
from agent.preflight.telling import Result
from agent.watch.limits import Limit

NOW_US = 1_800_000_000_000_000
AGENT = Identity(65532, 65532, frozenset({2000}))
ROOT = Directory("/state", 1000, 2000, 0o2770, True, NOW_US)
APPLICATION = Directory("/state/app", 1000, 2000, 0o2750, True, NOW_US)
SPOOL = OwnVolume(
    path="/var/lib/statewarden/spool",
    space=Space(500 << 20),
    mount=Mount("/var/lib/statewarden", "ext4", False),
    need_bytes=72 << 20,
)
STATE = StateFacts(
    root=ROOT,
    below=(APPLICATION,),
    applications=("app",),
    tasks=3,
    directories=13,
    mount=Mount("/state", "ext4", True),
)
GOOD = Facts(
    state_dir="/state",
    identity=AGENT,
    state=STATE,
    inotify=InotifyFacts(
        Limit("fs.inotify.max_user_watches", 8192), Limit("fs.inotify.max_user_instances", 128)
    ),
    now_us=NOW_US,
    is_synchronised=True,
    spool=SPOOL,
    endpoint=EndpointFacts("https://example.com", tried=("example.com:443",)),
)


def state(**changes: Any) -> Facts:
    """Make facts with another state directory."""
    return replace(GOOD, state=replace(STATE, **changes))


def spool(**changes: Any) -> Facts:
    return replace(GOOD, spool=replace(SPOOL, **changes))


def endpoint(**changes: Any) -> Facts:
    return replace(GOOD, endpoint=replace(GOOD.endpoint, **changes))


def inotify(**changes: Any) -> Facts:
    return replace(GOOD, inotify=replace(GOOD.inotify, **changes))


def result(facts: Facts, check: str) -> Result:
    return next(one for one in judge(facts) if one.check == check)
