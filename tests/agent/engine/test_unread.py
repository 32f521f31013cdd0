"""What one reading did not see is named, and no all-clear; what is foreign is no gap; what is left over is a remark."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.engine.listing import LINK, databases_below
from agent.engine.one_reading import UNCOMPARED, coverage, judge_once
from agent.engine.pipeline import Pipeline
from agent.engine.unread import SHOWN, UNUSED_US, how_much, unread, unused, which
from agent.inventory.disk import Entry, LockState, Unseen
from agent.inventory.hints import Hint, HintKind
from agent.inventory.model import Application, CheckpointFact, Inventory, Task
from agent.inventory.settings import Setting, SettingsBook
from agent.observe.kernel_disk import KernelDisk
from tests.agent.cli.commands import FACTS, plant
from tests.support.scenario_case import at

SETTINGS = SettingsBook({key: Setting(value, "flag") for key, value in FACTS.items()})


class Closed(KernelDisk):
    closed = ""

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        return Unseen.DENIED if path == self.closed else super().list(path)

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        return Unseen.DENIED if path == self.closed else super().read_at(path, offset, length)


class Mute(KernelDisk):
    """A disk that does not say of one lock whether it is held."""

    def __init__(self, root: Path, lock: str) -> None:
        super().__init__(root)
        self._lock = lock

    def lock_state(self, path: str) -> LockState | Unseen:
        return LockState.UNKNOWN if path == self._lock else super().lock_state(path)


def pipeline_of(root: Path, closed: str = "-") -> Pipeline:
    disk = Closed(root)
    disk.closed = closed
    pipeline = Pipeline(disk, SETTINGS, at(0), lambda record: None)
    judge_once(pipeline, at(100))
    return pipeline


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with two tasks."""
    plant(tmp_path / "state", task="0_1")
    return plant(tmp_path / "state")


def test_all_was_read(state: Path) -> None:
    """Nothing to say of a whole directory."""
    inventory = pipeline_of(state).inventory
    assert (unread(inventory), how_much(inventory, {})) == ({}, "")


@pytest.mark.parametrize(
    ("closed", "much"),
    [
        ("app", "1 directory could not be read"),
        ("app/0_0", "1 of 2 tasks could not be read"),
        ("app/0_0/rocksdb", "1 of 2 tasks could not be read"),
        ("app/0_0/rocksdb/s", "1 of 2 tasks could not be read"),
        ("app/kafka-streams-process-metadata", "1 directory could not be read"),
    ],
)
def test_what_is_denied_is_named(state: Path, closed: str, much: str) -> None:
    """At every level; a second application that can be read hides nothing."""
    plant(state, application="other")
    places = unread(inventory := pipeline_of(state, closed).inventory)
    assert places == {closed: "permission denied"}
    assert how_much(inventory, places) == much.replace("of 2", "of 3" if "/" in closed else "of 2")
    assert which(places) == f"not read: {closed} (permission denied)"


def test_a_process_file_of_no_process_is_named(state: Path) -> None:
    """Kafka Streams makes another one at its next start, and says so in its log alone."""
    file = state / "app" / "kafka-streams-process-metadata"
    file.write_text('{"processId"')
    places = unread(pipeline_of(state).inventory)
    assert (list(places), "not JSON" in str(places)) == (["app/kafka-streams-process-metadata"], True)


@pytest.mark.parametrize("place", ["app", "app/0_0", "app/0_0/rocksdb", "app/0_0/rocksdb/s"])
def test_a_link_is_named_and_never_absence(state: Path, place: str) -> None:
    """What was moved to a larger disk and linked is somewhere else, not nowhere; at every level, dangling or not."""
    target = state.parent / "elsewhere"
    (state / place).rename(target)
    (state / place).symlink_to(target)
    ((named, why),) = unread(pipeline_of(state).inventory).items()
    assert (named, "symbolic link" in why) == (place, True)
    target.rename(state.parent / "gone")
    assert list(unread(pipeline_of(state).inventory)) == [place]


def test_a_linked_directory_of_segments_is_named(state: Path) -> None:
    """It may hold as much as `rocksdb`."""
    (state / "app" / "0_0" / "windows").symlink_to(state.parent)
    (said,) = unread(pipeline_of(state).inventory).items()
    assert said[0] == "app/0_0/windows"
    assert said[1].startswith("a symbolic link: it is not followed")


def test_garbage_is_not_read_either(state: Path) -> None:
    """A checkpoint that has not the form of one, and a manifest."""
    (state / "app" / "0_0" / ".checkpoint").write_bytes(b"\0garbage")
    (manifest,) = (state / "app" / "0_1" / "rocksdb" / "s").glob("MANIFEST-*")
    manifest.write_bytes(b"garbage" * 100)
    places = unread(inventory := pipeline_of(state).inventory)
    assert list(places) == ["app/0_0/.checkpoint", "app/0_1/rocksdb/s"]
    assert how_much(inventory, places) == "2 of 2 tasks could not be read"


@pytest.mark.parametrize("place", ["app/.lock", "app/0_0/.lock", "app/0_0/rocksdb/s/LOCK"])
def test_a_lock_that_cannot_be_asked_is_named(state: Path, place: str) -> None:
    """What waits for its release has not spoken."""
    (state / place).touch()
    pipeline = Pipeline(Mute(state, place), SETTINGS, at(0), lambda record: None)
    judge_once(pipeline, at(100))
    assert list(unread(pipeline.inventory)) == [place]


def test_many_places_are_few_words() -> None:
    """Ten thousand tasks of another group are one line."""
    said = which({f"app/0_{n}": "permission denied" for n in range(10_000)})
    assert said.endswith(f", and {10_000 - SHOWN} more")
    assert len(said) < 300


@pytest.mark.parametrize("name", ["java_pid1.hprof", "state.tar.gz", "MARKER"])
@pytest.mark.parametrize("where", ["", "app/", "app/0_0/", "app/0_0/rocksdb/"])
def test_a_foreign_file_makes_no_one_blind(state: Path, name: str, where: str) -> None:
    """A heap dump, a marker, a tarball: the watching agent and a scan say the same of it, which is nothing."""
    pipeline = pipeline_of(state)
    (state / f"{where}{name}").touch()
    for second, kind in enumerate((HintKind.CREATED, HintKind.WRITTEN)):
        pipeline.handle([Hint(f"{where}{name}", kind, at(200 + second))], at(200 + second))
        pipeline.tick(at(210 + second))
    pipeline.reread("", at(300))
    assert not pipeline.inventory.blind
    assert list(pipeline.inventory.applications) == ["app"]
    assert unread(pipeline_of(state).inventory) == {}


def test_a_link_that_appears_is_named_by_the_agent_until_it_goes(state: Path) -> None:
    """Once, although a notification and a walk both find it."""
    pipeline = pipeline_of(state)
    (state / "linked").symlink_to(state / "app")
    pipeline.handle([Hint("linked", HintKind.CREATED, at(200))], at(200))
    pipeline.reread("", at(201))
    (interval,) = pipeline.inventory.blind
    assert (interval.cause, interval.place, interval.ended_us) == ("unreadable", "linked", None)
    (state / "linked").unlink()
    pipeline.handle([Hint("linked", HintKind.DELETED, at(300))], at(300))
    pipeline.reread("", at(301))
    assert interval.ended_us is not None
    assert len(pipeline.inventory.blind) == 1


@pytest.mark.parametrize("name", [".snapshot", ".Trash-1000", "lost+found", ".zfs", "backup"])
def test_a_directory_without_a_sign_is_no_application(state: Path, name: str) -> None:
    """Whoever may read it or not: those of the volume's own are never asked for."""
    (state / name / "hourly.0" / "app" / "0_0").mkdir(parents=True)
    inventory = pipeline_of(state, "-" if name == "backup" else name).inventory
    assert [x.id for x in inventory.applications.values() if x.exists] == ["app"]
    assert coverage(inventory).startswith("1 application, 2 tasks")
    assert unread(inventory) == {}


@pytest.mark.parametrize("sign", [".lock", "kafka-streams-process-metadata", "0_0/", "global/", "__t__/"])
def test_the_first_sign_makes_an_application(state: Path, sign: str) -> None:
    """An empty directory is none yet; what Kafka Streams makes in it first tells."""
    pipeline = pipeline_of(state)
    (state / "new").mkdir()
    pipeline.handle([Hint("new", HintKind.CREATED, at(200))], at(200))
    assert "new" not in pipeline.inventory.applications
    path = f"new/{sign.rstrip('/')}"
    if sign.endswith("/"):
        (state / path).mkdir()
    else:
        (state / path).write_text('{"processId": "11111111-1111-1111-1111-111111111111"}')
    pipeline.handle([Hint(path, HintKind.CREATED, at(201))], at(201))
    assert pipeline.inventory.applications["new"].exists


NOW_US = at(0) + 2 * UNUSED_US


def application(name: str, **more: object) -> Application:
    """An application whose directory is as old as the story."""
    return Application(name, exists=True, mtime_us=at(0), **more)  # type: ignore[arg-type]


def said_of(*applications: Application) -> str:
    return unused(Inventory({x.id: x for x in applications}), NOW_US)


def test_what_is_left_over_is_counted_and_named_in_part() -> None:
    """Eleven of them are one line; nothing left over is none."""
    said = said_of(*(application(f"query-{n:02}") for n in range(11)))
    assert said.startswith("11 applications unused for 30 days, 0 MiB: query-00, ")
    assert said.endswith("and 5 more")
    assert said_of() == ""


def test_what_a_process_may_use_or_has_used_is_not_left_over() -> None:
    """A lock that is held or cannot be asked, a held task, a checkpoint of last week, a directory that is gone."""
    held = Task("app", "0_0", "app/0_0", held=True)
    held.exists = True
    written = Task("app", "0_0", "app/0_0")
    written.exists = True
    written.checkpoints = (CheckpointFact(NOW_US - UNUSED_US // 4, NOW_US, {}, (), 1, True),)
    gone = application("app")
    gone.exists = False
    for one in (
        application("app", lock=LockState.HELD),
        application("app", lock=LockState.UNKNOWN),
        application("app", tasks={"0_0": held}),
        application("app", tasks={"0_0": written}),
        gone,
        Application("app", exists=True, mtime_us=NOW_US),
    ):
        assert said_of(one) == "", one
    assert said_of(application("app", lock=LockState.FREE)) != ""


@pytest.mark.parametrize(
    ("volume", "said"), [("network", True), ("fuse", True), ("local", False), ("", False)]
)
def test_clock_that_one_reading_cannot_compare(volume, said):
    """Where file times are a file server's."""
    assert (UNCOMPARED in coverage(Inventory(volume=volume))) is said


def test_stores_that_are_links_are_told(tmp_path: Path):
    """What they lead to is not read; a file in their place is no store."""
    rocksdb = tmp_path / "app" / "0_0" / "rocksdb"
    rocksdb.mkdir(parents=True)
    (rocksdb / "there").mkdir()
    (rocksdb / "moved").symlink_to("/elsewhere/moved")
    (rocksdb / "file").write_text("x")
    found, unlisted = databases_below(KernelDisk(tmp_path), "app/0_0", None)
    assert ([x.store for x in found], unlisted) == (["there"], {"app/0_0/rocksdb/moved": LINK})
