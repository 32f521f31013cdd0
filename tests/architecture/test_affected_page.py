"""Am I affected: the page says of each line of releases what the product says, and leaves no harmful bug out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.contract.events import Affected
from agent.detectors import DETECTORS
from agent.judging.base import Upstream
from agent.layout.profile import Profile
from tests.support.every import every
from tools.affected_page import as_ranges, harmful, line_range, render_affected_page
from tools.upstream.data import Issue, load_issues, named_upstream

ISSUES = load_issues()
PAGE = render_affected_page((Path(__file__).parents[2] / "docs/affected.md").read_text("utf-8"))
HARMLESS = {
    "KAFKA-5998": "noise in checkpoints; what an old offset does is another bug's",
    "KAFKA-20663": "a long replay, and a directory that stays",
    "KIP-1035": "by design",
}


def lines_of_page() -> dict[str, str]:
    """Row of each line of releases, with that of any release; one for several is listed for its first and last."""
    rows = re.findall(r"^\| (\d\.\d)(?: to (\d\.\d))? (\|.*)", PAGE, flags=re.M)
    (everywhere,) = re.findall(r"^\| any \|.*", PAGE, flags=re.M)
    return {line: everywhere + row for first, last, row in rows for line in (first, last) if line}


@every("issue", ISSUES, ids=lambda issue: issue.key)
def test_harm_comes_with_what_to_do(issue: Issue) -> None:
    """What is wrong is never listed without what to set or do, nor anything else of the page without harm."""
    assert bool(issue.harm) == bool(issue.until_fixed)
    assert issue.harm or (issue.guarantee, issue.stores, issue.found) == ("", "all", "")


def test_what_a_detector_names_does_harm_or_is_known_to_be_harmless() -> None:
    """A new bug of a detector cannot be forgotten on the page."""
    assert set(named_upstream()) - {issue.key for issue in ISSUES if issue.harm} == set(HARMLESS)


def test_every_find_has_its_bug(repository: Path) -> None:
    """Each page of `docs/found` belongs to a bug, and the list of the pages has them all."""
    pages = sorted(x.stem for x in (repository / "docs/found").glob("*.md") if x.stem != "README")
    assert sorted({issue.found for issue in ISSUES if issue.found}) == pages
    listed = (repository / "docs/found/README.md").read_text("utf-8")
    assert sorted(set(re.findall(r"\(([\w-]+)\.md\)", listed))) == pages


@every("line, row", lines_of_page().items())
def test_a_line_lists_what_the_detectors_judge_by(line: str, row: str) -> None:
    """A bug is on a line if, and only if, the product takes an application of that line for possibly affected."""
    profile = Profile(line_range(line))
    named: list[Upstream] = [upstream for detector in DETECTORS for upstream in detector.meta.upstream]
    expected = {x.key for x in named if profile.affected(x.releases) is not Affected.NO} - set(HARMLESS)
    listed = {key.casefold() for key in re.findall(r"\[([^\]]+)\]\(#", row)}
    silent = {bug.issue.key for bug in harmful() if not bug.detectors}
    keys = {key.removesuffix(" (no upstream issue)").casefold(): key for key in expected | silent}
    assert {keys.get(name, name) for name in listed} - silent == expected


def test_lines_of_old_and_new_releases_are_there() -> None:
    """The first line and the newest published one; what is not published is not."""
    assert {"2.0", "4.1", "4.4"} <= set(lines_of_page())
    assert "4.5" not in lines_of_page()


def test_damage_comes_before_its_repair() -> None:
    """Each bug of a release has its section with what to do."""
    anchors = set(re.findall(r"\]\(#([\w-]+)\)", PAGE))
    sections = {x.lower().replace(" ", "-") for x in re.findall(r"^### (.+)$", PAGE, flags=re.M)}
    assert anchors
    assert anchors == sections


@pytest.mark.parametrize("text", ["2.5.1", "up to", "no release", "up to 2.5 and 3.0"])
def test_releases_in_other_words_are_refused(text: str) -> None:
    """A range that cannot be read is no empty range."""
    with pytest.raises(ValueError, match="release"):
        as_ranges(text)
