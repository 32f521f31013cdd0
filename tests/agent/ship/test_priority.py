"""The drop order as a table."""

from __future__ import annotations

from agent.contract.events import Kind
from agent.ship.priority import HIGHEST, rank_of


def test_summaries_go_first_findings_last() -> None:
    """Drop records, summaries, digests, then transitions and heartbeats, then all the rest, unknown kinds included."""
    order = sorted(Kind, key=lambda kind: rank_of(kind.value))
    assert [kind.value for kind in order[:5]] == ["drop", "summary", "digest", "transition", "heartbeat"]
    assert {rank_of(kind.value) for kind in order[5:]} == {HIGHEST} == {rank_of("of a later release")}
