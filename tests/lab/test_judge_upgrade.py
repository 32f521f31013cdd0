"""The judge: the record that an upgrade from 2.5 skips."""

from __future__ import annotations

import dataclasses

from tests.lab.plan import EOS
from tests.lab.test_judge import LOST, kinds, run, said, true
from tests.lab.truth import Difference

UPGRADED = (
    (10, "a starts 2.5.1"), (30, "a closed"), (31, "a starts 2.8.2"), (70, "a closes"), (80, "a closed"),
)  # fmt: skip
ONE = Difference("kv", 0, 1, 0, 60)


def test_an_offset_of_an_older_release_is_read_one_record_too_far():
    """Found by the hunt: 2.5.1 to 2.8.2, a standby lacks the one record that the active task wrote meanwhile."""
    word = said("skipped-record")
    assert kinds(run("2.5.1"), [true(ONE, pod="a")], [word], marks=UPGRADED) == ["excused"]
    assert kinds(run("2.5.1"), [true(dataclasses.replace(ONE, lost=0, extra=1))], [word], marks=UPGRADED) == [
        "excused"
    ]
    assert kinds(run("2.5.1"), words=[word], marks=UPGRADED) == ["excused"]
    assert kinds(run("2.5.1"), words=[word], marks=UPGRADED[:1]) == ["false_alarm"]
    assert kinds(run("2.6.2"), words=[word], marks=UPGRADED) == ["false_alarm"]
    assert kinds(run("2.5.1", EOS), words=[word], marks=UPGRADED) == ["false_alarm"]


def test_the_record_that_was_skipped_explains_no_more_than_itself():
    twenty = dataclasses.replace(ONE, lost=20)
    judged = kinds(run("2.5.1"), [true(twenty, pod="a")], [said("skipped-record")], marks=UPGRADED)
    assert judged == ["excused", "wrong_reason"]


def test_silence_about_a_skipped_record_is_a_miss_where_puts_are_exact():
    """A key-value store that the newer release closed in order, before 4.3."""
    one = dataclasses.replace(ONE, store="window")
    newer = tuple((at_us, what.replace("2.8.2", "4.3.1")) for at_us, what in UPGRADED)
    assert kinds(run("2.5.1"), [true(ONE, pod="a")], marks=UPGRADED) == ["miss"]
    assert kinds(run("2.5.1"), [true(ONE)], marks=UPGRADED) == ["blind_spot"]
    assert kinds(run("2.5.1"), [true(one, pod="a")], marks=UPGRADED) == ["blind_spot"]
    assert kinds(run("2.5.1"), [true(ONE, pod="a")], marks=newer) == ["blind_spot"]
    assert kinds(run("2.5.1"), [true(ONE, pod="a")], marks=(*UPGRADED[:3], (70, "a is killed"))) == [
        "blind_spot"
    ]
    assert kinds(run("2.5.1"), [true(LOST)], marks=UPGRADED) == ["miss"]
    assert kinds(run("2.5.1"), [true(ONE)], marks=UPGRADED[:1]) == ["miss"]
    assert kinds(run("2.5.1", EOS), [true(ONE)], marks=UPGRADED) == ["miss"]


def test_under_exactly_once_only_a_standby_can_have_been_closed_between_two_records():
    """Found by the hunt: 2.5.1 to 4.3.1, a standby lacks one window of 2,500, in silence."""
    window = dataclasses.replace(ONE, store="window")
    newer = tuple((at_us, what.replace("2.8.2", "4.3.1")) for at_us, what in UPGRADED)
    assert kinds(run("2.5.1", EOS), [true(window, pod="a")], marks=newer) == ["blind_spot"]
    assert kinds(run("2.5.1", EOS), [true(window)], marks=newer) == ["miss"]
    assert kinds(run("2.6.2", EOS), [true(window, pod="a")], marks=newer) == ["miss"]
