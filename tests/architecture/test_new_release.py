"""The comparison of two releases, on a small repository with Kafka's layout."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tools import new_release
from tools.upstream.data import load_classes

KNOWN_ROCKSDB = "10.1.3"


class Kafka:
    """A repository with a class of the list, and what is committed to it."""

    def __init__(self, directory: Path) -> None:
        """Begin it."""
        self.directory = directory
        self.git("init", "--quiet", "--initial-branch", "trunk")
        self.git("config", "user.name", "nobody")
        self.git("config", "user.email", "nobody@localhost")
        self.rocksdb(KNOWN_ROCKSDB)

    def git(self, *arguments: str) -> None:
        """Run Git in it."""
        subprocess.run(["git", *arguments], cwd=self.directory, check=True, capture_output=True)

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def rocksdb(self, version: str) -> None:
        """Say which RocksDB it is built with."""
        self.write("gradle/dependencies.gradle", f'versions += [\n  rocksDB: "{version}",\n]\n')

    def commit(self, message: str, *, tag: str = "") -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        if tag:
            self.git("tag", tag)


PATH = load_classes().paths["AbstractSegments"]


@pytest.fixture
def kafka(tmp_path: Path) -> Kafka:
    """A repository at its release 9.0.0."""
    made = Kafka(tmp_path)
    made.write(PATH, "one\n")
    made.write("streams/Other.java", "one\n")
    made.commit("MINOR: all of it", tag="9.0.0")
    return made


def compare(kafka: Kafka, *arguments: str) -> int:
    """Run the tool between the two releases."""
    return new_release.main(["--kafka", str(kafka.directory), "9.0.0", "9.1.0", *arguments])


def test_a_class_that_changed(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines, the facts that cite it, and the issue that our list does not have; exit 1: there is work to do."""
    kafka.write(PATH, "one\ntwo\n")
    kafka.commit("KAFKA-99999: Segments (#1)", tag="9.1.0")
    assert compare(kafka) == 1
    told = capsys.readouterr().out
    assert (
        "| AbstractSegments | +1 -0 | segment-answers-for-store | agent/detectors/deleted_while_held.py"
        in told
    )
    assert "KAFKA-99999: Segments (#1)" in told


def test_an_issue_that_is_listed(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A commit of a known issue is not told again; one that touches no class of the list never is."""
    kafka.write(PATH, "two\n")
    kafka.commit("KAFKA-20808: Segments (#2)")
    kafka.write("streams/Other.java", "two\n")
    kafka.commit("KAFKA-99998: Something else (#3)", tag="9.1.0")
    assert compare(kafka) == 0
    told = capsys.readouterr().out
    assert "KAFKA-20808" not in told
    assert "KAFKA-99998" not in told


def test_a_class_that_is_gone(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Moved or renamed: the list has to follow."""
    (kafka.directory / PATH).unlink()
    kafka.commit("MINOR: move", tag="9.1.0")
    assert compare(kafka) == 1
    assert "| AbstractSegments | gone |" in capsys.readouterr().out


def test_another_rocksdb(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A version of RocksDB that no release of ours has is work, too."""
    kafka.rocksdb("99.0.1")
    kafka.commit("MINOR: RocksDB", tag="9.1.0")
    assert compare(kafka) == 1
    assert "99.0.1: NOT KNOWN" in capsys.readouterr().out


def test_the_difference_of_one_class(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """What was removed and added, to be read."""
    kafka.write(PATH, "two\n")
    kafka.commit("KAFKA-99999: Segments (#1)", tag="9.1.0")
    assert compare(kafka, "--diff", "AbstractSegments") == 0
    told = capsys.readouterr().out.splitlines()
    assert "-one" in told
    assert "+two" in told


@pytest.mark.parametrize("arguments", [(), ("--diff", "NoSuchClass")])
def test_what_git_does_not_know(
    kafka: Kafka, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """A release that is not there, and a class that is not in the list: exit 2 and a sentence."""
    if arguments:
        kafka.git("tag", "9.1.0")
    assert compare(kafka, *arguments) == 2
    assert ("NoSuchClass" if arguments else "9.1.0") in capsys.readouterr().err


# -- published jars ---------------------------------------------------------------------------------------------------


def jar(path: Path, **classes: str) -> Path:
    """Make a jar of classes of `state.internals`; `Inner__X` is an inner one."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in classes.items():
            archive.writestr(
                f"org/apache/kafka/streams/state/internals/{name.replace('__', '$')}.class", content
            )
    return path


def test_jars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What differs of the list, an inner class too; what is new or gone beside it; nothing of what is as it was."""
    old = jar(
        tmp_path / "old.jar", RocksDBStore="a", RocksDBStore__X="a", AbstractSegments="a", Gone="a", Other="a"
    )
    new = jar(
        tmp_path / "new.jar", RocksDBStore="a", RocksDBStore__X="b", AbstractSegments="a", New="a", Other="b"
    )
    assert new_release.main(["--jars", str(old), str(new)]) == 0
    rows = [line.split(" | ")[:2] for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [["| Gone", "gone"], ["| New", "new"], ["| RocksDBStore", "changed"]]


def test_no_jar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is no jar: exit 2 and a sentence."""
    assert new_release.main(["--jars", str(tmp_path / "a.jar"), str(tmp_path / "b.jar")]) == 2
    assert "a.jar" in capsys.readouterr().err
