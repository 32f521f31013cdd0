"""An audit of the locks passes only what was answered for; an advisory is accepted with a reason, until a date."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tools.sbom import audit
from tools.sbom.audit import Accepted, NoAnswerError, judge
from tools.sbom.locks import FOLDER

TODAY = date(2026, 11, 23)
PINS = {("one", "1.0"): ["agent"], ("two", "2.0"): ["charts", "dev"]}
CLEAN = {"name": "one", "version": "1.0", "vulns": []}
ADVISORY = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.1"]}
HIT = {"name": "two", "version": "2.0", "vulns": [ADVISORY]}


def entry(until: date, known: str = "CVE-1", name: str = "two") -> Accepted:
    return Accepted(known, name, "only in tests", until)


def test_nothing_found() -> None:
    verdict = judge([CLEAN, HIT | {"vulns": []}], PINS, [], TODAY)
    assert (verdict.exit_code, verdict.found, verdict.accepted) == (0, [], [])


def test_an_advisory_names_locks_and_the_release_that_fixes_it() -> None:
    verdict = judge([CLEAN, HIT], PINS, [], TODAY)
    assert verdict.exit_code == 1
    assert verdict.found == ["two 2.0 (charts, dev): CVE-1, PYSEC-1; fixed in: 2.1"]


def test_an_accepted_advisory_passes_until_its_date() -> None:
    verdict = judge([CLEAN, HIT], PINS, [entry(TODAY)], TODAY)
    assert verdict.exit_code == 0
    assert verdict.accepted == [
        "two 2.0 (charts, dev): CVE-1, PYSEC-1; fixed in: 2.1; accepted until 2026-11-23: only in tests"
    ]
    late = judge([CLEAN, HIT], PINS, [entry(date(2026, 11, 22))], TODAY)
    assert late.found == [
        "two 2.0 (charts, dev): CVE-1, PYSEC-1; fixed in: 2.1; was accepted until 2026-11-22"
    ]


@pytest.mark.parametrize("idle", [entry(TODAY, known="CVE-2"), entry(TODAY, name="one")])
def test_an_entry_that_nothing_needs_fails(idle: Accepted) -> None:
    verdict = judge([CLEAN, HIT | {"vulns": []}], PINS, [idle], TODAY)
    assert verdict.found == [f"accepted.toml: nothing needs the entry {idle.id} of {idle.name}; remove it"]


@pytest.mark.parametrize("answers", [[CLEAN], [CLEAN, {"name": "two", "skip_reason": "not found"}]])
def test_silence_is_no_clean_bill(answers: list[Any]) -> None:
    """A mirror without advisories knows nothing of anything: pip-audit itself would exit with 0."""
    with pytest.raises(NoAnswerError, match=r"no answer about 1 of 2: two 2\.0"):
        judge(answers, PINS, [], TODAY)


def test_a_service_that_is_out_of_reach_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="WARNING: x\nERROR: Connection refused\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert audit.main(["--service", "osv"]) == 2
    said = capsys.readouterr().err
    assert "not audited, osv could not be asked: pip-audit: ERROR: Connection refused" in said


def test_a_name_is_asked_for_once_in_a_list() -> None:
    """pip-audit refuses a list with two versions of one distribution; locks may have two."""
    assert list(audit.batches([("a", "1"), ("b", "1"), ("a", "2")])) == ["a==1\nb==1\n", "a==2\n"]


def test_all_locks_are_asked_about(repository: Path) -> None:
    pins = audit.all_pins(repository / FOLDER)
    assert {lock for locks in pins.values() for lock in locks} == {
        path.stem for path in (repository / FOLDER).glob("*.txt")
    }


def test_accepted_entries_are_complete() -> None:
    assert audit.read_accepted(audit.ACCEPTED.read_text(encoding="utf-8")) == []
    row = '[[accepted]]\nid = "CVE-1"\nname = "two"\nreason = "only in tests"\nuntil = 2026-11-23\n'
    assert audit.read_accepted(row) == [entry(TODAY)]
    with pytest.raises(TypeError, match="until"):
        audit.read_accepted('[[accepted]]\nid = "CVE-1"\nname = "two"\nreason = "x"\n')
