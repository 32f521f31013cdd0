"""The archive of classes: used where it is, and no word about one that does not fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spark_rollup.errors import UsageError
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


class Ended:
    """A session whose Java writes its archive, or none, as it ends."""

    def __init__(self, written: Path | None) -> None:
        self.sparkContext, self._gateway, self.written = self, self, written

    def stop(self) -> None: ...

    def shutdown(self) -> None:
        if self.written is not None:
            self.written.write_text("whole")


def test_a_new_one_takes_the_place_of_the_old_one_when_it_is_whole(tmp_path: Path) -> None:
    """A session that starts meanwhile would be given half of it."""
    place = tmp_path / "classes.jsa"
    place.write_text("old")
    option, _ = archive.made_by(place)
    written = Path(option.partition("=")[2])
    whole: Any = Ended(written)
    archive.finish(whole, place)
    assert (place.read_text(), written.exists()) == ("whole", False)
    none: Any = Ended(None)
    with pytest.raises(UsageError, match="Java wrote no"):
        archive.finish(none, place)
    assert place.read_text() == "whole"
