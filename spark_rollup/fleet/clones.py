"""Things that exist once and that two pods show at the same time: process ids, and IDENTITYs of stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from agent.contract.mechanisms import Mechanism
from spark_rollup.fleet.application import SKEW_US, Application
from spark_rollup.fleet.gaps import until_us
from spark_rollup.fleet.pods import GONE_US, TOO_MANY
from spark_rollup.fleet.rows import Life, Sighting

PROCESS, STORE = "process", "store"
"""What is shared."""

Pair = tuple[str, str]
"""Two pods, the smaller name first."""


class Shared(NamedTuple):
    """Two pods showed one thing at the same time: the overlap."""

    of: Sighting
    pair: Pair
    from_us: int
    to_us: int


def shared(app: Application) -> Iterator[Shared]:
    """List what two pods showed at the same time, for longer than clocks can differ."""
    things: dict[tuple[str | None, ...], list[Sighting]] = defaultdict(list)
    for x in app.sightings:
        things[x.what, x.key, x.task_id, x.store].append(x)
    for seen in things.values():
        there: list[Sighting] = []
        for x in sorted(seen, key=lambda x: x.from_us):
            there = [y for y in there if y.to_us - x.from_us > SKEW_US]
            for y in there:
                to_us = min(x.to_us, y.to_us)
                if x.pod != y.pod and to_us - x.from_us > SKEW_US:
                    yield Shared(x, (min(x.pod, y.pod), max(x.pod, y.pod)), x.from_us, to_us)
            there.append(x)


def alive_together(app: Application) -> Iterator[Shared]:
    """List the times in which processes with one id lived on two pods, for longer than clocks can differ."""

    @cache
    def lives(pod: str) -> list[Life]:
        return [x for x in app.lives if x.pod == pod]

    for x in shared(app):
        for one in lives(x.pair[0]) if x.of.what == PROCESS else ():
            for other in lives(x.pair[1]):
                from_us, to_us = (
                    max(x.from_us, one.from_us, other.from_us),
                    min(x.to_us, one.to_us, other.to_us),
                )
                if to_us - from_us > SKEW_US:
                    yield x._replace(from_us=from_us, to_us=to_us)


def is_over(app: Application, pair: Pair, to_us: int) -> bool:
    """Return whether both pods were watched for some rounds since, and no longer show what they showed until then.

    Of a pod that fell silent or blind nobody knows that.
    """
    known = (app.pods[pod] for pod in pair if pod in app.pods)
    # what is left out of a task's readings does not hide what was seen
    unseen = (until_us(x) for pod in known for x in pod.gaps if x.cause != TOO_MANY and app.concerns(x, None))
    return app.as_of_us - max(to_us, max(unseen, default=to_us)) > GONE_US


def holders(app: Application, pair: Pair, from_us: int, to_us: int) -> int:
    """Count on how many of the two pods a process held any task of the application in a closed interval."""
    return len(
        {
            x.pod for task in app.tasks.values() for x in task.owners
            if x.pod in pair and x.from_us <= to_us and x.to_us >= from_us
        }
    )  # fmt: skip


def reported(app: Application, pair: Pair) -> list[str]:
    """List the agents' findings of two processes on one directory, on the two pods."""
    return sorted(
        {
            x.finding_id for x in app.said
            if x.pod in pair and (
                (x.detector == "setup" and x.mechanism == Mechanism.SHARED_STATE.slug)
                or x.detector == "shared-state-dir"  # of older agents
            )
        }
    )  # fmt: skip
