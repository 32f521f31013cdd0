"""`repaired`: yes only by a proof."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.contract.events import Level, Severity, Status
from agent.contract.finding import Finding
from tests.agent.cli.commands import PLAIN, Said, plant
from tests.agent.cli.test_plan import DAMAGE, records

UNDATED = ("repaired", "i-000000000001", "--task", "app/0_0", *PLAIN, "--state-dir")
ASKED = (*UNDATED[:4], "--made-after", "2001-01-01T00:00:00Z", *UNDATED[4:])


def good(root: Path) -> Path:
    """Plant a directory in which nothing is wrong: the checkpoint is younger than its store."""
    (plant(root) / "app/0_0/.checkpoint").touch()
    return root


def test_it_is_not_repaired_while_a_reading_finds_it(statewarden: Callable, damaged: Path) -> None:
    """What the scan finds of the task is the reason; a finding of another task is none."""
    said = statewarden(*ASKED, damaged)
    assert said.code == 1
    assert said.out.startswith("i-000000000001: NOT repaired\n   no  a new reading finds ")
    plant(damaged, task="0_1")
    shutil.rmtree(damaged / "app" / "0_0")
    good(damaged)
    assert statewarden(*ASKED, damaged).code == 0


def test_it_is_repaired_by_what_the_disk_tells(statewarden: Callable, tmp_path: Path) -> None:
    """Restored up to an offset, nothing found, and it says that no broker was asked."""
    said = statewarden(*ASKED, good(tmp_path))
    assert said.code == 0
    words = " ".join(said.out.split())
    assert words.startswith("i-000000000001: repaired yes a new reading finds nothing wrong with its tasks")
    assert "app/0_0/s claims to be restored up to offset 100000" in words
    assert words.endswith("- not verified: no broker was given (--bootstrap-servers)")


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ((), 3, "can't tell whether its stores were made anew: give SOURCE, or --made-after with the time"),
        (("--made-after", "2101-01-01T00:00:00Z"), 1, "app/0_0/rocksdb/s was not made anew: made 20"),
        # its data is older than its IDENTITY: it was put back, or got a new one
        (("--made-after", "2026-11-01T00:00:00Z"), 1, "app/0_0/rocksdb/s was not made anew: made 20"),
        (("--made-after", "yesterday"), 2, "--made-after yesterday: expected a time with its zone"),
    ],
)
def test_a_restart_alone_repairs_nothing(
    statewarden: Callable, tmp_path: Path, more: tuple[str, ...], code: int, words: str
) -> None:
    """A start that trusts the damage leaves a directory in which nothing is wrong to see."""
    said = statewarden(*UNDATED, good(tmp_path), *more)
    assert (said.code, words in " ".join(f"{said.out}{said.err}".split())) == (code, True)


@pytest.mark.parametrize("gone", ["0_0", "0_0/.checkpoint"])
def test_it_is_not_known_where_the_disk_does_not_tell(
    statewarden: Callable, tmp_path: Path, gone: str
) -> None:
    """A task that is not there may be anywhere, and a running store may have no offset on disk."""
    path = good(tmp_path) / "app" / gone
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    assert statewarden(*ASKED, tmp_path).code == 3


FOUND = replace(DAMAGE, application_id="app", status=Status.RESOLVED, resolved_at_us=2)


@pytest.fixture
def recorded(statewarden: Callable, tmp_path: Path) -> Callable[..., Said]:
    """Give what asks whether an incident is over of which these findings are recorded; `IDENTITY`: the store's."""
    state = good(tmp_path / "state")
    identity = next(state.rglob("IDENTITY")).read_text().strip()

    def ask(*found: Finding) -> Said:
        (tmp_path / "all.jsonl").write_text(
            records(*(replace(x, identity=identity) if x.identity == "IDENTITY" else x for x in found))
        )
        said: Said = statewarden("repaired", found[0].id, tmp_path, "--state-dir", state, *PLAIN)
        return said

    return ask


@pytest.mark.parametrize(
    ("status", "code", "words"), [(Status.OPEN, 1, "has it open"), (Status.RESOLVED, 0, "has it resolved")]
)
def test_the_record_counts(recorded: Callable[..., Said], status: Status, code: int, words: str) -> None:
    """An agent that still has it open knows better than one reading; it tells the tasks, too."""
    said = recorded(replace(FOUND, status=status))
    assert (said.code, words in said.out) == (code, True)


def test_the_life_that_was_found_damaged_must_be_gone(recorded: Callable[..., Said]) -> None:
    """What only a watch has seen no reading finds again: the store must be another one."""
    said = recorded(replace(FOUND, identity="IDENTITY"))
    assert said.code == 1
    assert "app/0_0 still has the store that was found damaged" in said.out


@pytest.mark.parametrize(("was_damaged", "code"), [(True, 0), (False, 1)])
def test_what_release_or_settings_expose_again_is_no_damage(
    recorded: Callable[..., Said], was_damaged: bool, code: int
) -> None:
    """The restored store is exposed as the damaged one was; of what was never more than that nothing is repaired."""
    over = replace(FOUND, identity="gone", incident_id="i-0000000000aa")
    again = replace(over, id="b" * 16, level=Level.EXPOSURE, severity=Severity.WARNING, status=Status.OPEN,
                    resolved_at_us=None, identity="IDENTITY", lasting=True)  # fmt: skip
    said = recorded(over, again) if was_damaged else recorded(again)
    assert said.code == code, said.out
    assert ("comes with release or settings" in said.out) is was_damaged


def test_a_setting_that_decides_is_asked_for(statewarden: Callable, tmp_path: Path) -> None:
    """Neither a task nor a source is a mistake."""
    assert statewarden("repaired", "i-000000000001", "--state-dir", good(tmp_path)).code == 2
    assert statewarden(*ASKED[:3], "app", "--state-dir", tmp_path).code == 2


def test_an_incident_that_the_reading_has_itself_is_not_repaired(
    statewarden: Callable, damaged: Path
) -> None:
    """Its tasks count, whichever others are named; of a scan's own id none need be."""
    (one,) = {x["incident_id"] for x in statewarden("scan", damaged, "--json", *PLAIN).findings}
    plant(damaged, task="0_1")
    (damaged / "app/0_1/.checkpoint").touch()
    for more in (("--task", "app/0_1"), ()):
        said = statewarden("repaired", one, *more, *ASKED[4:], damaged)
        assert (said.code, f"{one}: NOT repaired" in said.out) == (1, True)
