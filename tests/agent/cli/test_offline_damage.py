"""`scan` of damaged stores that nobody holds, on a real disk."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.commands import PLAIN, Said

STORE = "app/0_0/rocksdb/s"


@pytest.fixture
def state(tmp_path: Path, repository: Path) -> Path:
    """Give a state directory with a real store, closed clean, of RocksDB 9.7.3."""
    place = tmp_path / "state" / STORE
    place.mkdir(parents=True)
    with tarfile.open(repository / "tests/data/rocksdb/recorded.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if Path(member.name).parent.name == "9.7.3" else None
            if file is not None:
                (place / Path(member.name).name).write_bytes(file.read())
    (place / "IDENTITY").write_text("6f5a2f0e-0000-4000-8000-000000000001\n")
    (place / "LOCK").touch()
    (tmp_path / "state/app/.lock").touch()
    (tmp_path / "state/app/0_0/.checkpoint").write_text("0\n1\napp-s-changelog 0 7361\n")
    return tmp_path / "state"


def one(place: Path, pattern: str) -> Path:
    return max((place / STORE).glob(pattern))


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "sst of 0 bytes": lambda place: one(place, "*.sst").write_bytes(b""),
    "sst without footer": lambda place: one(place, "*.sst").write_bytes(
        one(place, "*.sst").read_bytes()[:-53] + bytes(53)
    ),
    "empty CURRENT": lambda place: one(place, "CURRENT").write_bytes(b""),
    "no manifest": lambda place: one(place, "MANIFEST-*").unlink(),
    "manifest of 100 bytes": lambda place: one(place, "MANIFEST-*").write_bytes(
        one(place, "MANIFEST-*").read_bytes()[:100]
    ),
    "manifest with a flipped bit": lambda place: flip(one(place, "MANIFEST-*")),
}


@pytest.mark.parametrize("damage", [None, "sst of 0 bytes", "no manifest"])
def test_the_last_line_claims_no_more_than_was_read(
    statewarden: Callable, state: Path, damage: str | None
) -> None:
    """A store that could not be read to its end is named as such, beside what is said of the others."""
    if damage is not None:
        DAMAGE[damage](state)
    said = statewarden("scan", state, *PLAIN)
    told = "1 store (1 read only in part) on disk" if damage else "1 store on disk"
    assert told in " ".join((said.out + said.err).split())


def test_malformed_checkpoint_has_one_id(statewarden: Callable, state: Path) -> None:
    """It is dated by its file, not by the reading: the next scan of the same directory gives the same ids."""
    (state / "app/0_0/.checkpoint").write_text("0\n")
    said = [statewarden("scan", state, *PLAIN, "--json").findings for _ in range(2)]
    first, second = (
        [(x["id"], x["incident_id"]) for x in y if x["detector"] == "malformed-checkpoint"] for y in said
    )
    assert len(first) == 1
    assert first == second


def test_whole(statewarden: Callable, state: Path) -> None:
    """The store as it is says nothing of damage."""
    said = statewarden("scan", state, *PLAIN, "--json")
    assert {"torn-store", "auditor-blind"} & {row["detector"] for row in said.findings} == set()


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged(statewarden: Callable, state: Path, damage: str) -> None:
    """One scan tells damage as damage, says where it is blind, and is no success."""
    DAMAGE[damage](state)
    said = statewarden("scan", state, *PLAIN, "--json", "--fail-on", "warning")
    assert said.code == 1
    rows = {row["detector"]: row for row in said.findings}
    assert (rows["torn-store"]["severity"], rows["torn-store"]["confidence"]) == ("warning", "confirmed")
    assert rows["torn-store"]["store"] == "s"
    assert rows["auditor-blind"]["evidence"][0]["what"] == "blind: store-damaged"


def test_diff_of_damage(statewarden: Callable, state: Path, tmp_path: Path) -> None:
    """Two copies that cannot be read are not the same, nor is one of them smaller: nobody knows."""
    whole = tmp_path / "whole"
    shutil.copytree(state, whole)
    DAMAGE["manifest with a flipped bit"](state)
    for a, b in ((state, state), (state, whole), (whole, state)):
        said = statewarden("diff", a, b, "--json")
        assert said.code == 3
        (row,) = said.rows
        assert row["relation"] == "unknown"
        assert "MANIFEST-" in row["why"]
    assert statewarden("diff", whole, whole).code == 0


def loud(said: Said) -> set[tuple[str, str | None, str]]:
    return {
        (x["detector"], x["task_id"], x["severity"]) for x in said.findings if x.get("severity") != "info"
    }


@pytest.fixture
def before_the_start(tmp_path: Path, repository: Path) -> Path:
    """Give a snapshot of KAFKA-20685 before the next start."""
    with tarfile.open(repository / "tests/data/snapshots/kafka-20685-4.1.2.tar.gz") as archive:
        archive.extractall(tmp_path / "snapshot", filter="data")
    return tmp_path / "snapshot"


@pytest.mark.parametrize("content", [None, b"", bytes(36)])
def test_a_whole_store_without_identity(
    statewarden: Callable, before_the_start: Path, content: bytes | None
) -> None:
    """RocksDB opens it: it is not torn, and what is wrong with it is found all the same."""
    (identity,) = before_the_start.glob("*/0_0/rocksdb/s/IDENTITY")
    identity.unlink()
    if content is not None:
        identity.write_bytes(content)
    told = ("processing_guarantee=exactly_once_v2", "kafka_streams_version=4.1.2", "num_standby_replicas=0")
    said = statewarden("scan", before_the_start, "--json", *(x for one in told for x in ("--set", one)))
    assert loud(said) == {("stale-eos-checkpoint", "0_0", "critical")}


@pytest.mark.parametrize("left", [(), ("rocksdb",), ("rocksdb", "rocksdb/s")])
def test_a_store_that_its_sibling_has(statewarden: Callable, state: Path, left: tuple[str, ...]) -> None:
    """Its directory was removed by hand, or all that was in it; the checkpoint stayed."""
    sibling = state / "app/0_1"
    sibling.mkdir()
    (sibling / ".checkpoint").write_text("0\n1\napp-s-changelog 1 4999\n")
    for name in left:
        (sibling / name).mkdir()
    assert loud(statewarden("scan", state, "--json", *PLAIN)) == {("torn-store", "0_1", "critical")}
    shutil.rmtree(state / "app/0_0")
    alone = loud(statewarden("scan", state, "--json", *PLAIN))
    assert alone == ({("torn-store", "0_1", "critical")} if "rocksdb/s" in left else set())


def test_a_linked_directory_of_stores_is_not_gone(statewarden: Callable, state: Path) -> None:
    """What it leads to is not read, and that is said."""
    sibling = state / "app/0_1"
    sibling.mkdir()
    (sibling / ".checkpoint").write_text("0\n1\napp-s-changelog 1 4999\n")
    (sibling / "rocksdb").symlink_to(state.parent / "elsewhere")
    assert {x[0] for x in loud(statewarden("scan", state, "--json", *PLAIN))} == {"auditor-blind"}


def test_no_issue_is_blamed_for_a_disk(statewarden: Callable, state: Path) -> None:
    """A file that was cut short is no torn deletion."""
    file = one(state, "*.sst")
    file.write_bytes(file.read_bytes()[:-5])
    said = statewarden("scan", state, *PLAIN).out
    assert "Risk: files of a store are damaged or missing. Not a known bug of Kafka Streams" in said
    assert "torn deletion" not in said
