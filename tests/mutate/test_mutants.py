"""The mutation check breaks what it says it breaks, and its judgements hold only while they fit."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cosmic_ray")

from cosmic_ray.mutating import mutate_code

from tests.mutate.crew import Trial
from tests.mutate.judged import FILE, Judgement, read_judgements
from tests.mutate.memory import Memory
from tests.mutate.mutants import Mutant, mutants, places
from tests.mutate.operators import CONDITION_OPERATORS, operators
from tests.mutate.score import ModuleScore, decide, functions_that_decide, overall, untried_conditions

OWN = [*CONDITION_OPERATORS, "ChangeNumber"]
SOURCE = '''"""Text."""
LIMIT = 5_000

@cached(True)
def judge(a: int | None, b: list[int] = ()) -> bool | None:
    assert a != 7
    if a and not b:
        return LIMIT > 3
    elif a in b or a == 2:
        return None
    return [x for x in b if x]

class Record:
    born_us: int = 0
    closed: bool = True
'''


def pairs() -> set[tuple[str, str]]:
    """Give (line, broken line) of the small source."""
    return {(x.was, " ".join(x.becomes.split())) for x in mutants("agent/x.py", SOURCE)}


@pytest.mark.parametrize(
    ("name", "example"), [(name, x) for name in OWN for x in type(operators()[name]).examples()]
)
def test_operators_do_what_they_say(name, example):
    """Each of our own operators turns its example into what it promises."""
    changed = mutate_code(example.pre_mutation_code, operators()[name], example.occurrence)
    assert changed.split() == example.post_mutation_code.split()


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("if a and not b:", "if not (a and not b):"),
        ("if a and not b:", "if False:"),
        ("if a and not b:", "if a:"),
        ("if a and not b:", "if not b:"),
        ("if a and not b:", "if a or not b:"),
        ("elif a in b or a == 2:", "elif False:"),
        ("elif a in b or a == 2:", "elif a not in b or a == 2:"),
        ("elif a in b or a == 2:", "elif a in b or a != 2:"),
        ("return LIMIT > 3", "return LIMIT >= 3"),
        ("LIMIT = 5_000", "LIMIT = 10000"),
        ("LIMIT = 5_000", "LIMIT = 2500"),
        ("return [x for x in b if x]", "return [x for x in b if True]"),
    ],
)
def test_deciding_conditions_are_broken(was, becomes):
    """Conditions are negated, dropped and shifted, filters and `elif` included."""
    assert (was, becomes) in pairs()


def test_what_is_left_alone():
    """Annotations, decorators, asserts and placeholders of records are not broken: that would prove nothing."""
    lines = {line for _, _, line in places(SOURCE)}
    assert not any("assert" in was or "cached" in was or "def " in was for was, _ in pairs())
    assert lines == {2, 7, 8, 9, 11, 15}


def test_no_mutant_twice():
    """Two operators that give the same program count once."""
    codes = [x.code for x in mutants("agent/x.py", SOURCE)]
    assert len(codes) == len(set(codes)) > 10


def one(**changes: Any) -> Mutant:
    """Give one mutant."""
    found = next(x for x in mutants("agent/x.py", SOURCE) if x.becomes == "if False:")
    return replace(found, **changes)


def test_judgement_follows_the_line():
    """A judgement holds wherever the line stands, and is void for another line, function or break."""
    found = one()
    judgement = Judgement("agent/x.py", "judge", "if a and not b:", ("if False:",), "because")
    assert judgement.covers(replace(found, line=99))
    assert not judgement.covers(replace(found, was="if a:"))
    assert not judgement.covers(replace(found, function="other"))
    assert not judgement.covers(replace(found, becomes="if True:"))


def test_judgements_have_reasons(repository: Path):
    """Every judgement names a line that is there, in its function, and gives a reason that can be checked."""
    for judgement in read_judgements(FILE):
        source = (repository / judgement.file).read_text(encoding="utf-8")
        place = source
        if name := judgement.function.rpartition(".")[2]:
            functions = [x for x in ast.walk(ast.parse(source)) if getattr(x, "name", "") == name]
            place = "".join(ast.get_source_segment(source, x) or "" for x in functions)
        assert "".join(judgement.was.split()) in "".join(place.split()), judgement
        assert len(judgement.reason) > 20
        assert judgement.becomes


def test_score_leaves_out_what_was_judged():
    """Equivalent survivors do not count; large modules weigh more than small ones."""
    judgement = Judgement("agent/x.py", "judge", "if a and not b:", ("if False:",), "because")
    trials = [
        Trial(one(), "", 4),
        Trial(one(becomes="if a:", code="a"), "test_x", 0),
        Trial(one(becomes="if b:", code="b"), "", 4),
    ]
    score = ModuleScore("agent/x.py", 30, trials, [judgement])
    assert (score.killed, score.counted, score.percent) == (1, 2, 50.0)
    assert [x.mutant.becomes for x in score.survivors] == ["if b:"]
    assert overall([score, ModuleScore("agent/y.py", 10, [trials[1]], [])]) == 62.5


def test_every_deciding_function_is_proved():
    """Broken conditions are tried until one is noticed; then no more."""
    found = list(mutants("agent/x.py", SOURCE))
    assert functions_that_decide(found) == ["judge"]
    assert len(untried_conditions("judge", found, [])) > 5
    first = untried_conditions("judge", found, [])[0]
    assert first not in untried_conditions("judge", found, [Trial(first, "", 4)])
    assert decide("agent/x.py", "judge", [Trial(first, "", 4)]).proof is None
    killed = Trial(first, "test_x", 0)
    assert untried_conditions("judge", found, [killed]) == []
    assert decide("agent/x.py", "judge", [killed]).proof is killed


def test_memory_trusts_survivals_less_than_kills(tmp_path):
    """A kill is recalled whatever the tests are; a survival only for the same tests at the same depth."""
    file = tmp_path / "memory"
    killed, spared = Trial(one(), "test_x", 0), Trial(one(code="other"), "", 4)
    for trial in (killed, spared):
        Memory(file).note(trial, "aa", 1)
    memory = Memory(file)
    assert memory.recall(killed.mutant, "bb", 3) == killed
    assert memory.recall(spared.mutant, "aa", 1) == memory.recall(spared.mutant, "aa", 0) == spared
    assert memory.recall(spared.mutant, "aa", 2) is None
    assert memory.recall(spared.mutant, "bb", 1) is None
    assert memory.recall(one(code="unknown"), "aa", 0) is None
