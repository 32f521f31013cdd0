"""The reducer finds what a failing run needs, with a runner that only counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.hunt.design import Run, Step
from tests.hunt.reduce import reduce_run
from tests.live.plan import ALOS

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
