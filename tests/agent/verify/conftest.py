"""A state directory, and a comparison of its only store that touches nothing and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from agent.verify.changelog import Changelogs
from agent.verify.global_stores import GlobalComparison
from agent.verify.places import find_stores
from agent.verify.verify import Comparison, Given, Result, verify_store
from tests.agent.verify.changelog_double import AT_MS, Cluster, StateDir, Topic, Verify


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    """Give a state directory."""
    pytest.importorskip("rocksdict", reason="run: make test-services")
    return StateDir(tmp_path / "state")


@pytest.fixture
def verify(state: StateDir, tmp_path: Path) -> Verify:
    """Give `verify(topics, **given)`: the result of the only store."""

    def run(logs: Mapping[str, Topic | Sequence[Topic]], **given: object) -> Result:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        before = state.tree()
        (store,) = find_stores(state.root)
        kind = GlobalComparison if store.is_global else Comparison
        cluster, said = cast("Changelogs", Cluster(logs)), Given(**given)  # type: ignore[arg-type]
        result = verify_store(store, cluster, said, work, AT_MS / 1000, lambda done, total: None, kind)
        assert state.tree() == before
        assert list(work.iterdir()) == []
        return result

    return run
