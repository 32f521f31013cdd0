"""Written plays are read, and every one of them can be played."""

from __future__ import annotations

import pytest

from tests.lab.catalogue import LEAN, named_run, plan_of, run_of
from tests.lab.design import Run, Step
from tests.lab.faults import FAULTS
from tests.lab.plan import EOS
from tests.lab.planted import LAW_IDS, PLANTED
from tests.lab.plays import PLAYS
from tests.lab.scenarios import SCENARIOS
from tests.lab.stage import Stage
from tests.lab.words import FUNCTIONS, METHODS
from tests.lab.written import parse, perform
from tests.support.every import every


@pytest.mark.parametrize(
    ("clause", "step"),
    [
        ("start", Step("start")),
        ("start b watched=no", Step("start", {"pod": "b", "watched": False})),
        ("settle 90", Step("settle", {"within_s": 90})),
        ("settle table 2.5", Step("settle", {"store": "table", "within_s": 2.5})),
        ("prove 'after the kill' plain", Step("prove", {"what": "after the kill", "store": "plain"})),
        ("directory-gone before=2.5", Step("directory-gone", {"before": "2.5"})),
        (
            "send-in 50 3 minute=1 offset_ms=-8",
            Step("send-in", {"count": 50, "step_ms": 3, "minute": 1, "offset_ms": -8}),
        ),
    ],
)
def test_a_word_is_read_with_its_arguments(clause, step):
    """A number is the first argument that takes one, a text the first that takes one."""
    assert parse(clause) == step


@pytest.mark.parametrize(
    "clause", ["strat", "kill a b", "send", "idle 3", "settle 1 2", "start watched=perhaps"]
)
def test_what_nobody_can_play_is_refused(clause):
    with pytest.raises((ValueError, KeyError)):
        parse(clause)


def test_every_word_of_every_play_is_known_and_every_known_word_is_used():
    """A misspelt word would end a run of minutes."""
    used = {step.action for scenario in SCENARIOS.values() for step in scenario.play.steps}
    assert used == METHODS.keys() | FUNCTIONS.keys()


def test_every_play_is_in_the_catalogue():
    known = {id(scenario.play) for scenario in SCENARIOS.values() if not scenario.fault}
    assert known == {id(play) for play in PLAYS.values()}


def test_each_planted_fault_has_a_life_in_an_application_that_has_it():
    """Whichever law says it will do; where no disk shows it, a law that speaks all the same is not wrong."""
    assert {scenario.fault for scenario in PLANTED.values()} == FAULTS.keys()
    for name, scenario in PLANTED.items():
        run = run_of(name, "4.3.1", scenario.guarantees[0])
        assert run.settings["live.planted"] == scenario.fault
        assert scenario.must(plan_of(run)) == (() if scenario.fault == "replay-twice" else LAW_IDS)
        assert scenario.always == LAW_IDS


@every("name", SCENARIOS)
def test_a_run_of_the_catalogue_has_the_plan_of_its_scenario_and_is_read_back(name):
    scenario = SCENARIOS[name]
    guarantee = scenario.guarantees[0]
    run = run_of(name, "4.4.0", guarantee, {"live.universal": "1", "stores": "third"})
    assert plan_of(run) == scenario.planned("4.4.0", guarantee, {"live.universal": "1", "stores": "third"})
    assert Run.from_json(run.as_json()) == run
    assert run.steps == scenario.play.steps
    assert run.label == f"{name} live.universal=1 stores=third"


def test_the_lean_set_can_be_played():
    for name, release, guarantee in LEAN:
        assert guarantee in SCENARIOS[name].guarantees
        assert run_of(name, release, guarantee).name.startswith(f"{release}-")


def test_a_written_run_is_named_as_a_drawn_one_is():
    """`--replay` takes either."""
    run = named_run("4.3.1-eos-lost-segment-close-join")
    assert run == run_of("lost-segment-close-join", "4.3.1", EOS)
    assert named_run(run.name) == run


def test_what_is_played_is_what_a_run_says():
    """A written run that was cut has fewer steps."""
    done: list[str] = []

    class Stub(Stage):
        def __init__(self) -> None: ...

        def kill(self, pod: str = "a") -> None:
            done.append(f"kill {pod}")

    perform(Stub(), [Step("kill", {"pod": "b"}), Step("kill")])
    assert done == ["kill b", "kill a"]
