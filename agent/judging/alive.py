"""Signs that a process was at work: time alone shows nothing, a process may be frozen, or its volume stalled.

SIGSTOP, a paused container or virtual machine, a clock that was set, a volume that does not answer: no commit goes by,
however late it is. What the process wrote meanwhile, in whatever task, shows that it was none of these.
"""

from __future__ import annotations

from agent.inventory.model import Task
from agent.judging.base import TaskCase
from agent.quantities.flushed import COMMITS, LATE_US, commit_interval_us, commits_passed


def was_at_work(case: TaskCase, from_us: int, until_us: int) -> bool:
    """Return whether anything was written in a time, both ends included: by the task, or else by another one."""
    if from_us > until_us:
        return False
    others = (other for other in case.application.tasks.values() if other is not case.task)
    return _wrote(case.task, from_us, until_us) or any(_wrote(other, from_us, until_us) for other in others)


def let_commits_pass(case: TaskCase, since_us: int, until_us: int) -> bool:
    """Return whether commits went by in a time for sure: what the commit timer writes would be there.

    The process was at work when they had been due, and for as long after that as a commit may be late nothing came: one
    that had been frozen writes what is due as soon as it goes on.
    """
    if not commits_passed(case.settings, case.passed_us(since_us, until_us)):
        return False
    return was_at_work(case, since_us + COMMITS * commit_interval_us(case.settings), until_us - LATE_US)


def _wrote(task: Task, from_us: int, until_us: int) -> bool:
    if any(from_us <= fact.written_us <= until_us for fact in task.checkpoints):
        return True
    for store in task.stores.values():
        for database in store.databases.values():
            times = (*(at_us for _, at_us in database.flushed), *database.reopened_us, database.born_us)
            if any(from_us <= at_us <= until_us for at_us in times):
                return True
    return False
