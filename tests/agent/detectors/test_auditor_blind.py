"""Detector `auditor-blind`: the agent missed something, or has nothing to watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.inventory.disk import LockState
from agent.inventory.model import Application, BlindInterval, Inventory
from agent.judging.base import AgentCase
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, judge
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "auditor-blind"
WARNING, INFO = "warning confirmed", "info confirmed"
PERHAPS = "info unknown"


def overflow(then: str) -> Any:
    """Notifications were lost."""

    def made() -> Scenario:
        run = life("start, opens, 10 s", Scenario, "4.1.2")()
        run.world.overflows()
        return play(run, then)

    return made


@cases(
    ID,
    ("notifications lost", overflow("40 s"), WARNING),
    ("some minutes after the rescan", overflow("440 s"), f"{WARNING} resolved"),
    ("nothing to watch, 290 s", life("290 s", Scenario, "4.1.2"), "silent"),
    ("nothing to watch, 350 s", life("350 s", Scenario, "4.1.2"), PERHAPS),
    ("an application came", life("350 s, start, opens, 60 s", Scenario, "4.1.2"), f"{PERHAPS} resolved"),
    ("nothing to watch, 3,500 s", life("3500 s", Scenario, "4.1.2"), PERHAPS),
    ("nothing to watch, 3,700 s", life("3700 s", Scenario, "4.1.2"), "warning unknown"),
    ("an ordinary run", life("start, opens, 900 s", Scenario, "4.1.2"), "silent"),
)
def test_lives(story, said):
    """What it missed, and how long there was nothing."""
    assert said_of(ID, story) == said


def missed(
    *intervals: BlindInterval, now: float = 100, seen: float = 0, slowed: Mapping[str, Any] | None = None
) -> AgentCase:
    """Blind intervals; an application is there, which was first seen at `seen`."""
    app = Application("app", exists=True, first_seen_us=at(seen), lock=LockState.HELD)
    known = Inventory({"app": app}, started_us=at(0), root_seen=True)
    known.blind.extend(intervals)
    known.slowed.update(slowed or {})
    return AgentCase(known, at(now))


def blind(
    began: float, ended: float | None = None, cause: str = "queue-overflow", *place: Any
) -> BlindInterval:
    """It was blind for the whole state directory, or a place."""
    return BlindInterval(at(began), cause, None if ended is None else at(ended), *place)


def unread(began: float, ended: float | None = None) -> BlindInterval:
    """A checkpoint could not be read."""
    place = "app/0_0/.checkpoint"
    end_us = None if ended is None else at(ended)
    return BlindInterval(at(began), "denied", end_us, "app", "0_0", f"at {place!r}", place=place)


def nothing(
    *intervals: BlindInterval, now: float, root: bool = True, lock: LockState | None = None, **fields: Any
) -> AgentCase:
    """No application directory, or with `lock` one that has no task."""
    apps = {} if lock is None else {"app": Application("app", exists=True, lock=lock)}
    known = Inventory(apps, started_us=at(0), root_seen=root, **fields)
    known.blind.extend(intervals)
    return AgentCase(known, at(now))


AWAITED = [blind(x, x + 0.5, "root-missing") for x in range(10, 20)]
PLACES = [
    BlindInterval(at(10), "denied", None, "app", f"0_{number}", place=f"app/0_{number}")
    for number in range(100)
]
POLLING = {"polling": (at(10), "/state is nfs4")}
LIMIT = {"watch-limit": (at(20), "set fs.inotify.max_user_watches=8192 on the node")}


@cases(
    ID,
    ("it lasts", missed(blind(10)), WARNING),
    ("it ended five minutes ago", missed(blind(10, 12), now=312), "silent"),
    ("it ended less than five minutes ago", missed(blind(10, 12), now=311.9), WARNING),
    ("two intervals", missed(blind(10), blind(20), now=30), f"{WARNING}, {WARNING}"),
    ("a hundred refused directories are one trouble", missed(*PLACES, now=30), WARNING),
    # nothing can be lost before an application makes its directory
    ("a sidecar waits for the first start", missed(blind(10, 15, "root-missing"), now=30, seen=15), INFO),
    ("seen when it began", missed(blind(10, 15, "root-missing"), now=30, seen=10), INFO),
    ("seen before", missed(blind(10, 15, "root-missing"), now=30, seen=5), WARNING),
    ("waits again and again", missed(*AWAITED, now=30, seen=19), INFO),
    ("missing again and again", missed(*AWAITED, now=30, seen=5), WARNING),
    ("an overflow before the first start", missed(blind(10, 15), now=30, seen=15), WARNING),
    ("agents restart in every rollout", missed(blind(10, 15, "agent-away"), now=30), INFO),
    ("polling", missed(slowed=POLLING), INFO),
    ("a limit of the kernel", missed(slowed=LIMIT), WARNING),
    ("empty directory, before five minutes", nothing(now=299.9), "silent"),
    ("empty directory", nothing(now=300), PERHAPS),
    ("missing mount, before five minutes", nothing(now=299.9, root=False), "silent"),
    ("missing mount", nothing(now=300, root=False), WARNING),
    ("a level below the mount", nothing(now=400, nested=("orders-abcde", "orders-fghij")), WARNING),
    ("directories that no process holds", nothing(now=3700, lock=LockState.FREE), "warning unknown"),
    # more pods than partitions: the instance holds the lock of its application
    ("all tasks are elsewhere", nothing(now=86_400, lock=LockState.HELD), "silent"),
    ("nobody can ask who holds the lock", nothing(now=86_400, lock=LockState.UNKNOWN), "silent"),
)
def test_looks(story, said):
    """How long, and whether an application was there to be blind for."""
    assert said_of(ID, story) == said


STEP = BlindInterval(at(10), "clock-step", at(20), detail="the clock was set by -3600.0 s")
REFUSED = blind(10, None, "watch-refused")


@pytest.mark.parametrize(
    ("one", "opened", "words"),
    [
        (
            missed(blind(1, 3), now=5),
            1,
            "Changes of the whole state directory may have been missed for 2.0 s (queue-ove",
        ),
        (
            missed(blind(1, 3, "queue-overflow", "app"), now=5),
            1,
            "Changes of app may have been missed for 2.0 s",
        ),
        (
            missed(blind(1, 3, "queue-overflow", "app", "0_0"), now=5),
            1,
            "of app/0_0 may have been missed for 2.0 s",
        ),
        (
            missed(blind(10, None, "watch-limit", "app", "0_3")),
            10,
            "Changes of app/0_3 may be missed (watch-limit): no",
        ),
        (
            missed(STEP, now=30),
            10,
            "(clock-step): the wall clock jumped: times before and after cannot be compared: the",
        ),
        (missed(STEP, now=30), 10, "the clock was set by -3600.0 s."),
        (missed(unread(10)), 10, "Can't read app/0_0/.checkpoint: permission denied."),
        (
            missed(unread(1, 3), now=5),
            1,
            "Could not read app/0_0/.checkpoint for 2.0 s: permission denied.",
        ),
        (missed(*PLACES, now=30), 10, "Can't read 100 places (denied): app/0_0, app/0_1, "),
        (missed(*PLACES, now=30), 10, "app/0_15 and more."),
        (missed(*PLACES[:9], now=30), 10, "app/0_6, app/0_7 and more."),
        (missed(*PLACES[:8], *PLACES[:1], now=30), 10, "app/0_6, app/0_7."),
        (
            missed(*AWAITED, now=30, seen=5),
            10,
            "Changes may be missed, 10 times (root-missing): the whole state directory.",
        ),
        (missed(slowed=POLLING), 10, "nfs4"),
        (missed(slowed=LIMIT), 20, "max_user_watches=8192"),
        (nothing(now=300), 300, "No application directory"),
        (nothing(now=300, root=False), 300, "does not exist"),
        (nothing(now=3700, lock=LockState.FREE), 3600, "none of 1 application directories has one"),
        (nothing(REFUSED, now=400, root=False), 300, "no permission to read"),
        (nothing(REFUSED, now=400, root=False), 300, "runAsGroup"),
        (nothing(blind(10, 20, "watch-refused"), now=400, root=False), 300, "does not exist"),
        (nothing(now=400, nested=("a", "b")), 300, "one level below: a is a state directory (2 are: "),
    ],
)
def test_sentence(one, opened, words):
    """Where, how long, and what to do: the place is as small as it is known, and it is dated."""
    verdict = judge(ID, one)[-1]
    assert verdict.opened_at_us == at(opened)
    assert words in verdict.summary


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (missed(*PLACES, now=30), "Run statewarden with the application's group"),
        (missed(unread(10)), "Until then verdicts rest on what was read before, if anything was."),
        (missed(blind(1, 3), now=5), "Treat what happened in that time as unknown"),
        (missed(slowed=LIMIT), "Nothing is wrong with the application"),
        (
            nothing(now=400, nested=("a", "b")),
            "$(POD_NAME)",
        ),  # never an advice that would make the pods share one
    ],
)
def test_next_action(one, words):
    """The remedy is that of the cause."""
    assert words in judge(ID, one)[-1].next_action


def test_evidence():
    """Its beginning and its end, with the place; each interval is a finding of its own."""
    (verdict,) = judge(ID, missed(blind(10, 12, "queue-overflow", "app"), now=30))
    assert [(step.at_us, step.where) for step in verdict.evidence] == [(at(10), "app"), (at(12), "app")]
    assert len({x.subject for x in judge(ID, missed(blind(10), blind(20), now=30))}) == 2


def test_every_step_of_doing_less_is_reported():
    """Another step is another finding, and the former one ends."""
    steps = ("slower-rescan", "slower-rescan, longer-batches")
    found = [judge(ID, missed(slowed={"self-limit": (at(10), x)}))[0] for x in steps]
    assert [step in x.summary for step, x in zip(steps, found, strict=True)] == [True, True]
    assert len({x.subject for x in found}) == 2
