"""Detector `lost-segment`: a windowed store goes on from one segment's offset, another one was not flushed (4.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.contract.events import Affected, Severity, Status
from agent.detectors.lost_segment import BEFORE_THE_START
from tests.agent.home.restarting import away
from tests.support.scenario import KEY_VALUE, UNLOGGED, WINDOWED, Scenario
from tests.support.scenario_script import life, play
from tests.support.scenario_segments import (
    ALOS,
    ANSWER,
    CROSSED,
    EOS,
    KILL,
    NEW,
    OLD,
    UNFLUSHED,
    WITH_DATA,
    cut,
    put,
    segment,
    starts,
    windowed,
    wiped_start,
)
from tests.support.twins import cases, words

ID = "lost-segment"
AT_REST, MAY_BE = "exposure critical suspected", "exposure warning suspected"
LOST, PERHAPS, CONFIRMED = "critical suspected", "warning suspected", "critical confirmed"
LATE = 120_000


KILLED = f"{CROSSED}, {KILL}"
REOPENED = f"{KILLED}, {starts()}"
CONFIRMS = f"{REOPENED}, {put(500, NEW, ANSWER + 500, flush=True)}"
REFILLED = f"puts 600 segment={OLD}, puts 3000 segment={NEW}, checkpoints {ANSWER}, flushes, 60 s"
PAST = f"puts 600 segment={OLD}, stops 599, 5 s, {starts(599)}"
NONE_LATE = f"{PAST}, {put(3000, NEW, ANSWER, flush=True)}, {KILL}"
ONE_LATE = f"{PAST}, puts 1 segment={OLD}, checkpoints 600, {put(2999, NEW, ANSWER, flush=True)}, {KILL}"
"""600 records and a close; 3,000 more, of which none or one came late for the old segment, and a kill."""
LATE_PUT = f"{put(3000, NEW, 2999)}, puts 10 segment={OLD}, {{}} s, flushes segment={NEW}, 2 s, {KILL}"
DIRTY = f"{put(3000, NEW, 2999)}, puts 10 segment={{}}, 90 s, closes_dirty, 5 s, opens, 30 s"
MADE_AFTER = f"{put(3000, NEW, 2999, flush=True)}, {{0}}, {KILL}, {starts(2999)}, {{0}}, 30 s"
MAYBE = (
    f"{put(3000, OLD, 2999)}, puts 10 segment={NEW}, 10 s, flushes segment={OLD}, 2 s, {KILL}, {starts(2999)}"
)
AGAIN = f"{put(10, NEW)}, {put(3000, LATE, 6009, flush=True)}, {KILL}"
BORN_BEHIND = "past info: the segment was made after the offset was stored"


def told(story: Callable[[], Scenario]) -> str:
    """What is open beyond information; if nothing is, the loudest that was ever said."""
    run = story()
    found = [x for x in run.findings(ID) if x.severity is not Severity.INFO]
    if now := [x for x in found if x.status is Status.OPEN]:
        assert max(x.severity.rank for x in found) == max(x.severity.rank for x in now)
        return words(ID, now)
    loudest = max((x.severity for x in run.findings(ID)), key=lambda x: x.rank, default=None)
    return "silent" if loudest is None else f"past {loudest}"


def loses(*rows: tuple[str, str, str]) -> Any:
    """A table of lives under at-least-once on 4.3.1."""
    return cases(ID, *((name, life(script, windowed), said) for name, script, said in rows))


@loses(
    (
        "one segment: a restart replays from the beginning",
        put(600, OLD, 599),
        "silent: all but the newest segment are flushed",
    ),
    ("while it runs", CROSSED, "past info"),
    ("closed in order", f"{CROSSED}, closes {ANSWER}, 2 s", "past info"),
    ("killed", KILLED, AT_REST),
    ("reopened without a wipe", REOPENED, LOST),
    ("went on, and nothing came back", CONFIRMS, CONFIRMED),
    (
        "what was proved stays proved",
        f"{CONFIRMS}, puts 500 segment={OLD}, checkpoints {ANSWER + 1000}, flushes, 30 s",
        CONFIRMED,
    ),
    (
        "late records do not confirm",
        f"{REOPENED}, puts 500 segment={OLD}, checkpoints {ANSWER + 500}, flushes, 1 s",
        LOST,
    ),
    (
        "removed before the start",
        f"{KILLED}, deletes_directory, 5 s, start, opens, {REFILLED}",
        "past critical",
    ),
    (
        "the lost segment expires",
        f"{REOPENED}, drops_segment w {OLD}, 2 s",
        "past critical: the segment expired, or was wiped",
    ),
    (
        "two unflushed, replayed",
        f"{put(600, OLD, 599)}, {put(100, NEW, 699)}, {KILL}, {starts(None)}, 30 s",
        "past info",
    ),
    ("some of it was flushed", f"{WITH_DATA}, {KILL}", AT_REST),
    (
        "some of it was flushed, reopened",
        f"{WITH_DATA}, {KILL}, {starts(4199)}, puts 3000 segment={NEW}, checkpoints 7199, flushes, 30 s",
        LOST,
    ),
    (
        "every offset is an entry of a file",
        NONE_LATE,
        "past info: every record up to the offset is an entry of a file, after an end in order",
    ),
    ("the same, reopened", f"{NONE_LATE}, {starts()}, 30 s", "past info"),
    ("one record may be lost", ONE_LATE, MAY_BE),
    ("one record may be lost, reopened", f"{ONE_LATE}, {starts()}", PERHAPS),
    (
        "a second kill takes nothing from a segment that was past",
        f"{ONE_LATE}, start, opens, {put(500, NEW, ANSWER + 500, flush=True)}, {KILL}",
        f"{PERHAPS}: the segment was past when the store was opened",
    ),
    (
        "past at the opening, no late record",
        f"puts 600 segment={OLD}, 1 s, puts 600 segment={NEW}, stops 1199, 5 s, {starts(1199)},"
        f"{put(3000, NEW, 4199, flush=True)}, {KILL}, {starts(4199)}, 30 s",
        "silent",
    ),
    (
        "an orderly close",
        f"{CROSSED}, stops {ANSWER}, 5 s, {starts()}, 30 s",
        "past info: every segment holds the offset, as after an orderly close",
    ),
    (
        "expired before the kill",
        f"{CROSSED}, drops_segment w {OLD}, 2 s, {KILL}, {starts()}, 30 s",
        "past info",
    ),
    ("a late record after the offset was stored", MADE_AFTER.format(put(10, OLD, 3009)), BORN_BEHIND),
    ("the next slice after the offset was stored", MADE_AFTER.format(put(10, LATE, 3009)), BORN_BEHIND),
    ("late by 10 s, and a later flush", LATE_PUT.format(10), MAY_BE),
    ("late by 90 s, and a later flush", LATE_PUT.format(90), MAY_BE),
    (
        "no changelog",
        f"puts 600 segment={OLD}, 1 s, puts 3000 segment={NEW}, flushes segment={NEW}, {KILL}, {starts(None)}, 30 s",
        "past info",
    ),
    (
        "a dirty close, a late segment",
        DIRTY.format(OLD),
        "past info: the segment was flushed after its successor was made",
    ),
    (
        "a dirty close, the next slice",
        DIRTY.format(LATE),
        "past info: the segment was flushed after the offset was stored",
    ),
    (
        "perhaps",
        MAYBE,
        PERHAPS,
    ),
    (
        "perhaps, and then surely",
        f"{MAYBE}, {AGAIN}",
        "exposure critical suspected, warning suspected",
    ),
    (
        "replayed, and lost at the next end",
        f"{put(3000, OLD, 2999, flush=True)}, {put(10, NEW)}, {KILL}, {starts(2999)}, {AGAIN}",
        AT_REST,
    ),
    (
        "a store that deletes keeps sessions",
        f"{put(600, OLD)}, puts 3000 segment={NEW} deletions=1400, checkpoints {ANSWER}, flushes segment={NEW}, 2 s,"
        f"{KILL}, {starts()}, puts 3000 segment={NEW}, checkpoints {ANSWER + 3000}, flushes, 30 s",
        PERHAPS,
    ),
    (
        "the unknown offset replays the whole changelog",
        f"{put(600, OLD)}, {put(3000, NEW, -4, flush=True)}, {KILL}, {starts(-4)}, 30 s",
        "past info: no segment holds an offset, or the unknown one: the changelog is read from its start",
    ),
    (
        "told once of one loss",
        f"{REOPENED}, {put(500, NEW, ANSWER + 500, flush=True)}, {KILL}, {starts(ANSWER + 500)}, 30 s",
        f"{CONFIRMED}: the loss was reported of an earlier opening",
    ),
)
def test_lives(story, said):
    """What a kill takes, step by step."""
    assert told(story) == said


def refused(number: int) -> Scenario:
    """Found by the hunt: because of another store the pass gives up, and closes the late segment without an offset."""
    run = windowed(guarantee=EOS)
    play(run, f"puts 3000 segment={NEW}, closes 2999, 2 s, opens, {put(10, number)}, {KILL}")
    for ends in (False, True):
        run.start()
        for database in run.task("0_0").databases.values():
            database.open()
            database.put_status(0)
            database.close()
        run.wait(5)
        if not ends:
            play(run, KILL)
    return run


def dirty_close_killed() -> Scenario:
    """It wrote no offset, the old one is of before the new segment, and its replay brings everything."""
    run = play(windowed(guarantee=EOS), f"{UNFLUSHED}, checkpoints 599, puts 600 segment={OLD}, 60 s")
    old = segment(run, OLD)
    old.put_status(0)
    old.close()
    return play(run, f"0.1 s, {KILL}, {starts(599)}, 30 s")


def then_wiped(script: str = KILLED, **more: Any) -> Scenario:
    """The flush left the status open, and the next start throws the task away."""
    return wiped_start(play(windowed(guarantee=EOS, **more), script))


@cases(
    ID,
    ("killed", cut, AT_REST),
    ("reopened", life(starts(), cut), LOST),
    ("reopened, at-least-once", life(starts(), cut, ALOS), LOST),
    # a dirty close that is killed leaves the same picture, and its replay brings everything back
    (
        "went on: never confirmed",
        life(
            f"{starts()}, puts 500 segment={OLD}, checkpoints {ANSWER + 500}, flushes segment={OLD}, 30 s",
            cut,
        ),
        LOST,
    ),
    (
        "beside an open store",
        lambda: cut(first="flushes a", stores={"w": WINDOWED, "a": KEY_VALUE}),
        "silent",
    ),
    (
        "beside an open windowed store",
        lambda: cut(first="flushes a", stores={"w": WINDOWED, "a": WINDOWED}),
        "silent",
    ),
    ("beside a store without an offset", life("", cut, stores={"w": WINDOWED, "a": UNLOGGED}), MAY_BE),
    ("and reopened", life(starts(), cut, stores={"w": WINDOWED, "a": UNLOGGED}), LOST),
    ("a dirty close that was killed", dirty_close_killed, PERHAPS),
    (
        "wiped",
        then_wiped,
        "silent: exactly-once may yet wipe it; exactly-once wipes the store at the next start",
    ),
    ("the pass refuses the task, late", lambda: refused(OLD), "silent"),
    ("the pass refuses the task, next", lambda: refused(LATE), "silent"),
)
def test_close_that_was_cut(story, said):
    """Exactly-once, too: the closed segment answers, the other one has neither status nor offset; no wipe follows."""
    assert told(story) == said


# -- what is not known ----------------------------------------------------------------------------------------


def restarted(during: str, then: str) -> Callable[[], Scenario]:
    """A node that died: agent and application come back, and the agent misses what happens meanwhile."""

    def told() -> Scenario:
        run = play(windowed(), CROSSED)
        with away(run):
            play(run, during)
        return play(run, then)

    return told


def looked_at() -> Scenario:
    """A scan in an init container."""
    run = play(windowed(watched=False), KILLED)
    run.world.watch()
    return run


def undecided() -> Scenario:
    """4.3.1 would lose it, 4.3.0 would replay it."""
    run = play(windowed(hidden=["kafka_streams_version"]), f"{WITH_DATA}, {KILL}")
    for _ in range(20):  # it tries one more release a minute
        run.wait(61)
    assert any("kafka_streams_version" in x.missing_facts for x in run.findings("undecided"))
    return run


NO_GUARANTEE: dict[str, Any] = {"hidden": ["processing_guarantee"]}
NO_RELEASE: dict[str, Any] = {"hidden": ["kafka_streams_version"]}


@cases(
    ID,
    ("agent restarts first", restarted("crash, 60 s", "2 s"), AT_REST),
    ("agent restarts first, then reopened", restarted("crash, 60 s", f"2 s, {starts()}"), LOST),
    ("agent away during the opening", restarted(f"crash, 60 s, {starts()}", "30 s"), PERHAPS),
    ("one look at a stopped directory", looked_at, AT_REST),
    ("guarantee not told", life(KILLED, windowed, **NO_GUARANTEE), "past info"),
    ("guarantee not told, reopened", life(REOPENED, windowed, **NO_GUARANTEE), LOST),
    ("guarantee not told, wiped", lambda: then_wiped(**NO_GUARANTEE), "past info"),
    (
        "release not told",
        life(KILLED, windowed, **NO_RELEASE),
        "exposure warning suspected without kafka_streams_version: whether one segment answers for the store",
    ),
    ("release not told, reopened", life(REOPENED, windowed, **NO_RELEASE), LOST),
    (
        "release not told, and it decides",
        undecided,
        "silent: of the releases that it may be, one loses nothing",
    ),
    (
        "a later release",
        life(KILLED, windowed, "4.3.2"),
        "exposure warning suspected without kafka_streams_version",
    ),
    ("4.3.0 passes over a segment without an offset", life(KILLED, windowed, "4.3.0"), AT_REST),
    (
        "4.3.0 replays from the old segment's own offset",
        life(f"{WITH_DATA}, {KILL}, {starts(599)}, 30 s", windowed, "4.3.0"),
        "past info",
    ),
    ("4.2 flushes every segment first", life(f"{KILLED}, start, opens, 30 s", windowed, "4.2.1"), "silent"),
)
def test_what_is_not_known(story, said):
    """Late agents, facts that nobody told, other releases."""
    assert told(story) == said


@pytest.mark.parametrize(
    ("made", "affected", "sentence"),
    [
        (life(CROSSED, windowed), Affected.YES, "1 of 2 segments"),
        (life(KILLED, windowed), Affected.YES, "all that was put into w.0 would be lost"),
        (life(KILLED, windowed, **NO_RELEASE), Affected.POSSIBLY, "all that was put into w.0 would be lost"),
        (life(KILLED, windowed, "4.3.2"), Affected.POSSIBLY, "all that was put into w.0 would be lost"),
        (life(REOPENED, windowed), Affected.YES, "all that was put into w.0 is lost"),
        (life(starts(), cut), Affected.YES, "all that was put into w.60000 is lost"),
        (
            life(f"{WITH_DATA}, {KILL}", windowed),
            Affected.YES,
            "put into w.0 since the last flush would be lost",
        ),
        (life(f"{ONE_LATE}, {starts()}", windowed), Affected.YES, "may be lost"),
        (restarted(f"crash, 60 s, {starts()}", "30 s"), Affected.YES, "Part of that time was not watched."),
    ],
)
def test_finding(made, affected, sentence):
    """What it names, and what is lost, or would be."""
    finding = made().findings(ID)[-1]
    assert (finding.store, finding.affected) == ("w", affected)
    assert finding.upstream == ("lost segments (no upstream issue)",)
    assert sentence in finding.summary


def test_step_before_the_start():
    """The moment that counts: it says what saves everything; what a start lost, it names by its incarnation."""
    for made in (life(KILLED, windowed), looked_at):
        assert made().findings(ID)[-1].next_action.startswith(BEFORE_THE_START)
    run = life(REOPENED, windowed)()
    assert run.findings(ID)[-1].identity == segment(run, OLD).identity
    confirmed = life(CONFIRMS, windowed)().findings(ID)[-1]
    assert "went on to offset 4099" in confirmed.evidence[-1].what


def test_guarantee_that_is_not_told():
    """Open segments are wiped under exactly-once: unknown, and the fact is named; after a start the disk tells."""
    run = life(KILLED, windowed, **NO_GUARANTEE)()
    assert words(ID, run.findings(ID)) == "exposure info unknown without processing_guarantee"
