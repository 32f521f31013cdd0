"""Detector `orphaned-task`: nobody opens it and no cleaner takes it (KAFKA-20663)."""

from __future__ import annotations

from functools import partial
from typing import Any

from agent.contract.events import Affected, Level
from agent.inventory.blindness import note_blind
from agent.inventory.model import Application, Deletion, ProcessLife, Shape
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, having, judge, store, task
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "orphaned-task"
WARNING, INFO = "warning confirmed", "info suspected"
EARLY = "silent: the cleaner may take it yet"


def unassigned(release: str = "4.3.0", *, delay: int | None = 10_000, **more: Any) -> Scenario:
    """Two tasks on disk; after a restart with its start-up pass only one of them is assigned."""
    run = play(Scenario(release, told={"state_cleanup_delay_ms": delay}, **more), "start")
    play(run, "opens 0_0, 0.5 s, puts 0_0 100, opens 0_1, 0.5 s, puts 0_1 100, 2 s")
    run.app.stops({"0_0": 99, "0_1": 99})
    run.wait(5)
    return play(run, f"start, {'startup_pass,' * run.habits.startup_pass} 3 s, opens, 2 s")


DELAY_10_S = partial(Scenario, "4.3.0", told={"state_cleanup_delay_ms": 10_000})
CLEANED = "12 s, deletes 0_1, 120 s"


@cases(
    ID,
    ("4.3.0, within two delays", life("15 s", unassigned), EARLY),
    ("4.3.0, never cleaned", life("95 s", unassigned), WARNING),
    ("N8, 2.3 cleans it", life(CLEANED, unassigned, "2.3.1"), "silent"),
    ("N8, 3.9 cleans it", life(CLEANED, unassigned, "3.9.2"), "silent"),
    ("N8, 4.3.1 cleans it", life(CLEANED, unassigned, "4.3.1"), "silent"),
    ("elsewhere it is only remarkable", life("120 s", unassigned, "4.3.1"), INFO),
    (
        "only 4.3.0 keeps the lock, release not told",
        life("100 s", unassigned, hidden=("kafka_streams_version",)),
        "info unknown without kafka_streams_version",
    ),
    # a sibling that flushes and has stored no offset yet may restore, for hours
    ("a restoration holds the cleaner up", life("puts 500, flushes, 100 s", unassigned), INFO),
    # 4.3.0 as well: an assignment takes the lock over from the start-up pass and gives it back
    ("it moved away", life("opens 0_1, 2 s, closes 0_1 99, 100 s", unassigned), INFO),
    # nor has the pass opened what this process has made
    (
        "this process has made it, and it moved away",
        life("start, opens, puts 0_0 100, opens 0_1, puts 0_1 100, 2 s, closes 0_1 99, 100 s", DELAY_10_S),
        INFO,
    ),
    ("it is opened", life("100 s, opens 0_1, 2 s", unassigned), f"{WARNING} resolved"),
    (
        "its process ended",
        life("stops 99, 300 s", unassigned),
        "silent: its process ended: no cleaner is to be expected",
    ),
    # behind the lock of the start-up pass no delay ends: half a minute is enough, whatever the delay is
    ("delay not told, 25 s", life("25 s", unassigned, delay=None), EARLY),
    ("delay not told, 35 s", life("35 s", unassigned, delay=None), "warning suspected"),
)
def test_lives(story, said):
    """Free for more than two delays beside a living process: the start-up pass keeps its lock."""
    assert said_of(ID, story) == said


def test_finding():
    """What it names; of a delay that nobody told only the assumption."""
    finding = life("95 s", unassigned)().only(ID)
    assert (finding.level, finding.task_id) == (Level.EXPOSURE, "0_1")
    assert (finding.affected, finding.upstream) == (Affected.YES, ("KAFKA-20663",))
    assumed = life("35 s", unassigned, delay=None)().only(ID)
    assert "cleanup delay" not in assumed.summary
    assert "assuming the default state.cleanup.delay.ms=600000" in assumed.evidence[-1].what


def dossier(
    *,
    now: float = 100,
    released: float | None = 10,
    mtime: float = 0,
    lives: bool = True,
    sibling: bool = False,
    opened: tuple[float, ...] = (1, 6),
    all_reopens: bool = True,
    set_forward: bool = False,
    **fields: Any,
) -> Any:
    """0_0 was released; the delay is ten seconds: two of them and five seconds are the limit."""
    app = Application("app", exists=True)
    if lives:
        app.lives += (ProcessLife(at(5)),)
    one = task(store([database(reopened_us=tuple(map(at, opened)), all_reopens=all_reopens)]))
    one.released_us, one.mtime_us, one.held = None if released is None else at(released), at(mtime), False
    other = task(store([database()]), task_id="0_1", held=sibling, held_since_us=at(40))
    app.task_ever_held = sibling
    told = {"state_cleanup_delay_ms": 10_000}
    made = case(one, other, application=app, now=now, release="4.3.0", told=told)
    if set_forward:
        note_blind(made.inventory, at(20), at(3620), "clock-step")
    having(one, **fields)
    return made


WALK = Deletion(at(90), at(99), Shape.CLEANER_WALK, held=False)


@cases(
    ID,
    ("two delays and five seconds", dossier(now=35), EARLY),
    ("and more", dossier(now=35.1), WARNING),
    ("since its last change", dossier(now=35.1, mtime=11), EARLY),
    ("since the start", dossier(now=30, released=0), EARLY),
    ("since the start, and more", dossier(now=30.1, released=0), WARNING),
    ("clock set forward by an hour", dossier(now=3635, set_forward=True), EARLY),
    ("and the limit passed since", dossier(now=3635.1, set_forward=True), WARNING),
    ("no sign of life", dossier(lives=False), "silent: its process ended: no cleaner is to be expected"),
    ("since a sibling was held", dossier(lives=False, sibling=True, now=65), EARLY),
    ("since a sibling was held, and more", dossier(lives=False, sibling=True, now=65.1), INFO),
    # by the pass alone: one opening since the process started, a second before it was seen at the earliest
    ("opened by the pass", dossier(opened=(6,)), WARNING),
    ("opened by the pass, seen late", dossier(opened=(1, 2, 4.1)), WARNING),
    ("opened again since", dossier(opened=(6, 9)), INFO),
    ("opened by earlier processes only", dossier(opened=(1, 2)), INFO),
    ("never opened again", dossier(opened=()), INFO),
    ("openings cannot be counted", dossier(all_reopens=False), INFO),
    ("a cleaner is at work on it", dossier(walk=WALK), "silent: a cleaner is at work on it"),
    ("the global task", dossier(id="global"), "silent"),
    ("a process holds it", dossier(held=True), "silent"),
    ("no stores", dossier(stores={}), "silent"),
    ("no directory", dossier(exists=False), "silent"),
)
def test_looks(story, said):
    """Counted from the last of release, change and start."""
    assert said_of(ID, story) == said


def test_dated_to_the_limit():
    """Opened when the limit was reached; the sentence says for how long it has been free, and the delay."""
    (verdict,) = judge(ID, dossier())
    assert verdict.opened_at_us == at(35)
    assert "free for 90 s" in verdict.summary
    assert "delay 10 s" in verdict.summary
    assert judge(ID, dossier(released=None))[0].opened_at_us == at(30)
