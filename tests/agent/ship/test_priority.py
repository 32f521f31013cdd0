"""The drop order as a table."""

from __future__ import annotations

from agent.contract.events import Kind
from agent.ship.drops import Key, Span
from agent.ship.priority import FOLDED, HIGHEST, rank_of, ranks_of


def test_summaries_go_first_findings_last() -> None:
    """Drop records, summaries, then transitions and heartbeats, then all the rest, unknown kinds included."""
    order = sorted(Kind, key=lambda kind: rank_of(kind.value))
    assert [kind.value for kind in order[:4]] == ["drop", "summary", "transition", "heartbeat"]
    assert {rank_of(kind.value) for kind in order[4:]} == {HIGHEST} == {rank_of("of a later release")}


def test_what_is_only_announced_does_not_rank() -> None:
    """A drop record that tells of summaries is no summary."""
    account = {Key("b", "drop", ""): Span(1, 1, 1), Key("b", "summary", "spool-cap"): Span(9, 2, 10)}
    assert ranks_of(account) == {FOLDED}
