"""Runs are drawn from a seed, can be written down and read back, and are ones that can be played."""

from __future__ import annotations

import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.detectors import DETECTORS
from spark_rollup.registry import NAMING
from tests.lab.actions import ACTIONS
from tests.lab.catalogue import named_run
from tests.lab.design import Run
from tests.lab.draw import draw, draw_many
from tests.lab.excuses import EXCUSES, FACTS
from tests.lab.judge import TELLS_EXCESS, TELLS_LOSS
from tests.lab.plan import ALOS, EOS, NEWEST, RELEASES, TRANSACTIONAL, numbers

RUNS = st.builds(draw, st.integers(0, 10**6), st.sampled_from(RELEASES), st.sampled_from((ALOS, EOS)))


@given(RUNS)
def test_a_run_is_drawn_again_from_its_name_and_read_back_from_its_file(run):
    assert named_run(run.name) == run
    assert Run.from_json(json.loads(json.dumps(run.as_json()))) == run


@given(RUNS)
def test_every_step_is_one_that_its_release_can_do_with_the_arguments_that_it_takes(run):
    assert run.steps
    for step in run.steps:
        action = ACTIONS[step.action]
        assert numbers(run.release) >= numbers(action.since)
        assert {"ground", *step.args} == set(inspect.signature(action.play).parameters)


def test_runs_go_through_releases_and_guarantees_in_turn():
    runs = draw_many(3, 5, ["4.3.1", "3.9.2"])
    assert [run.name for run in runs] == [
        "4.3.1-alos-30000", "4.3.1-eos-30001", "3.9.2-alos-30002", "3.9.2-eos-30003", "4.3.1-alos-30004",
    ]  # fmt: skip


def test_stream_time_often_crosses_into_another_segment():
    """It is how lost segments were found: data that is not flushed in a segment that is no longer the newest."""
    runs = draw_many(1, 200, ["4.3.1"])
    crossing = [
        run
        for run in runs
        if "window" in run.stores and any(step.args.get("jump_ms", 0) >= 60_000 for step in run.steps)
    ]
    assert len(crossing) > 100


@given(RUNS)
def test_a_group_that_the_broker_assigns_keeps_its_topology_and_the_releases_that_know_it(run):
    if run.settings.get("group.protocol"):
        assert numbers(run.release) >= (4, 2)
        assert not {"alter", "rename", "downgrade"} & {step.action for step in run.steps}


def test_new_settings_and_actions_are_drawn():
    runs = draw_many(1, 200, ["4.3.1"])
    assert 10 < sum("group.protocol" in run.settings for run in runs) < 100
    assert {"rename", "recreate-changelog"} <= {step.action for run in runs for step in run.steps}


def test_about_half_of_the_runs_that_can_have_transactional_stores_do():
    runs = draw_many(1, 200, [NEWEST])
    for guarantee in (ALOS, EOS):
        assert 35 < sum(TRANSACTIONAL in run.settings for run in runs if run.guarantee == guarantee) < 65
    older = draw_many(1, 200, ["4.3.1"])
    chosen = [run for run in older if TRANSACTIONAL in run.settings]
    assert chosen
    assert all(
        any(step.action == "upgrade" and numbers(step.args["to"]) >= (4, 4) for step in run.steps)
        for run in chosen
    )


@pytest.mark.parametrize("name", ["4.3.1", "4.3.1-both-1", "4.3.1-eos-x"])
def test_another_word_is_no_name(name):
    with pytest.raises((ValueError, KeyError)):
        named_run(name)


@given(RUNS)
def test_the_truth_is_read_before_stream_time_jumps_on_after_an_action(run):
    is_due = False
    for step in run.steps:
        assert not (is_due and step.args.get("jump_ms"))
        is_due = step.action != "check" and (is_due or step.action not in ("records", "again"))


def test_what_actions_cause_are_detectors_and_rules():
    known = {x.meta.id for x in DETECTORS} | {x.id for x in NAMING}
    assert {name for action in ACTIONS.values() for name in action.tells} <= known
    assert {*EXCUSES, *FACTS, *TELLS_LOSS, *TELLS_EXCESS} <= known
