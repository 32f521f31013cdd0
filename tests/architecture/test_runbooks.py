"""Pages of detectors and rules are runbooks: a tired person can follow them, step by step, and knows when to stop."""

from __future__ import annotations

import re
from pathlib import Path

from agent.cli.page_text import section_of
from agent.contract.runbooks import NAMES, anchor_of, page_of
from tests.support.every import every

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = ("Mitigation", "Meaning", "Diagnosis", "False positives", "Blind spots")
WINDOW = re.compile(
    r"\b(now|twice|last|from|before|after|since|around|window|same minutes?|apart|over the|back|at the start|later"
    r"|between|first)\b",
    re.IGNORECASE,
)


def sections(name: str) -> dict[str, str]:
    """Split a runbook into its sections."""
    page = (DOCS / f"{page_of(name)}.md").read_text(encoding="utf-8")
    text = section_of(page, anchor_of(name))
    return dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", text, flags=re.MULTILINE))


def steps(text: str) -> list[str]:
    """Split a section into its numbered steps."""
    return re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]


@every("name", sorted(NAMES))
def test_a_page_has_every_section(name: str) -> None:
    """What to do first, then what it means, the evidence, and what it gets wrong."""
    assert [x for x in sections(name) if x in SECTIONS] == list(SECTIONS)


@every("name", sorted(NAMES))
def test_a_diagnosis_can_be_typed_in(name: str) -> None:
    """Each step names a command, a file or a query, and each look into a log says from when to when."""
    found = steps(sections(name)["Diagnosis"])
    assert found
    for step in found:
        assert "`" in step, step
        if re.search(r"(application|agent's|broker's) log|increase\(", step, re.IGNORECASE):
            assert WINDOW.search(step), step


@every("name", sorted(NAMES))
def test_a_mitigation_is_ordered_and_ends(name: str) -> None:
    """The steps are numbered and say when to stop."""
    text = sections(name)["Mitigation"]
    assert steps(text)
    assert re.search(r"done when|stop\b|nothing to do", text, re.IGNORECASE)


@every("name", sorted(NAMES))
def test_a_removal_comes_after_a_copy(name: str) -> None:
    """Nobody is told to remove a directory before he was told to keep a copy of it, nor more than one task's."""
    text = sections(name)["Mitigation"]
    removal = text.find("rm -r")
    assert removal < 0 or 0 <= text.find("cp -a") < removal
    if not name.startswith("rules/"):
        assert "stop" in text.lower()
        assert set(re.findall(r"rm -r ([^`\s]+)", text)) <= {"STATE/APP/TASK"}
