"""An offset that outlived its store: carried in a new owner's memory."""

from __future__ import annotations

from agent.inventory.model import CheckpointFact, Session, Store, Task
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import continues_offset


def continued_from(task: Task, store: Store, session: Session) -> CheckpointFact | None:
    """Return which checkpoint of a deleted store its successor continues from.

    Returns:
        The last checkpoint before the deletion; None if the first checkpoint of the new store does not follow it.
    """
    mark, fact = session.first, task.checkpoint_at(session.opened_us)
    if mark is None or fact is None or store.segmented or not session.created or not store.past:
        return None
    if session.offset_at_open is not None:
        return None
    old = fact.offsets.get(store.name)
    if old is None or not is_real(old) or mark.offset < old:
        return None
    return fact if continues_offset(store, mark.puts, mark.offset - old) else None
