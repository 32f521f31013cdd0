"""Whether a store has a changelog, as far as its task and the sisters of its task show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.inventory.model import Application, Store, Task
from agent.inventory.sessions import took_offset
from agent.judging.base import DetectorMeta, Remedy, TaskCase, Verdict


def has_changelog(application: Application, task: Task, store_name: str) -> bool:
    """Return whether an offset of a store was ever seen; tasks of one sub-topology have the same stores.

    False is no proof that it has none: none of them may have committed yet.
    """
    return any(
        store_name in fact.offsets for sister in _sisters(application, task) for fact in sister.checkpoints
    ) or any(
        _kept_an_offset(sister.stores[store_name])
        for sister in _sisters(application, task)
        if store_name in sister.stores
    )


def with_caution(case: TaskCase, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """Name in a step that removes the task's directory what nothing may bring back."""
    remedy = verdict.remedy_by(meta)
    if remedy not in (Remedy.RESTORE, Remedy.CHECK_FIRST) or case.task.is_global:
        return verdict
    stores = case.task.stores.values()
    took = any(took_offset(x) for x in stores)  # a commit passes over a store whose logging was switched off
    lost = sorted(
        x.name
        for x in stores
        if x.puts > 0
        and not (
            has_changelog(case.application, case.task, x.name)
            and case.names_changelog_of(x.name)
            and (took_offset(x) or not took)
        )
    )
    if not lost:
        return verdict
    caution = (
        f"Keep a copy first: {', '.join(lost)} may have no changelog, and nothing else would bring it back."
    )
    return replace(verdict, next_action=f"{verdict.step(meta)} {caution}", remedy=remedy)


def _sisters(application: Application, task: Task) -> Iterable[Task]:
    topology = task.id.rpartition("_")[0]
    return (x for x in application.tasks.values() if x.id.rpartition("_")[0] == topology)


def _kept_an_offset(store: Store) -> bool:
    held = any(x.offsets is not None and x.offsets.offsets for x in store.databases.values())
    known = (x for session in store.sessions for x in (session.stored_offset, session.stored_offset_at_open))
    return held or any(x is not None for x in known)
