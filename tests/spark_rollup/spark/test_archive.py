"""The archive of classes: used where it is, and no word about one that does not fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from spark_rollup.spark import archive
from spark_rollup.spark.session import QUIET_JVM


def test_it_is_kept_in_the_users_cache_and_used_only_if_it_is_there(tmp_path: Path) -> None:
    """By release of Spark."""
    place = archive.place({"XDG_CACHE_HOME": str(tmp_path)}, "4.2.1")
    assert place == tmp_path / "statewarden" / "classes-spark-4.2.1.jsa"
    assert archive.options(place) == []
    place.parent.mkdir()
    place.touch()
    assert f"-XX:SharedArchiveFile={place}" in archive.options(place)


@pytest.mark.skipif(shutil.which("java") is None, reason="no Java here")
def test_a_wrong_one_is_ignored_in_silence(tmp_path: Path) -> None:
    """It may be of another Java, or cut off."""
    wrong = tmp_path / "wrong.jsa"
    wrong.write_bytes(b"no archive")
    asked = ["java", *QUIET_JVM.split(), *archive.options(wrong), "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "cds" not in done.stdout + done.stderr
