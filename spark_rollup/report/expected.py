"""`--expect`: pods that should have an agent and have none that is heard, and tasks that no pod has. Not Spark."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_rollup.errors import UsageError
from spark_rollup.fleet.answers import NOT_RUNNING
from spark_rollup.report.story import some

COMMAND = "kubectl get pods -A -l LABEL --field-selector=status.phase=Running --no-headers"
"""What makes the file: each line begins with namespace and pod; what follows is not read."""

Row = Mapping[str, object]

PodKey = tuple[str, str]
"""Namespace (with its cluster before it, where there are several), pod."""

_SPACE = re.compile(r"(?:[^/\s]+/)?[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_POD = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")

_TASK = re.compile(r"(.*)_([0-9]{1,5})")
"""Sub-topology, and number: one with more digits is no task of Kafka's, whoever made that directory."""

_STATES = {"silent": "silent", "stopped": "its agent ended"}


@dataclass(frozen=True, slots=True)
class Expected:
    """What is missing of what was expected."""

    pods: int  # how many pods were expected
    unheard: Mapping[PodKey, str]  # those without an agent that is heard -> why, in words
    tasks: Mapping[PodKey, Sequence[str]]  # namespace and application -> its tasks that no pod has

    def counts(self) -> dict[str, int]:
        """Count what is missing."""
        return {"pods": len(self.unheard), "tasks": sum(map(len, self.tasks.values()))}

    def in_words(self) -> str:
        """Say as part of a verdict what is missing; empty: nothing."""
        pods, tasks = self.counts().values()
        parts = (
            f"no agent heard on {pods} of {self.pods} expected pods" if pods else "",
            f"{tasks} task{'' if tasks == 1 else 's'} that no pod has" if tasks else "",
        )
        return " and ".join(filter(None, parts))

    def named(self) -> list[tuple[str, str]]:
        """Name all of it, as heads and texts: one for each namespace, and one for each application."""
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for (space, pod), why in self.unheard.items():
            found[f"pods of {space} without an agent"][f" ({why})"].append(pod)
        for place, tasks in self.tasks.items():
            found[f"tasks of {'/'.join(filter(None, place))} that no pod has"][""] = list(tasks)
        return [
            (head, "; ".join(f"{some(x)}{why}" for why, x in said.items())) for head, said in found.items()
        ]

    def row(self) -> dict[str, object]:
        """Write it for the success marker, with names of the form `NAMESPACE/NAME`."""
        missing = {"not_heard": self.unheard, "not_held": self.tasks}
        return {"pods": self.pods, **{x: {"/".join(k): v for k, v in y.items()} for x, y in missing.items()}}


def read(path: Path) -> tuple[PodKey, ...]:
    """Read the file, before anything else is done.

    Raises:
        UsageError: it is none of that form: says which line, and what makes the right one.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is no text"
        raise UsageError(f"--expect {path}: {why}; {COMMAND} makes it") from error
    found: dict[PodKey, None] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if len(words) == 1 or not (_SPACE.fullmatch(words[0]) and _POD.fullmatch(words[1])):
            raise UsageError(
                f"--expect {path}, line {number}: {' '.join(words)[:80]!r} does not begin with a namespace and a pod; "
                f"make the file with: {COMMAND}"
            )
        found[words[0], words[1]] = None
    if not found:
        raise UsageError(f"--expect {path} names no pod: does {COMMAND} print any?")
    return tuple(found)


def compare(
    expected: Sequence[PodKey] | None, pods: Sequence[Row], restarts: Iterable[Row]
) -> Expected | None:
    """Compare with rows of `PODS` and `RESTARTS`, and say what is missing; None: nothing was named.

    Raises `UsageError`: the input is of several clusters, and a line does not say of which one its namespace is.
    """
    if expected is None:
        return None
    known = {(str(row["namespace"] or ""), str(row["pod"])): row for row in pods}
    clusters = sorted({space.rpartition("/")[0] for space, _ in known})
    unheard: dict[PodKey, str] = {}
    there = {key for key, row in known.items() if not _unheard(row)}
    for space, pod in expected:
        if "/" not in space and len(clusters) > 1:
            names = ", ".join(filter(None, clusters))
            raise UsageError(
                f"--expect: namespace {space} is of one of several clusters: write CLUSTER/{space} ({names})"
            )
        prefix = f"{clusters[0]}/" if clusters and clusters[0] and "/" not in space else ""
        key = (f"{prefix}{space}", pod)
        there.add(key)
        if why := _unheard(known.get(key)):
            unheard[key] = why
    return Expected(len(expected), unheard, _absent(restarts, there))


def _unheard(row: Row | None) -> str:
    """Say why no agent is heard; empty: one is."""
    if row is None:
        return "never heard"
    state = str(row["agent_state"])
    if state == "watching":
        return ""
    return f"{_STATES[state]}, last heard {str(row['last_seen'])[:19].replace('T', ' ')} UTC"


def _absent(restarts: Iterable[Row], there: Collection[PodKey]) -> dict[PodKey, list[str]]:
    """Find the holes in the numbers of each sub-topology, up to the highest that is or was just held.

    What a silent pod had it may still have, if it is expected; of other pods that are not heard nothing counts.
    """
    known: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    had: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for row in restarts:
        if parts := _TASK.fullmatch(str(row["task_id"])):
            space, number = str(row["namespace"] or ""), int(parts[2])
            known[place := (space, str(row["application_id"]), parts[1])].add(number)
            if row["answer"] != NOT_RUNNING and (space, str(row["pod"])) in there:
                had[place].add(number)
    found: dict[PodKey, list[str]] = {}
    for (space, application, sub), numbers in sorted(had.items()):
        if holes := sorted({*range(max(known[space, application, sub]) + 1)} - numbers):
            found.setdefault((space, application), []).extend(f"{sub}_{x}" for x in holes)
    return found
