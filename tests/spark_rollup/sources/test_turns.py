"""A file that ends every run is found in ever smaller turns; everybody else's events come in before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.sources.turns import NOTE, PATIENCE, Files, ingest_all


class KilledError(Exception):
    """Stands for a Java that ran out of memory."""


class FullError(Exception):
    """Stands for a disk without room: nobody's fault."""


class Intake:
    """What runs took, beside what must not be taken."""

    def __init__(self, folder: Path, killers: set[str], fault: type[Exception] = KilledError) -> None:
        self.note, self.killers, self.fault = folder / NOTE, killers, fault
        self.taken: dict[str, int] = {}
        self.aside: list[str] = []

    def take(self, files: Files) -> int:
        if self.killers & files.keys():
            raise self.fault
        self.taken |= files
        return len(files)

    def put_aside(self, path: str, size_bytes: int) -> int:
        self.aside.append(path)
        return 0

    def run(self, files: Files) -> bool:
        """Run once; tell whether it came to its end."""
        seen = self.taken | dict.fromkeys(self.aside, None)
        fresh = {
            path: size for path, size in files.items() if path not in seen or seen[path] not in (None, size)
        }

        def is_deadly(error: BaseException) -> bool:
            return isinstance(error, KilledError)

        try:
            ingest_all(self.note, fresh, self.take, self.put_aside, is_deadly, at_once=300)
        except (KilledError, FullError):
            return False
        return True


@given(data=st.data(), number=st.integers(0, 20))
def test_every_killer_is_found_and_no_other_file_is_put_aside(tmp_path_factory, data, number):
    """However many there are, in a few runs for each."""
    files = {f"f{index}": index for index in range(number)}
    killers = data.draw(st.sets(st.sampled_from(sorted(files)))) if files else set()
    intake = Intake(tmp_path_factory.mktemp("bronze"), killers)
    runs = 1
    while not intake.run(files):
        runs += 1
        assert runs <= 1 + len(killers) * (PATIENCE + 3)
    assert set(intake.aside) == killers
    assert intake.taken.keys() == files.keys() - killers
    assert not intake.note.exists()


def test_all_others_come_in_before_the_killer_is_found(tmp_path):
    """New files are never held up by suspects."""
    intake = Intake(tmp_path, {"killer"})
    assert not intake.run({"killer": 1, "a": 1})
    assert not intake.run({"killer": 1, "a": 1, "new": 1})
    assert intake.taken.keys() == {"new"}
    for _ in range(2):
        assert not intake.run({"a": 1, "killer": 1})
    assert intake.taken.keys() == {"new", "a"}


def test_a_file_that_changed_is_a_new_one(tmp_path):
    """It may have been fixed."""
    intake = Intake(tmp_path, {"killer"})
    for _ in range(PATIENCE + 2):
        assert not intake.run({"killer": 1})
    intake.killers.clear()
    assert intake.run({"killer": 2})
    assert (intake.taken, intake.aside) == ({"killer": 2}, [])


def test_what_is_no_file_s_fault_makes_no_file_suspect(tmp_path):
    """A full disk, however often."""
    intake = Intake(tmp_path, {"a"}, FullError)
    for _ in range(PATIENCE + 3):
        assert not intake.run({"a": 1, "b": 1})
    intake.killers.clear()
    assert intake.run({"a": 1, "b": 1})
    assert intake.taken == {"a": 1, "b": 1}


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '{"a": 1}', json.dumps({"a": {}})])
def test_a_torn_note_says_nothing(tmp_path, text):
    """It is only a help."""
    (tmp_path / NOTE).write_text(text)
    intake = Intake(tmp_path, set())
    assert intake.run({"a": 1})
    assert not intake.note.exists()
