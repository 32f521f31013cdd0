"""What a scan may say of a directory on which somebody works, and what it closes with."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.cli import offline
from agent.cli.output import Shown
from agent.config import load_config
from agent.engine import one_reading
from agent.engine.detector_runner import DetectorRunner
from agent.inventory.model import Application
from agent.judging.base import ApplicationCase
from tests.agent.cli.commands import FACTS, PLAIN, plant

NOW_US = 1_900_000_000_000_000
HOUR_US = 3_600_000_000
HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+b")
fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""
LOCKS = (".lock", "0_0/.lock", "0_0/rocksdb/s/LOCK", "0_2/rocksdb/s/LOCK")


class HandClock:
    """A clock that moves only when told to."""

    time_us = NOW_US

    def now_us(self) -> int:
        return self.time_us

    def monotonic_s(self) -> float:
        return self.time_us / 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    clock = HandClock()
    monkeypatch.setattr(offline, "SystemClock", lambda: clock)
    return clock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let another process hold a record lock, as Kafka Streams and RocksDB do."""
    path.touch()
    with subprocess.Popen(
        [sys.executable, "-S", "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"locked\n"
        yield
        child.kill()


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Give a directory with two tasks; of the store of 0_1 a single data file is left."""
    root = plant(tmp_path / "state")
    (root / "app" / "0_0" / ".checkpoint").unlink()
    remains = root / "app" / "0_1" / "rocksdb" / "s"
    remains.mkdir(parents=True)
    (remains / "000012.sst").write_bytes(b"data")
    return root


def torn_tasks(root: Path, capsys: pytest.CaptureFixture[str], pause: Callable[[float], object]) -> list[str]:
    offline.scan(
        root, load_config(sets=PLAIN[1::2]), shown=Shown(as_json=True), fail_on="critical", pause=pause
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [row["task_id"] for row in rows if row["line"] == "finding" and row["detector"] == "torn-store"]


def no_pause(_: float) -> None:
    """Fail: nobody should wait."""
    pytest.fail("a scan waited")


def test_a_dead_directory_needs_no_second_reading(
    torn: Path, clock: HandClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody works there: what is torn stays torn, however fresh."""
    assert torn_tasks(torn, capsys, no_pause) == ["0_1"]


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_second_look_beside_a_process_decides(
    torn: Path, clock: HandClock, capsys: pytest.CaptureFixture[str], lock: str, goes_on: bool
) -> None:
    """Whoever holds any lock of the application may be deleting, also one in a task that is read later.

    Not an hour that never was: what is gone then was a deletion, what stays is torn.
    """

    def pause(seconds: float) -> None:
        clock.time_us += int(seconds * 1_000_000)
        if goes_on:
            shutil.rmtree(torn / "app" / "0_1")

    if lock.startswith("0_2"):
        plant(torn, task="0_2")
    with locked(torn / "app" / lock):
        assert torn_tasks(torn, capsys, pause) == ([] if goes_on else ["0_1"])


def test_a_running_application_is_judged_at_now(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside it a dead one is judged an hour later, and the agent itself at now."""
    root = plant(plant(tmp_path / "state", application="dead"), application="alive")
    judged: dict[str, set[int]] = {}
    plain = DetectorRunner._judge

    def noting(self, case, *arguments, **options):
        judged.setdefault(case.application.id if isinstance(case, ApplicationCase) else "", set()).add(
            case.now_us
        )
        plain(self, case, *arguments, **options)

    monkeypatch.setattr(DetectorRunner, "_judge", noting)
    with locked(root / "alive" / ".lock"):
        offline.scan(root, load_config(), shown=Shown(as_json=True), fail_on="critical", pause=no_pause)
    assert judged == {"": {NOW_US}, "alive": {NOW_US}, "dead": {NOW_US, NOW_US + HOUR_US}}


def test_a_reading_depends_neither_on_the_hour_nor_on_the_one_before(
    repository: Path, tmp_path: Path, clock: HandClock, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Times are those of the directory: pretending to wait for two hours changes no letter.

    Nor do ids an hour later, of what no file dates either, such as a store that lacks files.
    """

    def scanned(root: Path, facts: dict[str, str], *, as_json: bool = True) -> str:
        config = load_config(sets=[f"{key}={value}" for key, value in facts.items()])
        offline.scan(root, config, shown=Shown(as_json=as_json), fail_on="critical", pause=no_pause)
        return capsys.readouterr().out

    for archive in sorted((repository / "tests" / "data" / "snapshots").glob("*.tar.gz")):
        root = tmp_path / archive.name
        with tarfile.open(archive) as packed:
            packed.extractall(root, filter="data")
        said = []
        for hours in (1, 2):
            monkeypatch.setattr(one_reading, "JUDGED_AFTER_US", hours * HOUR_US)
            said += [scanned(root, FACTS, as_json=as_json) for as_json in (False, True)]
        assert said[:2] == said[2:]
        times = re.findall(r'"(?:opened|resolved)_at": "([^"]+)"', said[1])
        assert all(time < "2030-03-17T17:46:41" for time in times)  # NOW_US
        for facts in ({}, FACTS):
            ids = []
            for clock.time_us in (NOW_US, NOW_US + HOUR_US):
                rows = [
                    x for x in map(json.loads, scanned(root, facts).splitlines()) if x["line"] == "finding"
                ]
                ids.append([(row["detector"], row["id"], row["incident_id"]) for row in rows])
            assert ids[0] == ids[1]
            assert len(ids[0]) == len(set(ids[0]))
        clock.time_us = NOW_US


# -- the closing line -----------------------------------------------------------------------------------


def test_a_scan_says_what_it_read(statewarden: Callable, damaged: Path) -> None:
    """Also where nothing was found: how much there was, and what one look cannot see."""
    (damaged / "app" / "0_0" / ".checkpoint").unlink()
    (damaged / "app" / "0_1").mkdir()
    read = statewarden("scan", damaged, *PLAIN).out.splitlines()[1]
    assert read.startswith(
        "read 1 application, 2 tasks, 1 store on disk (no task locked by a process); a scan can't see"
    )
    with locked(damaged / "app" / "0_0" / "rocksdb" / "s" / "LOCK"):
        assert "(1 task locked by a process)" in statewarden("scan", damaged, *PLAIN).out.splitlines()[1]


def test_a_replay_says_what_it_read(statewarden: Callable, traces: Path) -> None:
    """What was before the recording is not seen."""
    said = statewarden("replay", traces / "benign-move-3.9.2" / "trace-pod-b.jsonl.gz", *PLAIN)
    read = said.out.splitlines()[1]
    assert read.startswith("read 1 application, ")
    assert read.endswith(" recorded operations; anything before the first one is unknown")


# -- an application that is not there -----------------------------------------------------------------


def test_a_misspelt_application_is_reported(
    statewarden: Callable, damaged: Path, traces: Path, tmp_path: Path
) -> None:
    """A flag for an application that is not there decides nothing, so it is said; the verdict stands."""
    said = statewarden("scan", damaged, *PLAIN, "--set", "ap:processing_guarantee=at_least_once")
    assert (said.code, said.err) == (
        1,
        "statewarden: --set: no application ap here; did you mean app? there is: app\n",
    )
    trace = traces / "benign-move-3.9.2" / "trace-pod-b.jsonl.gz"
    said = statewarden("replay", trace, *PLAIN, "--set", "ap:num_standby_replicas=0")
    assert said.err.startswith("statewarden: --set: no application ap here; there is: ")
    assert statewarden("scan", damaged, *PLAIN, "--set", "app:num_standby_replicas=0").err == ""


def test_a_file_for_several_applications_is_no_mistake(
    statewarden: Callable, damaged: Path, tmp_path: Path
) -> None:
    """One settings file may serve pods of many applications."""
    file = tmp_path / "settings.toml"
    file.write_text('[application."elsewhere"]\nnum_standby_replicas = 1\n')
    assert statewarden("scan", damaged, *PLAIN, "--config", file).err == ""


def test_a_scan_names_the_file_that_facts_are_from(
    statewarden: Callable, damaged: Path, tmp_path: Path
) -> None:
    """Which facts came from the application's own file is printed; what of it is not used goes to standard error."""
    file = tmp_path / "streams.properties"
    file.write_text(
        "application.id=app\nprocessing.guarantee=exactly_once_v2\ncommit.interval.ms=${COMMIT}\n"
    )
    said = statewarden("scan", damaged, "--properties", file)
    assert said.out.splitlines()[2] == f"from {file} for app: processing_guarantee=exactly_once_v2"
    assert said.err.startswith(
        f"statewarden: {file}: commit.interval.ms=${{COMMIT}} is not used: it has a placeholder"
    )
    file.write_text("application.id=ap\nprocessing.guarantee=exactly_once_v2\n")
    said = statewarden("scan", damaged, "--properties", file)
    assert said.err == "statewarden: --properties: no application ap here; did you mean app? there is: app\n"


def test_an_application_is_asked_whether_a_process_works_on_it_and_not_for_each_of_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer takes a look at each of its tasks: once to judge it, once to decide on a second reading."""
    asked = []
    may_go_on = one_reading.may_go_on

    def count(application: Application) -> bool:
        asked.append(application.id)
        return may_go_on(application)

    for task in ("0_0", "0_1", "0_2"):
        plant(tmp_path, task=task)
    monkeypatch.setattr(one_reading, "may_go_on", count)
    offline.scan(tmp_path, load_config(), shown=Shown(), fail_on="critical")
    assert asked == ["app", "app"]
