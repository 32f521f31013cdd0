"""Pages of detectors and rules are runbooks: a tired person can follow them, step by step, and knows when to stop."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.every import every

PAGES = sorted(
    page
    for folder in ("detectors", "rules")
    for page in (Path(__file__).parents[2] / "docs" / folder).glob("*.md")
)
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "False positives", "Blind spots")
WINDOW = re.compile(
    r"\b(now|twice|last|from|before|after|since|around|window|same minutes?|apart|over the|back|at the start|later"
    r"|between|first)\b",
    re.IGNORECASE,
)
WITHOUT_STEPS = {"missing-fact"}
"""Its diagnosis is a table of settings."""


def sections(page: Path) -> dict[str, str]:
    """Split a page into its sections."""
    return dict(
        re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )


def steps(text: str) -> list[str]:
    """Split a section into its numbered steps."""
    return re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]


@every("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_has_every_section(page: Path) -> None:
    """Meaning, impact, diagnosis, mitigation, and what it gets wrong."""
    assert [name for name in SECTIONS if name not in sections(page)] == []


@every("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_diagnosis_can_be_typed_in(page: Path) -> None:
    """Each step names a command, a file or a query, and each look into a log says from when to when."""
    found = steps(sections(page)["Diagnosis"])
    assert found or page.stem in WITHOUT_STEPS
    for step in found:
        assert "`" in step, step
        if re.search(r"(application|agent's|broker's) log|increase\(", step, re.IGNORECASE):
            assert WINDOW.search(step), step


@every("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_mitigation_is_ordered_and_ends(page: Path) -> None:
    """The steps are numbered and say when to stop."""
    text = sections(page)["Mitigation"]
    assert steps(text)
    assert re.search(r"done when|stop\b|nothing to do", text, re.IGNORECASE)


@every("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_removal_comes_after_a_copy(page: Path) -> None:
    """Nobody is told to remove a directory before he was told to keep a copy of it."""
    text = sections(page)["Mitigation"]
    removal = text.find("rm -r")
    assert removal < 0 or 0 <= text.find("cp -a") < removal
