"""Stories are read as README.md says, and judged as their heads say; nothing is played here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.lifelike.run import STORIES
from tests.lifelike.stage import copy_without_times, damage
from tests.lifelike.story import Said, Story, StoryError, read_story
from tests.support.every import every

LOUD = Said("torn-store", "warning", "0_0", "confirmed", "its files are torn")
CRITICAL = Said("skipped-eos-wipe", "critical", "0_0", "confirmed", "it holds uncommitted data")


def written(place: Path, text: str) -> Path:
    path = place / "story.txt"
    path.write_text(text)
    return path


@every("path", sorted(STORIES.glob("*.txt")))
def test_every_story_can_be_read(path: Path):
    """A misspelt head would be a story that asks for nothing."""
    assert read_story(path).steps


def test_every_step_of_every_story_is_known():
    """A misspelt step would end a run of minutes."""
    commands = set(re.findall(r"    def do_(\w+)\(", (STORIES.parent / "application.py").read_text()))
    steps = set(re.findall(r'"(==|@\w+)": ', (STORIES.parent / "stage.py").read_text()))
    used = {step.split()[0] for path in STORIES.glob("*.txt") for step in read_story(path).steps}
    assert used <= commands | steps
    assert {"==", "@scan"} < steps
    assert {"applock", "kill"} < commands


def test_a_head_is_read(tmp_path: Path):
    """Settings, wishes and flags; comments are not steps."""
    path = written(
        tmp_path,
        "#! set a=1 b=x=y\n#! late\n#! want quiet\n#! allow one two\n#! want d info 0_1 unknown\n"
        "#! never c d\n#! most 2 e\n# words\n\n== app\nkill\n",
    )
    assert read_story(path) == Story(
        "story",
        ("== app", "kill"),
        {"a": "1", "b": "x=y"},
        {"late", "quiet"},
        [("d", "info", "0_1", "unknown")],
        {"one", "two"},
        {"c", "d"},
        {"e": 2},
    )


@pytest.mark.parametrize("head", ["#! wnat quiet", "#! set x", "#! want d info", "# nothing"])
def test_a_head_that_says_nothing_is_refused(tmp_path: Path, head: str):
    """With the place of the line."""
    with pytest.raises(StoryError, match=r"story\.txt"):
        read_story(written(tmp_path, f"{head}\n== app\n"))


def test_a_quiet_story_lets_only_warnings_of_the_allowed_pass():
    """Never a critical word."""
    story = Story("s", flags={"quiet"}, allowed={"torn-store", "skipped-eos-wipe"})
    assert story.faults([LOUD]) == []
    assert story.faults([LOUD, CRITICAL]) == [str(CRITICAL)]
    assert Story("s", flags={"quiet"}).faults([LOUD]) == [str(LOUD)]


def test_a_wish_is_met_by_its_detector_severity_and_task():
    """And by its confidence, where that is asked for."""
    story = Story("s", wants=[("torn-store", "warning", "0_0")])
    assert story.faults([LOUD]) == []
    told = "no torn-store warning 0_0; said: skipped-eos-wipe critical confirmed"
    assert story.faults([CRITICAL]) == [told]
    unsure = Story("s", wants=[("torn-store", "warning", "0_0", "unknown")])
    assert unsure.faults([LOUD]) == ["no torn-store warning 0_0 unknown; said: torn-store warning confirmed"]


def test_a_detector_may_be_forbidden_or_limited():
    """`never` forbids its info, too; `most` counts findings, however often each is told."""
    said = [Said("orphaned-task", "info", "0_0", "unknown", "told", name) for name in ("a", "a", "b")]
    assert Story("s", never={"torn-store"}).faults(said) == []
    assert Story("s", never={"orphaned-task"}).faults(said) == [str(said[0])]
    assert Story("s", most={"orphaned-task": 2}).faults(said) == []
    too_many = "2 findings of orphaned-task, at most 1 wanted"
    assert Story("s", most={"orphaned-task": 1}).faults(said) == [too_many]


def test_a_copy_has_the_content_and_not_the_times(tmp_path: Path):
    """In order of names."""
    source = tmp_path / "a"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "file").write_bytes(b"x")
    old = (1_000_000_000, 1_000_000_000)
    os.utime(source / "inner" / "file", old)
    copy_without_times(source, tmp_path / "b")
    assert (tmp_path / "b" / "inner" / "file").read_bytes() == b"x"
    assert (tmp_path / "b" / "inner" / "file").stat().st_mtime > old[0]


def test_files_are_damaged_as_asked(tmp_path: Path):
    """Each kind, and a pattern that matches nothing is an error."""
    file = tmp_path / "x.sst"
    for how, number, left in (("flip", "1", b"ac"), ("truncate", "1", b"a"), ("no-footer", "0", bytes(53))):
        file.write_bytes(b"ab" if how == "flip" else b"a" * 60)
        damage(tmp_path, "*.sst", how, number)
        assert file.read_bytes()[-len(left) :] == left
    damage(tmp_path, "*.sst", "remove")
    assert not file.exists()
    with pytest.raises(AssertionError, match="nothing matches"):
        damage(tmp_path, "*.sst", "remove")
