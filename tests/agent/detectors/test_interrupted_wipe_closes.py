"""The close of a task before a kill: what a corrupted close, a hand-over and an orderly stop leave on disk."""

from __future__ import annotations

import pytest

from agent.contract.events import Severity
from tests.support.kills import EOS, ID, killed, restored, running, told
from tests.support.scenario import KEY_VALUE, Scenario
from tests.support.scenario_script import play

FIELD = ["3.9.2", "4.2.1", "4.3.1"]
"""Releases that write a corrupted task's offsets before its wipe."""
HANDED_OVER = pytest.mark.twin_of(ID, "its process lived on to open it again")


def said_after(run: Scenario, script: str) -> str:
    """What is said of which task after a life that ends with a kill."""
    killed(play(run, script))
    return ", ".join(f"{task} {severity}" for task, severity in told(run)) or "silent"


# What a stop, or the removal of a thread, writes before its first close: up to 4.2 every offset, with a flush.
ALL_WRITTEN = ", ".join(f"{{flush}} s, checkpoints 0_{number} 2499" for number in range(4))


def stop_cut(release: str, closed: int, flush: float) -> str:
    """The grace period is over: all offsets are written, some tasks are closed, the rest dies with the process."""
    if release == "4.3.1":
        return ", ".join(f"closes 0_{number} 2499, {flush} s" for number in range(closed))
    closes = [f"closes 0_{number}, {flush} s" for number in range(closed)]
    return ", ".join([ALL_WRITTEN.format(flush=flush), *closes])


def thread_removed(release: str, between: float) -> str:
    """removeStreamThread: all tasks of a thread are written, then closed one after the other."""
    if release == "4.3.1":
        return f"closes 0_0 2499, closes 0_2 2499, {between} s"
    return f"checkpoints 0_0 2499, checkpoints 0_2 2499, closes 0_0, closes 0_2, {between} s"


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.parametrize(
    ("script", "said"),
    [
        # a wipe begins 4 to 40 ms after the close; where none had begun after 0.1 s, none was due
        pytest.param("closes 0_1 2499, 0.03 s", "0_1 warning", id="corrupted"),
        pytest.param("closes 0_1 2499, 0.2 s", "0_1 info", id="its wipe would have begun"),
        pytest.param("closes 0_1 2499, 4 s", "0_1 info", id="seconds before"),
        pytest.param("closes 0_1 2499, 5.5 s", "silent", id="long before"),
        pytest.param(
            "closes 0_0 2499, 0.005 s, deletes_directory 0_0, closes 0_1 2499, 0.01 s",
            "0_1 warning",
            id="corrupted after another was wiped",
        ),
        pytest.param(
            "closes 0_0 2499, 0.3 s, opens 0_0, 0.03 s", "silent", id="handed to a thread", marks=HANDED_OVER
        ),
        # scaled out, and rolling restarts by kill: the pod before is back and takes tasks over, in order
        *(
            pytest.param(f"closes 0_0 2499, {x} s", "0_0 info", id=f"one moved {x} s before")
            for x in (0.7, 3.1)
        ),
        *(
            pytest.param(
                f"closes 0_0 2499, closes 0_1 2499, {x} s", "0_0 info, 0_1 info", id=f"two moved {x} s before"
            )
            for x in (0.7, 3.1)
        ),
        *(
            pytest.param(f"closes 0_3 2499, {x} s", "0_3 info", id=f"last moved {x} s before")
            for x in (0.2, 4.9)
        ),
    ],
)
def test_closes(release, script, said):
    """A corrupted close is followed by its wipe; a revocation is not."""
    assert said_after(running(release), script) == said


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.parametrize(
    "script",
    [
        *(lambda x, n=n, f=f: stop_cut(x, n, f) for n in (1, 2, 3) for f in (0.01, 0.4)),
        *(lambda x, s=s: thread_removed(x, s) for s in (0.02, 0.8, 4.7)),
    ],
)
def test_stop_that_was_cut(release, script):
    """An orderly stop, or that of a thread, and a kill in the middle: information at most."""
    assert "warning" not in said_after(running(release), script(release))


def test_wipe_of_long_ago_is_no_corruption_now():
    """A task that was wiped a minute before an orderly stop has nothing to do with it."""
    script = "closes 0_3 2499, deletes_directory 0_3, 60 s, closes 0_0 2499, 0.02 s"
    assert "warning" not in said_after(running("4.3.1"), script)


@pytest.mark.parametrize(("first", "severity"), [("2_0", "info"), ("10_0", "warning")])
def test_order_of_an_orderly_stop(first, severity):
    """4.3 writes nothing before the first close; what is left is that a stop closes tasks by number: 2_0, then 10_0."""
    run = restored(play(Scenario("4.3.1", EOS), "start"), "2_0", "10_0")
    script = f"4 s, puts 2_0 500, puts 10_0 500, closes {first} 2499, 0.02 s"
    assert said_after(run, script) == f"{first} {severity}"
    assert ("a stop closes this task first" in run.only(ID).summary) == (severity == "info")


TWO = ("0_0", "0_1")


@pytest.mark.parametrize(("between", "severity"), [(0.3, Severity.WARNING), (0.5, Severity.INFO)])
def test_on_a_slow_volume(between, severity):
    """Where an unlink takes 0.3 s, the first one of a wipe is seen so much later."""
    run = play(restored(play(Scenario("4.0.0", EOS), "start"), *TWO), "5 s")
    run.app.stops(dict.fromkeys(TWO, 1999))
    run.world.unlink_us = 300_000
    play(run, "start, " + ", ".join(f"opens {x}, restores {x} 1999 puts=0" for x in TWO))
    script = f"puts 5000, flushes, compacts, 1 s, closes 6999, {between} s"
    assert said_after(run, script) == f"0_0 {severity}"


def test_close_on_a_very_slow_volume():
    """RocksDB removes files while it closes: there its lock is let go long after the checkpoint was written."""
    run = Scenario("3.9.1", EOS, stores={"s": KEY_VALUE, "t": KEY_VALUE})
    run.world.unlink_us = 400_000
    play(run, "start, " + ", ".join(f"opens {x}, restores {x} 1999 puts=2000, compacts {x}" for x in TWO))
    script = "3 s, puts 5000, flushes, compacts, 3 s, checkpoints 6999, 0.7 s, closes, 0.05 s"
    assert said_after(run, script) == "0_0 warning"


def test_end_that_was_polled():
    """Where nobody announces the end of the process it may have come up to a lock poll earlier than it was seen."""
    assert told(play(running("4.1.2"), "closes 2499, crash, 5 s")) == [("0_0", Severity.WARNING)]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("closes 2499, 2 s", "its wipe would have started within 0.1 s"),
        (thread_removed("4.1.2", 0.03), "other tasks were closed with it"),
    ],
)
def test_information_says_why(script, why):
    """What speaks against a corrupted close is told, and that nothing has to be done."""
    run = running("4.1.2")
    said_after(run, script)
    assert why in run.findings(ID)[0].summary
    assert run.findings(ID)[0].next_action.startswith("Nothing")
