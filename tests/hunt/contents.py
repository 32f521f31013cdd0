"""Read stores from running instances, and compare them with what was sent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.hunt.truth import Batch, Contents, Difference, Spans, Store, compare, store_of
from tests.live.plan import numbers
from tests.live.processes import JavaProcess


class NotNowError(Exception):
    """A store cannot be read at the moment: it is moving, or being restored."""


def differences(
    pods: Mapping[str, JavaProcess],
    words: Sequence[str],
    names: Sequence[str],
    release: str,
    sent: Mapping[str, Sequence[Batch]],
    spans: Spans,
    scratch: Path,
) -> tuple[Difference, ...]:
    """Compare every store that can be read.

    Args:
        pods: Running instances.
        words: What the topology is made of.
        names: Its stores.
        release: That they run.
        sent: Store -> what was sent while it was there.
        spans: Of the windows.
        scratch: For files.

    Raises:
        NotNowError: a store cannot be read at the moment.
    """
    found: list[Difference] = []
    for name in names:
        store = store_of(name)
        word = next((word for word in store.of if word in words), "") if store else ""
        if store is None or not word or numbers(release) < numbers(store.readable_since):
            continue
        batches = sent.get(word, [])
        keys = " ".join(
            f"p{number}-:{max(x.last for x in batches if x.partition == number)}"
            for number in sorted({x.partition for x in batches})
        )
        for contents in _read(pods, name, store, keys if store.kind == "versioned" else "", scratch):
            found += compare(name, store.expect(batches, spans), contents)
    return tuple(found)


def _read(
    pods: Mapping[str, JavaProcess], name: str, store: Store, keys: str, scratch: Path
) -> list[Contents]:
    """Read a store from every pod; together they hold it, unless it is everywhere."""
    merged: list[dict[str, str]] = []
    for pod, java in pods.items():
        file = scratch / f"{pod}.dump"
        answer = java.ask(f"dump {name} {store.kind} {file} {keys}".rstrip())
        if answer.startswith("problem"):
            if "InvalidStateStore" in answer and len(pods) > 1:
                continue  # it may have no task of that store
            raise NotNowError(f"{name} of {pod}: {answer}")
        entries = _entries(file.read_text(), store.kind)
        if merged and not store.everywhere:
            merged[0].update(entries)
        else:
            merged.append(entries)
    return list(merged) or [{}]


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
    return java.is_alive and _state(java) == "RUNNING"


def has_failed(java: JavaProcess) -> bool:
    """Tell whether an instance ended by itself, or will never run again."""
    return not java.is_alive or _state(java) in ("ERROR", "NOT_RUNNING")


def _state(java: JavaProcess) -> str:
    states = [line for line in list(java.lines) if line.startswith("state ")]
    return states[-1].split()[1] if states else ""


def failure_of(java: JavaProcess) -> str:
    """Give the last reason that an instance gave for a failure."""
    said = [line for line in list(java.lines) if line.startswith("failed")]
    return said[-1] if said else "ended"
