"""More puts than the changelog grew by: at the worst end of what a record may put."""

from __future__ import annotations

import pytest

from agent.layout.profile import Profile, Truth
from agent.layout.releases import ReleaseRange
from agent.quantities.verdicts import outruns_changelog
from tests.support.scenario_case import database, mark, session, store

PROFILE = Profile(ReleaseRange.of("3.4.1"))  # no versioned stores: one put a record


@pytest.mark.parametrize(("puts", "said"), [(5200, Truth.NO), (5201, Truth.NO), (5202, Truth.YES)])
def test_a_hundred_puts_decide_nothing(puts, said):
    """100 offsets, and one by the change of their meaning, explain 101 puts; a hundred more may be late."""
    one = session(0, offset_at_open=5000, puts_at_open=5000, last=mark(9, 5100, puts))
    assert (outruns_changelog(store([database()], [one]), PROFILE, one) is Truth.YES) is (said is Truth.YES)


@pytest.mark.parametrize(("offset_at_open", "offset"), [(None, 5099), (-4, 5099), (5000, -4)])
def test_offsets_that_say_nothing(offset_at_open, offset):
    """Without an offset in force, or with "unknown", everything may have been read from the start."""
    one = session(0, offset_at_open=offset_at_open, puts_at_open=0, last=mark(9, offset, 90_000))
    assert outruns_changelog(store([database()], [one]), PROFILE, one) is Truth.NO


def test_no_checkpoint_yet():
    """What has not been written cannot be compared."""
    one = session(0, offset_at_open=5000)
    assert outruns_changelog(store([database()], [one]), PROFILE, one) is Truth.NO
