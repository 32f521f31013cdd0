"""Short lives of one task, judged: no word is surer than the disk allows, and no damage is passed over in silence."""

from __future__ import annotations

import pytest

from agent.detectors import DETECTORS
from tests.proof.classes import Classes, kind, twins
from tests.proof.eras import (
    ALOS_2_1,
    ALOS_2_5,
    ALOS_2_6,
    ALOS_3_8,
    ALOS_4_3,
    ALOS_4_4_T,
    EOS_2_0_0,
    EOS_2_1,
    EOS_2_3,
    EOS_2_4,
    EOS_2_5,
    EOS_2_5_0,
    EOS_2_6_0,
    EOS_2_6_2,
    EOS_3_6_2,
    EOS_3_8,
    EOS_4_2_2,
    EOS_4_3,
    EOS_4_4,
    EOS_4_4_T,
    SEGMENTED,
    VERSIONED,
    WINDOWED,
)
from tests.proof.figures import Miss, Plan, judge, let_pass
from tests.proof.life import DAMAGED, EXPOSED
from tests.proof.play import Told, play

PLANS = {
    EOS_3_8: Plan(all_words=4, damaged_words=7, most_writes=2, most=60, sampled=10),
    EOS_2_6_0: Plan(all_words=4, damaged_words=7, most_writes=1, most=30, sampled=10),
    EOS_2_6_2: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    EOS_3_6_2: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    EOS_4_2_2: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    ALOS_3_8: Plan(all_words=4, damaged_words=5, most_writes=2, sampled=10),
    ALOS_2_6: Plan(all_words=4, damaged_words=5, most_writes=2, sampled=10),
    EOS_4_3: Plan(all_words=4, damaged_words=7, most_writes=1, most=20, sampled=10),
    EOS_4_4: Plan(all_words=4, damaged_words=6, most_writes=1, most=30, sampled=10),
    EOS_4_4_T: Plan(all_words=4, damaged_words=7, most_writes=1, most=30, sampled=10),
    EOS_2_0_0: Plan(all_words=4, damaged_words=6, most_writes=1, sampled=10),
    EOS_2_1: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    EOS_2_3: Plan(all_words=4, damaged_words=6, most_writes=1, sampled=10),
    ALOS_2_1: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    EOS_2_4: Plan(all_words=4, damaged_words=6, most_writes=1, sampled=10),
    EOS_2_5: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    EOS_2_5_0: Plan(all_words=4, damaged_words=6, most_writes=1, sampled=10),
    ALOS_2_5: Plan(all_words=4, damaged_words=6, most_writes=2, sampled=10),
    ALOS_4_3: Plan(all_words=4, damaged_words=5, most_writes=2, sampled=10),
    ALOS_4_4_T: Plan(all_words=4, damaged_words=5, most_writes=2, sampled=10),
}


UP_TO_2_4 = (EOS_2_0_0, EOS_2_1, EOS_2_3, ALOS_2_1, EOS_2_4)


@pytest.mark.parametrize(
    "era",
    [pytest.param(x, marks=[pytest.mark.slow] if x in UP_TO_2_4 else []) for x in PLANS],
    ids=lambda era: era.name,
)
def test_no_class_misses_a_goal(era):
    """All facts told; what is let pass is said, and nothing else."""
    found = judge(era, Told.ALL, PLANS[era])
    unsaid = {
        miss: [x for x in scripts if not let_pass(era, miss, x)] for miss, scripts in found.misses.items()
    }
    assert unsaid == {miss: [] for miss in Miss}


@pytest.mark.slow
@pytest.mark.parametrize(("eras", "words"), [(WINDOWED, 8), (VERSIONED, 7)], ids=("windowed", "versioned"))
def test_no_class_of_another_store_misses_a_goal(eras, words):
    """With one segment, which the first record makes: another word, so the lives have eight; with two puts a record."""
    severe = 0
    for era in eras:
        found = judge(
            era, Told.ALL, Plan(all_words=3, damaged_words=words, most_writes=1, most=10, sampled=8)
        )
        severe += found.judged["damaged"] + found.judged["mixed"]
        unsaid = [x for miss, scripts in found.misses.items() for x in scripts if not let_pass(era, miss, x)]
        assert (era.name, found.misses[Miss.FALSE_CERTAINTY], unsaid) == (era.name, [], [])
    assert severe >= 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "era", [x for x in SEGMENTED if not x.eos and not x.transactional], ids=lambda era: era.name
)
def test_no_class_of_two_segments_misses_a_goal(era):
    """Each takes records, one is flushed, a start goes on from its offset: nine words."""
    found = judge(era, Told.ALL, Plan(all_words=3, damaged_words=9, most_writes=2, most=12, sampled=12))
    unsaid = [x for miss, scripts in found.misses.items() for x in scripts if not let_pass(era, miss, x)]
    assert (found.misses[Miss.FALSE_CERTAINTY], unsaid) == ([], [])
    assert found.judged["damaged"] == 12


def test_a_close_is_cut_between_two_segments():
    """Exactly-once: the older one was closed with the offset, the newer one holds nothing, and nobody notices."""
    (era,) = (x for x in SEGMENTED if x.name.startswith(EOS_4_3.name))
    made = (("start",), ("open", False), ("segment", 0), ("segment", 1))
    script = (*made, ("cut", 100, 200, 0), ("kill",), ("start",), ("pass", 200), ("open", False))
    assert kind(Classes(era, 2).along(script)) == "damaged"
    said = play(era, script, Told.ALL)
    assert {(x.detector, x.confidence) for x in said if x.level == "damage"} == {
        ("lost-segment", "suspected")
    }


@pytest.mark.parametrize(
    ("era", "words", "blind"),
    [
        (EOS_3_8, 8, ("skipped-eos-wipe", "stale-eos-checkpoint")),
        (ALOS_3_8, 9, ("resurrected-checkpoint", "torn-store", "offset-beyond-durable")),
        (EOS_4_3, 7, ("false-clean-store",)),
        (EOS_4_4_T, 7, ("skipped-eos-wipe",)),
    ],
    ids=("KAFKA-20685", "torn deletion", "false clean status", "unwiped transactional store"),
)
def test_a_bug_that_no_detector_knows_is_a_silent_class(era, words, blind):
    """The model finds what is taken away."""
    detectors = tuple(x for x in DETECTORS if x.meta.id not in blind)
    plan = Plan(all_words=0, damaged_words=words, most_writes=1, most=20)
    found = judge(era, Told.ALL, plan, detectors=detectors)
    silent = (*found.misses[Miss.SILENT_DAMAGE], *found.misses[Miss.SILENT_MIXED])
    assert [x for x in silent if not let_pass(era, Miss.SILENT_MIXED, x)]


def test_shortest_story():
    """KAFKA-20685 in the words of the model: what an agent sees, and one life behind it."""
    script = (
        ("start",), ("open", False), ("ckpt", -4, 0), ("flush", 100), ("kill",), ("start",), ("open", True),
    )  # fmt: skip
    classes = Classes(EOS_3_8, most_writes=1)
    assert kind(classes.along(script)) == "mixed"
    assert classes.shortest(script, frozenset({DAMAGED, EXPOSED})) == (
        "a process starts",
        "assigned",
        "restored, runs",
        "processes few records",
        "flush",
        "SIGKILL; its records: aborted",
        "a process starts",
        "assigned",
    )


KILLED = (("start",), ("open", False), ("ckpt", -4, 0), ("flush", 100), ("kill",))


@pytest.mark.parametrize(
    ("era", "after", "expected"),
    [
        (EOS_4_2_2, (), "exposed"),
        (EOS_4_2_2, (("start",), ("open", True)), "mixed"),
        (EOS_3_6_2, (("start",), ("open", True)), None),
    ],
)
def test_the_release_before_may_have_run_up_to_a_kill(era, after, expected):
    """4.2.2 keeps no checkpoint in a task that runs; 4.2.1, with the same RocksDB, does, and is replaced by it."""
    script = (*KILLED, *after)
    own = Classes(era, 2, wide=True).along(script)
    assert kind(own) == "benign"
    assert kind(twins(era, script, 2)) == (expected or "benign")
