"""A step of a task that goes on as before: what its checkpoint says moved forward, by little."""

from __future__ import annotations

from collections.abc import Sequence

from agent.inventory.model import CheckpointFact
from agent.layout.checkpoint import OffsetEntry
from agent.quantities.changelog import TEN_THOUSAND


def is_step(before: CheckpointFact, after: CheckpointFact) -> bool:
    """Return whether a checkpoint says of the same stores as the one before that they are further on, but not far.

    Entries of other topics are not understood well enough for that, and "unknown" (-4) is no offset. A move by more
    than 10,000 is the commit timer's from 2.7 on: a restoration and a standby write no other on their way but at a
    pause, and a smaller one says where they ended or were paused.

    Source:
        StateManagerUtil.checkpointNeeded (2.8.2 to 4.2.1).
    """
    if before.incarnation != after.incarnation or before.held != after.held or before.deleted:
        return False
    if before.written_us >= after.written_us or before.offsets.keys() != after.offsets.keys():
        return False
    if before.foreign or after.foreign or min(before.offsets.values(), default=-1) < 0:
        return False
    steps = [after.offsets[name] - offset for name, offset in before.offsets.items()]
    return min(steps) >= 0 and 0 < sum(steps) <= TEN_THOUSAND


def goes_on(before: Sequence[OffsetEntry], after: Sequence[OffsetEntry]) -> bool:
    """Return the same of contents that nothing else is known of; what has not moved goes on, too."""
    offsets = {(x.topic, x.partition): x.offset for x in before}
    if offsets.keys() != {(x.topic, x.partition) for x in after}:
        return False
    steps = [x.offset - offsets[x.topic, x.partition] for x in after]
    return min(steps, default=0) >= 0 and sum(steps) <= TEN_THOUSAND
