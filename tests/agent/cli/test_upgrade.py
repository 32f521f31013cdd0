"""`scan` between two releases: what one left is told as the next one finds it; and a copy that has no `LOCK`."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.commands import PLAIN, plant
from tests.agent.cli.test_one_reading import locked

EOS, ALOS = "exactly_once_v2", "at_least_once"


def unpacked(repository: Path, tmp_path: Path, name: str) -> Path:
    with tarfile.open(repository / f"tests/data/snapshots/{name}.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def told(release: str, guarantee: str) -> list[str]:
    facts = {
        "kafka_streams_version": release,
        "processing_guarantee": guarantee,
        "num_standby_replicas": "0",
    }
    return [word for name, value in facts.items() for word in ("--set", f"{name}={value}")]


@pytest.mark.parametrize(
    ("name", "guarantee", "release", "loudest"),
    [
        # a checkpoint that an affected release kept is trusted by each that reads it
        ("kafka-20685-4.1.2", EOS, "3.7.2", "critical stale-eos-checkpoint suspected"),
        ("kafka-20685-4.1.2", EOS, "4.1", "critical stale-eos-checkpoint suspected"),
        ("kafka-20685-4.1.2", EOS, "4.1.3", "critical stale-eos-checkpoint suspected"),
        ("kafka-20685-4.1.2", EOS, "4.2.2", "critical stale-eos-checkpoint suspected"),
        ("kafka-20685-4.1.2", EOS, "4.3.1", "critical stale-eos-checkpoint suspected"),
        # the first start of 4.3 moves the offset of a store that is not there into a new one
        ("torn-clean-3.9.2", ALOS, "4.2.1", "critical torn-store confirmed"),
        ("torn-clean-3.9.2", ALOS, "4.3.1", "critical torn-store suspected"),
        # and that of an empty one into it
        ("torn-clean-half-2.4.1", ALOS, "4.4.0", "critical resurrected-checkpoint confirmed"),
        # nothing was left
        ("benign-restart-eos-4.1.2", EOS, "4.2.2", ""),
        ("control-crash-in-restore-4.1.2", EOS, "4.2.2", ""),
    ],
)
def test_an_upgrade_makes_nothing_harmless(
    statewarden: Callable,
    repository: Path,
    tmp_path: Path,
    name: str,
    guarantee: str,
    release: str,
    loudest: str,
) -> None:
    """The gate is told the release of the image that comes; another one wrote the directory."""
    said = statewarden("scan", unpacked(repository, tmp_path, name), "--json", *told(release, guarantee))
    found = [
        f"{x['severity']} {x['detector']} {x['confidence']}" for x in said.rows
        if x["line"] == "finding" and x["severity"] == "critical"
    ]  # fmt: skip
    assert (said.code, found[:1]) == ((1, [loudest]) if loudest else (0, []))


@pytest.mark.parametrize(("held", "code"), [(False, 1), (True, 3), (None, 3)])
def test_a_store_without_its_lock_file_is_judged_or_not_known(
    statewarden: Callable, repository: Path, tmp_path: Path, held: bool | None, code: int
) -> None:
    """Backups of RocksDB have none. Beside a process it may be held all the same: then it is no all-clear."""
    place = unpacked(repository, tmp_path, "dirty-close-kill-4.3.1")
    for lock in place.rglob("LOCK"):
        lock.unlink()
    asked = ("scan", place, *told("4.3.1", EOS))
    if held is None:  # the application's was removed, too: who holds it cannot be asked
        next(place.glob("*/.lock")).unlink()
        said = statewarden(*asked)
    elif held:
        with locked(next(place.glob("*/.lock"))):
            said = statewarden(*asked)
        assert "LOCK (whether a process holds it cannot be asked)" in " ".join(said.out.split())
    else:
        said = statewarden(*asked)
        assert "CRITICAL false-clean-store" in said.out
    assert said.code == code


def test_a_store_that_reaches_its_offset_may_have_been_made_by_a_fast_clock(
    statewarden: Callable, tmp_path: Path
) -> None:
    """A node's clock was ahead when the store was made and was set right: its checkpoint seems to be the older one."""
    place = plant(tmp_path / "state", checkpoint=b"0\n1\napp-s-changelog 0 10\n")
    (finding,) = (x for x in statewarden("scan", place, "--json", *PLAIN).rows if x["line"] == "finding")
    assert (finding["detector"], finding["severity"], finding["confidence"]) == (
        "resurrected-checkpoint", "critical", "suspected",
    )  # fmt: skip


@pytest.mark.parametrize(("release", "code"), [("4.1.2", 1), ("4.1.3", 0), ("4.1", 3)])
def test_a_release_without_its_patch_is_a_question(
    statewarden: Callable, repository: Path, tmp_path: Path, release: str, code: int
) -> None:
    """A bug begins and ends between patches: of those that may be at work some have it."""
    place = unpacked(repository, tmp_path, "kafka-20685-4.1.2")
    with locked(next(place.glob("*/0_0/rocksdb/s/LOCK"))):
        said = statewarden("scan", place, *told(release, EOS), "--fail-on", "warning")
    assert said.code == code


@pytest.mark.parametrize("set_to_s", [None, 0], ids=["copied now", "all of one time"])
def test_a_copy_that_kept_no_times_is_no_all_clear(
    statewarden: Callable, repository: Path, tmp_path: Path, set_to_s: int | None
) -> None:
    """What its times would show is not known, neither to a scan nor for a restart."""
    place = unpacked(repository, tmp_path, "kafka-20685-4.1.2")
    for file in [*place.rglob("*"), place]:
        os.utime(file, None if set_to_s is None else (set_to_s, set_to_s))
    asked = (place, *told("4.1.2", EOS))
    words = "2 tasks judged without file times, which the copy lost (cp -a keeps them)"
    for said in (statewarden("scan", *asked), statewarden("safe-to-restart", *asked, "--one-instance")):
        assert (said.code, words in said.out) == (3, True)


@pytest.mark.parametrize("name", ["*/0_0/.checkpoint", "*/0_0/rocksdb/s/*.sst"])
def test_times_in_the_future_are_no_all_clear(
    statewarden: Callable, repository: Path, tmp_path: Path, name: str
) -> None:
    """The clock was wrong for a time, and KAFKA-20685 shows in the order of these files."""
    place = unpacked(repository, tmp_path, "kafka-20685-4.1.2")
    for file in place.glob(name):
        os.utime(file, (4_000_000_000, 4_000_000_000))
    asked = (place, *told("4.1.2", EOS))
    for said in (statewarden("scan", *asked), statewarden("safe-to-restart", *asked, "--one-instance")):
        assert (said.code, "1 task with file times in the future" in said.out) == (3, True)


def test_a_name_that_is_empty_is_a_mistake(statewarden: Callable, tmp_path: Path, monkeypatch) -> None:
    """Of a variable that is not set; and one that means nothing where the current directory is gone."""
    monkeypatch.chdir(tmp_path)
    said = statewarden("scan", "", "--may-be-empty")
    assert (said.code, "the name is empty: is a variable not set?" in said.err) == (2, True)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = statewarden("scan", ".")
    assert (said.code, "give an absolute path" in said.err) == (2, True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("hidden", ["link", "directory", "gone"])
def test_an_identity_that_cannot_be_read_hides_no_damage(
    statewarden: Callable, repository: Path, tmp_path: Path, hidden: str
) -> None:
    """What is there and cannot be read is named; without one the store's own data shows when it was made."""
    place = unpacked(repository, tmp_path, "torn-clean-half-2.4.1")
    asked = ("scan", place, "--json", *told("2.4.1", ALOS))
    (found,) = (
        x
        for x in statewarden(*asked).rows
        if x.get("detector") == "resurrected-checkpoint" and x.get("store")
    )
    identity = next(place.glob(f"*/{found['task_id']}/rocksdb/{found['store']}")) / "IDENTITY"
    if hidden == "link":
        identity.rename(identity.with_name("moved"))
        identity.symlink_to("moved")
    else:
        identity.unlink()
        if hidden == "directory":
            identity.mkdir()
    said = statewarden(*asked)
    assert (said.code, said.rows[-1]["unread_count"]) == (1, hidden != "gone")
    (found,) = (x for x in said.rows if x.get("detector") == "resurrected-checkpoint" and x.get("store"))
    assert (found["severity"], found["confidence"]) == ("critical", "suspected")
