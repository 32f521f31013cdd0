"""Read stores from running instances, and compare them with what was sent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.lab.plan import numbers
from tests.lab.processes import JavaProcess
from tests.lab.truth import Batch, Contents, Difference, Spans, Store, compare, store_of

COPIES_SINCE = "2.5.0"
"""Oldest release that can be asked for one partition of a store, and for standbys."""


class NotNowError(Exception):
    """A store cannot be read at the moment: it is moving, or being restored."""


class Copy(NamedTuple):
    """One pod's copy of one partition of a store, as a look found it; wrong: in what it differs."""

    pod: str
    store: str
    partition: int
    wrong: Difference | None


class Found(NamedTuple):
    """What a look found."""

    differences: tuple[Difference, ...]  # of the active stores, taken together, and of topics
    copies: tuple[Copy, ...] | None  # of each pod, standbys included; None: the release cannot be asked

    @property
    def is_right(self) -> bool:
        """Whether everything is as it must be."""
        return not self.differences and not self.wrong_copies

    @property
    def wrong_copies(self) -> tuple[Copy, ...]:
        """Those that are not as they must be."""
        return tuple(copy for copy in self.copies or () if copy.wrong)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and of whom."""

    pods: Mapping[str, JavaProcess]  # running instances
    words: Sequence[str]  # what the topology is made of
    release: str  # that they run
    partitions: int  # of every topic
    sent: Mapping[str, Sequence[Batch]]  # store -> what was sent while it was there
    spans: Spans  # of the windows
    scratch: Path  # for files

    @property
    def of_copies(self) -> bool:
        """Whether the release tells copies apart."""
        return numbers(self.release) >= numbers(COPIES_SINCE)


def look(question: Question, names: Sequence[str]) -> Found:
    """Compare the topology's stores of these names; `NotNowError`: one cannot be read at the moment."""
    found: list[Difference] = []
    copies: list[Copy] = []
    for name in names:
        store = store_of(name)
        word = next((word for word in store.of if word in question.words), "") if store else ""
        if store is None or not word or numbers(question.release) < numbers(store.readable_since):
            continue
        batches = question.sent.get(word, [])
        expected = store.expect(batches, question.spans)
        if not question.of_copies or store.everywhere or (store.moved and question.partitions > 1):
            for contents in _read(question, name, store):
                found += compare(name, expected, contents)
            continue
        active: dict[str, str] = {}
        for number in range(question.partitions):
            last = max((x.last for x in batches if x.partition == number), default=1)
            wanted = expected.of_partition(number)
            for pod, is_active, contents in _read_copies(question, name, store, number, last):
                wrong = next(iter(compare(name, wanted, contents)), None)
                copies.append(Copy(pod, name, number, wrong))
                active.update(contents if is_active else {})
        found += compare(name, expected, active)
    return Found(tuple(found), tuple(copies) if question.of_copies else None)


def _read(question: Question, name: str, store: Store) -> list[Contents]:
    """Read the active copies of a store from every pod; together they hold it, unless it is everywhere."""
    merged: list[dict[str, str]] = []
    for pod, java in question.pods.items():
        file = question.scratch / f"{pod}.dump"
        answer = java.ask(f"dump {name} {store.kind} {file} -1")
        if answer.startswith("problem"):
            if "InvalidStateStore" in answer and len(question.pods) > 1:
                continue  # it may have no task of that store
            raise NotNowError(f"{name} of {pod}: {answer}")
        entries = _entries(file.read_text(), store.kind)
        if merged and not store.everywhere:
            merged[0].update(entries)
        else:
            merged.append(entries)
    return list(merged) or [{}]


def _read_copies(
    question: Question, name: str, store: Store, partition: int, last: int
) -> list[tuple[str, bool, Contents]]:
    """Read every pod's copy of one partition; each with its pod, and whether it is the active one."""
    found: list[tuple[str, bool, Contents]] = []
    keys = f" p{partition}-:{last}" if store.kind == "versioned" else ""
    for pod, java in question.pods.items():
        file = question.scratch / f"{pod}.dump"
        answer = java.ask(f"dump {name} {store.kind} {file} {partition}{keys}")
        if not answer.startswith("problem"):
            found.append((pod, answer.endswith("active"), _entries(file.read_text(), store.kind)))
        elif "InvalidStateStore" not in answer:
            raise NotNowError(f"{name} {partition} of {pod}: {answer}")
    owners = [pod for pod, is_active, _ in found if is_active]
    if len(owners) != 1 and not store.everywhere:
        # a pod that has lost its membership answers as the owner until it hears of it
        raise NotNowError(f"{name} {partition}: {' and '.join(owners) or 'no pod'} has it")
    return found


def _entries(text: str, kind: str) -> dict[str, str]:
    """Read a file; of a join's store, which keeps every record, how often each is there."""
    lines = [(line.partition("\t")[0], line.partition("\t")[2]) for line in text.splitlines()]
    if kind != "join":
        return dict(lines)
    return {key: str(count) for key, count in Counter(key for key, _ in lines).items()}


def subtopologies(java: JavaProcess) -> dict[str, int]:
    """Tell in which sub-topology each store is, for the names of tasks."""
    parts = re.findall(r"(\d+):(\S*)", java.ask("stores"))
    return {name: int(number) for number, names in parts for name in names.split(",") if name}


def is_running(java: JavaProcess) -> bool:
    """Tell whether an instance's last word on its state is RUNNING."""
    return java.is_alive and state_of(java) == "RUNNING"


def has_failed(java: JavaProcess) -> bool:
    """Tell whether an instance ended by itself, or will never run again."""
    return not java.is_alive or state_of(java) in ("ERROR", "NOT_RUNNING")


def state_of(java: JavaProcess) -> str:
    """Give an instance's last word on its state; empty: it has said none."""
    states = [line for line in list(java.lines) if line.startswith("state ")]
    return states[-1].split()[1] if states else ""


def failure_of(java: JavaProcess) -> str:
    """Give the last reason that an instance gave for a failure."""
    said = [line for line in list(java.lines) if line.startswith("failed")]
    return said[-1] if said else "ended"
