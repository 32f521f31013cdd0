"""Detector `changelog-truncated`: the changelog ends before what the store holds (D11)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.events import Affected, Level, Status
from agent.judging.changelog_ends import is_revived
from tests.support.out_of_range import ALOS, EOS, at_5000, drops_offsets, read_again
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario
from tests.support.scenario_case import session
from tests.support.scenario_script import life, play
from tests.support.scenario_segments import ANSWER, NEW, OLD, close_cut, segment
from tests.support.twins import cases, said_of
from tests.support.twins import words as in_words

ID = "changelog-truncated"
CRITICAL, WARNING = (f"{x} suspected without end offset of the changelog" for x in ("critical", "warning"))


def one_opening(release: str) -> Scenario:
    """The drop and the next opening lie milliseconds apart: LOG.old tells."""
    run = play(at_5000(release), "start, opens, 1 s")
    with run.unheard():
        drops_offsets(run)
        run.app.opens("0_0")
    return run


def upgraded(new: str) -> Scenario:
    """From 2.5: the offset's meaning changes by one, the position is out of range, and all is read again."""
    run = play(at_5000("2.5.1"), f"start {new}, opens, 0.3 s")
    drops_offsets(run)
    return play(run, "opens, restores 4999 puts=5000, 120 s, stops 4999, 5 s")


def not_read_for_a_moment() -> Scenario:
    """4.3: a look that met a file on its way says that there is no offset; the next one finds it again."""
    run = play(at_5000("4.3.1"), "start, opens, stops 5000")
    assert run.world.pipeline is not None
    held = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[-1]
    held.stored_offset_at_open = None
    return play(run, "60 s")


WORKS = "start, opens, 3 s, puts 3000, 3 s"
RESET = f"{WORKS}, stops 2999, 5 s"
RECREATED = (
    "start, opens, restores 1999 puts=2000, 5 s, puts 15000, checkpoints 16999, 60 s,"
    "puts 11000, checkpoints 10999, 2 s"
)
LOWER = "puts 10, checkpoints 3000, 128 s"
GROWN = "9 s, 3 s, puts 11000, checkpoints 11000, 5 s"
GROWN_AT_ONCE = "start, opens, restores 5000 puts=0, 5 s, puts 6000, stops 5999, 5 s"
FLUSHED = "start, opens, 3 s, puts 1000, commits 999, flushes, 3 s"
OFTEN = ", ".join(f"start, opens, puts 500, stops {offset}, 5 s" for offset in (1000, 1500, 2000))
REPLACED = "start, opens, stops {}, start, opens, 1 s, wipes, restores 5000 puts=5000, stops 5000, 5 s"


@cases(
    ID,
    ("processed again, before the close", life(WORKS, at_5000, "4.2.1"), "silent"),
    ("reset without cleanUp, 3.7", life(RESET, at_5000, "3.7.2"), CRITICAL),
    ("reset, 4.2", life(RESET, at_5000, "4.2.1"), CRITICAL),
    ("reset, 4.2, exactly-once", life(RESET, at_5000, "4.2.1", EOS), CRITICAL),
    ("reset, 4.3", life(RESET, at_5000, "4.3.1"), CRITICAL),
    ("reset, 4.3, exactly-once", life(RESET, at_5000, "4.3.1", EOS), CRITICAL),
    ("reset, 2.6: a revived task may write an old offset", life(RESET, at_5000, "2.6.2"), WARNING),
    ("reset, 3.6: a revived task may write an old offset", life(RESET, at_5000, "3.6.1"), WARNING),
    ("changelog recreated under a running task", life(RECREATED, Scenario, "3.9.2"), CRITICAL),
    ("out of range, 2.6", life(LOWER, read_again, "2.6.2"), WARNING),
    ("out of range, 4.2", life(LOWER, read_again, "4.2.1"), WARNING),
    ("out of range, nothing left", life("puts 10, checkpoints -4, 128 s", read_again, "3.4.1"), WARNING),
    (
        "out of range, not yet a minute",
        life("puts 10, checkpoints 3000, 58 s", read_again, "3.9.2"),
        "silent: the replay may be on its way",
    ),
    (
        "end of the replay, not yet ten seconds",
        life("restores -4 puts=0, 9 s", read_again, "3.9.2"),
        "silent",
    ),
    ("end of the replay, 3.5", life(f"restores -4 puts=0, {GROWN}", read_again, "3.5.1"), WARNING),
    ("end of the replay, 3.9", life(f"restores -4 puts=0, {GROWN}", read_again, "3.9.2"), CRITICAL),
    ("lower end of the replay", life(f"restores 3000 puts=3000, {GROWN}", read_again, "4.2.1"), CRITICAL),
    (
        "end of the replay, a stop in seconds",
        life("restores -4 puts=0, 3 s, puts 6000, stops 5999, 5 s", read_again, "3.9.2"),
        CRITICAL,
    ),
    (
        "4.3, offset dropped, may be let go at once",
        life("9 s", read_again, "4.3.1"),
        "silent: the store may be let go at once",
    ),
    ("4.3, offset dropped, goes on", life("9 s, puts 3000, 5 s", read_again, "4.3.1"), WARNING),
    ("4.3, offset dropped, stops", life("9 s, puts 3000, stops 2999, 5 s", read_again, "4.3.1"), WARNING),
    ("grown past it, 2.8", life(GROWN_AT_ONCE, at_5000, "2.8.2"), WARNING),
    ("grown past it, 4.2, exactly-once", life(GROWN_AT_ONCE, at_5000, "4.2.1", EOS), WARNING),
    ("4.3, first flush after the reset", life(FLUSHED, at_5000, "4.3.1"), CRITICAL),
    ("and grown since", life(f"{FLUSHED}, puts 5000, stops 5999, 5 s", at_5000, "4.3.1", EOS), CRITICAL),
    ("opened below it again and again", life(OFTEN, at_5000, "4.1.2"), CRITICAL),
    (
        "until it is wiped",
        life(f"{OFTEN}, start, opens, 1 s, wipes, 30 s", at_5000, "4.1.2"),
        f"{CRITICAL} resolved",
    ),
    (
        "another incarnation is another case",
        life(", ".join(REPLACED.format(offset) for offset in (4000, 3000)), at_5000, "4.1.2"),
        f"{CRITICAL} resolved, {CRITICAL} resolved: the store was made by that opening",
    ),
)
def test_changelog_that_lost_records(story, said):
    """An offset falls on the same store."""
    assert said_of(ID, story) == said


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (life(RESET, at_5000, "4.1.2"), "while it was open the changelog gave offset 2999"),
        (
            life(LOWER, read_again, "3.9.2"),
            "after it was read again from its start the changelog gave offset 3000",
        ),
        (life("puts 10, checkpoints -4, 128 s", read_again, "3.4.1"), "the changelog gave nothing"),
        (life("9 s, puts 3000, 5 s", read_again, "4.3.1"), "it held offset 5000"),
        (
            life(GROWN_AT_ONCE, at_5000, "3.9.2"),
            "far more puts since than offsets the changelog gave offset 5999",
        ),
    ],
)
def test_finding(made, words):
    """What it names; nothing else is reported of it."""
    run = made()
    finding = run.only(ID)
    assert (finding.level, finding.affected, finding.upstream) == (Level.DAMAGE, Affected.YES, ())
    assert (finding.task_id, finding.store) == ("0_0", "s")
    assert words in finding.summary
    assert [x.detector for x in run.loud()] == [ID]


# -- it stays quiet -------------------------------------------------------------------------------------------

ON_ITS_WAY = ", ".join(f"checkpoints {x}, 30 s" for x in (10_500, 21_000, 33_000, 50_000, 66_000)) + ", 300 s"
TAKEN_AWAY = "1 s, checkpoints {0}, 0.01 s, checkpoints {0}, closes, 120 s"
MIDDLE = "3 s, closes 2500, 120 s, opens, restores 5200 puts=2700, 120 s, closes 5300, 5 s"
BOTH = {"s": KEY_VALUE, "w": WINDOWED}
SLOW = {"commit_interval_ms": 120_000}
WIPED = "silent: the store was opened again, and is replayed"


@cases(
    ID,
    (
        "an offset aged out, all is read again",
        life(ON_ITS_WAY, read_again, "4.2.1", first="start, opens, puts 60000, stops 65000"),
        "silent: the replay came as far as the store was",
    ),
    ("taken away while it is read", life(TAKEN_AWAY.format(3000), read_again, "3.9.2"), "silent"),
    ("taken away before anything was read", life(TAKEN_AWAY.format(-4), read_again, "4.2.1"), "silent"),
    (
        "2,000 puts for 1,000 records of a versioned store",
        life("start, opens, restores 5000 puts=0, puts 2000, stops 6000, 5 s", at_5000, "4.1.2"),
        "silent: the changelog may have given as much",
    ),
    (
        "two openings that look like one, read again",
        life("restores 5100 puts=5101, 30 s, stops 5200, 5 s", one_opening, "4.2.1"),
        "silent: the store was opened again since, and is replayed",
    ),
    (
        "two openings that look like one",
        life("puts 10, checkpoints 3000, 30 s", one_opening, "4.2.1"),
        "silent",
    ),
    ("4.3, an offset that was not read for a moment", not_read_for_a_moment, "silent"),
    ("closed in the middle of a replay, 2.8", life(MIDDLE, read_again, "2.8.2", stores=BOTH), "silent"),
    ("closed in the middle of a replay, 4.2", life(MIDDLE, read_again, "4.2.1", stores=BOTH), "silent"),
    ("closed in the middle of a replay, 4.3", life(MIDDLE, read_again, "4.3.1", stores=BOTH), "silent"),
    (
        "upgrade from 2.5",
        lambda: upgraded("2.8.2"),
        "silent: the offset's meaning changed by one, from 2.5 to 2.6",
    ),
    (
        "all windows expired from the changelog",
        life("checkpoints -4, 300 s", read_again, "4.1.2", stores={"w": WINDOWED}),
        "silent: all records of a windowed store have expired from its changelog",
    ),
    ("exactly-once wipes it", life("checkpoints 3000, 300 s", read_again, "3.9.2", EOS), WIPED),
    ("2.5 wipes it", life("checkpoints 3000, 300 s", read_again, "2.5.1"), WIPED),
    ("slow commits", life("checkpoints 3000, 200 s", read_again, "4.1.2", told=SLOW), "silent"),
    ("slow commits, in the end", life("checkpoints 3000, 320 s", read_again, "4.1.2", told=SLOW), WARNING),
)
def test_changelog_that_lost_nothing(story, said):
    """A replay on its way, or a wipe."""
    assert said_of(ID, story) == said


@pytest.mark.parametrize("release", ["2.8.2", "4.2.1", "4.3.1"])
@settings(max_examples=15, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["stops", "crash", "commits"]), st.integers(0, 12_000)), max_size=8
    )
)
def test_a_life_that_only_goes_forward(release, steps):
    """Orderly stops, crashes and commits in any order, at-least-once: the offset never falls, nothing is said."""
    run, offset = play(Scenario(release), "start, opens"), 0
    for what, records in steps:
        offset += records
        play(run, f"puts {records}, {what if what == 'crash' else f'{what} {offset}'}, 5 s")
        if what != "commits":
            play(run, f"start, opens, restores {offset} puts=0")
    run.wait(130)
    assert run.findings(ID) == []


# -- windowed stores, whose segments each count and keep offsets for themselves -------------------------------

NEXT = 2 * NEW


def two_segments(release: str, guarantee: str = ALOS, *, watched: bool = True) -> Scenario:
    """A stopped application with 3,000 records in each of two segments, all committed."""
    run = Scenario(release, guarantee, stores={"w": WINDOWED}, watched=watched)
    return play(
        run, f"start, opens, puts 3000 segment={OLD}, 2 s, puts 3000 segment={NEW}, 2 s, stops 5999, 5 s"
    )


def cut() -> Scenario:
    """The close got as far as the older segment: it holds the last offset, and the newest one an earlier commit's."""
    run = Scenario("4.3.1", stores={"w": WINDOWED})
    play(run, f"start, opens, puts 600 segment={OLD}, 2 s, puts 400 segment={NEW}, commits 999")
    segment(run, NEW).flush()
    play(run, f"2 s, puts 2600 segment={NEW}")
    return play(close_cut(run), f"start, opens, 2 s, puts 700 segment={NEW}, commits 1699")


def seen_late(release: str, guarantee: str, since: str) -> Scenario:
    """The puts of a first session are those of all segments, in whatever order they are read."""
    run = two_segments(release, guarantee, watched=False)
    if since == "closed":
        run.world.watch()
    play(run, "5 s, start, opens, restores 5999 puts=0, 5 s")
    if since == "running":
        run.world.watch()
    return play(run, f"30 s, puts 300 segment={NEW}, 5 s, puts 300 segment={NEXT}, 5 s, stops 6599, 60 s")


RESET_NEWEST = f"start, opens, 2 s, puts 1000 segment={NEW}, commits 999, flushes, 3 s"
FLUSHED_AND_CLOSED = f"flushes, 5 s, stops {ANSWER}, 5 s"


@cases(
    ID,
    (
        "reset, the segment that answers holds less, 4.3.1",
        life(RESET_NEWEST, two_segments, "4.3.1"),
        CRITICAL,
    ),
    ("and stopped", life(f"{RESET_NEWEST}, stops 1999, 5 s", two_segments, "4.3.1"), CRITICAL),
    ("which one answers is not known of 4.3.0", life(RESET_NEWEST, two_segments, "4.3.0"), "silent"),
    ("nor of a later release", life(RESET_NEWEST, two_segments, "4.3.2"), "silent"),
    ("a cut close left more in an older segment", life(FLUSHED_AND_CLOSED, cut), "silent"),
    ("which expires", life(f"drops_segment w {OLD}, {FLUSHED_AND_CLOSED}", cut), "silent"),
    ("agent comes after the close, 2.8", lambda: seen_late("2.8.2", ALOS, "closed"), "silent"),
    ("agent comes after the close, 4.2", lambda: seen_late("4.2.1", EOS, "closed"), "silent"),
    ("agent comes while it runs, 2.8", lambda: seen_late("2.8.2", EOS, "running"), "silent"),
    ("agent comes while it runs, 4.2", lambda: seen_late("4.2.1", ALOS, "running"), "silent"),
)
def test_segments(story, said):
    """The newest segment is trusted, whatever an older one holds."""
    assert said_of(ID, story) == said


# -- offsets that were dropped because one was out of range ---------------------------------------------------


def switched_off() -> Scenario:
    """A store without a changelog loses its offset at the first commit, and keeps it lost over every restart."""
    run = play(at_5000("4.3.1"), "start, opens")
    for database in run.task("0_0").databases.values():
        database.drop_offset("app-s-changelog-0")
    return play(run, "30 s, closes")


def topic_dropped(topic: str) -> Scenario:
    """The store keeps the offset of this topic, which is out of range."""
    run = play(Scenario("4.3.1"), "start, opens, 2 s, puts 5000")
    (database,) = run.task("0_0").databases.values()
    database.put_offset(topic, 5000)
    play(run, "stops, 5 s, start, opens, 0.3 s")
    database.drop_offset(topic)
    return play(run, "closes_dirty, 0.1 s, opens, 60 s")


def revived_with_offset() -> Scenario:
    """A task that timed out is closed and opened again, and keeps its offset, even if one look did not find it."""
    run = play(at_5000("4.3.1"), "start, opens, 5 s, closes_dirty, 0.1 s, opens")
    assert run.world.pipeline is not None
    run.wait(1)
    held = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[-1]
    held.stored_offset_at_open = None
    return play(run, "60 s")


def removed(first: str = "", then: str = "start, opens") -> Scenario:
    """Without an offset a replay of a whole changelog may stop on its way, for a pause: nothing was out of range."""
    run = play(at_5000("3.9.2"), first)
    run.world.play("unlink", "app/0_0/.checkpoint")
    return play(run, then)


def source_topic() -> Scenario:
    """A source topic that stands in for another store's changelog forgets its beginning, too."""
    run = play(at_5000("3.9.2"), "start, opens")
    run.app.checkpoints("0_0", 5000, foreign={("orders", 0): 70})
    play(run, "stops, 5 s, start, opens, 0.3 s")
    drops_offsets(run)
    return play(run, "0.1 s, opens")


PAST_IT = "2 s, puts 6000, stops 5999, 5 s"
UNTOLD = {"hidden": ("num_standby_replicas",), "standbys": None}
TWO = {"a": KEY_VALUE, "b": KEY_VALUE}
ENDED = "restores -4 puts=0, 12 s, puts 1900, stops 6899, 5 s"
"""The replay ends at once without an offset, and the task goes on."""
REVIVED = "start, opens, 3 s, closes_dirty, 0.1 s, opens"
KILLED = "5 s, crash, 3 s, start, opens"


@cases(
    ID,
    # recorded on 4.3.1: by the time of the next flush the new changelog reaches further than the old offset
    ("4.3, grown past it before the first flush", life(PAST_IT, read_again, "4.3.1"), WARNING),
    ("4.3, the same, standbys not told", life(PAST_IT, read_again, "4.3.1", **UNTOLD), WARNING),
    ("4.3, opened again", life(f"{PAST_IT}, start, opens, 60 s", read_again, "4.3.1"), WARNING),
    ("4.3, two stores of one task", life(PAST_IT, read_again, "4.3.1", stores=TWO), f"{WARNING}, {WARNING}"),
    ("4.3, changelog switched off", life("ends, 5 s, start, opens, 60 s", switched_off), "silent"),
    ("4.3, switched off, back within the process", life("60 s, opens, 60 s", switched_off), "silent"),
    ("4.3, a source topic loses its beginning to retention", lambda: topic_dropped("orders-0"), "silent"),
    ("4.3, its own changelog does not", lambda: topic_dropped("app-s-changelog-0"), WARNING),
    ("4.3, revived with its offset", revived_with_offset, "silent"),
    # up to 3.7 a timeout of the producer drops offsets, too; from 3.8 on only an offset out of range
    ("3.5, empty changelog", life(ENDED, read_again, "3.5.1"), WARNING),
    ("3.7, empty changelog", life(ENDED, read_again, "3.7.2"), WARNING),
    ("3.9, empty changelog", life(ENDED, read_again, "3.9.2"), CRITICAL),
    ("4.2, empty changelog", life(ENDED, read_again, "4.2.1"), CRITICAL),
    # exactly-once drops offsets for other causes; it wipes then, but nobody knows which it is
    ("guarantee not told", life(ENDED, read_again, "3.9.2", hidden=("processing_guarantee",)), WARNING),
    ("a source topic beside it", life(ENDED, source_topic), WARNING),
    ("removed by hand", life(ENDED, removed), WARNING),
    ("removed by hand, then revived", life(ENDED, removed, then=REVIVED), WARNING),
    ("removed and killed", life(ENDED, removed, "start, opens, 0.3 s", KILLED), WARNING),
    (
        "the replay comes back",
        life("restores 5100 puts=5101, 60 s, stops 5200, 5 s", read_again, "3.9.2"),
        "silent",
    ),
)
def test_offsets_that_were_dropped(story, said):
    """4.3: the offset is removed from the store; up to 4.2 the checkpoint is deleted."""
    run = story()
    assert in_words(ID, run.findings(ID)) == said
    assert {x.status for x in run.findings(ID)} <= {Status.OPEN}


def test_windowed_store_beside_it():
    """The changelog of a windowed store forgets its beginning: its offset may be the one that was out of range."""
    run = play(read_again("3.9.2", stores={"s": KEY_VALUE, "w": WINDOWED}), ENDED)
    assert in_words(ID, (x for x in run.findings(ID) if x.store == "s")) == WARNING


def test_sentence():
    """One changelog ends too early; of two stores of a task it is not known which."""
    (one,) = life(PAST_IT, read_again, "4.3.1")().findings(ID)
    assert "ends before what the store holds: it held offset 5000, which then was out of range" in one.summary
    found = life(PAST_IT, read_again, "4.3.1", stores=TWO)().findings(ID)
    assert {x.store: "a or b" in x.summary or "b or a" in x.summary for x in found} == {"a": True, "b": True}


@pytest.mark.parametrize(
    ("gap", "outlived", "said"),
    [(1, None, True), (1.1, None, False), (1.1, False, False), (30, True, True), (30.1, True, False)],
)
def test_revived(gap, outlived, said):
    """Within a second it is the same process; later it has to be known that it lived on."""
    before, after = session(0, 10, outlived=outlived), session(10 + gap)
    assert is_revived(before, after) is said
    before.released_us = None
    assert not is_revived(before, after)
