"""Detector `false-clean-store`: 4.3+, marked clean by a close that did not write its offset (hazard D1)."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level
from agent.inventory.disk import LockState
from agent.inventory.model import Application, ProcessLife
from agent.inventory.observations import StoreOffsets
from agent.layout.facts import Fact
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_case import OTHER, at, case, database, judge, session, store, task
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "false-clean-store"
EOS = "exactly_once_v2"
WARNING = "warning suspected"
CRITICAL = "critical suspected"
EXPOSED = "exposure critical suspected"
ROLE = " without num_standby_replicas"
OPEN = "silent: killed open"
MOMENT = "silent: let go less than a minute ago"
BRIEF = "silent: held too briefly to tell how it ended"
WITH_OFFSET = "silent: closed with its offset"
NO_OFFSET = "silent: it got no offset: its restoration did not end, or it has no changelog"


def clean(release: str = "4.3.1", guarantee: str = EOS, standbys: int | None = 0, **more: Any) -> Scenario:
    """Once closed clean at 1999."""
    run = Scenario(release, guarantee, standbys, **more)
    return play(run, "start, opens, puts 2000, 1 s, stops 1999, 5 s")


def dirty(*told: Any, puts: int = 5000, **more: Any) -> Scenario:
    """The same; then uncommitted puts, a dirty close, and a kill before the wipe."""
    return play(clean(*told, **more), f"{REOPENED}, {RESTORED}, 1 s, puts {puts}, closes_dirty, crash, 5 s")


BRIEFLY = "start, opens, puts 100, commits 99, puts 100, closes_dirty"
SEGMENT = {"stores": {"s": WINDOWED}}
REOPENED = "start, 3 s, opens"
RESTORED = "commits 1999"  # the end of a restoration stores its offset
STOPPED = f"{REOPENED}, 12 s, puts 100, stops 2099, 3 s"
FLUSHED = f"{REOPENED}, puts 100, commits 2099, 1 s, flushes, puts 100, 30 s, flushes, puts 100"
PUT_BACK = "start, startup_pass 1999, 3 s, opens, 30 s"
PAUSED = {"commit_interval_ms": 10_000}
KILLED_OPEN = f"{REOPENED}, puts 5000, flushes, 2 s, crash, 5 s, {REOPENED}, 30 s"


@cases(
    ID,
    ("killed, five seconds ago", life("", dirty), MOMENT),
    ("opened again, not settled", life(f"{REOPENED}, 9 s", dirty), "silent"),
    ("opened again, 4.3.0", life(f"{REOPENED}, 12 s", dirty, "4.3.0"), WARNING),
    ("opened again, 4.3.1", life(f"{REOPENED}, 12 s", dirty), WARNING),
    # it may have been closed in the middle of its restoration: never confirmed
    ("the next offset is far below its puts", life(STOPPED, dirty), CRITICAL),
    # who restores stores an offset at every commit; one flush without may follow a pause, two do not
    ("two flushes behind the next offset", life(f"{FLUSHED}, 3 s", dirty, told=PAUSED), WARNING),
    ("three flushes", life(f"{FLUSHED}, 31 s, flushes, 3 s", dirty, told=PAUSED), "critical confirmed"),
    ("the pass puts the old offset back", life(PUT_BACK, dirty), CRITICAL),
    ("the same, with standbys", life(PUT_BACK, dirty, "4.3.1", EOS, 1), WARNING + ROLE),
    ("committed all the same", life(f"{REOPENED}, puts 5100, stops 7099, 30 s", dirty), WARNING),
    ("standbys are not told", life(f"{REOPENED}, 12 s", dirty, "4.3.1", EOS, None), WARNING + ROLE),
    ("wiped late", life(f"{REOPENED}, 12 s, wipes, 15 s", dirty), f"{WARNING} resolved"),
    ("wiped at once", life(f"{REOPENED}, wipes, 30 s", dirty), "silent"),
    (
        "closed clean",
        life(f"{REOPENED}, puts 100, 5 s, stops 2099, 5 s, {REOPENED}, 30 s", clean),
        WITH_OFFSET,
    ),
    ("killed open", life(KILLED_OPEN, clean), OPEN),
    # made, filled and let go between two polls: nobody saw that a process held it
    ("held for a moment, wiped", life(f"{BRIEFLY}, deletes_directory", Scenario, "4.4.0", EOS), MOMENT),
    ("a segment", life(f"{BRIEFLY}, deletes_directory", Scenario, "4.4.0", EOS, **SEGMENT), MOMENT),
    ("not wiped", life(f"{BRIEFLY}, crash, 90 s", Scenario, "4.4.0", EOS), EXPOSED),
    ("nothing new was flushed", life(f"{REOPENED}, 30 s", dirty, puts=0), "silent"),
    ("4.2 has no status", life(f"{REOPENED}, 30 s", dirty, "4.2.1"), "silent"),
    ("at-least-once closes like this", life(f"{REOPENED}, 30 s", dirty, "4.3.1", "at_least_once"), "silent"),
    ("guarantee not told", life(f"{REOPENED}, 30 s", dirty, hidden=("processing_guarantee",)), "silent"),
)
def test_lives(story, said):
    """A dirty close, and a kill before its wipe."""
    assert said_of(ID, story) == said


def test_it_gets_worse_and_stays_one_finding():
    """Once the next stored offset is known."""
    run = play(dirty(), f"{REOPENED}, 12 s")
    before = run.only(ID).id
    after = play(run, "puts 100, stops 2099, 3 s").only(ID)
    assert (after.id, after.level, after.store, after.affected) == (before, Level.DAMAGE, "s", Affected.YES)


def passed(passes: int = 0) -> Scenario:
    """A clean close, and start-up passes that assign nothing, before anybody looks."""
    return play(clean(watched=False), "start, startup_pass, ends, 5 s, " * passes)


def seen(script: str, seconds: float = 60, **more: Any) -> Any:
    """The agent starts after all this."""

    def told() -> Scenario:
        run = play(passed(**more), script)
        run.world.watch()
        run.wait(seconds)
        return run

    return told


@cases(
    ID,
    # who looks only after the kill finds the status without its offset: the last moment to act
    ("a dirty close", seen(f"start, opens, {RESTORED}, puts 5000, closes_dirty, crash", 0), EXPOSED),
    ("in the middle of its restoration", seen("start, opens, puts 5000, closes_dirty, crash", 0), "silent"),
    ("a clean close", seen(""), "silent"),
    ("a clean close, and start-up passes", seen("", passes=3), "silent"),
    ("N23, killed before a flush", seen("start, opens, puts 500, crash"), "silent"),
    ("killed after a flush: the next start wipes", seen("start, opens, puts 500, flushes, crash"), "silent"),
    ("a dirty close without data", seen("start, opens, closes_dirty, crash"), "silent"),
)
def test_scan(story, said):
    """One look at what the kill left."""
    assert said_of(ID, story) == said


def test_step_before_the_next_start():
    """It says what saves everything."""
    finding = seen(f"start, opens, {RESTORED}, puts 5000, closes_dirty, crash", 0)().only(ID)
    assert (finding.task_id, finding.store, finding.affected) == ("0_0", "s", Affected.YES)
    assert "next start would trust about 5001 puts" in finding.summary
    assert finding.next_action.startswith("BEFORE the next start: keep a copy of the task directory app/0_0")


# -- opened again: the exact boundary -------------------------------------------------------------------------


def dossier(
    *,
    stored: int | None = None,
    puts: int = 7000,
    released: float | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Opened with 2,000 puts at stored offset 1999; closed at 20 s with `puts`; opened again at 30 s."""
    known = {
        "closed": True,
        "closed_with_offset": False,
        "stored_offset_at_open": 1999,
        "uncovered_puts": max(puts - 2000, 0),
        "covering_offset": 1999,
    }
    one = session(10, 20, puts=puts, puts_at_open=2000, **{**known, **(before or {})})
    two = session(30, released, **{"stored_offset": stored, **(after or {})})
    files = {"puts": puts, **(files or {})}
    return case(task(store([database(**files)], [one, two])), **{"release": "4.3.1", **settings})


def lasted(more_us: int, puts: int) -> Any:
    """A session that was a little longer than ten seconds, of an unknown role."""
    return dossier(standbys=None, puts=puts, before={"opened_us": at(10) - more_us})


def second_close() -> Any:
    """A good close does not hide the false one after it, nor another store."""
    one = dossier()
    good = session(0, 9, puts=2000, closed=True, closed_with_offset=True)
    one.task.stores["s"].sessions = (good, *one.task.stores["s"].sessions)
    one.task.stores = {"a": store(name="a"), **one.task.stores}
    return one


def beside(**fields: Any) -> Any:
    """A compaction took the order, and the same close put an offset behind what another store took."""
    one = dossier(stored=MORE + 4595, before=ZEROED)
    other = session(10, 20, puts=100, **{"uncovered_puts": 0, **fields})
    one.task.stores["a"] = store([database(puts=100)], [other], name="a")
    return one


MORE = 1999
ZEROED = {"uncovered_puts": None}
VERSIONED = {"families": ("default", "offsets")}


@cases(
    ID,
    ("4,995 offsets for 5,000 puts", dossier(stored=MORE + 4995), CRITICAL),
    ("4,996: status and position of an opening", dossier(stored=MORE + 4996), WARNING),
    ("4,995, and a start-up pass", dossier(stored=MORE + 4995, files={"reopened_us": (at(12),)}), WARNING),
    ("passes cannot be counted", dossier(stored=MORE, files={"all_reopens": False}), WARNING),
    ("order zeroed: ten offsets a second", dossier(stored=MORE + 4595, before=ZEROED), CRITICAL),
    ("order zeroed, and more", dossier(stored=MORE + 4700, before=ZEROED), WARNING),
    (
        "an offset stored before the compaction",
        dossier(stored=MORE + 4900, before={**ZEROED, "covering_offset": MORE + 4900}),
        WARNING,
    ),
    ("and another store's offset is behind its data", beside(), WARNING),
    ("which took nothing", beside(puts_at_open=100), CRITICAL),
    ("which was closed later", beside(released_us=at(21)), CRITICAL),
    ("a versioned store", dossier(stored=MORE + 1700, files=VERSIONED), WARNING),
    ("with standbys", dossier(standbys=1), WARNING + ROLE),
    ("12,000 puts prove no role", lasted(200_000, 12_000), WARNING + ROLE),
    ("12,001, no commit was due", lasted(199_999, 12_001), WARNING + ROLE),
    ("12,001, and a commit was due", lasted(200_000, 12_001), WARNING),
    ("killed open", dossier(before={"closed": False}), OPEN),
    ("held too briefly", dossier(before={"closed": None}), BRIEF),
    ("closed with its offset", dossier(before={"closed_with_offset": True}), WITH_OFFSET),
    ("no changelog", dossier(before={"closed_with_offset": None}), "silent: a store without a changelog"),
    ("no offset came in its session", dossier(before={"took_offset": False}), NO_OFFSET),
    ("no new data", dossier(puts=2000), "silent: nothing was flushed before the close"),
    ("another incarnation was opened", dossier(after={"identities": OTHER}), "silent"),
    ("another incarnation is there", dossier(files={"identity": "identity-2"}), "silent"),
    ("4.2 has no status", dossier(release="4.2.1"), "silent"),
    ("release not told", dossier(release=None), WARNING),
    ("a good close before it", second_close(), WARNING),
)
def test_opened_again(story, said):
    """Offsets against puts, and who was active."""
    assert said_of(ID, story) == said


@pytest.mark.parametrize(
    ("stored", "released", "last"), [(2099, 60, 60), (2099, None, 100), (None, None, None)]
)
def test_chain_ends_with_the_next_stored_offset(stored, released, last):
    """It is as old as the look, or as the release; while it is not known, the chain ends with the reopening."""
    (verdict,) = judge(ID, dossier(stored=stored, released=released))
    assert [x.at_us for x in verdict.evidence] == [at(x) for x in (10, 20, 30, last) if x is not None]
    assert ("next stored offset: 2099" in verdict.evidence[-1].what) == (stored is not None)
    assert (verdict.subject, verdict.opened_at_us) == (f"close@{at(20)}", at(30))
    assert (verdict.store, verdict.identity, verdict.affected) == ("s", "identity-1", Affected.YES)
    assert ("very likely never" in verdict.summary) == (stored is not None)


def test_affected():
    """An unknown release is judged if the disk has a status."""
    assert dossier(release="4.2.1").says(Fact.STATUS_MARKER).value == "no"
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY
    assert [x.opened_at_us for x in judge(ID, second_close())] == [at(30)]


# -- at rest: one look at a store that nobody holds -----------------------------------------------------------


def resting(
    *,
    status: int | None = 0,
    written: int = 8014,
    at_sequence: int | None = 2003,
    stored: int = 1999,
    offset_file: int = 0,
    seen: dict[str, Any] | None = None,
    segment: dict[str, Any] | None = None,
    retired: int = 0,
    files: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """A store of one look; by default its offset (2003) is older than its data (8013); `seen`: a session at 0 s."""
    rows = () if at_sequence is None else (("app-s-changelog-0", stored, at_sequence),)
    offsets = StoreOffsets(status, written, rows, None, offset_file)
    made = [database(**{"puts": 8013, "born": 5, "offsets": offsets, **(files or {})})]
    if segment is not None:
        made.append(database(puts=8013, segment="b", **segment))
    sessions = [] if seen is None else [session(0, 4, puts=8013, **{"closed_with_offset": False, **seen})]
    held = store(made, sessions, retired_puts=retired)
    return case(task(held), **{"release": "4.3.1", **settings})


def just_free(seconds: float, lock: LockState = LockState.HELD, *, began: float = 60, **times: float) -> Any:
    """What an agent finds that starts at 60 s beside an application: a store that was last touched at 50 s.

    `began`: since when it knows the process that lives.
    """
    files = {f"{name}_us": at(x) for name, x in {"touched": 50, "found": 60, **times}.items()}
    application = Application("app", exists=True, lock=lock, lives=(ProcessLife(at(began)),))
    return resting(files=files, now=seconds, application=application)


AS_NEW = "silent: its offset is as new as its data"
NO_OFFSET = "silent: it holds no offset, and is wiped if it has a changelog"
NOT_TRUSTED = "silent: marked open: the next start does not trust it"


@cases(
    ID,
    ("offset before the data", resting(at_sequence=8012), EXPOSED),
    ("offset after the data", resting(at_sequence=8013, stored=7999), AS_NEW),
    ("no changelog, or the next start wipes it", resting(at_sequence=None), NO_OFFSET),
    ("compacted: a zeroed status tells no order", resting(written=0, at_sequence=None), NO_OFFSET),
    (
        "compacted, nothing flushed later",
        resting(at_sequence=0, offset_file=20, files={"newest_flush": 20}),
        AS_NEW,
    ),
    ("compacted, flushed later", resting(at_sequence=0, offset_file=20, files={"newest_flush": 21}), EXPOSED),
    ("marked open", resting(status=1), NOT_TRUSTED),
    ("no status", resting(status=None), NOT_TRUSTED),
    ("a segment whose offsets nobody read", resting(segment={}), EXPOSED),
    (
        "one open segment makes it an open store",
        resting(segment={"offsets": StoreOffsets(1, 8014)}),
        NOT_TRUSTED,
    ),
    ("what was flushed has expired since", resting(retired=-8013), "silent: nothing is in it"),
    ("held", resting(files={"lock": LockState.HELD}), "silent: a process holds it"),
    (
        "nobody can ask who holds it",
        resting(files={"lock": LockState.UNKNOWN}),
        "silent: it is not known whether a process holds it",
    ),
    # once a session was seen, what it did decides; a minute after it nobody starts it again
    ("seen, a minute ago", resting(seen={"closed": True}, now=64), EXPOSED),
    (
        "seen, less than a minute ago",
        resting(seen={"closed": True}, now=63.9),
        MOMENT,
    ),
    (
        "seen, with its offset",
        resting(seen={"closed": True, "closed_with_offset": True}, now=64),
        WITH_OFFSET,
    ),
    ("seen too briefly", resting(seen={"closed": None}, now=64), BRIEF),
    # nobody saw who let it go: a process that lives may be about to wipe it
    ("free, its process lives", just_free(109.9), MOMENT),
    ("free for a minute", just_free(110), EXPOSED),
    ("its process is gone", just_free(61, LockState.FREE), EXPOSED),
    ("a process that started later", just_free(61, began=60.1), EXPOSED),
    ("flushed before that", just_free(61, touched=0.9), EXPOSED),
    ("file times are ahead", just_free(119.9, touched=500), MOMENT),
    ("file times are ahead, a minute on", just_free(120, touched=500), EXPOSED),
    ("at-least-once closes like this", resting(guarantee="at_least_once"), "silent"),
    ("guarantee not told", resting(guarantee=None), "silent"),
)
def test_at_rest(story, said):
    """The order of the last writes decides, to one sequence number."""
    assert said_of(ID, story) == said


def test_at_rest_is_dated_to_the_reading():
    """There is no history: the look is all that is known."""
    (verdict,) = judge(ID, resting())
    assert (verdict.opened_at_us, verdict.identity) == (at(5), "identity-1")
