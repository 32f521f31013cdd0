"""What a source or a page refers to is in the repository: no document that stayed elsewhere, no anchor that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_repository_text import tracked_files

ELSEWHERE = re.compile(
    r"state[- ]semantics|\bsemantics (?:section |N?\d)|\bcomponents\.md|\bdesign(?:\.md| \d)|\bdesign section|"
    r"review[- ](?:core|house|rollup|newcomer)|field[- ]test\b|style-and-models|peers\.md|delta-facts|verify-facts|"
    r"\bissue [A-Z]\b|§ ?\d",
    re.IGNORECASE,
)
"""Working papers that the repository does not hold."""

STATE_FORMAT = re.compile(r"state-format\.md#([\w-]+)")
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([\w-]+))?\)")
NUMBER = re.compile(r"(?<![\w-])([ND]\d{1,2})(?![\w-])")
CODE = ("agent", "spark_rollup", "tests", "tools", "docs", "contributing", "deploy", "helm")
NUMBERED = ("agent/detectors/", "tests/agent/detectors/", "tests/benign/", "tools/alerts/", "docs/")
TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAMED_PATH = re.compile(
    r"(?:agent|spark_rollup|tests|tools|docs|contributing|deploy|helm|\.github)/[\w./*-]+|[\w-]+\.py"
)
INVENTED = re.compile(r"example|[A-Z]{2,}|/\.\.\.|^rollup\.py$")
"""A path of a recipe, one with a placeholder, or a file that a reader writes."""
RECORDED = ("tests/data/", "tests/cluster/", "tests/lifelike/stories/")
"""Recordings and foreign lists: what they say is not ours to word."""


@pytest.fixture(scope="module")
def files(repository: Path) -> dict[str, str]:
    """Text of every file that people write, by its path."""
    texts = {}
    for path in tracked_files(repository):
        name = path.relative_to(repository).as_posix()
        if (name.startswith(CODE) or "/" not in name) and not name.startswith(RECORDED):
            texts[name] = path.read_text(encoding="utf-8")
    del texts[Path(__file__).relative_to(repository).as_posix()]
    return texts


def anchors(page: str) -> set[str]:
    """List the anchors of a Markdown page: its headings' and those set by hand."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), flags=re.M)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', page))


def places(files: dict[str, str], pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Find a pattern in all files."""
    for name, text in files.items():
        if not pattern.search(text):  # far quicker than line by line
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for match in pattern.finditer(line):
                yield f"{name}:{number}", match


def test_no_paper_that_stayed_elsewhere(files: dict[str, str]) -> None:
    """A source can be followed: it names Kafka's class and release, or a page of ours."""
    assert [f"{place}: {match[0]}" for place, match in places(files, ELSEWHERE)] == []


def test_state_format_anchors(files: dict[str, str]) -> None:
    """Every reference to an entry of the state format leads to one."""
    known = anchors(files["docs/state-format.md"])
    used = [(place, match[1]) for place, match in places(files, STATE_FORMAT)]
    assert used
    assert [f"{place}: {anchor}" for place, anchor in used if anchor not in known] == []


def test_numbered_look_alikes_and_hazards(files: dict[str, str]) -> None:
    """N13 or D8 in a comment is an entry of the state format."""
    known = anchors(files["docs/state-format.md"])
    named = {name: text for name, text in files.items() if name.startswith(NUMBERED)}
    assert [
        f"{place}: {match[1]}" for place, match in places(named, NUMBER) if match[1].lower() not in known
    ] == []


def test_links_between_pages(files: dict[str, str], repository: Path) -> None:
    """A relative link leads to a file, and its anchor to a place in it."""
    dead = []
    for name, text in files.items():
        if not name.endswith(".md"):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for target, anchor in LINK.findall(line):
                path = (repository / name).parent / target if target else repository / name
                if not path.exists() or (
                    anchor
                    and path.suffix == ".md"
                    and anchor not in anchors(path.read_text(encoding="utf-8"))
                ):
                    dead.append(f"{name}:{number}: {target}#{anchor}")
    assert dead == []


def test_paths_that_pages_name(files: dict[str, str], repository: Path) -> None:
    """A path or module in backticks is there: a reader who goes where a page sends finds something."""
    modules = {path.name for path in tracked_files(repository) if path.suffix == ".py"}
    named = [
        (place, word)
        for place, match in places({k: v for k, v in files.items() if k.endswith(".md")}, TICKED)
        for word in (part.strip(".,;:()\"'") for part in match[1].split())
        if NAMED_PATH.fullmatch(word) and not INVENTED.search(word)
    ]
    assert named
    assert [
        f"{place}: {word}"
        for place, word in named
        if word not in modules and not any(repository.glob(word.rstrip("/")))
    ] == []
