"""`explain --why-not`: what each rule judged of one task, and why it says nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from agent.cli.offline import parse_duration_us, reading
from agent.config import Config
from agent.contract.codec import printable, rfc3339
from agent.contract.wording import BEYOND_FILES
from agent.detectors import DETECTORS
from agent.engine.one_reading import JUDGED_AFTER_US, judge_once, may_go_on
from agent.engine.pipeline import Pipeline
from agent.errors import UsageError
from agent.inventory.model import Application, Task
from agent.judging.base import Detector, Scope, TaskCase, Verdict
from agent.judging.rule import Silence, Story
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay

_QUIET_US = parse_duration_us("20m")


def why_not(name: str, source: Path, config: Config) -> int:
    """Print, detector by detector, what was judged of a task, and which look-alike or gap in knowledge ended it.

    Args:
        name: `APPLICATION/TASK`, or a task where there is one application.
        source: A state directory, which is read once, or a recorded trace.
        config: Effective settings.

    Raises:
        UsageError: there is no such task, directory or trace.
        UnreadError: it cannot be read.
    """
    pipeline, judged_us, read_us = _replayed(source, config) if source.is_file() else _read(source, config)
    application, task = _task_of(pipeline, name)
    case = pipeline.judges.task_case(judged_us, application, task, {})
    silent = []
    sys.stdout.write(printable(f"{application.id}/{task.id} in {source}") + "\n")
    for detector in DETECTORS:
        if detector.meta.scope is not Scope.TASK:
            continue
        if case.is_silent(detector.meta):
            silent.append(detector.meta.id)
        else:
            sys.stdout.write(f"\n{detector.meta.id}\n" + "".join(_lines(detector, case, read_us)))
    asked = "not judged (ruled out by settings or release, or a setting is missing): "
    sys.stdout.write(f"\n{asked}{', '.join(silent)}\n" if silent else "")
    sys.stdout.write(f"\n{BEYOND_FILES}\n")
    return 0


def _lines(detector: Detector, case: TaskCase, read_us: int) -> Iterator[str]:
    for docket in detector.dockets:
        decided = list(docket.decisions(case))
        for rule in docket.rules:
            yield f"  {rule.name}\n"
            said = [(story, one) for story, of, one in decided if of is rule]
            yield from ([_line(*x, read_us) for x in said] or ["    does not apply\n"])


def _line(story: Story[TaskCase], said: Verdict | Silence, read_us: int) -> str:
    if isinstance(said, Verdict):
        words = f"{said.severity}, {said.confidence}: {said.summary}"
    else:
        words = f"{said.why}: {said.name}"
    since = rfc3339(min(story.opened_at_us, read_us))[:19].replace("T", " ")
    return printable(f"    {since} UTC  {story.place}: {words}") + "\n"


def _read(directory: Path, config: Config) -> tuple[Pipeline, int, int]:
    """Give what was read, the moment at which it is judged, and when it was read: no time shown is in the future."""
    with reading(directory, config) as (pipeline, now_us, _):
        judge_once(pipeline, now_us)
    applications = pipeline.inventory.applications.values()
    return pipeline, now_us if any(map(may_go_on, applications)) else now_us + JUDGED_AFTER_US, now_us


def _replayed(trace: Path, config: Config) -> tuple[Pipeline, int, int]:
    started_us, disk, ends = first_time_us(trace), MemoryDisk(), [0]
    pipeline = Pipeline(
        disk,
        config.applications,
        started_us,
        lambda record: ends.append(record.observed_at_us),
        disabled=config.disabled,
    )
    replay(trace, pipeline, disk, _QUIET_US)
    return pipeline, max(ends), max(ends)


def _task_of(pipeline: Pipeline, name: str) -> tuple[Application, Task]:
    wanted, _, task_id = name.rpartition("/")
    there = [
        (application, task)
        for application in pipeline.inventory.applications.values()
        for task in application.tasks.values()
    ]
    found = [x for x in there if x[1].id == task_id and wanted in ("", x[0].id)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{application.id}/{task.id}" for application, task in (found or there)[:5])
    raise UsageError(f"{name}: {'several tasks' if found else 'no such task'}; there are {known or 'none'}")
