"""Judge kept results again: the judge has changed, what was seen has not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab.design import Run
from tests.lab.judge import Health, Judgement, Truth, judge
from tests.lab.said import Said
from tests.lab.timeline import SECOND_US, Asked
from tests.lab.truth import Difference

Row = Mapping[str, Any]


def judge_again(row: Row) -> tuple[Judgement, ...]:
    """Judge one result, as `Result.as_json` gives it; one that broke off has no judgement.

    Where a file tells a word's time by a mark alone, and that mark came several times, any of them may excuse it.
    """
    if row["problem"]:
        return ()
    marks = [(round(at_s * SECOND_US), what) for at_s, what in row["timeline"]]
    times = [_times(one, marks) for one in row["findings"]]
    judged = [
        judge(
            Run.from_json(row["run"]),
            [_truth(one) for one in row["truths"]],
            [_said(one, at[min(nth, len(at) - 1)]) for one, at in zip(row["findings"], times, strict=True)],
            [_health(one) for one in row["agents"]],
            marks,
            [_asked(*one) for one in row.get("asked", ())],
        )
        for nth in range(max(map(len, times), default=1))
    ]
    return tuple(min(same, key=lambda one: one.is_wrong) for same in zip(*judged, strict=True))


def changed(paths: Iterable[Path]) -> Iterator[str]:
    """Tell what is judged otherwise than it was, one line each.

    Args:
        paths: Results' files.
    """
    for path in paths:
        row = json.loads(path.read_text())
        if "judgements" not in row:
            continue
        now = [one.as_json() for one in judge_again(row)]
        has_errors = all("errors" in agent for agent in row["agents"])
        before = [one for one in row["judgements"] if has_errors or one["kind"] != "crash"]
        for word, here, there in (("was", before, now), ("is", now, before)):
            known = [_key(one) for one in there]
            for one in here:
                if _key(one) not in known:
                    yield f"{row['name']} {word} {' '.join(_key(one))}: {one['what']}"


def _key(one: Row) -> tuple[str, ...]:
    return tuple(one[name] for name in ("kind", "who", "task", "detector", "severity"))


def _truth(one: Row) -> Truth:
    figures: dict[str, Any] = {x: one[x] for x in ("store", "partition", "lost", "extra", "expected")}
    difference = Difference(**figures, examples=tuple(one["examples"]))
    return Truth(one["at_us"], one["task"], difference, one["allowed"], one.get("pod", ""))


def _asked(at_us: int, copies: Sequence[Sequence[str]] | None) -> Asked:
    told = None if copies is None else frozenset((pod, task, store) for pod, task, store in copies)
    return Asked(at_us, told)


def _said(one: Row, at_us: int) -> Said:
    return Said(**{**one, "opened_at_us": at_us})


def _times(one: Row, marks: Sequence[tuple[int, str]]) -> list[int]:
    """Give when a finding was opened, or may have been; what the rollup said is about all of the run."""
    if "opened_at_us" in one:
        return [one["opened_at_us"]]
    ends = [*(at_us for at_us, _ in marks[1:]), marks[-1][0] + 2 * SECOND_US]
    found = [end_us - 1 for (_, what), end_us in zip(marks, ends, strict=True) if what == one["when"]]
    return found or [marks[0][0] - 1 if one["when"] else ends[-1]]


def _health(one: Row) -> Health:
    return Health(
        one["agent"], one["exit_code"], one["peak_mib"], tuple(one.get("errors", ())), one["blind_s"]
    )
