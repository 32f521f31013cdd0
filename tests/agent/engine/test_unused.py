"""Whole applications that are left over are a remark: how many, how large, which."""

from __future__ import annotations

from agent.engine.unused import UNUSED_US, unused
from agent.inventory.disk import LockState
from agent.inventory.model import Application, CheckpointFact, Inventory, Task
from tests.support.scenario_case import at

NOW_US = at(0) + 2 * UNUSED_US


def application(name: str, **more: object) -> Application:
    """An application whose directory is as old as the story."""
    return Application(name, exists=True, mtime_us=at(0), **more)  # type: ignore[arg-type]


def said_of(*applications: Application) -> str:
    return unused(Inventory({x.id: x for x in applications}), NOW_US)


def test_what_is_left_over_is_counted_and_named_in_part() -> None:
    """Eleven of them are one line; nothing left over is none."""
    said = said_of(*(application(f"query-{n:02}") for n in range(11)))
    assert said.startswith("11 applications unused for 30 days, 0 MiB: query-00, ")
    assert said.endswith("and 5 more")
    assert said_of() == ""


def test_what_a_process_may_use_or_has_used_is_not_left_over() -> None:
    """A lock that is held or cannot be asked, a held task, a checkpoint of last week, a directory that is gone."""
    held = Task("app", "0_0", "app/0_0", held=True)
    held.exists = True
    written = Task("app", "0_0", "app/0_0")
    written.exists = True
    written.checkpoints = (CheckpointFact(NOW_US - UNUSED_US // 4, NOW_US, {}, (), 1, True),)
    gone = application("app")
    gone.exists = False
    for one in (
        application("app", lock=LockState.HELD),
        application("app", lock=LockState.UNKNOWN),
        application("app", tasks={"0_0": held}),
        application("app", tasks={"0_0": written}),
        gone,
        Application("app", exists=True, mtime_us=NOW_US),
    ):
        assert said_of(one) == "", one
    assert said_of(application("app", lock=LockState.FREE)) != ""
