"""Stories of tasks that are closed shortly before their process is killed."""

from __future__ import annotations

from typing import Any

from agent.contract.events import Severity
from tests.support.scenario import Scenario
from tests.support.scenario_script import play

ID = "interrupted-wipe"
EOS = "exactly_once_v2"


def killed(run: Scenario) -> Scenario:
    """SIGKILL; the kernel closes all lock files and announces it."""
    held = [f"{x.path}/LOCK" for task in run.tasks.values() for x in task.databases.values() if x.is_open]
    run.app.crash()
    for path in ("app/.lock", *held):
        run.world.play("close_w", path)
    return play(run, "5 s")


def told(run: Scenario) -> list[tuple[str | None, Severity]]:
    """What is said of which task once everything was opened again and has stood for a while."""
    play(run, ", ".join(["start, 1 s", *(f"opens {x}" for x in sorted(run.tasks)), "15 s"]))
    return [(finding.task_id, finding.severity) for finding in run.findings(ID)]


def restored(run: Scenario, *ids: str) -> Scenario:
    """Tasks that have just been restored, up to offset 1999."""
    for task_id in ids:
        play(run, f"opens {task_id}, restores {task_id} 1999 puts=2000")
        play(run, f"commits {task_id} 1999" if run.habits.offsets_in_store else "")
    return run


def running(release: str, **more: Any) -> Scenario:
    """Four tasks that have work in memory, some time after their restoration."""
    ids = [f"0_{number}" for number in range(4)]
    run = restored(play(Scenario(release, EOS, **more), "start"), *ids)
    return play(run, ", ".join(["4 s", *(f"puts {x} 500, flushes {x}" for x in ids), "1 s"]))
