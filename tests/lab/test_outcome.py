"""How a hunt ends: by a wrong word, by too few runs that count, or well."""

from __future__ import annotations

from tests.lab.design import Run
from tests.lab.judge import Judgement
from tests.lab.outcome import RIGHT, TOO_FEW, WRONG, conclusion, play_all
from tests.lab.plan import ALOS
from tests.lab.play import Result

RUNS = [Run(seed, "4.3.1", ALOS, ("kv",)) for seed in range(3)]
FALSE = Judgement("false_alarm", "a-told", "0_0", "what", "lost-segment", "warning")


def test_a_wrong_word_fails_whatever_else_came_of_it():
    results = [Result(RUNS[0], 1.0, (FALSE,)), Result(RUNS[1], 1.0, problem="no answer")]
    assert conclusion(results, RUNS[:2], 0)[0] == conclusion(results, RUNS[:2], 2)[0] == WRONG
    assert conclusion(results, RUNS[:2], 0)[1].startswith("wrong word: 4.3.1-alos-0\n")


def test_what_has_no_verdict_is_named_and_does_not_fail_as_long_as_enough_counted():
    results = [Result(RUNS[0], 1.0), Result(RUNS[1], 1.0, problem="no answer")]
    code, why = conclusion(results, RUNS, 1)
    assert code == RIGHT
    assert why == (
        "no verdict: 4.3.1-alos-1: broke off\nno verdict: 4.3.1-alos-2: not played, the time was over\n"
    )
    code, why = conclusion(results, RUNS, 2)
    assert code == TOO_FEW
    assert why.endswith("too few: 1 runs counted, 2 must\n")


def test_a_run_that_counts_at_last_counts_once():
    results = [Result(RUNS[0], 1.0, problem="no answer"), Result(RUNS[0], 1.0), Result(RUNS[0], 1.0)]
    assert conclusion(results, RUNS[:1], 1) == (RIGHT, "")
    assert conclusion(results, RUNS[:1], 2)[0] == TOO_FEW


def test_what_broke_off_is_played_again_after_all_others_while_there_is_time():
    played: list[int | str] = []

    def play_one(run: Run) -> Result:
        played.append(run.seed)
        return Result(run, 1.0, problem="no answer" if run.seed != 1 else "")

    play_all(RUNS, 1, play_one, lambda: False)
    assert played == [0, 1, 2, 0, 2]
    played.clear()
    play_all(RUNS, 1, play_one, lambda: len(played) == 4)
    assert played == [0, 1, 2, 0]
