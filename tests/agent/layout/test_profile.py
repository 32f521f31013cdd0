"""Which releases the evidence allows, and what follows from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.events import Affected
from agent.layout.facts import FACTS, Fact
from agent.layout.profile import Evidence, Profile, Truth, affected, infer
from agent.layout.releases import ANY_RELEASE, ReleaseRange
from tests.support.every import every

between, since, until = ReleaseRange.between, ReleaseRange.since, ReleaseRange.until


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(), "any release"),
        (Evidence(rocksdb_versions=frozenset({"9.7.3"})), "4.0.0 to 4.1.x"),
        (Evidence(rocksdb_versions=frozenset({"10.1.3"})), "4.2.0 to 4.4.x"),
        (Evidence(rocksdb_versions=frozenset({"10.1.3"}), offsets_family=True), "4.3.0 to 4.4.x"),
        (Evidence(rocksdb_versions=frozenset({"5.18.4"}), process_file=True), "2.6.2 to 2.8.x"),
        (Evidence(rocksdb_versions=frozenset({"5.18.4"}), process_file=False), "2.6.0 to 2.7.0"),
        (Evidence(task_lock_held=True), "up to 2.8.x"),
        (Evidence(offsets_family=True), "4.3.0 or later"),
        (Evidence(process_file=True), "2.6.2 or later"),
        (Evidence(process_file=False), "up to 2.7.0"),
        (Evidence(task_lock_held=True, process_file=True), "2.6.2 to 2.8.x"),
        (Evidence(rocksdb_versions=frozenset({"7.9.2", "9.7.3"})), "3.5.0 to 4.1.x"),
        (Evidence(rocksdb_versions=frozenset({"9.9.9"})), "any release"),
        (Evidence(rocksdb_versions=frozenset({"9.9.9", "9.7.3"})), "any release"),
        (Evidence(rocksdb_versions=frozenset({"10.1.3"}), position_files=True), "4.2.0 to 4.4.x"),
        (Evidence(position_files=True), "3.2.0 or later"),
        (Evidence(rocksdb_versions=frozenset({"9.7.3"}), operator="4.1.2"), "4.1.2"),
        (Evidence(rocksdb_versions=frozenset({"9.7.3"}), operator="4.1"), "4.1.0 to 4.1.x"),
        (Evidence(process_version="4.1.2"), "4.1.2"),
        (Evidence(process_version="7.9.0-ccs", operator="3.9.0"), "3.9.0"),
    ],
)
def test_range(evidence, expected):
    """Each piece of evidence narrows the range, without conflict."""
    profile = infer(evidence)
    assert str(profile.range) == expected
    assert profile.conflicts == profile.doubts == ()


@pytest.mark.parametrize(
    ("evidence", "release"),
    [
        (Evidence(operator="4.2.1", offsets_family=True), "4.2.1"),
        (Evidence(operator="4.2", offsets_family=True), "4.2.0 to 4.2.x"),
        (Evidence(process_version="4.2.1", offsets_family=True), "4.2.1"),
        (Evidence(operator="4.2.1", process_version="4.3.1", offsets_family=True), "None"),
        (Evidence(operator="4.3.0", offsets_family=True), "None"),
        (Evidence(operator="4.2.1"), "None"),
        (Evidence(operator="3.1.2", position_files=True), "None"),
    ],
)
def test_stores_that_the_release_cannot_open(evidence, release):
    """RocksDB opens no database of which a column family is left out; other traces hinder nobody."""
    assert str(infer(evidence).unopenable) == release


@pytest.mark.parametrize(
    ("evidence", "release", "conflicts", "doubts"),
    [
        # a trace that the stated release cannot leave is a conflict; the statement keeps the range
        (Evidence(operator="4.1.2", offsets_family=True), "4.1.2", 1, 0),
        (Evidence(operator="4.1.2", process_version="3.9.2"), "3.9.2", 1, 0),  # a visible process wins
        # a RocksDB version that does not fit is a doubt only: users replace the library
        (Evidence(operator="4.1.2", rocksdb_versions=frozenset({"10.1.3"})), "4.1.2", 0, 1),
    ],
)
def test_what_disagrees(evidence, release, conflicts, doubts):
    """What is more certain keeps the range; a conflict names both sides."""
    profile = infer(evidence)
    assert (str(profile.range), len(profile.conflicts), len(profile.doubts)) == (release, conflicts, doubts)
    assert profile.is_exact
    if evidence.offsets_family:
        said = "the column family `offsets` means 4.3.0 or later, but the rest means 4.1.2"
        assert profile.conflicts == (said,)


def test_unknown_operator_release():
    """A setting that is no release is an error of the caller's."""
    with pytest.raises(ValueError, match="expected for example"):
        infer(Evidence(operator="newest"))


SAID = {
    Fact.TASK_LOCK: "2.8.2 yes, 3.0.0 no",
    Fact.APPLICATION_LOCK: "2.7.0 no, 2.7.1 yes",
    Fact.OFFSET_IS_NEXT: "2.5.1 yes",
    Fact.OFFSET_IS_LAST: "2.5.1 no, 2.6.0 yes",
    Fact.FOREIGN_ENTRIES: "2.2.2 no, 2.3.0 yes",
    Fact.TEN_THOUSAND_RULE: "2.6.3 no, 4.2.1 yes",
    Fact.BULK_LOAD_REOPEN: "2.5.1 yes, 2.6.0 no",
    Fact.CHECKPOINT_KEPT_IN_RUNNING: "3.7.2 no, 3.9.2 yes, 4.2 maybe, 4.2.1 yes, 4.3.0 no",
    Fact.CHECKPOINT_KEPT_AT_RESUME: "2.6.1 yes, 2.6.2 no",
    Fact.RESTORED_PARTITIONS_REMEMBERED: "2.0.0 no, 2.0.1 yes, 2.2.0 no",
    Fact.STALE_RECORDER_OFFSETS: "2.7.2 yes, 2.8.1 no, 2.8.2 yes, 3.0.0 no, 3.0.1 yes, 3.5.2 yes, 3.6.1 yes, 3.6.2 no",
    Fact.WIPE_STORE: "2.0.0 no, 2.5.1 yes",
    Fact.WIPE_TASK_DIRECTORY: "2.6.0 yes",
    Fact.STARTUP_PASS: "4.3.0 yes",
    Fact.STARTUP_LOCK_KEPT: "4.3.1 no",
    Fact.CLEANER_SEES_CREATION_TIME: "4.3.1 yes",
    Fact.NEW_TIMESTAMPED_STORE_OPENS_TWICE: "3.8.1 maybe, 3.9.2 no",
}


@every("fact", SAID)
def test_says(fact):
    """The table answers as the releases behave."""
    for release, truth in (x.split() for x in SAID[fact].split(", ")):
        assert Profile(ReleaseRange.of(release)).says(fact).value == truth, release


EXACT = {
    ReleaseRange.of("3.9.2"): True,
    ReleaseRange.of("3.9"): False,
    since("3.9.2"): False,
    until("3.9.2"): False,
    ANY_RELEASE: False,
}


@every("known", EXACT)
def test_exact(known):
    """Only a single release is exact."""
    assert Profile(known).is_exact is EXACT[known]


def test_says_maybe_without_evidence():
    """Nothing but `maybe` follows from knowing nothing."""
    assert {Profile().says(fact) for fact in Fact} == {Truth.MAYBE}


@given(
    st.sampled_from(Fact), st.sampled_from(["2.0.1", "2.5.0", "2.8.2", "3.4.1", "3.9.2", "4.2.1", "4.3.1"])
)
def test_wider_range_never_says_more(fact, release):
    """Widening the range can only turn an answer into `maybe`."""
    narrow = Profile(ReleaseRange.of(release)).says(fact)
    wide = Profile(between("2.0.1", "4.3.1")).says(fact)
    assert wide in (narrow, Truth.MAYBE)


def test_table_is_complete():
    """Every fact has one row that says something, names its source and kind of evidence."""
    assert set(FACTS) == set(Fact)
    for row in FACTS.values():
        assert row.holds
        assert row.source
        assert row.statement.endswith(".")
        assert row.evidence in ("recorded", "source")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (between("3.8.0", "3.9.2"), Affected.YES),
        (between("3.7.0", "3.9.2"), Affected.POSSIBLY),
        (since("4.3.0"), Affected.NO),
        (until("2.5.x"), Affected.NO),
        (ANY_RELEASE, Affected.POSSIBLY),
    ],
)
def test_affected(known, expected):
    """Inside is yes, outside is no, in between is possibly."""
    assert affected(known, (between("2.6.0", "2.6.1"), between("3.8.0", "4.1.2"))) is expected


def test_affected_is_capped_while_evidence_disagrees():
    """As long as evidence disagrees nothing is more than possibly affected."""
    ranges = (between("4.1.0", "4.1.2"),)
    doubtful = infer(Evidence(operator="4.1.2", rocksdb_versions=frozenset({"10.1.3"})))
    conflicting = infer(Evidence(operator="4.1.2", offsets_family=True))
    assert doubtful.affected(ranges) is conflicting.affected(ranges) is Affected.POSSIBLY
    assert infer(Evidence(operator="4.1.2")).affected(ranges) is Affected.YES
    assert infer(Evidence(operator="4.2.0", offsets_family=True)).affected(ranges) is Affected.NO


@pytest.mark.parametrize(
    ("release", "told", "seen", "truth"),
    [
        ("4.3.1", True, None, Truth.NO),
        ("4.4.0", None, None, Truth.MAYBE),
        ("4.4.0", None, True, Truth.YES),
        ("4.4.0", None, False, Truth.NO),
        ("4.4.0", False, True, Truth.NO),
        ("4.4.0", True, False, Truth.YES),
        (None, True, None, Truth.YES),
        (None, None, None, Truth.MAYBE),
    ],
)
def test_transactional_stores(release, told, seen, truth):
    """What is told counts before what is seen; who is told of them without a release has one that knows them."""
    made = infer(Evidence(operator=release, transactional_stores=told, seen_transactional=seen))
    assert made.transactional is truth
    wiped = made.says(Fact.WIPE_ON_MISSING_CHECKPOINT)
    assert (wiped is Truth.NO) is (truth is Truth.YES)


def test_a_later_release_is_never_affected_for_sure():
    """The tables end at the last release that was run; a RocksDB that it ships, too, is no contradiction."""
    made = infer(Evidence(frozenset({"10.1.3"}), offsets_family=True, operator="9.9.9"))
    assert made.doubts == ()
    assert made.affected((ReleaseRange.since("4.3.0"),)) is Affected.POSSIBLY
    known = infer(Evidence(frozenset({"10.1.3"}), offsets_family=True, operator="4.4.0"))
    assert known.affected((ReleaseRange.since("4.3.0"),)) is Affected.YES
