"""Kept results are judged again from their files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lab.again import changed, judge_again
from tests.lab.design import Run, Step
from tests.lab.judge import Health, Truth, judge
from tests.lab.plan import EOS
from tests.lab.play import Result
from tests.lab.said import Said
from tests.lab.timeline import Asked
from tests.lab.truth import Difference

S = 1_000_000
RUN = Run(1, "4.2.1", EOS, ("kv",), steps=(Step("kill", {"pod": "a"}),))
MARKS = ((0, "a starts 4.2.1"), (10 * S, "records sent"), (20 * S, "a is killed"), (30 * S, "records sent"))
TRUTHS = (Truth(40 * S, "0_1", Difference("kv", 1, 3, 0, 9), False),)
COPIES = frozenset({("a", "0_0", "kv"), ("a", "0_1", "kv")})
ASKED = (Asked(10 * S, None), Asked(18 * S, COPIES), Asked(40 * S, COPIES))
HEALTHS = (Health("a-told", 0, 30.0, ("Traceback",)),)


def row(at_s: int = 35) -> dict[str, Any]:
    word = Said(
        "a-told",
        "skipped-eos-wipe",
        "0_0",
        "kv",
        "warning",
        "suspected",
        "yes",
        "x",
        "records sent",
        at_s * S,
    )
    judged = judge(RUN, TRUTHS, (word,), HEALTHS, MARKS, ASKED)
    result = Result(RUN, 1.0, judged, TRUTHS, (word,), HEALTHS, MARKS, asked=ASKED)
    return json.loads(json.dumps(result.as_json()))


def kinds(of: dict[str, Any]) -> list[str]:
    return sorted(one.kind for one in judge_again(of))


def test_the_file_has_all_that_the_judge_needs(tmp_path: Path) -> None:
    kept = row()
    assert [one.as_json() for one in judge_again(kept)] == kept["judgements"]
    assert kinds(kept) == ["crash", "excused", "miss"]
    (tmp_path / "one.json").write_text(json.dumps(kept))
    assert list(changed([tmp_path / "one.json"])) == []


def test_what_is_judged_otherwise_is_reported_with_what_it_was(tmp_path: Path) -> None:
    kept = row()
    kept["judgements"][1] = {**kept["judgements"][1], "kind": "false_alarm"}
    (tmp_path / "one.json").write_text(json.dumps(kept))
    was, now = changed([tmp_path / "one.json"])
    assert was.startswith("4.2.1-eos-1 was false_alarm a-told 0_0 skipped-eos-wipe warning: x [")
    assert now.startswith("4.2.1-eos-1 is excused a-told 0_0 skipped-eos-wipe warning: x [")


def test_a_word_whose_time_is_known_by_an_ambiguous_mark_is_excused_by_either() -> None:
    kept = row(15)
    assert "false_alarm" in kinds(kept)
    del kept["findings"][0]["opened_at_us"]
    assert "false_alarm" not in kinds(kept)


def test_a_run_that_broke_off_is_not_judged() -> None:
    assert judge_again({**row(), "problem": "the broker is gone"}) == ()
