"""A worker runs the project's tests in its own copy of the tree, without the plugins of `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray")

from tests.mutate.crew import crew
from tests.mutate.mutants import Mutant

TESTS = ["tests/agent/layout/test_sharing.py"]
PATH = "agent/layout/sharing.py"


def test_a_worker_passes_what_passes_and_notices_what_is_broken(repository: Path, tmp_path: Path) -> None:
    """The code as it is passes; without its code every test fails."""
    with crew(repository, tmp_path, 1) as (copy, workers):
        assert workers.check([TESTS]) == []
        (trial,) = workers.try_all(
            [Mutant(PATH, "Emptied", 0, 1, "", "all", "nothing", "", False)], lambda _: [TESTS]
        )
        assert trial.killed
        assert (copy / PATH).read_bytes() == (repository / PATH).read_bytes()
