"""Jars are fetched by coordinates and kept only if they are the known ones; no network, no Spark."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from spark_rollup.cli import main
from spark_rollup.errors import JarError
from spark_rollup.spark import jars
from spark_rollup.spark.jars import Pin

TESTED = "4.2.1"
"""A release with all sets of jars; older ones, with which these tests run, too, have Delta's only."""


@pytest.fixture
def repository(tmp_path: Path) -> tuple[str, list[Pin]]:
    """Make a repository with two jars."""
    found = []
    for name in ("one", "two"):
        pin = Pin(f"org.example.deep:{name}:1.0", hashlib.sha256(name.encode()).hexdigest())
        path = tmp_path / "repository" / pin.path
        path.parent.mkdir(parents=True)
        path.write_bytes(name.encode())
        found.append(pin)
    return (tmp_path / "repository").as_uri(), found


def test_every_pin_is_whole():
    """Each set begins with the jar that names it, and every jar has a coordinate and a checksum."""
    for kind, lead in (("s3a", "hadoop-aws"), ("kafka", "spark-sql-kafka")):
        pins = jars.pins(TESTED, kind)
        assert pins[0].name.startswith(lead)
        assert len({pin.name for pin in pins}) == len(pins)
        assert all(len(pin.sha256) == 64 and pin.coordinate.count(":") == 2 for pin in pins)


def test_an_unknown_spark_has_no_set():
    """Nothing is guessed for a release that nobody tested."""
    with pytest.raises(JarError, match=r"no tested set .* Spark 3\.0\.0 .*--jars"):
        jars.pins("3.0.0", "s3a")


def test_jars_come_once_and_are_checked(tmp_path, repository):
    """What is there is not fetched again; what somebody changed is."""
    url, pins = repository
    folder = tmp_path / "jars"
    assert jars.fetch(pins, folder, url, {}) == 2
    assert jars.fetch(pins, folder, "https://example.com/away", {}) == 0
    (folder / pins[0].name).write_bytes(b"changed")
    assert jars.fetch(pins, folder, url, {}) == 1
    assert sorted(folder.iterdir()) == jars.jars_in(folder)


def test_another_jar_is_not_kept(tmp_path, repository):
    """A repository that serves something else is told, and nothing of it stays."""
    url, (one, two) = repository
    wrong = Pin(two.coordinate, one.sha256)
    with pytest.raises(JarError, match="is not the jar that was tested"):
        jars.fetch([one, wrong], tmp_path / "jars", url, {})
    assert [path.name for path in (tmp_path / "jars").iterdir()] == [one.name]


def test_a_jar_that_is_not_there_is_named(tmp_path, repository):
    """The coordinate, the place and the reason are in the message."""
    url, _ = repository
    with pytest.raises(JarError, match=r"org\.example:three:1 could not be fetched from .*three-1\.jar"):
        jars.fetch([Pin("org.example:three:1", "0" * 64)], tmp_path / "jars", url, {})
    with pytest.raises(JarError, match="not the URL of a Maven repository"):
        jars.fetch([Pin("org.example:three:1", "0" * 64)], tmp_path / "jars", "ftp://example.com", {})


def test_maven_brings_them(tmp_path, repository):
    """Maven is asked for all that is missing at once, without what those jars depend on."""
    _, pins = repository
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(
        '#!/bin/sh\ncp "$4" "$HOME/pom.xml"\n'
        "for word; do case $word in -DoutputDirectory=*) to=${word#*=};; esac; done\n"
        'cd "$(dirname "$4")"\n'  # as Maven does: what is relative is below the pom
        f'printf one > "$to/{pins[0].name}"; printf two > "$to/{pins[1].name}"\n'
    )
    maven.chmod(0o755)
    environment = {"PATH": f"{maven.parent}:/bin:/usr/bin", "HOME": str(tmp_path)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        patch.chdir(tmp_path)
        assert jars.fetch(pins, Path("jars"), None, environment) == 2
    asked = (tmp_path / "pom.xml").read_text()
    assert asked.count("<exclusion><groupId>*</groupId>") == 2
    maven.write_text("#!/bin/sh\necho '[INFO] hello'\necho '[ERROR] no such thing'\nexit 1\n")
    with pytest.raises(JarError, match="Maven could not fetch the jars: no such thing"):
        jars.fetch(pins, tmp_path / "others", None, environment)


def test_without_any_way_the_ways_are_named(tmp_path, repository):
    """No Maven: the message says what would do."""
    _, pins = repository
    with pytest.raises(JarError, match=r"install Maven, or name .* --repository URL"):
        jars.fetch(pins, tmp_path / "jars", None, {"PATH": str(tmp_path)})


def test_the_command_names_coordinates(capsys, monkeypatch):
    """`jars SOURCE --names` is for people who bring jars their own way."""
    monkeypatch.setattr(jars, "installed_spark", lambda: TESTED)
    assert main(["jars", "kafka", "--names"]) == 0
    told = capsys.readouterr().out.split()
    assert told[0].startswith("org.apache.spark:spark-sql-kafka-0-10_2.13:")
