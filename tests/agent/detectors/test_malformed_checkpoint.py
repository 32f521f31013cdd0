"""Detector `malformed-checkpoint`: unreadable, truncated, wrong count, duplicate, leftover temporary file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, task
from tests.support.scenario_script import play
from tests.support.twins import cases, said_of

ID = "malformed-checkpoint"
WARNING = "warning confirmed"


def written(content: bytes, then: str = "1 s", *told: Any) -> Callable[[], Scenario]:
    """Somebody puts this into the checkpoint of a task that works."""

    def made() -> Scenario:
        run = play(Scenario(*(told or ("3.9.2",))), "start, opens, 2 s")
        run.world.replace("app/0_0/.checkpoint", content, "app/0_0/.checkpoint.tmp")
        return play(run, then)

    return made


def left_behind(then: str) -> Callable[[], Scenario]:
    """The temporary name is normal for milliseconds, and after a kill harmless."""

    def made() -> Scenario:
        run = play(Scenario("3.9.2"), "start, opens, 2 s")
        run.world.write("app/0_0/.checkpoint.tmp", b"0\n")
        return play(run, then)

    return made


@cases(
    ID,
    ("empty", written(b""), WARNING),
    ("version only", written(b"0\n"), WARNING),
    ("fewer entries than it says", written(b"0\n2\napp-s-changelog 0 5\n"), WARNING),
    ("an entry without an offset", written(b"0\n1\napp-s-changelog 0\n"), WARNING),
    ("another version", written(b"7\n0\n"), WARNING),
    ("an entry twice", written(b"0\n2\napp-s-changelog 0 5\napp-s-changelog 0 6\n"), WARNING),
    ("no text", written(b"\xff\xfe\x00"), WARNING),
    ("the next one can be read", written(b"nonsense", "1 s, checkpoints 100, 1 s"), f"{WARNING} resolved"),
    (
        "its directory is gone",
        written(b"nonsense", "1 s, stops, deletes_directory, 2 s"),
        f"{WARNING} resolved",
    ),
    ("wiped", written(b"nonsense", "1 s, wipes, 5 s", "3.7.2", "exactly_once_v2"), f"{WARNING} resolved"),
    ("an empty map", written(b"0\n0\n"), "silent"),
    ("the unknown offset", written(b"0\n1\napp-s-changelog 0 -4\n"), "silent"),
    ("a source topic, no last newline", written(b"0\n1\nsource 0 7"), "silent"),
    ("temporary, held", left_behind("300 s"), "silent: a process holds the task, and may be writing it"),
    ("temporary, killed", left_behind("crash, 130 s"), "info confirmed"),
)
def test_lives(story, said):
    """What Streams writes is well formed; what it never writes is a warning."""
    assert said_of(ID, story) == said


def temporary(
    *, held: bool | None = False, name: str = ".checkpoint.tmp", now: float = 100, **fields: Any
) -> Any:
    """A task directory that was last changed at 20 s."""
    return case(task(held=held, names=frozenset({name}), mtime_us=at(20), **fields), now=now)


@cases(
    ID,
    ("for a minute", temporary(now=80), "silent: changed less than a minute ago"),
    ("for more than a minute", temporary(now=80.1), "info confirmed"),
    ("held", temporary(held=True), "silent: a process holds the task, and may be writing it"),
    ("another file", temporary(name="s.position.tmp"), "silent"),
    ("no directory", temporary(exists=False), "silent"),
    ("no directory, and a problem", temporary(exists=False, checkpoint_problem="bad"), "silent"),
)
def test_looks(story, said):
    """More than a minute, nobody holds it, and it is that file."""
    assert said_of(ID, story) == said


@pytest.mark.parametrize(
    ("made", "where"),
    [(written(b""), "app/0_0/.checkpoint"), (left_behind("crash, 130 s"), "app/0_0/.checkpoint.tmp")],
)
def test_where(made, where):
    """It names the file."""
    assert made().only(ID).evidence[0].where == where
