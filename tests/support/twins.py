"""Tables of cases: a life or a look a row, named as a person on call would, and what must be said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from agent.contract.events import Status
from agent.contract.finding import Finding
from agent.detectors import BY_ID
from agent.judging.base import AgentCase, Verdict
from tests.support.scenario import Scenario
from tests.support.scenario_case import judge

Told = Scenario | AgentCase | Callable[..., Scenario | AgentCase]
"""A life that was played, one look at a state directory, or what makes one of them."""


def cases(detector: str, *rows: tuple[str, Told, str]) -> pytest.MarkDecorator:
    """Parametrize a test with `story` and `said`.

    Args:
        detector: Its id.
        rows: (name of the row, story, what `said_of` gives); "silent: NAME" where it must be silent for that innocent
            or unknown, and "silent: NAME; NAME" for more than one.
    """
    made = []
    for row, story, said in rows:
        known, _, names = said.partition(": ")
        marks = [pytest.mark.twin_of(detector, name) for name in names.split("; ") if name]
        made.append(pytest.param(story, known, id=row, marks=marks))
    return pytest.mark.parametrize(("story", "said"), made)


def said_of(detector: str, story: Told) -> str:
    """What a detector says of a story."""
    told = story() if callable(story) else story
    return words(detector, judge(detector, told) if isinstance(told, AgentCase) else told.findings(detector))


def words(detector: str, found: Iterable[Verdict | Finding]) -> str:
    """Say verdicts in words: "critical confirmed"; several by ", "; none is "silent".

    A level that is not the detector's own goes before, the facts that would tell more and the end of a finding go
    behind: "exposure warning suspected without kafka_streams_version resolved".
    """
    return ", ".join(_words(detector, x) for x in found) or "silent"


def _words(detector: str, said: Verdict | Finding) -> str:
    words: list[str] = [said.severity, said.confidence]
    if said.level not in (None, BY_ID[detector].meta.level):
        words.insert(0, said.level)
    if said.missing_facts:
        words += ["without", " and ".join(said.missing_facts)]
    if isinstance(said, Finding) and said.status is Status.RESOLVED:
        words.append("resolved")
    return " ".join(words)
