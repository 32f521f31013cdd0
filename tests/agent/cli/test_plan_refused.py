"""`plan`: when there is no script, and what it is asked with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli.plan import refusal
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import gather
from agent.contract.units import Remedy
from tests.agent.cli.test_plan import DAMAGE, records


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([replace(DAMAGE, remedy=Remedy.KEEP)], "the only complete copy"),
        ([replace(DAMAGE, remedy=Remedy.OTHER, missing_facts=("processing_guarantee",))], "give processing_guarantee"),
        ([replace(DAMAGE, status=Status.RESOLVED, resolved_at_us=2)], "is over"),
        ([replace(DAMAGE, severity=Severity.INFO)], "a remark"),
        ([replace(DAMAGE, task_id="../x")], "not those of Kafka Streams"),
        ([replace(DAMAGE, application_id="..")], "not a valid directory name"),
        ([replace(DAMAGE, application_id="-a")], "not a valid directory name"),
        ([replace(DAMAGE, application_id=".")], "not a valid directory name"),
        ([replace(DAMAGE, application_id="a/b")], "not a valid directory name"),
        ([replace(DAMAGE, application_id="a;b")], "not a valid directory name"),
        (
            [DAMAGE, replace(DAMAGE, id="b" * 16, detector="changelog-truncated", mechanism="short-changelog")],
            "comes first",
        ),
    ],
)  # fmt: skip
def test_it_is_refused_where_it_would_not_be_safe(findings: list[Finding], words: str) -> None:
    """The reason is said; so is the step that is to be followed instead."""
    (one,) = (x for x in gather(findings) if x.lead.detector == DAMAGE.detector)
    assert words in refusal(one)


def test_a_refusal_is_no_script(statewarden: Callable, tmp_path: Path) -> None:
    """Exit code 3, nothing on standard output, and what to do instead."""
    (tmp_path / "all.jsonl").write_text(
        records(replace(DAMAGE, remedy=Remedy.KEEP, next_action="Delete no copy."))
    )
    said = statewarden("plan", DAMAGE.id, tmp_path)
    assert (said.code, said.out) == (3, "")
    assert "nothing may be removed" in said.err
    assert said.err.endswith("Its step: Delete no copy.\n")
    assert statewarden("plan", "i-000000000000", tmp_path).code == 2
    assert statewarden("plan", DAMAGE.id).code == 2


@pytest.mark.parametrize(("ended_us", "is_step_told"), [(1, True), (2, False)])
def test_no_step_is_told_of_what_is_over(
    statewarden: Callable, tmp_path: Path, ended_us: int, is_step_told: bool
) -> None:
    """Who followed it would remove what is sound; the step of a moment is still to be followed."""
    over = replace(DAMAGE, status=Status.RESOLVED, resolved_at_us=ended_us)
    (tmp_path / "all.jsonl").write_text(records(over))
    said = statewarden("plan", DAMAGE.id, tmp_path)
    assert said.code == 3
    assert (DAMAGE.next_action in said.err) is is_step_told
    story = statewarden("explain", DAMAGE.id, "--events", tmp_path).out
    assert ("its step was: Stop" in story, "next: Stop" in story) == (not is_step_told, is_step_told)
    assert "as a script" not in story


def test_the_story_says_how_to_get_the_script(statewarden: Callable, tmp_path: Path) -> None:
    """As a command that can be run as it is."""
    place = tmp_path / "the events"
    place.mkdir()
    (place / "all.jsonl").write_text(records(DAMAGE))
    story = statewarden("explain", DAMAGE.id, "--events", place).out
    said = " ".join(story.replace("\\\n", "").split())
    assert f"as a script: statewarden plan i-{'a' * 12} '{place}'" in said


def test_what_it_is_asked_with_is_found_from_anywhere(
    statewarden: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script may be run in another directory."""
    (tmp_path / "all.jsonl").write_text(records(DAMAGE, namespace=""))
    for name in ("it.toml", "it.properties"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    files = ["--config", "it.toml", "--properties", "it.properties"]
    said = statewarden("plan", DAMAGE.id, tmp_path, *files).out
    assert f"--properties {tmp_path}/it.properties --config {tmp_path}/it.toml)" in said
