"""Outcomes of earlier runs, so that a long run can be made in pieces (`--memory FILE`).

A kill is trusted while the module is the same; a survival also needs the module's own tests to be the same.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.mutate.crew import Trial
from tests.mutate.mutants import Mutant


class Memory:
    """Remembered outcomes, one JSON line each."""

    def __init__(self, file: Path | None) -> None:
        """Read the file, if there is one."""
        self._file = file
        self._known: dict[str, tuple[str, int, str, int]] = {}
        if file is not None and file.exists():
            for line in file.read_text("utf-8").splitlines():
                row = json.loads(line)
                self._known[row["key"]] = (row["by"], row["stage"], row["tests"], row["depth"])

    def recall(self, mutant: Mutant, tests: str, depth: int) -> Trial | None:
        """Give an earlier outcome that still holds.

        Args:
            mutant: The mutant.
            tests: Fingerprint of its module's own tests.
            depth: Number of the last stage that is wanted.
        """
        by, stage, seen, reached = self._known.get(mutant.key, ("", 0, "", -1))
        return Trial(mutant, by, stage) if by or (seen == tests and reached >= depth) else None

    def note(self, trial: Trial, tests: str, depth: int) -> None:
        """Remember an outcome."""
        self._known[trial.mutant.key] = (trial.by, trial.stage, tests, depth)
        if self._file is not None:
            row = {
                "key": trial.mutant.key,
                "by": trial.by,
                "stage": trial.stage,
                "tests": tests,
                "depth": depth,
            }
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
