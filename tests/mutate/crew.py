"""Workers, each with its own copy of the tree; the checkout is only read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutate.mutants import Mutant

COPIED = ("agent", "spark_rollup", "deploy", "tests", "pyproject.toml")
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "node_modules")
NICENESS = 10
SLACK = 6.0
SLACK_S = 20.0
"""A stage may take SLACK times as long as on the code as it is, and SLACK_S more: then it is a time-out."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one mutant.

    Args of the dataclass:
        mutant: The mutant.
        by: The test that noticed it; empty if none did.
        stage: Number of that test's stage.
    """

    mutant: Mutant
    by: str
    stage: int

    @property
    def killed(self) -> bool:
        """Tell whether something noticed; a time-out counts."""
        return bool(self.by)


class Worker:
    """A process that tries one mutant at a time in its own copy."""

    def __init__(self, copy: Path) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            ["nice", "-n", str(NICENESS), sys.executable, "-m", "tests.mutate.worker"],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send an order and wait for its answer; the worker itself keeps the deadline."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a worker ended by itself")
        answer: dict[str, Any] = json.loads(line)
        if str(answer["by"]).startswith("error"):
            raise RuntimeError(answer["by"])
        return answer

    def close(self) -> None:
        """End it."""
        with self._process:  # closes its pipes
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(30)


class Crew:
    """All workers."""

    def __init__(self, workers: list[Worker]) -> None:
        """Put them to work."""
        self._all = workers
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in workers:
            self._idle.put(worker)
        self._usual: dict[str, float] = {}

    def check(self, stages: Iterable[list[str]]) -> list[str]:
        """Run tests on the code as it is, for their usual time; list those that fail even so."""
        complaints = []
        for targets in stages:
            name = " ".join(targets)
            if name in self._usual:
                continue
            for worker in self._all:  # each copy keeps its bytecode
                order = {"path": "", "code": None, "stages": [[targets, 600.0]]}
                answer = worker.carry_out(order)
                self._usual[name] = max(answer["seconds"][0], self._usual.get(name, 0.0))
                if answer["by"]:
                    complaints.append(f"{name}: {answer['by']}")
                    break
        return complaints

    def try_all(self, mutants: Iterable[Mutant], stages: Callable[[str], list[list[str]]]) -> Iterator[Trial]:
        """Try mutants side by side; results come as they are ready."""
        with ThreadPoolExecutor(len(self._all)) as pool:
            waiting = [pool.submit(self._try, x, stages(x.path)) for x in mutants]
            for done in as_completed(waiting):
                yield done.result()

    def _try(self, mutant: Mutant, stages: list[list[str]]) -> Trial:
        limits = [[x, self._usual[" ".join(x)] * SLACK + SLACK_S] for x in stages]
        worker = self._idle.get()
        try:
            answer = worker.carry_out({"path": mutant.path, "code": mutant.code, "stages": limits})
        finally:
            self._idle.put(worker)
        return Trial(mutant, answer["by"], answer["stage"])


@contextmanager
def crew(root: Path, work: Path, size: int) -> Iterator[tuple[Path, Crew]]:
    """Copy the tree for each worker and start them.

    Args:
        root: The checkout.
        work: Empty directory for the copies.
        size: Number of workers.

    Yields:
        A copy that stays as it is (somebody may edit the checkout meanwhile), and the crew.
    """
    pristine = work / "pristine"
    _copy(root, pristine)
    copies = [work / f"copy-{number}" for number in range(size)]
    for copy in copies:
        _copy(pristine, copy)
    workers = [Worker(copy) for copy in copies]
    try:
        yield pristine, Crew(workers)
    finally:
        for worker in workers:
            worker.close()


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    for name in COPIED:
        place = source / name
        if place.is_dir():
            shutil.copytree(place, target / name, ignore=LEFT_OUT, symlinks=True)
        else:
            shutil.copy2(place, target / name)
