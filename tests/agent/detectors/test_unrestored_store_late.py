"""Detector `unrestored-store`: a checkpoint is read before the flushes that came before it."""

from __future__ import annotations

from agent.contract.events import Severity
from tests.agent.detectors.test_unrestored_store import ID, jump
from tests.support.scenario_case import at, mark, severities


def test_a_flush_that_is_read_after_its_checkpoint_counts():
    """Found by the hunt: on a busy machine the checkpoint was read first, and the store seemed to lack its records."""
    late = jump(puts=3000)
    assert severities(ID, late) == [Severity.CRITICAL]
    late.task.stores["s"].databases[""].flushed += ((12_200, at(4.9)),)
    assert severities(ID, late) == []


def test_a_fresh_checkpoint_waits_for_its_flushes():
    """Two seconds after it, what was flushed before has been read; until then the first one of the session counts."""
    assert severities(ID, jump(now=6.9)) == []
    assert severities(ID, jump(now=7)) == [Severity.CRITICAL]
    two = jump(now=6.9)
    two.task.stores["s"].sessions[0].first = mark(1, 12_000, 3000)
    assert severities(ID, two) == [Severity.CRITICAL]
