"""Detector `stale-eos-checkpoint`: flushes beyond a checkpoint that stays while the task runs (KAFKA-20685, 10362)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.events import Affected, Level, Severity, Status
from agent.inventory.disk import LockState
from agent.inventory.model import Application
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase, Truth
from agent.layout.profile import Profile
from agent.layout.releases import ReleaseRange
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    profile,
    session,
    store,
    task,
)
from tests.support.scenario_script import play
from tests.support.tables import LIKELY, PROVED, QUIET, REMARKED, SUSPECTED, WARNED, heard, said, table

ID = "stale-eos-checkpoint"
EOS = "exactly_once_v2"
BEYOND = "nothing was flushed beyond the checkpoint"
MAY_COME = "a close or a commit may be about to write the checkpoint"


def restored(release: str = "4.1.2", guarantee: str = EOS, standbys: int | None = 0, **more) -> Scenario:
    """A task that has just been restored: its checkpoint is there, nothing was flushed beyond it."""
    return play(Scenario(release, guarantee, standbys, **more), "start, opens, restores 1999 puts=2000, 3 s")


def suspended(release: str) -> Scenario:
    """Where a restoration writes none, a suspension does; the task is resumed."""
    return play(Scenario(release, "exactly_once", 0), "start, opens, 1 s, puts 2000, checkpoints 1999, 1 s")


def made_just_now(release: str) -> Scenario:
    """A new task's checkpoint may come before the look at its new store has settled (recorded: 70 ms)."""
    return play(Scenario(release, EOS, 0), "start, opens, 0.05 s, checkpoints -4, 1 s")


FLUSHES = "puts 500, flushes, 2 s"


@pytest.mark.parametrize("release", ["3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1"])
def test_fires_on_a_flush_beyond_the_checkpoint(release):
    """Data flushed while the checkpoint of the restoration stays is an exposure."""
    run = play(restored(release), FLUSHES)
    finding = run.only(ID)
    assert heard(ID, run) == SUSPECTED
    assert (finding.level, finding.task_id, finding.affected) == (Level.EXPOSURE, "0_0", Affected.YES)
    assert finding.upstream == ("KAFKA-20685",)
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)
    assert "500 writes" in finding.summary


@table(ID, "life, more, expected", {
    "a checkpoint milliseconds after the store": (made_just_now, {"release": "4.1.2"}, SUSPECTED),
    # recorded on 4.0.2
    "a segment younger than the checkpoint": (restored, {"release": "4.0.2", "stores": {"w": WINDOWED}}, SUSPECTED),
    # a checkpoint that moved by less than 10,000 and stands ends an active task's restoration, or is of a pause
    "beside standbys": (restored, {"standbys": 1}, SUSPECTED),
    "standbys not told": (restored, {"standbys": None}, SUSPECTED),
    "the release is not known": (restored, {"hidden": ("kafka_streams_version",)}, SUSPECTED),
    "KAFKA-10362: 2.6.1 keeps the one of a suspension": (suspended, {"release": "2.6.1"}, SUSPECTED),
    "2.5 deletes it": (suspended, {"release": "2.5.1"}, QUIET),
    "2.6.2 deletes it": (suspended, {"release": "2.6.2"}, QUIET),
    "3.4 deletes it": (suspended, {"release": "3.4.1"}, QUIET),
    "3.7 deletes it": (suspended, {"release": "3.7.2"}, QUIET),
    "4.3 has none": (suspended, {"release": "4.3.1"}, QUIET),
    "at-least-once": (restored, {"guarantee": "at_least_once"}, QUIET),
    "the guarantee is not known": (restored, {"hidden": ("processing_guarantee",)}, QUIET),
})  # fmt: skip
def test_who_keeps_a_checkpoint(life, more, expected):
    run = play(life(**more), f"puts 500 segment={60_000 if 'stores' in more else 0}, flushes, 20 s")
    assert heard(ID, run) == expected
    affected = Affected.POSSIBLY if more.get("hidden") else Affected.YES
    issue = "KAFKA-10362" if more.get("release") == "2.6.1" else "KAFKA-20685"
    assert {(x.affected, x.upstream, x.missing_facts) for x in run.findings(ID)} <= {(affected, (issue,), ())}


def test_waits_for_the_flush_and_a_second():
    """Neither puts in the memtable nor a flush that a close may be about to checkpoint is a finding."""
    run = play(restored(), "compacts, puts 500, 20 s")  # a compaction makes new files, but no new data
    assert run.findings(ID) == []
    assert play(run, "flushes, 0.8 s").findings(ID) == []
    assert play(run, "1.5 s").only(ID).status is Status.OPEN


def test_restoration_that_was_paused_is_not_sure():
    """Paused, resumed, flushed and killed: nothing but committed records was ever on disk (`tests/proof`)."""
    run = play(
        Scenario("4.1.2", EOS, 0),
        "start, opens, 1 s, checkpoints -4, 5 s, puts 100, flushes, 2 s, crash, 130 s",
    )
    assert heard(ID, run) == LIKELY
    assert "paused" in run.only(ID).summary
    assert "uncommitted records may stay in the store" in run.only(ID).next_action


# -- the exact limits -------------------------------------------------------------------------------------------


def dossier(
    puts: int = 500,
    offset: int = 1999,
    *,
    later: float | None = None,
    killed: float | None = None,
    left: int | None = None,
    sibling: float | None = None,
    older: int | None = None,
    changes: dict[str, Any] | None = None,
    **settings: Any,
) -> TaskCase:
    """`puts` flushed at 20 s beyond a checkpoint of 10 s; one more put is flushed `later`; perhaps `killed` then.

    `left`: puts that the killed process left; `sibling`: another task flushed then; `older`: the checkpoint before.
    """
    more = [] if later is None else [(2001 + puts, later)]
    files = database(puts=2000 + puts, flushed=[(2000, 9), (2000 + puts, 20), *more])
    one = session(0, killed, first=mark(10, offset, 2000), puts=(left or 2000 + puts) if killed else 0)
    for name, value in (changes or {}).items():
        setattr(one if hasattr(one, name) else files, name, value)
    facts = [] if older is None else [checkpoint(5, older, ended=10)]
    judged = task(store([files], [one]), checkpoints=[*facts, checkpoint(10, offset)])
    siblings = []
    if sibling is not None:
        siblings.append(task(store([database(puts=5, flushed=[(5, sibling)])], [session(0)]), task_id="0_1"))
    return case(judged, *siblings, **settings)


MOVED: dict[str, Any] = {"offset": 11_999, "now": 60}
"""It moved by more than 10,000: the commit timer may have written it."""
WORKED: dict[str, Any] = {**MOVED, "later": 49}
MANY = {**MOVED, "puts": 12_000, "standbys": 1}
STALLED = {"offset": 11_999, "now": 130, "killed": 70, "left": 2501}
DEAD: dict[str, Any] = {"killed": 30, "now": 90}


@table(ID, "more, expected", {
    "a second after the flush": ({"now": 20.999}, MAY_COME),
    "the whole second": ({"now": 21}, SUSPECTED),
    "4.1 may be any of it": ({"release": "4.1"}, SUSPECTED),
    # after a checkpoint that moved by more than 10,000 only as many records again prove an active task
    "no standbys": ({**WORKED, "standbys": 0}, SUSPECTED),
    "standbys": ({**WORKED, "standbys": 1}, REMARKED),
    "standbys, ten thousand": ({**WORKED, "standbys": 1, "puts": 10_000}, REMARKED),
    "standbys, more": ({**WORKED, "standbys": 1, "puts": 10_001}, WARNED),
    "standbys not told": ({**WORKED, "standbys": None}, SUSPECTED),
    "not told, more": ({**WORKED, "standbys": None, "puts": 10_001}, WARNED),
    # forty seconds without a commit, and without any other sign of life, are no commits that were missed
    "a frozen standby writes none": (MANY, REMARKED),
    "at work too early": ({**MANY, "later": 20.1}, REMARKED),
    "at work when a commit had been due": ({**MANY, "later": 20.2}, WARNED),
    "a sibling was at work": ({**MANY, "sibling": 30}, WARNED),
    "a sibling, as late as a commit may be": ({**MANY, "sibling": 49.9}, WARNED),
    "a sibling goes on just now": ({**MANY, "sibling": 50.1}, REMARKED),
    # half a minute at one offset ends a restoration only while the process does something: it flushes at 20 s
    "the brokers were away: nothing to flush": ({**STALLED, "later": 39.9}, SUSPECTED),
    "it was at work half a minute later": ({**STALLED, "later": 40}, LIKELY),
    "it was at work long after": ({**STALLED, "later": 60}, LIKELY),
    "it had been frozen, went on, and was killed": ({**STALLED, "later": 60.1}, SUSPECTED),
    # a minute after an unclean end the next start still loses nothing if the directory goes first
    "dead for a minute": (DEAD, LIKELY),
    "dead for less": ({**DEAD, "now": 89.9}, SUSPECTED),
    "by its checkpoint an active task, whatever is told": ({**DEAD, "standbys": None}, LIKELY),
    "dead, its role assumed": ({**DEAD, "standbys": None, "offset": 11_999}, SUSPECTED),
    "dead beside standbys": ({**DEAD, "standbys": 1, "offset": 11_999}, REMARKED),
    "dead, perhaps not affected": ({**DEAD, "release": None}, SUSPECTED),
    # whatever paused it: a standby or a restoration writes a checkpoint at the next commit after 10,000 records
    "dead, and 10,000 beyond": ({"puts": 10_001, "later": 49, "killed": 60, "left": 12_002, "now": 120}, PROVED),
    "so beside standbys": (
        {"puts": 10_001, "later": 49, "killed": 60, "left": 12_002, "now": 120, "standbys": 1}, PROVED),
    "so if not told": (
        {"puts": 10_001, "later": 49, "killed": 60, "left": 12_002, "now": 120, "standbys": None}, PROVED),
    # one that moved by more than 10,000 offsets may not be the last: only when it stands for long it is
    "on the way of a restoration": ({**MOVED, "offset": 12_000, "now": 49}, MAY_COME),
    "half a minute on": ({**MOVED, "offset": 12_000, "now": 50}, SUSPECTED),
    "moved by ten thousand": ({**MOVED, "offset": 12_000, "older": 2000, "now": 49}, SUSPECTED),
    "moved by more": ({**MOVED, "offset": 12_000, "older": 1999, "now": 49}, MAY_COME),
    "moved by more, half a minute on": ({**MOVED, "offset": 12_000, "older": 1999, "now": 50}, SUSPECTED),
    # what is there
    "no checkpoint of this session": (
        {"changes": {"first": None, "last": None}}, "no checkpoint of it was written since it was opened"),
    "released with nothing beyond": ({"killed": 100, "left": 2000}, BEYOND),
    "released with some": ({"killed": 100, "left": 2500}, SUSPECTED),
    "every segment that was flushed has expired": ({"changes": {"flushed": ()}}, SUSPECTED),
})  # fmt: skip
def test_limits(more, expected):
    assert said(ID, dossier(**more)) == expected


@pytest.mark.parametrize(
    ("more", "missing"),
    [({"standbys": 1}, ()), ({"standbys": None}, ("num_standby_replicas",)), ({"puts": 10_001}, ())],
)
def test_asks_for_the_standbys_where_they_decide(more, missing):
    """They are not told, or told to be there."""
    (verdict,) = judge(ID, dossier(**{**WORKED, "standbys": None, **more}))
    assert verdict.missing_facts == missing


def at_rest(
    flushed: float | None = 20, offset: int | None = 1999, found: float = 0, **settings: Any
) -> TaskCase:
    """One look at a store that nobody held since: 2,000 puts at 9 s, 500 more at `flushed`; checkpoint of 10 s."""
    times = [] if flushed is None else [(2000, 9), (2500, flushed)]
    files = database(puts=2500, flushed=times, found_us=at(found))
    return case(task(store([files]), checkpoints=[checkpoint(10, offset)]), **settings)


def just_free(seconds: float, lock: LockState = LockState.HELD) -> TaskCase:
    """The same at 21 s, beside an application."""
    return at_rest(found=21, now=seconds, application=Application("app", exists=True, lock=lock))


def seen(release: str) -> TaskCase:
    """The same, and a process whose release is seen, not told."""
    return replace(at_rest(release=None), profile=profile(release))


def of_4_2_to_4_4(**settings: Any) -> TaskCase:
    """The same, of releases with one RocksDB: the later ones write no checkpoint."""
    releases = Profile(ReleaseRange.between("4.2.0", "4.4.x"), transactional=Truth.MAYBE)
    return replace(at_rest(release=None, **settings), profile=releases)


COPY = "its file times may be those of a copy"


@table(ID, "one, expected", {
    "flushed after the checkpoint": (at_rest(), LIKELY),
    "half a second after it": (at_rest(10.5), LIKELY),
    "a volume copied without its times": (at_rest(10.499), COPY),
    "flushed before it": (at_rest(9.5), BEYOND),
    "the checkpoint does not name it": (at_rest(offset=None), "the checkpoint does not name it"),
    "no file": (at_rest(None), QUIET),
    # a restoration that was killed leaves the like within seconds: what is flushed later was processed
    "a checkpoint that no commit wrote": (at_rest(offset=10_000), LIKELY),
    "a checkpoint that a commit may have written": (at_rest(offset=10_001), SUSPECTED),
    "and work half a minute later": (at_rest(40, offset=10_001), LIKELY),
    # a process that lives may have closed it dirty, and be about to wipe it
    "its process lives": (just_free(79.9), SUSPECTED),
    "free for a minute": (just_free(80), LIKELY),
    "its process is gone": (just_free(22, LockState.FREE), LIKELY),
    # told the release with the fix, which a timer makes write the like while it restores
    "4.2.2 leaves none that no commit wrote: an older one did": (at_rest(release="4.2.2"), LIKELY),
    "one that its own restoration may have left": (at_rest(40, offset=10_001, release="4.2.2"), SUSPECTED),
    "told 4.3, another one was at work": (at_rest(40, offset=10_001, release="4.3.1"), LIKELY),
    # which release comes changes nothing: one before it kept the checkpoint
    "no release told": (at_rest(release=None), LIKELY),
    "any patch of 4.2": (at_rest(release="4.2", standbys=None), LIKELY),
    "one that 4.2.2 may have left": (at_rest(40, offset=10_001, release="4.2"), SUSPECTED),
    "by its RocksDB 4.2 to 4.4": (of_4_2_to_4_4(standbys=1), LIKELY),
    "a standby, of a release that writes at each commit": (at_rest(release=None, standbys=None), SUSPECTED),
    "so told": (at_rest(release="2.6.2", standbys=None), SUSPECTED),
    "its release is seen, and has the fix": (seen("4.2.2"), QUIET),
})  # fmt: skip
def test_file_times(one, expected):
    """Without any history the times of the files say it."""
    assert said(ID, one) == expected


NOT_TRUSTED: dict[str, Callable[[TaskCase], Any]] = {
    "global stores have no transactions": lambda one: setattr(one.task, "id", "global"),
    "it keeps its offsets": lambda one: setattr(
        one.task.stores["s"].databases[""], "offsets", StoreOffsets(status=1)),
    "the store is gone": lambda one: one.task.stores["s"].databases.clear(),
    "the checkpoint is gone": lambda one: setattr(one.task.checkpoints[-1], "ended_us", one.now_us),
}  # fmt: skip


@pytest.mark.parametrize("change", NOT_TRUSTED.values(), ids=NOT_TRUSTED)
@pytest.mark.parametrize("more", [{}, {"killed": 30, "left": 2500}, None], ids=["held", "dead", "one look"])
def test_what_no_start_trusts(more, change):
    one = at_rest() if more is None else dossier(**more)
    assert len(judge(ID, one)) == 1
    change(one)
    assert judge(ID, one) == []


def two(*ones: TaskCase) -> TaskCase:
    """One task with the stores of these."""
    for number, one in enumerate(ones):
        held = one.task.stores.pop("s")
        held.name = f"s{number}"
        ones[0].task.stores[held.name] = held
        ones[0].task.checkpoints[-1].offsets[held.name] = 11_999
    return ones[0]


@table(ID, "one, speaks", {
    "the loudest decides": (two(dossier(10, **MOVED, standbys=1), dossier(12_000, 11_999, later=49)), 1),
    "of two equals the first speaks": (two(dossier(), dossier()), 0),
    "one in order before": (two(dossier(0), dossier()), 1),
    "one in order behind": (two(dossier(), dossier(0)), 0),
})  # fmt: skip
def test_two_stores_are_one_exposure(one, speaks):
    (verdict,) = judge(ID, one)
    assert verdict.severity is Severity.WARNING
    assert f"store s{speaks} " in verdict.summary


@pytest.mark.parametrize(
    ("one", "says", "steps"),
    [
        (dossier(), "After a crash", [0, 10, 20]),
        (dossier(**DEAD), "ended without a clean close", [0, 10, 20]),
        (at_rest(), "ended without a clean close", [10, 20]),
    ],
    ids=["held", "dead", "one look"],
)
def test_what_a_verdict_carries(one, says, steps):
    """The chain begins at the opening, or at the checkpoint; the finding is dated to the flush."""
    (verdict,) = judge(ID, one)
    assert says in verdict.summary
    assert [step.at_us for step in verdict.evidence] == [at(x) for x in steps]
    assert verdict.opened_at_us == at(20)
    before = verdict.next_action.startswith(
        "BEFORE the next start: keep a copy of the task directory app/0_0"
    )
    assert before == (says == "ended without a clean close")


@pytest.mark.parametrize(
    ("release", "issue"), [("2.6.1", "KAFKA-10362"), ("4.1.2", "KAFKA-20685"), (None, "KAFKA-20685")]
)
def test_names_the_issue_of_the_release(release, issue):
    """The older issue is named only where the newer one is excluded."""
    assert judge(ID, at_rest(release=release))[0].upstream == (issue,)
