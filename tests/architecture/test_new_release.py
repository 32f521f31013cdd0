"""The comparison of two releases, on a small repository with Kafka's layout."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from agent.judging import upstream
from agent.judging.base import Upstream
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import ReleaseRange
from tools import new_release
from tools.new_release import not_known
from tools.upstream.data import load_classes

KNOWN_ROCKSDB = "7.9.2"
SINCE, UNTIL = "3.9.0", "3.9.2"
"""Releases that our tables know, and `classes.toml` has no commit of."""


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
    """A repository at the earlier release."""
    made = Kafka(tmp_path)
    made.write(PATH, "one\n")
    made.write("streams/Other.java", "one\n")
    made.commit("MINOR: all of it", tag=SINCE)
    return made


def compare(kafka: Kafka) -> int:
    """Run the tool between the two releases."""
    return new_release.main(["--kafka", str(kafka.directory), SINCE, UNTIL])


def test_a_class_that_changed(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines, the facts that cite it, and the issue that our list does not have; exit 1: there is work to do."""
    kafka.write(PATH, "one\ntwo\n")
    kafka.commit("KAFKA-99999: Segments (#1)", tag=UNTIL)
    assert compare(kafka) == 1
    told = capsys.readouterr().out
    (row,) = [line for line in told.splitlines() if line.startswith("| AbstractSegments | +1 -0 |")]
    assert "| segment-answers-for-store |" in row
    assert "agent/detectors/lost_segment.py" in row
    assert "KAFKA-99999: Segments (#1)" in told


def test_an_issue_that_is_listed(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A commit of a known issue is not told again; one that touches no class of the list never is."""
    kafka.write(PATH, "two\n")
    kafka.commit("KAFKA-20808: Segments (#2)")
    kafka.write("streams/Other.java", "two\n")
    kafka.commit("KAFKA-99998: Something else (#3)", tag=UNTIL)
    assert compare(kafka) == 0
    told = capsys.readouterr().out
    assert "KAFKA-20808" not in told
    assert "KAFKA-99998" not in told


def test_a_class_that_is_gone(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Moved or renamed: the list has to follow."""
    (kafka.directory / PATH).unlink()
    kafka.commit("MINOR: move", tag=UNTIL)
    assert compare(kafka) == 1
    assert "| AbstractSegments | gone |" in capsys.readouterr().out


def test_another_rocksdb(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A version of RocksDB that no release of ours has is work, too."""
    kafka.rocksdb("99.0.1")
    kafka.commit("MINOR: RocksDB", tag=UNTIL)
    assert compare(kafka) == 1
    assert "99.0.1: NOT KNOWN" in capsys.readouterr().out


def test_what_git_does_not_know(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A release that is not there: exit 2 and a sentence."""
    assert compare(kafka) == 2
    assert UNTIL in capsys.readouterr().err


def test_a_change_of_imports_only(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A class that moved changes nothing of what uses it."""
    kafka.write(PATH, "import a.Log;\none\n")
    kafka.git("add", "--all")
    kafka.git("commit", "--quiet", "--amend", "--no-edit")
    kafka.git("tag", "--force", SINCE)
    kafka.write(PATH, "import a.internals.Log;\nimport b.More;\n\none\n")
    kafka.commit("MINOR: move", tag=UNTIL)
    assert compare(kafka) == 0
    assert "AbstractSegments" not in capsys.readouterr().out


def test_a_nested_class_and_a_setting(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """What holds a new way to keep state, and what switches it on."""
    kafka.write(PATH, "one\n    static class Transactional extends Direct {\n    }\n")
    kafka.write(
        load_classes().paths["StreamsConfig"],
        '    public static final String NEW_CONFIG = "enable.something";\n',
    )
    kafka.commit("MINOR: new", tag=UNTIL)
    assert compare(kafka) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "- new: `enable.something`" in lines
    assert any(line.startswith("| AbstractSegments.Transactional | new |") for line in lines)


# -- tables of ours ---------------------------------------------------------------------------------------------------


def test_a_release_that_every_table_covers() -> None:
    """Nothing to do."""
    assert not_known("4.2.2", "10.1.3") == []


@pytest.mark.parametrize(
    ("release", "rocksdb", "word"),
    [
        ("9.9.0", "99.0.1", "RocksDB 99.0.1: NOT KNOWN: in no row"),
        ("9.9.0", "10.1.3", "RocksDB 10.1.3: NOT KNOWN: its row in agent/layout/releases.py is 4.2.0 to"),
        ("9.9.0", None, "RocksDB: NOT KNOWN: nothing says"),
        ("9.9.0", "10.1.3", "tests/lab/plan.py: NOT KNOWN: 9.9.0 is not in RELEASES"),
    ],
)
def test_a_table_that_ends_before_a_release(release: str, rocksdb: str | None, word: str) -> None:
    """Found with 4.4.0: it ships a RocksDB that was known, of releases up to 4.3, and was taken for one of those."""
    assert any(line.startswith(word) for line in not_known(release, rocksdb))


def test_a_fact_that_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of what was read."""
    row = FACTS[Fact.OFFSETS_IN_STORE]
    later = dataclasses.replace(row, unsure=(ReleaseRange.since("9.8.0"),))
    monkeypatch.setitem(FACTS, Fact.OFFSETS_IN_STORE, later)
    word = "agent/layout/facts.py: NOT KNOWN of 9.9.0: offsets-in-store"
    assert word in not_known("9.9.0", None)
    assert word.replace("9.9.0", "9.7.0") not in not_known("9.7.0", None)


@pytest.mark.parametrize(
    ("said", "release", "is_open"),
    [
        ("on the 9.8 and 9.9 branches since today", "9.9.0", True),
        ("not fixed on the 9.9 branch", "9.9.1", True),
        ("8.9.1; branches 9.7 to 9.9", "9.9.0", True),
        ("branch 9.9", "9.9.0", True),
        ("branch 9.8", "9.9.0", False),
        ("9.9.0", "9.9.0", False),
        ("9.9.0; the streams protocol: branch 9.8", "9.9.0", False),
    ],
)
def test_a_fix_that_was_seen_on_a_branch(
    monkeypatch: pytest.MonkeyPatch, said: str, release: str, is_open: bool
) -> None:
    """A release from that branch has it, or has it not: somebody has to look."""
    monkeypatch.setattr(upstream, "KAFKA_20805", Upstream("KAFKA-1", (), said))
    found = [line for line in not_known(release, None) if " KAFKA-1: " in line]
    assert (
        found
        == [
            f"agent/judging/upstream.py: NOT KNOWN whether {release} has what is on a branch: KAFKA-1: {said}"
        ]
        * is_open
    )
