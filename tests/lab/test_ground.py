"""The stage of a run brings an application back as whoever runs it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.ground import Ground
from tests.lab.processes import LiveError

CORRUPTED = (
    "problem org.apache.kafka.streams.errors.TaskCorruptedException: Tasks [-1_-1] are corrupted"
    " and hence need to be re-initialized"
)


class Pod:
    """An instance that does not start while a global store lies there."""

    def __init__(self, state: Path, problem: str) -> None:
        self._state, self._problem = state, problem
        self.is_killed = False

    def ask(self, _command: str) -> str:
        return self._problem if (self._state / "app" / "global").exists() else "started"

    def kill(self) -> None:
        self.is_killed = True


class Stub(Ground):
    """A ground without a broker."""

    def __init__(self, state: Path, problem: str) -> None:
        self.id, self.marks, self.pods = "app", [], {}
        self._state, self._problem = state, problem
        self.made: list[Pod] = []

    def state_dir(self, _pod: str) -> Path:
        return self._state

    def prepare(self, pod: str) -> Pod:  # type: ignore[override]
        self.made.append(Pod(self._state, self._problem))
        self.pods[pod] = self.made[-1]  # type: ignore[assignment]
        return self.made[-1]


def ground(state: Path, problem: str) -> Stub:
    (state / "app" / "global" / "rocksdb").mkdir(parents=True)
    (state / "app" / "0_0").mkdir()
    return Stub(state, problem)


def test_a_global_store_that_was_left_open_is_removed_and_nothing_else(tmp_path):
    stub = ground(tmp_path, CORRUPTED)
    stub.back("a")
    assert [one.is_killed for one in stub.made] == [True, False]
    assert [path.name for path in (tmp_path / "app").iterdir()] == ["0_0"]
    assert [what for _, what in stub.marks] == ["a's global store, which kept it from starting, is removed"]


def test_another_problem_ends_the_run(tmp_path):
    stub = ground(tmp_path, "problem org.apache.kafka.common.config.ConfigException: no")
    with pytest.raises(LiveError, match="a does not start"):
        stub.back("a")
    assert (tmp_path / "app" / "global").is_dir()
