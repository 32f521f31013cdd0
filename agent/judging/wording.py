"""How detectors name places and steps: one way for all of them."""

from __future__ import annotations

from agent.contract.events import Affected
from agent.inventory.model import Session, Store, Task
from agent.inventory.settings import KEYS_BY_NAME
from agent.judging.base import ApplicationCase, Evidence, Upstream
from agent.layout import names

_RANK = (Affected.NO, Affected.POSSIBLY, Affected.YES)


def where(task: Task, store: Store) -> str:
    """Path of a store's directory, relative to the state directory."""
    return f"{task.path}/{store.name}" if store.segmented else f"{task.path}/rocksdb/{store.name}"


def checkpoint_of(task: Task) -> str:
    """Path of a task's checkpoint."""
    return f"{task.path}/{names.CHECKPOINT_FILE}"


def last_mark(task: Task, session: Session) -> Evidence:
    """Return the last checkpoint of a session, or that there was none."""
    mark = session.last
    if mark is None:
        return Evidence(session.opened_us, "no checkpoint was written in this session", checkpoint_of(task))
    what = f"last checkpoint: offset {mark.offset}, {mark.puts} puts on disk"
    return Evidence(mark.at_us, what, checkpoint_of(task))


def most_affected(case: ApplicationCase, issues: tuple[Upstream, ...]) -> Affected:
    """The strongest answer over several issues."""
    return max((case.affected(x) for x in issues), key=_RANK.index)


def concerned(case: ApplicationCase, issues: tuple[Upstream, ...]) -> tuple[str, ...]:
    """Keys of the issues that may affect this application's releases."""
    return tuple(x.key for x in issues if case.affected(x) is not Affected.NO)


def assumptions(case: ApplicationCase, at_us: int, *names: str) -> list[Evidence]:
    """Return which of these settings were not given, and which of Kafka's defaults stands in for each."""
    assumed = []
    for name in names:
        if not case.settings.is_configured(name):
            value = case.settings.default(name)
            what = f"assuming the default {KEYS_BY_NAME[name].kafka_name}={value}: {name} was not given"
            assumed.append(Evidence(at_us, what, "settings"))
    return assumed
