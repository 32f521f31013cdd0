"""The ledger: what an orderly close ends, exposures that last, ids of one reading."""

from __future__ import annotations

import pytest

from agent.contract.events import Status
from agent.findings.ledger import Ledger
from tests.agent.findings.test_ledger import close, settle, verdict


@pytest.mark.parametrize(
    ("closed_us", "steps"),
    [
        (20, ["warning seen", "the task was closed in order: what was suspected ended with it"]),
        (4, ["warning seen"]),
        (5, ["warning seen"]),
        (None, ["warning seen"]),
    ],
)
def test_a_suspected_exposure_ends_with_an_orderly_close_and_says_so(closed_us, steps):
    """Its last evidence is the close; one before it opened, or none, explains nothing."""
    ledger = Ledger()
    settle(ledger, verdict())
    (ended,) = close(ledger, closed_us)
    assert (ended.status, [x.what for x in ended.evidence]) == (Status.RESOLVED, steps)


def test_two_findings_of_one_reading_have_two_ids():
    """Two damaged segments of a store share its identity, and of one reading no time tells them apart."""

    def read(now: int) -> list[str]:
        ledger = Ledger()
        ledger.read_once_us = now
        both = (verdict(x, store="s", at_us=now) for x in ("damaged s/1", "damaged s/2"))
        return [x.id for x in settle(ledger, *both, now=now)]

    assert len(set(read(20))) == 2
    assert read(20) == read(30)


def test_a_reading_gives_the_agents_id_only_to_what_the_disk_dates():
    """A time on disk is the same to both; what is dated by the reading itself has no time in its id."""

    def incident(at_us: int, read_us: int | None) -> str:
        ledger = Ledger()
        ledger.read_once_us = read_us
        (found,) = settle(ledger, verdict(at_us=at_us), now=max(at_us, read_us or 0))
        return found.incident_id

    assert incident(20, read_us=50) == incident(20, read_us=None)
    assert incident(50, read_us=50) == incident(60, read_us=60) != incident(20, read_us=None)
