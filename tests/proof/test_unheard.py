"""An agent that is late, polls, loses notifications or is restarted is never surer than the disk allows."""

from __future__ import annotations

import pytest

from tests.proof.classes import Classes, Script, kind
from tests.proof.eras import ALOS_3_8, EOS_2_6_0, EOS_3_8, EOS_4_3
from tests.proof.figures import Miss
from tests.proof.play import Lost, Told, Unheard, play
from tests.proof.unheard import Deaf, judge

LATE = Deaf(Lost.BEFORE_IT, heard=0, lost=6, again=2, most=20)
POLLED = Deaf(Lost.POLLED, heard=4, lost=3, again=1, most=150)
OVERFLOW = Deaf(Lost.TOLD, heard=3, lost=3, again=1, most=20)
RESTARTED = Deaf(Lost.RESTARTED, heard=3, lost=3, again=1, most=20)


@pytest.mark.parametrize(
    ("era", "deaf"),
    [(EOS_3_8, LATE), (EOS_4_3, LATE), (ALOS_3_8, POLLED), (EOS_3_8, OVERFLOW), (EOS_3_8, RESTARTED)],
    ids=("late", "late, 4.3", "polled", "overflow", "restarted"),
)
def test_no_class_misses_a_goal(era, deaf):
    """Nothing is confirmed of a past that may have been benign, and nothing is loud where it must have been."""
    found = judge(era, deaf)
    assert found.judged >= 20
    assert [found.misses[miss] for miss in (Miss.FALSE_CERTAINTY, Miss.LOUD_BENIGN)] == [[], []]


def test_a_restart_at_any_word_makes_nothing_surer():
    """A deletion that was torn is confirmed; an agent that misses one word of it confirms no more, and still some."""
    every = Classes(ALOS_3_8, most_writes=1).up_to(9)
    kept = 0
    for script in [script for script, lives in every if kind(lives) == "damaged"]:
        whole = certain(script)
        assert whole
        for missed in range(len(script)):
            after = certain(script, Unheard(missed, missed + 1, Lost.RESTARTED))
            assert after <= whole
            kept += after == whole
    assert kept


def certain(script: Script, unheard: Unheard | None = None) -> set[tuple[str, str]]:
    said = play(ALOS_3_8, script, Told.ALL, unheard=unheard)
    return {(x.detector, x.level) for x in said if x.is_certain}


CLOSED = (("start",), ("open", False), ("ckpt", 99, 100), ("shut", 0), ("age",))
TAKEN = (*CLOSED, ("rm",), ("open", False))
TORN = (*CLOSED, ("torn",), ("kill",), ("start",), ("open", True))


@pytest.mark.parametrize(("script", "after", "is_loud"), [(TAKEN, 6, False), (TORN, 7, True)])
def test_a_restarted_agent_that_finds_store_and_checkpoint_gone(script, after, is_loud):
    """A cleaner took both while it was away: the next store has no old offset. Of a torn deletion it has."""
    said = play(EOS_2_6_0, script, Told.ALL, unheard=Unheard(3, after, Lost.RESTARTED))
    assert bool(said) == is_loud
