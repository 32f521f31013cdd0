"""A twin reaches the innocent that it is marked with: `@pytest.mark.twin_of(detector, name)`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.detectors import BY_ID
from agent.judging.rule import Rule, Silence


@pytest.fixture(autouse=True)
def reached(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a twin whose story was never silent for the reason that its mark names."""
    wanted = {tuple(mark.args) for mark in request.node.iter_markers("twin_of")}
    found = set()
    decide = Rule.decide

    def watched(self, story):
        said = decide(self, story)
        if isinstance(said, Silence):
            found.add((id(self), said.name))
            assert story.opened_at_us >= 0, "`explain --why-not` dates what is silent, too"
        return said

    if wanted:
        monkeypatch.setattr(Rule, "decide", watched)
    yield
    rules = {(id_, id(rule)) for id_, one in BY_ID.items() for docket in one.dockets for rule in docket.rules}
    assert wanted <= {(id_, name) for id_, rule in rules for known, name in found if known == rule}
