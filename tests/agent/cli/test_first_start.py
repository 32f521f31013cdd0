"""`scan --may-be-empty`: a first start passes a gate; misspelt, unreadable and task directories do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.first_start import is_before_first_start
from tests.agent.cli.commands import PLAIN, plant
from tests.agent.cli.test_offline import close_to_strangers, scan_as_stranger

EMPTY = "--may-be-empty"


@pytest.mark.parametrize("names", [(), ("lost+found",), ("kafka-streams",), ("logs/today", "lost+found")])
@pytest.mark.parametrize("inner", ["", "kafka-streams"])
def test_before_the_first_start_nothing_is_found(
    statewarden: Callable, tmp_path: Path, names: tuple[str, ...], inner: str
) -> None:
    """Missing or empty, on a volume that is empty or has something else on it."""
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    said = statewarden("scan", tmp_path / inner, EMPTY)
    assert (said.code, said.err) == (0, "")
    assert said.out.rstrip("\n").splitlines() == [
        "no incidents found",
        f"{tmp_path / inner}: no application has started here yet",
    ]
    (line,) = statewarden("scan", tmp_path / inner, EMPTY, "--json").rows
    assert (line["exit_code"], line["read"]) == (
        0,
        f"{tmp_path / inner}: no application has started here yet",
    )
    assert statewarden("scan", tmp_path / inner).code == 2


def test_an_application_without_a_task_is_no_all_clear(statewarden: Callable, tmp_path: Path) -> None:
    """It may have been given none, or something else has a file of that name."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / ".lock").touch()
    said = statewarden("scan", tmp_path)
    assert (said.code, said.out.splitlines()[0]) == (0, "no tasks found")


def test_what_is_there_is_judged(statewarden: Callable, damaged: Path) -> None:
    """The flag takes nothing away from a directory that is not empty."""
    assert statewarden("scan", damaged, EMPTY, *PLAIN).code == 1
    (damaged / "app" / "0_0" / ".checkpoint").unlink()
    assert statewarden("scan", damaged, EMPTY, *PLAIN).code == 0


@pytest.mark.parametrize("path", ["kafka-stream", "", "kafka-streams/app", "kafka-streams/app/0_0", "a/b/c"])
def test_a_wrong_path_does_not_pass(statewarden: Callable, tmp_path: Path, path: str) -> None:
    """Misspelt, a level too high or too low: where an application lies near, an empty place is a mistake."""
    plant(tmp_path / "kafka-streams")
    said = statewarden("scan", tmp_path / path, EMPTY)
    assert said.code == 2
    assert "give " in said.complaint


def test_a_volume_that_is_not_mounted_does_not_pass(statewarden: Callable, tmp_path: Path) -> None:
    """Nothing above it but the root: the volume is missing, not the state."""
    said = statewarden("scan", "/no-such-volume/kafka-streams", EMPTY)
    assert said.code == 2
    assert "no volume is mounted above it" in said.complaint
    (tmp_path / "file").touch()
    assert statewarden("scan", tmp_path / "file", EMPTY).code == 2


@pytest.mark.parametrize("closed", ["state", "state/app", "state/app/0_0"])
def test_what_may_not_be_read_does_not_pass_as_empty(tmp_path: Path, repository: Path, closed: str) -> None:
    """A gate of the wrong group sees nothing: that is no first start."""
    (tmp_path / "state" / "app" / "0_0").mkdir(parents=True)
    close_to_strangers(tmp_path / closed)
    done = scan_as_stranger(tmp_path, repository, [EMPTY])
    (tmp_path / closed).chmod(0o755)
    if closed == "state/app/0_0":
        assert done.returncode == 3
        assert "denied" in done.stdout + done.stderr
    else:
        assert (done.returncode, done.stdout) == (3, "")
        assert "permission denied" in done.stderr


def test_it_reads_few_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A volume with a million directories does not hold up a start."""
    monkeypatch.setattr("agent.cli.first_start.MOST", 5)
    for number in range(20):
        (tmp_path / f"{number:02d}").mkdir()
    assert is_before_first_start(tmp_path)


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
