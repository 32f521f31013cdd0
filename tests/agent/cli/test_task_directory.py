"""`scan` of a task directory instead of a state directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.commands import PLAIN, plant


@pytest.mark.parametrize(
    "task", ["app/0_0", "app/0_1", "app/__topology__/0_2", "0_5/0_0"], ids=lambda x: x.replace("/", "-")
)
@pytest.mark.parametrize("names", [(), (".lock",), (".checkpoint", "rocksdb/s/CURRENT")])
def test_scan_of_a_task_directory(
    statewarden: Callable, damaged: Path, task: str, names: tuple[str, ...]
) -> None:
    """It is called what it is, empty and with the lock that it has up to 2.8, too, and the right path is given."""
    (damaged / task).mkdir(parents=True, exist_ok=True)
    for name in names:
        (damaged / task / name).parent.mkdir(parents=True, exist_ok=True)
        (damaged / task / name).touch()
    said = statewarden("scan", damaged / task)
    assert said.code == 2
    assert said.complaint == (
        f"statewarden: {damaged / task}: this is a task directory;"
        f" give Kafka Streams' state.dir, above its application: {damaged}\n"
    )


def test_scan_of_directories_that_have_the_name_of_a_task(statewarden: Callable, tmp_path: Path) -> None:
    """What is in them decides: a state directory is read, an application is called one."""
    assert statewarden("scan", plant(tmp_path / "0_0"), *PLAIN).code == 1
    application = plant(tmp_path / "state", application="0_5") / "0_5"
    assert "this is an application directory" in statewarden("scan", application).complaint
