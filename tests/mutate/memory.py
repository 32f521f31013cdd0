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
        self._known: dict[str, tuple[str, int, str]] = {}
        if file is not None and file.exists():
            for line in file.read_text("utf-8").splitlines():
                row = json.loads(line)
                self._known[row["key"]] = (row["by"], row["stage"], row["tests"])

    def recall(self, mutant: Mutant, tests: str) -> Trial | None:
        """Give an earlier outcome that still holds."""
        by, stage, seen = self._known.get(mutant.key, ("", 0, ""))
        thorough = seen == tests or seen == f"{tests.partition(' ')[0]} all"
        return Trial(mutant, by, stage) if by or thorough else None

    def note(self, trial: Trial, tests: str) -> None:
        """Remember an outcome."""
        self._known[trial.mutant.key] = (trial.by, trial.stage, tests)
        if self._file is not None:
            row = {"key": trial.mutant.key, "by": trial.by, "stage": trial.stage, "tests": tests}
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
