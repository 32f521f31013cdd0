"""The reducer finds what a failing run needs, with a runner that only counts."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.lab.design import Run, Step
from tests.lab.judge import Judgement
from tests.lab.plan import ALOS
from tests.lab.play import Result
from tests.lab.reduce import reduce_run
from tests.lab.run import reduced

RUN = Run(1, "4.3.1", ALOS, ("kv",), steps=tuple(Step("kill", {"number": i}) for i in range(12)))


@given(st.sets(st.integers(0, 11), min_size=1))
def test_what_is_left_is_exactly_what_is_needed(needed):
    def still_fails(run):
        return needed <= {step.args["number"] for step in run.steps}

    assert [step.args["number"] for step in reduce_run(RUN, still_fails).steps] == sorted(needed)


def test_a_single_cause_is_found_in_few_runs():
    played = []

    def still_fails(run):
        played.append(run)
        return any(step.args["number"] == 5 for step in run.steps)

    assert len(reduce_run(RUN, still_fails).steps) == 1
    assert len(played) <= 12


def test_what_never_fails_again_stays_whole():
    assert reduce_run(RUN, lambda _run: False) == RUN


def played(run: Run, kind: str) -> Result:
    """A run in which something is said as long as step 5 is there."""
    said = Judgement(kind, "a-told", "0_0", "what", "lost-segment", "warning")
    return Result(run, 1.0, (said,) if any(step.args["number"] == 5 for step in run.steps) else ())


def test_each_shorter_run_that_is_still_judged_is_kept_the_last_one_is_the_shortest():
    kept: list[Run] = []
    shortest = reduced(RUN, 1, lambda run: played(run, "false_alarm"), kept.append)
    assert shortest == kept[-1] == RUN.with_steps(RUN.steps[5:6])
    assert all(len(one.steps) > len(other.steps) for one, other in itertools.pairwise(kept))


def test_a_true_word_is_a_reason_if_it_is_asked_for():
    kept: list[Run] = []
    assert reduced(RUN, 2, lambda run: played(run, "excused"), kept.append) is None
    assert kept == []
    shortest = reduced(RUN, 1, lambda run: played(run, "excused"), kept.append, "lost-segment")
    assert shortest == RUN.with_steps(RUN.steps[5:6])
