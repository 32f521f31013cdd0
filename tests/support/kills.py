"""Stories of tasks that are closed shortly before their process is killed."""

from __future__ import annotations

from agent.contract.events import Severity
from tests.support.scenario import App, Scenario

ID = "interrupted-wipe"
EOS = "exactly_once_v2"


def killed(run: Scenario, app: App) -> None:
    """SIGKILL; the kernel closes all lock files and announces it."""
    held = [f"{x.path}/LOCK" for task in run.tasks.values() for x in task.databases.values() if x.is_open]
    app.crash()
    for path in ("app/.lock", *held):
        run.world.play("close_w", path)
    run.wait(5)


def told(run: Scenario) -> list[tuple[str | None, Severity]]:
    """What is said of which task once everything was opened again and has stood for a while."""
    app = run.start()
    run.wait(1)
    for task_id in sorted(run.tasks):
        app.opens(task_id)
    run.wait(15)
    return [(finding.task_id, finding.severity) for finding in run.findings(ID)]


def running(release: str, tasks: int = 4, **more) -> tuple[Scenario, App]:
    """Tasks that have work in memory, some time after their restoration."""
    run = Scenario(release, EOS, **more)
    app = run.start()
    for task_id in (f"0_{number}" for number in range(tasks)):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
        if app.habits.offsets_in_store:
            app.commits(task_id, 1999)
    run.wait(4)
    for task_id in sorted(run.tasks):
        app.puts(task_id, 500)
        app.flushes(task_id)
    run.wait(1)
    return run, app


def quiet(run: Scenario) -> bool:
    """Whether nothing is said beyond information."""
    return all(severity is Severity.INFO for _, severity in told(run))
