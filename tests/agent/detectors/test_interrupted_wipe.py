"""Detector `interrupted-wipe`: killed between the close of a corrupted task and its wipe (hazard D2)."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Severity
from agent.inventory.model import Application, CheckpointFact, ProcessLife
from tests.support.kills import EOS, ID, killed, restored, running, told
from tests.support.scenario import KEY_VALUE, Scenario
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

WITHOUT = " without aborted transactions in the changelog"
WARNING = "warning suspected" + WITHOUT
INFO = "event info unknown" + WITHOUT
KILLED_OPEN = "silent: killed open"
STOPPED = "silent: an orderly stop: no other task died open"
BRIEF = "silent: held too briefly to tell how it ended"


def closed_then_killed(
    release: str = "4.1.2",
    guarantee: str = EOS,
    *,
    between: float = 0.03,
    offset: int | None = 6999,
    siblings: bool = True,
    **more: Any,
) -> Scenario:
    """A running task is closed with a fresh offset, and the process is killed shortly after, seen at once."""
    ids = ["0_0", "0_1"] if siblings else ["0_1"]
    run = restored(play(Scenario(release, guarantee, **more), "start"), *ids)
    play(run, ", ".join(["10 s", *(f"puts {x} 5000, flushes {x}" for x in ids), "2 s"]))
    killed(play(run, f"closes 0_1 {'' if offset is None else offset}, {between} s"))
    assert run.findings(ID) == []
    return run


def two_tasks() -> Scenario:
    """Both are restored, and run."""
    return play(restored(play(Scenario("4.1.2", EOS), "start"), "0_0", "0_1"), "5 s")


def stopped() -> Scenario:
    """When everything is closed, nothing was interrupted."""
    run = two_tasks()
    run.app.stops({"0_0": 2500, "0_1": 2500})
    return run


REOPENED = "start, 5 s, opens 0_1"
TRUSTED = f"{REOPENED}, restores 0_1 6999 puts=0, 15 s"
LATER = f"{REOPENED}, 30 s"
ELSEWHERE = f"{REOPENED}, restores 0_1 6999 puts=0, 30 s"


@cases(
    ID,
    ("reopened, 3.8", life(TRUSTED, closed_then_killed, "3.8.1"), WARNING),
    ("reopened, 4.1", life(TRUSTED, closed_then_killed), WARNING),
    ("reopened, 4.3", life(TRUSTED, closed_then_killed, "4.3.1"), WARNING),
    ("no checkpoint, a wipe may come", life(f"{REOPENED}, 9 s", closed_then_killed), "silent"),
    ("no checkpoint, none came", life(f"{REOPENED}, 12 s", closed_then_killed), WARNING),
    ("wiped", life(f"{REOPENED}, wipes 0_1, 30 s", closed_then_killed), "silent"),
    ("revoked", life(LATER, closed_then_killed, between=6), "silent: revoked seconds before the kill"),
    ("stopped in order", life(f"5 s, {LATER}", stopped), STOPPED),
    ("a kill after a close, or a stop", life(LATER, closed_then_killed, siblings=False), "silent"),
    ("killed open", life(f"crash, 5 s, {LATER}", two_tasks), KILLED_OPEN),
    (
        "a dirty close of 4.3 is a false clean",
        life(LATER, closed_then_killed, "4.3.1", offset=None),
        "silent: closed without an offset (4.3+)",
    ),
    ("3.7", life(ELSEWHERE, closed_then_killed, "3.7.2"), "silent"),
    ("4.4", life(ELSEWHERE, closed_then_killed, "4.4.0"), "silent"),
    ("at-least-once", life(ELSEWHERE, closed_then_killed, "4.1.2", "at_least_once"), "silent"),
    ("guarantee not told", life(ELSEWHERE, closed_then_killed, hidden=("processing_guarantee",)), "silent"),
)
def test_lives(story, said):
    """A close right before the kill, siblings killed open, and no wipe afterwards: suspected, never more."""
    assert said_of(ID, story) == said


# -- the exact boundary ---------------------------------------------------------------------------------------


def dossier(
    *,
    closed: float = 49.9,
    opened: float = 0,
    released: float | None = 50,
    sibling: dict[str, Any] | None = None,
    sibling_id: str = "0_1",
    lives: tuple[tuple[float, float | None], ...] = ((0, 50),),
    written: tuple[float, ...] = (),
    before: dict[str, Any] | None = None,
    more: tuple[Any, ...] = (),
    **settings: Any,
) -> Any:
    """The process ended at 50 s; 0_0 was closed at `closed` and reopened at 60 s, 0_1 was let go at the end.

    `written`: checkpoints of 0_1; it may name no known store. `more`: other sessions of other tasks.
    """
    app = Application("app", exists=True)
    app.lives += tuple(ProcessLife(at(a), None if b is None else at(b), True) for a, b in lives)
    last = mark(closed - 0.01, 6999, 7000)
    one = session(1, closed, puts=7000, last=last, **{"closed": True, **(before or {})})
    sessions = [one, session(60, first=mark(61, 6999, 7000))]
    other = session(opened, released, puts=5000, **{"closed": False, **(sibling or {})})
    facts = [CheckpointFact(at(x), at(x), {}, (), 1, True) for x in written]
    beside = [task(store([database()], [other]), task_id=sibling_id, checkpoints=facts)]
    if more:
        beside = [task(store([database()], [x]), task_id=f"0_{n}") for n, x in enumerate(more, 2)]
    return case(task(store([database(puts=7000)], sessions)), *beside, application=app, **settings)


def restarted_before() -> Any:
    """A good restart before, or another store of the task, does not hide the interrupted wipe."""
    one = dossier()
    held = one.task.stores["s"]
    held.sessions = (session(-60, -50, puts=7000, closed=True), *held.sessions)
    one.task.stores = {"a": store(name="a"), **one.task.stores}
    return one


NO_PROOF = (
    session(0, 50, puts=5000, closed=True),
    session(0, puts=5000, closed=None),
    session(55, 70, puts=5000, closed=False),
)
KILLED = session(0, 50, puts=5000, closed=False)


@cases(
    ID,
    ("closed 5.1 s before the kill", dossier(closed=44.9), "silent"),
    ("5 s before", dossier(closed=45), INFO),
    ("0.1 s before", dossier(), WARNING),
    ("8 ms before", dossier(closed=49.992), WARNING),
    ("7 ms before is the kill itself", dossier(closed=49.993), STOPPED),
    ("after it", dossier(closed=50.1), "silent"),
    ("at the end", dossier(closed=50), STOPPED),
    ("at the end, its sibling later", dossier(closed=50, released=50.1), WARNING),
    ("its sibling went a second before the end", dossier(released=49), STOPPED),
    ("its sibling went a second after", dossier(released=51), WARNING),
    ("its sibling went later", dossier(released=51.1), STOPPED),
    ("other lives before and after", dossier(lives=((-90, -50), (0, 50), (55, None))), WARNING),
    ("the process lives", dossier(lives=((0, None),)), "silent"),
    ("only an earlier one ended", dossier(lives=((-90, -50),)), "silent"),
    ("its sibling was closed", dossier(sibling={"closed": True}), STOPPED),
    ("its sibling was held too briefly", dossier(sibling={"closed": None}), STOPPED),
    ("its sibling came after the end", dossier(opened=50, released=50.5), STOPPED),
    ("siblings that prove nothing", dossier(more=NO_PROOF), STOPPED),
    ("and one that was killed", dossier(more=(*NO_PROOF, KILLED)), INFO),
    # found live with 3.8.1 and 3.9.0: a stop closes the stream threads' tasks, then the global state
    ("global state is no sibling", dossier(sibling_id="global"), STOPPED),
    # a stop writes the checkpoints of all tasks in the order in which it closes them; the first is the restoration's
    ("its sibling wrote when it was restored", dossier(written=(39.8,)), WARNING),
    ("right before this one", dossier(written=(49.8,)), WARNING),
    ("right after this one", dossier(written=(49.89,)), STOPPED),
    ("after its close", dossier(written=(49.95,)), STOPPED),
    ("a second time, ten seconds before", dossier(written=(5, 39.8)), WARNING),
    ("a second time, in the ten seconds", dossier(written=(5, 40)), STOPPED),
    ("a second time, right before", dossier(written=(5, 49.8)), STOPPED),
    ("no offset in the store, before 4.3", dossier(before={"closed_with_offset": False}), WARNING),
    ("killed open", dossier(before={"closed": False}), KILLED_OPEN),
    ("held too briefly", dossier(before={"closed": None}), BRIEF),
    ("4.3, no offset", dossier(release="4.3.1", before={"closed_with_offset": False}), "silent"),
    ("4.3, not known", dossier(release="4.3.1", before={"closed_with_offset": None}), "silent"),
    ("not let go", dossier(before={"released_us": None}), "silent"),
    ("a restart before", restarted_before(), WARNING),
    ("release not told", dossier(release=None), WARNING),
)
def test_looks(story, said):
    """The time between close and kill, and what the others did."""
    assert said_of(ID, story) == said


def test_chain_of_the_verdict():
    """Opened, closed, process gone, opened again: in this order, dated to the reopening, on this incarnation."""
    (verdict,) = judge(ID, dossier())
    assert [step.at_us for step in verdict.evidence] == [at(1), at(49.9), at(50), at(60)]
    assert (verdict.subject, verdict.opened_at_us) == (f"kill@{at(50)}", at(60))
    assert (verdict.identity, verdict.upstream) == ("identity-1", ("interrupted wipe (no upstream issue)",))
    assert "0.1 s before" in verdict.summary
    assert "2.0 s before" in judge(ID, dossier(closed=48))[0].summary
    assert [x.opened_at_us for x in judge(ID, restarted_before())] == [at(60)]
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY


# -- what a corrupted close, a hand-over and an orderly stop leave on disk -------------------------------------

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


@pytest.mark.parametrize("topology", ["", "__one__/"])
@pytest.mark.parametrize(("first", "severity"), [("2_0", "info"), ("10_0", "warning")])
def test_order_of_an_orderly_stop(first, severity, topology):
    """4.3 writes nothing before the first close; what is left is that a stop closes tasks by number: 2_0, then 10_0."""
    two, ten, first = (f"{topology}{number}" for number in ("2_0", "10_0", first))
    run = restored(play(Scenario("4.3.1", EOS), "start"), two, ten)
    script = f"4 s, puts {two} 500, puts {ten} 500, closes {first} 2499, 0.02 s"
    assert said_after(run, script) == f"{first} {severity}"
    assert ("a stop closes this task first" in run.only(ID).summary) == (severity == "info")


def failed_stop(release: str, script: str) -> str:
    """A stop has written all tasks, its commit fails: it closes and wipes one after the other, in any order."""
    before = "" if release >= "4.3" else ALL_WRITTEN.format(flush=0.01) + ", "
    return said_after(running(release), before + script)


WIPES_ONE = "closes 0_2, 0.01 s, deletes_directory 0_2"
REST = "0_0 warning, 0_1 warning, 0_3 warning"


@pytest.mark.parametrize("release", ["3.4.0", "3.7.2", "3.9.2", "4.2.2"])
@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(f"{WIPES_ONE}, 0.02 s", REST, id="one is wiped"),
        pytest.param(f"9 s, {WIPES_ONE}, 9.9 s", REST, id="large stores"),
        pytest.param(f"{WIPES_ONE}, 10.1 s", "silent", id="the process lived on"),
        pytest.param(f"{WIPES_ONE}, closes 0_0, 0.02 s", REST, id="the next is closed"),
        pytest.param(f"{WIPES_ONE}, 0.01 s, opens 0_2, 0.02 s", "silent", id="that one was revived"),
        pytest.param(
            f"closes 0_0, 0.5 s, {WIPES_ONE}, 0.02 s",
            "0_1 warning, 0_3 warning",
            id="nothing to commit: closed and kept",
            marks=pytest.mark.twin_of(ID, "closed by the stop, and kept"),
        ),
        pytest.param(
            f"closes 0_0, 5.5 s, {WIPES_ONE}, 0.02 s",
            "0_1 warning, 0_3 warning",
            id="revoked before",
            marks=pytest.mark.twin_of(ID, "revoked seconds before the kill"),
        ),
    ],
)
def test_stop_whose_commit_failed(release, script, said):
    """Played with released jars (InterruptedStop.java): what was written and not wiped is trusted."""
    assert failed_stop(release, script) == said


@pytest.mark.parametrize(
    ("release", "script", "said"),
    [
        ("3.3.2", f"{WIPES_ONE}, 0.02 s", "silent"),  # it writes nothing when its commit fails
        # 4.3 and later: only what is closed has its offset, for the milliseconds before its wipe
        ("4.4.0", f"{WIPES_ONE}, closes 0_1 2499, 0.02 s", "0_1 warning"),
        ("4.4.0", f"{WIPES_ONE}, closes 0_1, 0.02 s", "silent"),
        ("4.4.0", f"{WIPES_ONE}, 0.02 s", "silent"),
    ],
)
def test_stop_of_other_releases(release, script, said):
    """What else a stop leaves."""
    assert failed_stop(release, script) == said


@pytest.mark.parametrize(("release", "said"), [("3.7.2", "0_1 warning"), ("4.2.1", "silent")])
def test_checkpoints_of_a_restoration_are_no_stop(release, said):
    """Lost membership wipes all active tasks: what 3.8 and later wrote at their restoration's end is nobody's stop."""
    run = play(
        Scenario(release, EOS), "start, opens 0_0, opens 0_1, checkpoints 0_0 1999, checkpoints 0_1 1999"
    )
    assert said_after(run, "3 s, closes 0_0, 0.01 s, deletes_directory 0_0, 0.02 s") == said


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
