"""What is open is said again: at each start, and at least every six hours; a heartbeat counts it."""

from __future__ import annotations

from dataclasses import replace

from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.reporting import OPEN_IDS
from agent.findings.ledger import Ledger
from agent.findings.said import AT_ONCE, REPEAT_US, Said, level_of
from tests.agent.findings.test_ledger import settle, verdict


def some(id_: str = "f", severity: Severity = Severity.CRITICAL) -> Finding:
    (finding,) = settle(Ledger(), verdict(severity=severity))
    return replace(finding, id=id_)


def test_what_is_resolved_is_forgotten() -> None:
    """Only open findings are remembered, however many there were."""
    said, finding = Said(), some()
    said.note(finding, 100)
    said.note(replace(finding, status=Status.RESOLVED, resolved_at_us=200), 200)
    assert said.first_us == {}


def test_thousands_take_turns() -> None:
    """Each heartbeat says some of them, and all are said after a few."""
    said, found = Said(), [some(f"f{n}") for n in range(2 * AT_ONCE + 1)]
    turns = [said.due(found, 1_000 + n) for n in range(4)]
    assert [len(x) for x in turns] == [AT_ONCE, AT_ONCE, 1, 0]
    assert len({x["finding_id"] for turn in turns for x in turn}) == len(found)


def test_a_clock_that_was_set_moves_the_turns() -> None:
    """Set back by a day, nothing waits for thirty hours; set ahead, nothing is said at once."""
    said, finding = Said(), some()
    said.note(finding, 10 * REPEAT_US)
    said.shift(-4 * REPEAT_US)
    assert said.due([finding], 7 * REPEAT_US - 1) == []
    assert len(said.due([finding], 7 * REPEAT_US)) == 1


def test_a_heartbeat_counts_what_needs_an_operator() -> None:
    """By severity, criticals named first, and no more ids than a heartbeat may have."""
    found = [some("i", Severity.INFO), some("w", Severity.WARNING), some("c"), some("d")]
    assert level_of(found) == {"open_criticals": 2, "open_warnings": 1, "open_ids": ["c", "d", "w"]}
    many = level_of([some(f"f{n}") for n in range(OPEN_IDS + 5)])
    assert many["open_criticals"] == OPEN_IDS + 5
    assert many["open_ids"] == [f"f{n}" for n in range(OPEN_IDS)]
    assert level_of([]) == {"open_criticals": 0, "open_warnings": 0, "open_ids": []}
