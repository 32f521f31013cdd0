"""Reading tasks ahead changes how long a walk takes, never what it finds."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import ahead
from agent.cli.ahead import reading_ahead
from agent.config import load_config
from agent.contract.events import Source
from agent.engine.pipeline import Pipeline
from agent.inventory.model import Application, Database
from agent.layout.paths import classify
from agent.observe.observer import Observer
from tests.agent.cli.commands import plant

NOW_US = 1_900_000_000_000_000
TASKS = [f"{group}_{number}" for group in (0, 1) for number in range(12)]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a state directory with many tasks, some of them damaged, one with a task lock, one empty."""
    root = tmp_path / "state"
    plant(root, task=TASKS[0])
    for task in TASKS[1:]:
        shutil.copytree(root / "app" / TASKS[0], root / "app" / task)
    next((root / "app/0_3").rglob("*.sst")).write_bytes(b"")
    next((root / "app/0_4").rglob("CURRENT")).unlink()
    next((root / "app/0_5").rglob("MANIFEST-*")).write_bytes(b"short")
    (root / "app/0_6/.checkpoint").write_text("nonsense")
    (root / "app/0_7/.lock").touch()
    shutil.rmtree(root / "app/0_8/rocksdb")
    (root / "app/0_9/rocksdb").chmod(0)
    return root


def found(
    root: Path, number: int, *, fewest: int = 1, meanwhile: Callable[[], object] = int
) -> dict[str, Application]:
    """Walk over the directory and give what is known then."""
    with reading_ahead(root, number, fewest) as (disk, observer):
        pipeline = Pipeline(disk, load_config().applications, NOW_US, lambda record: None)
        pipeline.looker.observer = observer
        meanwhile()
        pipeline.scan(NOW_US)
        pipeline.confirm(NOW_US)
        return pipeline.inventory.applications


def databases_of(application: Application) -> list[Database]:
    """List all databases."""
    stores = [store for task in application.tasks.values() for store in task.stores.values()]
    return [database for store in stores for database in store.databases.values()]


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the databases that this process reads itself."""
    read: list[str] = []
    real = Observer._database
    here = os.getpid()

    def note(self: Observer, place: object, *rest: object) -> object:
        if os.getpid() == here:
            read.append(place.path)  # type: ignore[attr-defined]
        return real(self, place, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Observer, "_database", note)
    return read


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_same_is_found(state: Path, direct: list[str], number: int) -> None:
    """Damage, too; and only what is asked a second time was read here."""
    plain = found(state, 0)
    here = len(direct)
    assert found(state, number) == plain
    damaged = len([x for x in databases_of(plain["app"]) if x.problems])
    assert damaged >= 2
    assert here > len(TASKS) > len(direct) - here == damaged


def test_few_tasks_are_read_here(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To start processes would take longer."""
    monkeypatch.setattr(os, "fork", pytest.fail)
    assert len(found(state, 2, fewest=len(TASKS) + 1)["app"].tasks) == len(TASKS)


def test_one_that_reads_is_none(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one CPU nothing reads ahead."""
    monkeypatch.setattr(ahead, "useful_number", lambda: 1)
    monkeypatch.setattr(os, "fork", pytest.fail)
    with reading_ahead(state, fewest=1) as (_, observer):
        assert observer.task(classify("app/0_0"), NOW_US, Source.RESCAN).unseen is None


def test_no_task_is_lost_where_the_readers_are_killed(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory, for example: each in its second task."""
    plain = found(state, 0)
    here, real = os.getpid(), Observer.task
    read: list[str] = []

    def die(self: Observer, place: object, *rest: object) -> object:
        read.append("")
        if os.getpid() != here and len(read) > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, place, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Observer, "task", die)
    assert found(state, 2) == plain


def test_a_second_walk_reads_again(state: Path) -> None:
    """Nothing of the first one is taken for it."""
    with reading_ahead(state, 2, 1) as (disk, observer):
        pipeline = Pipeline(disk, load_config().applications, NOW_US, lambda record: None)
        pipeline.looker.observer = observer
        pipeline.scan(NOW_US)
        (state / "app/0_1/.checkpoint").write_text("0\n1\napp-s-changelog 1 77\n")
        shutil.rmtree(state / "app/1_11")
        pipeline.reread("", NOW_US + 1)
        tasks = pipeline.inventory.applications["app"].tasks
    checkpoint = tasks["0_1"].checkpoint
    assert checkpoint is not None
    assert not tasks["1_11"].exists
    assert list(checkpoint.offsets.values()) == [77]
