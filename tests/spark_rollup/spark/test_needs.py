"""Delta's jars are fetched once, and told; without a way to fetch them one line says what to do. No Spark."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from spark_rollup.errors import JarError
from spark_rollup.spark import jars, needs
from spark_rollup.spark.jars import Pin

MAVEN = """#!/bin/sh
for word; do case $word in -DoutputDirectory=*) printf jar > "${word#*=}/delta-spark_9-1.0.jar";; esac; done
"""


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """Know one jar, and no Maven."""
    pin = Pin("io.delta:delta-spark_9:1.0", hashlib.sha256(b"jar").hexdigest())
    monkeypatch.setattr(jars, "pins", lambda *_: (pin,))
    monkeypatch.setattr(needs, "_is_running", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return tmp_path


def test_jars_are_fetched_once_and_reported(home, capsys):
    """By Maven; the second command finds them."""
    (home / "mvn").write_text(MAVEN)
    (home / "mvn").chmod(0o755)
    (found,) = needs.bring([needs.DELTA], None, {})
    assert found.read_bytes() == b"jar"
    told = capsys.readouterr().err
    assert "fetching 1 jars of Delta" in told
    assert "delta-spark_9-1.0.jar" in told
    assert needs.bring([needs.DELTA], None, {}) == [found]
    assert capsys.readouterr().err == ""


def test_without_a_way_one_line_says_how(home):
    """Where they belong, and which they are."""
    with pytest.raises(
        JarError, match=r"no way to fetch jars.*`statewarden-rollup jars delta --names` lists"
    ):
        needs.bring([needs.DELTA], None, {})


def test_jars_that_were_given_are_taken(home, tmp_path):
    """A directory of one's own, or Spark's settings."""
    (tmp_path / "own").mkdir()
    (own := tmp_path / "own" / "delta-spark_4.2_2.13-4.4.1.jar").touch()
    assert needs.bring([needs.DELTA], tmp_path / "own", {}) == [own]
    assert needs.bring([needs.DELTA], None, {"spark.jars.packages": "io.delta:x:1"}) == []
