"""`--expect`: pods that should have an agent and have none that is heard, and tasks that no pod has. Not Spark."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_rollup.errors import UnreadError, UsageError
from spark_rollup.fleet.answers import NOT_RUNNING

COMMAND = "kubectl get pods -A -l LABEL --field-selector=status.phase=Running --no-headers"
"""What makes the file: each line begins with namespace and pod; what follows is not read."""

Row = Mapping[str, object]

PodKey = tuple[str, str]
"""Namespace (with its cluster before it, where there are several), pod."""

_SPACE = re.compile(r"(?:[^/\s]+/)?[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_POD = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")

_STATES = {"silent": "silent", "stopped": "its agent ended"}


@dataclass(frozen=True, slots=True)
class Expected:
    """What is missing of what was expected.

    Args of the dataclass:
        pods: How many pods were expected.
        unheard: Those without an agent that is heard -> why, in words.
        tasks: Namespace and application -> its tasks that no pod has, as ranges: `0_3`, `0_5 to 0_9`; and their number.
    """

    pods: int
    unheard: Mapping[PodKey, str]
    tasks: Mapping[PodKey, tuple[Sequence[str], int]]

    @property
    def tasks_missing(self) -> int:
        """How many tasks no pod has."""
        return sum(number for _, number in self.tasks.values())

    def named(self) -> list[tuple[str, str]]:
        """Name all of it, as heads and texts: one for each namespace, and one for each application."""
        spaces: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for (space, pod), why in self.unheard.items():
            spaces[space][why].append(pod)
        pods = [
            (
                f"pods of {space} without an agent",
                "; ".join(f"{', '.join(x)} ({why})" for why, x in found.items()),
            )
            for space, found in spaces.items()
        ]
        return pods + [
            (f"tasks of {'/'.join(filter(None, place))} that no pod has", ", ".join(ranges))
            for place, (ranges, _) in self.tasks.items()
        ]

    def in_words(self) -> str:
        """Say as part of a verdict what is missing; empty: nothing."""
        pods, tasks = len(self.unheard), self.tasks_missing
        parts = (
            f"no agent heard on {pods} of {self.pods} expected pods" if pods else "",
            f"{tasks} task{'' if tasks == 1 else 's'} that no pod has" if tasks else "",
        )
        return " and ".join(filter(None, parts))

    def row(self) -> dict[str, object]:
        """Write it for the success marker."""
        pods = [{"namespace": space, "pod": pod, "why": why} for (space, pod), why in self.unheard.items()]
        tasks = [
            {"namespace": space, "application_id": name, "tasks": list(ranges)}
            for (space, name), (ranges, _) in self.tasks.items()
        ]
        return {"pods": self.pods, "not_heard": pods, "not_held": tasks}


def read(path: Path) -> tuple[PodKey, ...]:
    """Read the file, before anything else is done.

    Raises:
        UsageError: it is none of that form: says which line, and what makes the right one.
        UnreadError: it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is no text"
        raise UsageError(f"--expect {path}: {why}; {COMMAND} makes it") from error
    except OSError as error:
        raise UnreadError(f"--expect {path} cannot be read: {error.strerror or error}") from error
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


def compare(expected: Sequence[PodKey], pods: Sequence[Row], restarts: Iterable[Row]) -> Expected:
    """Say what is missing.

    Args:
        expected: What `read` gives.
        pods: Rows of `PODS`.
        restarts: Rows of `RESTARTS`.

    Raises:
        UsageError: the input is of several clusters, and a line does not say of which one its namespace is.
    """
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
    return f"{_STATES.get(state, state)}, last heard {str(row['last_seen'])[:19].replace('T', ' ')} UTC"


def _absent(restarts: Iterable[Row], there: Collection[PodKey]) -> dict[PodKey, tuple[list[str], int]]:
    """Find the holes in the numbers of each sub-topology, up to the highest that is or was just held.

    What a silent pod had it may still have, if it is expected; of other pods that are not heard nothing counts.
    """
    had: dict[tuple[str, str, str], dict[int, bool]] = defaultdict(dict)
    for row in restarts:
        sub, _, number = str(row["task_id"] or "").rpartition("_")
        if sub and number.isdecimal() and number.isascii():
            place = had[str(row["namespace"] or ""), str(row["application_id"]), sub]
            has = row["answer"] != NOT_RUNNING and (str(row["namespace"] or ""), str(row["pod"])) in there
            place[int(number)] = place.get(int(number), False) or has
    found: dict[PodKey, tuple[list[str], int]] = {}
    for (space, application, sub), numbers in sorted(had.items()):
        holes = list(_holes(sorted(x for x, is_had in numbers.items() if is_had), max(numbers)))
        if holes and any(numbers.values()):
            names, count = found.get((space, application), ([], 0))
            shown = [f"{sub}_{a}" if a == b else f"{sub}_{a} to {sub}_{b}" for a, b in holes]
            found[space, application] = [*names, *shown], count + sum(b - a + 1 for a, b in holes)
    return found


def _holes(had: Sequence[int], last: int) -> Iterator[tuple[int, int]]:
    """List what is missing between 0 and the last, both included, as first and last of each hole."""
    for before, after in zip((-1, *had), (*had, last + 1), strict=True):
        if after - before > 1:
            yield before + 1, after - 1
