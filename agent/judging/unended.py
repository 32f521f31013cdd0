"""A restoration that started and was never ended, while its task ran (KAFKA-7672, up to 2.1.1).

Source: StoreChangelogReader.restore at 2.0.1 to 2.1.1: one poll is applied, then a partition that the thread remembers
as completed is no longer read, and `restoreDone` is never called. Seen live on 2.0.1: 1,000 of 5,040 records.
"""

from __future__ import annotations

from agent.inventory.bulk_load import COMMITS_COUNTED
from agent.inventory.model import Session, Store, Task
from agent.judging.base import Evidence, TaskCase, seconds
from agent.judging.wording import checkpoint_of, where

HEARD_US = 5_000_000
"""An end of the restoration that came before a commit has been heard of by then (busy machines: 2 s)."""


def unended_restoration(
    case: TaskCase, task: Task, store: Store, session: Session
) -> tuple[Evidence, ...] | None:
    """Return what shows that a task ran on a store that was still open for its restoration; None: nothing does."""
    commits, since_us = session.bulk_load_commits, session.bulk_load_us
    if session.reopens != 1 or len(commits) < COMMITS_COUNTED or not store.all_reopens:
        return None
    read_us = min((database.seen_us for database in store.databases.values()), default=0)
    if commits[-1] > read_us and case.waited_us(commits[-1]) < HEARD_US:
        return None
    return (
        Evidence(since_us, "reopened for a restoration, in the mode of bulk loading", where(task, store)),
        Evidence(
            commits[-1],
            f"{len(commits)} commits in the {seconds(commits[-1] - since_us)} since then, and no reopen: the task ran,"
            f" and the restoration was not ended; {store.puts_at(commits[-1])} puts on disk",
            checkpoint_of(task),
        ),
    )
