"""Windowed stores of 4.3 on their way to a lost segment: what the tests of `lost-segment` share."""

from __future__ import annotations

from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_database import SimDatabase

ID = "lost-segment"
ALOS, EOS = "at_least_once", "exactly_once_v2"
OLD, NEW = 0, 60_000
ANSWER = 3599


def segment(run: Scenario, number: int) -> SimDatabase:
    """One segment's database."""
    return run.task("0_0").databases["w", str(number)]


def opened(release: str = "4.3.1", guarantee: str = ALOS, **more) -> tuple[Scenario, App]:
    """A windowed store that was just opened, and has no segment yet."""
    run = Scenario(release, guarantee, **{"stores": {"w": WINDOWED}, **more})
    app = run.start()
    app.opens("0_0")
    return run, app


def takes(run: Scenario, app: App, records: int, number: int, offset: int) -> None:
    """Records for one segment, committed and flushed, and time for the agent to see it."""
    app.puts("0_0", records, segment=number)
    app.checkpoints("0_0", offset)
    segment(run, number).flush()
    run.wait(2)


def crossed(release: str = "4.3.1", guarantee: str = ALOS, **more) -> tuple[Scenario, App]:
    """600 records in the first segment, 3,000 in the next one, which is flushed; all committed."""
    run, app = opened(release, guarantee, **more)
    app.puts("0_0", 600, segment=OLD)
    app.checkpoints("0_0", 599)
    run.wait(2)
    app.puts("0_0", 3000, segment=NEW)
    run.wait(2)
    app.checkpoints("0_0", ANSWER)
    segment(run, NEW).flush()
    run.wait(2)
    return run, app


def killed(run: Scenario, app: App) -> None:
    """A kill, and time for the agent to see it."""
    app.crash()
    run.wait(5)


def starts(run: Scenario, offset: int | None = ANSWER) -> App:
    """A new process: its start-up pass, then the task."""
    app = run.start()
    app.startup_pass(offset)
    run.wait(2)
    app.opens("0_0")
    run.wait(2)
    return app


def goes_on(run: Scenario, number: int) -> App:
    """A new process, and 500 more records for one segment."""
    app = starts(run)
    app.puts("0_0", 500, segment=number)
    app.checkpoints("0_0", ANSWER + 500)
    return app


def wiped_start(run: Scenario) -> None:
    """A new process under exactly-once: its start-up pass finds a store open and writes nothing; the task is wiped."""
    app = run.start()
    for database in run.task("0_0").databases.values():
        database.open()
        database.crash()
        run.world.unlock(f"{database.path}/LOCK")
    run.wait(15)
    app.opens("0_0")
    app.wipes("0_0")
    run.wait(30)


def open_findings(run: Scenario) -> list[Finding]:
    """What is open now, info left out."""
    return [x for x in run.findings(ID) if x.status is Status.OPEN and x.severity is not Severity.INFO]


def loudest(run: Scenario) -> Severity | None:
    """The loudest that was ever said."""
    return max((x.severity for x in run.findings(ID)), key=lambda x: x.rank, default=None)


def close_cut(run: Scenario, app: App) -> None:
    """The close writes the offset, closes the first segment, and is killed before the second."""
    app.checkpoints("0_0", ANSWER)
    old = segment(run, OLD)
    old.put_position()
    old.put_status(0)
    old.close()
    run.wait(0.1)
    killed(run, app)


def two_unflushed(guarantee: str = EOS, **more) -> tuple[Scenario, App]:
    """Two segments, both made in this life; nothing is flushed."""
    run, app = opened(guarantee=guarantee, **more)
    app.puts("0_0", 600, segment=OLD)
    run.wait(2)
    app.puts("0_0", 3000, segment=NEW)
    run.wait(2)
    return run, app


def with_data(run: Scenario, app: App) -> None:
    """The first segment is flushed early and goes on; then the next one takes over and is flushed."""
    app.puts("0_0", 600, segment=OLD)
    app.checkpoints("0_0", 599)
    segment(run, OLD).flush()
    run.wait(2)
    app.puts("0_0", 600, segment=OLD)
    run.wait(2)
    takes(run, app, 3000, NEW, 4199)
