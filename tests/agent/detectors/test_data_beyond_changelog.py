"""Law `data-beyond-changelog`: under exactly-once a store never holds more than its changelog gave it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level
from agent.inventory.observations import StoreOffsets
from tests.support.laws import ALOS, EOS, UNHEARD_OF, broken, lawful
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario
from tests.support.scenario_case import at, case, checkpoint, database, mark, session, store, task
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "data-beyond-changelog"
SUSPECTED = "warning suspected"
COMMITTED = "silent: all that had been flushed may have been committed"
NOTHING = "silent: nothing was flushed beyond the checkpoint"
NOTHING_4_3 = "silent: nothing was flushed behind the stored offset"
READS_AGAIN = "silent: a standby of up to 2.4 may have read the same records again"


def crashed(release: str, guarantee: str = EOS, *, flush: bool = True, **more: Any) -> Scenario:
    """A store at offset 1999 that took 6,000 records, flushed them, and was killed before it committed them."""
    run = play(lawful(release, guarantee, **more), "start, opens, restores 1999 puts=2000")
    play(run, "commits 1999" if run.habits.offsets_in_store else "")
    return play(run, f"flushes, 5 s, puts 6000, {'flushes' * flush}, 1 s, crash, 5 s")


def not_wiped(end: int = 1999, puts: int = 0) -> str:
    """The next start takes the store as it is, reads its changelog to the end, and works on."""
    return f"start, opens, restores {end} puts={puts}, 30 s, puts 500, flushes, 30 s"


WIPED = "wipes, restores 1999 puts=2000, 60 s"
WIPED_AT_ONCE = f"start, opens, {WIPED}"
KEPT = not_wiped()
STOPPED = f"{KEPT}, stops 2500, 30 s"
SEGMENTS = (
    "start, opens, puts 600 segment=0, checkpoints 599, flushes, puts 600 segment=0, puts 700 segment=60000,"
    "checkpoints 1899, flushes segment=60000, 5 s, stops 1899, 5 s, start, opens, 5 s, stops 1899, 30 s"
)
REPLAYED = "start, opens, restores {0} puts={0}, 30 s"
HALF_WAY = "start, opens, puts 1000, 60 s"
FILLED = "start, opens, 2 s, puts 4000, checkpoints 1999, 10 s"
NOT_MORE = FILLED.replace("4000", "2000")
PLAIN = {"s": KEY_VALUE}


@cases(
    ID,
    (
        "wipe skipped, 3.8",
        life(KEPT, crashed, "3.8.1"),
        f"{SUSPECTED}: an offset was trusted, the replay was not whole",
    ),
    ("wipe skipped, 4.2", life(KEPT, crashed, "4.2.1"), SUSPECTED),
    ("wipe skipped, offset in the store", life(STOPPED, crashed, "4.3.1"), SUSPECTED),
    ("wipe skipped, nobody knows the release", life(STOPPED, crashed, UNHEARD_OF), SUSPECTED),
    (
        "the whole changelog gives back 2,000",
        life(REPLAYED.format(2000), crashed, "2.4.1"),
        "critical confirmed",
    ),
    (
        "the whole changelog gives back all",
        life(REPLAYED.format(8000), crashed, "2.4.1"),
        "silent: nothing proves it",
    ),
    ("wiped late", life(f"{KEPT}, {WIPED}", crashed, "4.1.2"), f"{SUSPECTED} resolved"),
    ("wiped, 2.4", life(WIPED_AT_ONCE, crashed, "2.4.1"), "silent"),
    ("wiped, 3.9", life(WIPED_AT_ONCE, crashed, "3.9.2"), "silent"),
    ("wiped, 4.3", life(WIPED_AT_ONCE, crashed, "4.3.1"), "silent"),
    ("everything was committed", life(not_wiped(7999, 6000), crashed, "3.9.2"), COMMITTED),
    ("and more", life(not_wiped(8100, 6101), crashed, "4.2.1"), COMMITTED),
    ("in memory only, 3.9", life(KEPT, crashed, "3.9.2", flush=False), NOTHING),
    ("in memory only, 4.3", life(KEPT, crashed, "4.3.1", flush=False), NOTHING_4_3),
    ("at-least-once keeps what is not acknowledged", life(KEPT, crashed, "4.1.2", ALOS), "silent"),
    ("guarantee not told", life(KEPT, crashed, "4.1.2", hidden=("processing_guarantee",)), "silent"),
    (
        "6,000 puts may be 2,000 records of a versioned store",
        life(not_wiped(4999, 3000), crashed, "4.1.2", stores=PLAIN),
        "silent",
    ),
    (
        "store still open, 4.3",
        life(KEPT, crashed, "4.3.1"),
        "silent: the next stored offset, as long as the store is open",
    ),
    (
        "each segment has its own offset",
        life(SEGMENTS, lawful, "4.3.1", EOS, stores={"w": WINDOWED}),
        "silent",
    ),
    ("half way the offset is low", life(HALF_WAY, crashed, "3.9.2"), "silent: where the restoration ended"),
    (
        "and then it is not",
        life(f"{HALF_WAY}, puts 5000, checkpoints 7999, 60 s", crashed, "3.9.2"),
        "silent",
    ),
    ("changelog replayed twice, 2.6", life(FILLED, lawful, "2.6.0"), SUSPECTED),
    ("changelog replayed twice, 4.2", life(FILLED, lawful, "4.2.1"), SUSPECTED),
    ("as many puts as records", life(NOT_MORE, lawful, "3.9.2"), "silent"),
    ("a standby of 2.3 reads again", life(FILLED, lawful, "2.3.1"), READS_AGAIN),
    ("4.3: offsets take sequence numbers", life(FILLED, lawful, "4.3.1"), "silent"),
    ("a plain store may be versioned", life(FILLED, lawful, "3.9.2", stores=PLAIN), "silent"),
    (
        "what was flushed behind the checkpoint comes again",
        life(f"{NOT_MORE}, start, crash, start, opens, puts 2000, checkpoints 2000, 10 s", lawful, "3.9.2"),
        "silent: the store was not new, or was opened again",
    ),
)
def test_lives(story, said):
    """Nothing of what had been flushed came back with the changelog."""
    run = story()
    assert said_of(ID, run) == said
    assert broken(run) == ([] if said == "silent" else [ID])


@pytest.mark.parametrize("release", ["2.0.1", "2.3.1", "2.5.1"])
def test_a_source_topic_that_goes_on(release):
    """A table's store, closed in order: a start begins to restore it, and ends where the group had committed."""
    run = play(lawful(release, EOS), "start, opens, puts 2000, 5 s")
    run.app.checkpoints("0_0", {}, foreign={("orders", 0): 2000})
    assert broken(play(run, "closes, ends, 5 s, start, opens, restores 2000 puts=0, 30 s")) == []


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            life(KEPT, crashed, "4.1.2"),
            "6000 puts had been flushed beyond offset 1999, and the restoration ended at 1999",
        ),
        (life(STOPPED, crashed, "4.3.1"), "and the next one is 2500"),
        (
            life(REPLAYED.format(2000), crashed, "2.4.1"),
            "6000 live entries or more, and the whole changelog gave back 2000 puts",
        ),
        (life(FILLED, lawful, "3.9.2"), "4000 puts since it was made, from 2000 records at most"),
    ],
)
def test_finding(made, words):
    """What it names, and the numbers that it rests on."""
    finding = made().only(ID)
    assert (finding.level, finding.affected) == (Level.DAMAGE, Affected.POSSIBLY)
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())
    assert words in finding.summary


def zeroed(covering: int = 1999, **before: Any) -> Any:
    """4.3: compaction zeroed the sequences. Which puts came after the last stored offset, nobody can say then."""
    known = {"closed": False, "stored_offset_at_open": 1999, "kept_offsets": True, "transactional": None}
    let_go = session(10, 20, puts=7000, puts_at_open=2000, **{**known, **before})
    let_go.uncovered_puts, let_go.covering_offset = None, covering
    made = database(puts=7000, offsets=StoreOffsets())
    return case(task(store([made], [let_go, session(30, 40, stored_offset=covering)])), release="4.3.1")


def closed_full(offset: int | None = 1999, **before: Any) -> Any:
    """4.3: a new store was closed in order with 7,000 entries, and opened again."""
    known = {
        "created": True,
        "closed": True,
        "kept_offsets": True,
        "transactional": False,
        "uncovered_puts": 0,
        "entries_at_release": 7000,
    }
    let_go = session(10, 20, puts=7002, stored_offset=offset, **{**known, **before})
    let_go.covering_offset = offset
    made = database(puts=7002, offsets=StoreOffsets())
    return case(task(store([made], [let_go, session(30)])), release="4.3.1")


def reopened(
    *,
    segmented: bool = False,
    facts: tuple[Any, ...] = (),
    offset: int | None = None,
    begun: int = 6000,
    **before: Any,
) -> Any:
    """Up to 2.5, hunted on a machine that stood still: the wipe came long after the opening.

    `begun`: what the last manifest began with.
    """
    let_go = session(0, 60, puts=6000, entries_at_release=6000, **before)
    after = session(70, reopens=2, offset_at_open=offset, restored_puts=begun)
    parts = [database(puts=6000, flushed=[(6000, 50)], segment=x, entries=3000) for x in ("0", "60000")]
    held = store(parts if segmented else parts[:1], [let_go, after], segmented=segmented)
    return case(task(held, checkpoints=facts), now=120, release="2.0.1", guarantee=EOS)


def new(offset: int = 1999, *, unsure: bool = False, again: float | None = None, **more: Any) -> Any:
    """A store that was made at 0 s, and whose checkpoint counts 4,000 puts; opened `again`."""
    last = mark(20, offset, 4000)
    last.unsure = unsure
    files = database(puts=4000, manifest=5, reopened_us=() if again is None else (at(again),))
    held = store([files], [session(0, last=last, **{"created": True, **more})])
    return case(task(held), release="3.9.2", guarantee=ALOS)


def unknown(
    offset: int = -4, puts: int = 4000, *, unsure: bool = False, release: str | None = "4.1.2", **more: Any
) -> Any:
    """3.8 to 4.2: a new store whose last checkpoint holds `puts` and no offset was opened again."""
    last = mark(20, offset, puts)
    last.unsure = unsure
    let_go = session(10, 21, puts=4000, **{"last": last, "created": True, **more})
    held = store([database(puts=4000)], [let_go, session(30)])
    return case(task(held, checkpoints=[checkpoint(20, offset)]), release=release)


NOT_WHOLE = "silent: an offset was trusted, the replay was not whole"
KNOWS_ONE = "its last checkpoint knows an offset, or there was none"
OLDER = "an older release may not know the offset of what it committed"
UNSURE = "whether the store took it before that checkpoint"
NOT_NEW = "silent: the store was not new, or was opened again"


@cases(
    ID,
    ("5,000 puts and the offset did not move", zeroed(), SUSPECTED),
    ("it moved as far", zeroed(6900), "silent: the next stored offset may cover all that had been flushed"),
    ("transactional", zeroed(transactional=True), "silent: a transactional store may be ahead of its offset"),
    ("let go by 4.2", zeroed(kept_offsets=False), "silent: an older release let go of the store"),
    ("closed with more entries than records", closed_full(), SUSPECTED),
    ("as many records as entries", closed_full(6999), NOTHING_4_3),
    ("its offset is not known", closed_full(None), NOTHING_4_3),
    ("its offset says unknown", closed_full(-4), NOTHING_4_3),
    ("its entries are not known", closed_full(entries_at_release=None), NOTHING_4_3),
    (
        "it was there before the session",
        closed_full(created=False),
        "silent: nothing was flushed behind the stored offset; another session made the store",
    ),
    ("nobody saw it made new", closed_full(attached=True), NOTHING_4_3),
    (
        "killed open",
        closed_full(closed=False),
        "silent: nothing was flushed behind the stored offset; not closed with its offset",
    ),
    ("closed without its offset", closed_full(closed_with_offset=False), NOTHING_4_3),
    ("restored ahead of its offset", closed_full(transactional=True), NOTHING_4_3),
    ("reopened", reopened(), "critical confirmed"),
    ("the manifest that the end of its restoration began was not read", reopened(begun=0), "silent"),
    ("nothing was flushed beyond its checkpoint", reopened(last=mark(55, 5999, 6000)), NOTHING),
    ("its opening trusted an offset", reopened(offset=5999), NOT_WHOLE),
    ("a checkpoint was there", reopened(facts=(checkpoint(50, 5999),)), NOT_WHOLE),
    ("a checkpoint without an offset", reopened(facts=(checkpoint(50, -4),)), "critical confirmed"),
    ("a checkpoint of later", reopened(facts=(checkpoint(71, 5999),)), "critical confirmed"),
    ("a checkpoint of before", reopened(facts=(checkpoint(-9, 99, ended=-1),)), "critical confirmed"),
    ("reopened, two segments", reopened(segmented=True), "silent: the restoration is not seen as a whole"),
    ("a checkpoint that knows no offset", unknown(), SUSPECTED),
    ("4.2.2", unknown(release="4.2.2"), SUSPECTED),
    ("it knows one", unknown(3999), f"{NOTHING}; {KNOWS_ONE}"),
    ("it wrote none", unknown(last=None), "silent"),
    ("it was empty then", unknown(puts=0), "silent: nothing was in it at its last checkpoint"),
    ("it was there before it", unknown(created=False), f"{NOTHING}; another session made the store"),
    ("nobody saw it made, 4.1", unknown(attached=True), NOTHING),
    ("wiped in the session", unknown(wiped=True), NOTHING),
    (
        "flushed before or after it",
        unknown(unsure=True),
        f"{NOTHING}; whether the store took it before that checkpoint",
    ),
    ("3.7 may have committed it", unknown(release="3.7.2"), f"{NOTHING}; {OLDER}"),
    ("it may be 3.7", unknown(release=None), f"{NOTHING}; {OLDER}"),
    ("4,000 puts of 2,000 records", new(), SUSPECTED),
    ("it was there before", new(created=False), NOT_NEW),
    ("nobody saw it made", new(attached=True), NOT_NEW),
    ("wiped in between", new(wiped=True), NOT_NEW),
    ("opened again", new(again=15), NOT_NEW),
    ("made by two openings, up to 3.7", new(again=0.5), SUSPECTED),
    ("the checkpoint claims nothing", new(-4), "silent: the checkpoint claims nothing"),
    ("4,000 puts of 4,000 records", new(3999), "silent: as many puts as there may be records"),
    ("whether before it", new(unsure=True), "silent: whether the store took them before the checkpoint"),
)
def test_looks(story, said):
    """Each takes one thing away from a store that took too much."""
    assert said_of(ID, story) == said
