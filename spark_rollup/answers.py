"""Answers on the terminal: why is this task as it is, how well was the fleet watched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from agent.contract.audited import FLEET
from agent.contract.codec import rfc3339
from agent.contract.exit_codes import Exit
from agent.contract.names import not_here
from spark_rollup import audit
from spark_rollup.audit import Input
from spark_rollup.bronze.later import of_another_major
from spark_rollup.bronze.latest import Latest
from spark_rollup.config import AuditOptions, named_in
from spark_rollup.errors import UsageError
from spark_rollup.fleet.judge import FINDINGS
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import COVERAGE, LOCAL, UNSEEN, Question, tell_pods
from spark_rollup.report import story, unread
from spark_rollup.report.missed import in_words
from spark_rollup.report.write import by


def why(
    spark: SparkSession,
    options: AuditOptions,
    task: str,
    application: str | None,
    namespace: str | None = None,
) -> tuple[list[str], Exit]:
    """Return one task's story across pods: the verdict, what happened where, and what no agent saw; and the exit code.

    Raises `UsageError`: no such task, or several applications or namespaces have it and none was named.
    """
    read, found = audit.prepare(spark, options)
    known = read.tasks()
    named = sorted({(space, name) for space, name, one, _ in known if one == task})
    tasks = [] if named else _in_order({one for _, _, one, _ in known})
    space, application = _one_place(task, named, namespace, application, tasks)
    pods = [pod for *where, pod in sorted(known) if where == [space, application, task]]
    asked = audit.asking(spark, options, Latest(found.as_of_us))
    told = audit.tell(read.about(space, application), replace(asked, proofs=None))

    def here(row: Row) -> bool:
        return row["application_id"] == application and row["task_id"] in (task, None)

    def is_shown(row: Row) -> bool:
        lane = row["lane"] == "unknown" or (row["lane"] == "process" and row["application_id"] == application)
        of_pod = row["task_id"] is None and row["pod"] in pods and lane
        return bool(of_pod or (row["task_id"] == task and row["application_id"] == application))

    steps = by([row for row in told.lanes(task) if is_shown(row)], "from_us", "pod", "lane")
    local = by([row for row in told.of(LOCAL) if here(row)], "opened_at_us", "pod")
    said = story.about_task(local, pods)
    of_rules = [row for row in told.of(FINDINGS) if row["reported_by"] == FLEET and here(row)]
    verdicts = story.about_task(by(of_rules, "opened_at", "detector"), pods)
    unused = not_here("--set", named_in(options.overrides), sorted({name for _, name, _, _ in known if name}))
    address = f"{space + '/' if space else ''}{application}/{task}"
    return _with_unread(
        read,
        [
            story.headline(address, sorted(set(pods)), found.as_of_us, verdicts, said),
            *story.verdict_lines(verdicts),
            *story.said_lines(said),
            *story.story_lines(steps),
            *([unused] if unused else []),
        ],
        space,
    )


def _with_unread(read: Input, lines: list[str], namespace: str | None) -> tuple[list[str], Exit]:
    left = unread.in_words(of_another_major(read.quarantine), namespace, read.unfinished)
    return ([*lines, left], Exit.UNREAD) if left else (lines, Exit.CLEAR)


def _one_place(
    task: str,
    places: Sequence[tuple[str, str]],
    namespace: str | None,
    application: str | None,
    tasks: Sequence[str] = (),
) -> tuple[str, str]:
    """Choose the only namespace and application that are meant.

    Raises:
        UsageError: there is none, or more than one.
    """
    here = sorted(
        place for place in places if namespace in (None, place[0]) and application in (None, place[1])
    )
    if len(here) == 1:
        return here[0]
    if not places:
        raise UsageError(f"no event of task {task}{f'; known tasks: {story.some(tasks)}' if tasks else ''}")
    known = here or sorted(places)
    names = ", ".join(sorted({name for _, name in known})) or "none"
    if len({space for space, _ in known}) > 1:
        spaces = ", ".join(sorted({space or "''" for space, _ in known}))
        raise UsageError(
            f"task {task}: name its place with --namespace ({spaces}) and --application ({names})"
        )
    raise UsageError(f"task {task}: name one of its applications with --application: {names}")


def _in_order(tasks: Iterable[str]) -> list[str]:
    return sorted(tasks, key=lambda name: [int(x) for x in re.findall(r"\d+", name)])


def covered(
    spark: SparkSession, options: AuditOptions, namespace: str | None = None
) -> tuple[list[str], Exit]:
    """Return per pod how much of its time was watched, list the times that no agent watched, and give the exit code.

    Raises:
        UsageError: no event up to the time asked about, or none of this namespace.
    """
    read, found = audit.prepare(spark, options)
    asked, as_of_us = Question(found.as_of_us), found.as_of_us
    told = list(tell_pods(read.stories(asked), {}, asked))

    def rows(table: str, *order: str) -> list[Row]:
        named = (row for name, row in told if name == table)
        return by([row for row in named if namespace in (None, row["namespace"])], *order)

    table = rows(COVERAGE, "namespace", "pod")
    if not table:
        raise UsageError(
            f"no event up to {rfc3339(as_of_us)}{f' of namespace {namespace}' if namespace else ''}"
        )
    several = len({row["namespace"] for row in table}) > 1
    width = max(len("pod"), *(len(story.pod_name(row, several)) for row in table))
    lines = [f"{'pod':<{width}}  watched  unknown s  events lost  last seen"]
    lines += [
        f"{story.pod_name(row, several):<{width}}  {_share(row['watched_ratio']):>7}  {row['unknown_seconds']:>9.0f}"
        f"  {row['lost_events']:>11}  {row['last_seen']}"
        for row in table
    ]
    if missed := in_words(table):
        lines.append(f"  {missed}")
    for row in rows(UNSEEN, "namespace", "pod", "from_us")[: story.MAX_LINES]:
        lines.append(
            f"  {story.pod_name(row, several)}: {story.moment(row['from_us'])} to"
            f" {story.moment(row['to_us'])}: {row['cause']}"
        )
    return _with_unread(read, lines, namespace)


def _share(value: object) -> str:
    return "-" if value is None else f"{float(str(value)) * 100:.1f} %"
