"""The judge: words that no look can decide."""

from __future__ import annotations

import dataclasses

import pytest

from tests.lab.plan import ALOS, EOS, TRANSACTIONAL
from tests.lab.test_judge import LOST, kinds, look, run, said, true
from tests.lab.timeline import Asked


def test_a_word_about_a_segment_that_started_to_expire_is_undecided():
    """Found by the hunt: the records of a lost segment began exactly where the retention ended at the next look."""
    of = dataclasses.replace(
        run(), settings={"retention.ms": 120_000, "window.ms": 10_000, "grace.ms": 20_000}
    )
    begun_ms = 1_795_371_960_000
    word = dataclasses.replace(
        said("lost-segment", "critical"),
        summary=f"Task 0_0: store window went on from offset 9 of segment window.{begun_ms + 60_000};"
        f" all that was put into window.{begun_ms} is lost.",
    )
    for since_s, kind in ((119, "false_alarm"), (120, "undecided")):
        marks = (
            (40, f"20 records sent, stream time {since_s} s, {begun_ms + since_s * 1000} ms"),
            (60, "truth: right"),
        )
        for name in ("lost-segment", "offset-beyond-durable"):
            one = dataclasses.replace(word, detector=name)
            assert kinds(of, words=[one], marks=marks, asked=[look("a")]) == [kind]
        joined = dataclasses.replace(word, store="KSTREAM-JOINTHIS-0000000013-store")
        assert kinds(of, words=[joined], marks=marks, asked=[look("a", store=joined.store)]) == ["undecided"]
    late = (
        (40, f"20 records sent, stream time 120 s, {begun_ms + 120_000} ms"),
        (60, "truth: window 0: -60"),
    )
    assert kinds(of, [true(LOST, pod="a")], [word], marks=late, asked=[look("a")]) == ["excused"]


def test_a_word_about_a_volume_that_was_replaced_before_the_next_start_is_undecided():
    """Found by the hunt: a kill lost segments, and a snapshot was put back in their place."""
    marks = (
        (10, "a starts 4.3.1"), (40, "step snapshot pod=a of=running ends=kill"), (45, "a is killed"),
        (52, "a starts 4.3.1"), (55, "step check"), (60, "truth: right"),
    )  # fmt: skip
    for at_us, kind in ((47, "undecided"), (53, "false_alarm"), (39, "false_alarm")):
        word = said("lost-segment", "critical", at_us=at_us)
        assert kinds(run(), words=[word], marks=marks, asked=[look("a")]) == [kind]
    elsewhere = said("lost-segment", "critical", agent="b-told", at_us=47)
    assert kinds(run(), words=[elsewhere], marks=marks, asked=[look("b")]) == ["false_alarm"]


def test_a_word_about_a_store_that_a_kill_has_wiped_since_is_undecided():
    """Found by the hunt: exactly-once wipes what a killed pod left, so that the next look cannot say what was there."""
    killed = ((10, "a starts 4.1.0"), (53, "a is killed"), (54, "a starts 4.1.0"), (60, "truth: right"))
    word = said("resurrected-checkpoint", "critical", at_us=50)
    for guarantee, marks, kind in (
        (EOS, killed, "undecided"),
        (EOS, (*killed[:1], (49, "a is killed"), *killed[2:]), "false_alarm"),
        (EOS, (*killed[:1], (53, "b is killed"), *killed[2:]), "false_alarm"),
        (ALOS, killed, "false_alarm"),
    ):
        assert kinds(run("4.1.0", guarantee), words=[word], marks=marks, asked=[look("a")]) == [kind]


def test_no_kill_wipes_transactional_stores_but_a_corrupted_task_does():
    """With transactional stores the next look shows what was on the disk: nothing wipes it at a start."""
    of = dataclasses.replace(run("4.4.0", EOS), settings={TRANSACTIONAL: "true"})
    word = said("lost-segment", "critical", at_us=50)
    for what, kind in (("a is killed", "false_alarm"), ("a fail-commit: set", "undecided")):
        marks = ((10, "a starts 4.4.0"), (53, what), (54, "a starts 4.4.0"), (60, "truth: right"))
        assert kinds(of, words=[word], marks=marks, asked=[look("a")]) == [kind]
        older = tuple((at_us, mark.replace("4.4.0", "4.3.1")) for at_us, mark in marks)
        assert kinds(of, words=[word], marks=older, asked=[look("a")]) == ["undecided"]


def test_a_word_that_may_be_about_a_standby_that_cannot_be_asked_is_undecided():
    """Found by the hunt: on 2.0.1 a standby had 2,000 of 7,700 entries, and the active store was right."""
    marks = ((10, "a starts 2.0.1"), (60, "truth: right"))
    word = said("carried-checkpoint", "critical", at_us=50)
    for standbys, kind in ((1, "undecided"), (0, "false_alarm")):
        of = dataclasses.replace(run("2.0.1"), settings={"num.standby.replicas": standbys})
        assert kinds(of, words=[word], marks=marks, asked=[Asked(60, None)]) == [kind]


@pytest.mark.parametrize(
    ("detector", "stores", "kind"),
    [
        ("skipped-eos-wipe", ("table", "versioned"), "undecided"),
        ("skipped-eos-wipe", ("table", "kv"), "false_alarm"),
        ("skipped-eos-wipe", ("unheard-of",), "false_alarm"),
        ("torn-store", ("table",), "false_alarm"),
    ],
)
def test_a_word_about_uncommitted_records_that_are_read_again_is_undecided(detector, stores, kind):
    """Found by the hunt: 26 uncommitted puts of a table were read again, and gave the same table."""
    asked = Asked(60, frozenset(("a", "0_0", store) for store in stores))
    marks = ((10, "a starts 4.1.0"), (60, "truth: right"))
    word = said(detector, "critical", at_us=50)
    assert kinds(run("4.1.0", EOS), words=[word], marks=marks, asked=[asked]) == [kind]
