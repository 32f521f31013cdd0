"""What `make check-containers` takes as arguments; nothing is built or started for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.containers import run
from tests.lab.toolbox import MissingToolError


def test_an_unknown_part_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[str] = []
    monkeypatch.setattr(run, "make_image", built.append)
    with pytest.raises(SystemExit) as refused:
        run.main(["image", "nonsense"])
    told = capsys.readouterr().err
    assert refused.value.code == 2
    assert "'nonsense'" in told
    assert all(f"'{part}'" in told for part in run.PARTS)
    assert not built


def test_help_names_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert [part for part in run.PARTS if f"`{part}`" not in told] == []


def test_without_a_name_every_part_runs_but_those_by_name_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "missing_tools", str)
    monkeypatch.setattr(run, "make_image", str)
    monkeypatch.setattr(run, "PARTS", dict.fromkeys(run.PARTS, lambda _: iter(())))
    assert run.main([]) == 0
    told = capsys.readouterr().out
    assert {part for part in run.PARTS if f"== {part}\n" not in told} == run.BY_NAME_ONLY
    assert told.startswith("image: localhost/statewarden-agent\n")
    assert told.endswith("failed: nothing\n")


@pytest.mark.parametrize("missing", [pytest.skip.Exception, MissingToolError])
def test_a_tool_that_is_missing_fails_its_part_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: Callable[[str], BaseException],
) -> None:
    def without_tool(_: Path) -> Iterator[str]:
        yield "begun"
        raise missing("javac is not here")

    monkeypatch.setattr(run, "missing_tools", str)
    monkeypatch.setattr(run, "make_image", str)
    monkeypatch.setattr(run, "PARTS", {"pod": without_tool, "order": lambda _: iter(["orderly"])})
    assert run.main(["pod", "order"]) == 1
    told = capsys.readouterr().out
    assert "javac is not here" in told
    assert "orderly" in told
    assert told.endswith("failed: pod\n")
