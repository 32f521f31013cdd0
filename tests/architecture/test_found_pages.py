"""What we found in Kafka Streams: every page has a program that is played and a detector, or says why not."""

from __future__ import annotations

import re
from pathlib import Path

from agent.cli.page_text import section_of
from agent.contract.runbooks import anchor_of, page_of
from agent.detectors import DETECTORS
from tests.lab.repro.run import PLAYS
from tests.support.every import every

ROOT = Path(__file__).parents[2]
PAGES = sorted(x for x in (ROOT / "docs" / "found").glob("*.md") if x.stem != "README")
PROGRAMS = sorted((ROOT / "tests" / "lab" / "repro").glob("*.java"))
SECTIONS = ("Steps", "Expected and actual", "Root cause", "Impact", "Proposed fix", "Until then")
WITHOUT_PAGE = {
    "overlaid-store": "no loss was ever seen: what it names is a replay over old files",
    "skipped-record": "it takes an upgrade from a release that is no longer maintained; the detector's page has it all",
}

WITHOUT_DETECTOR = {
    "aborted-neighbour": "the healthy task has the files of one that lost nothing; verify decides",
    "forgotten-tombstone": "a value that came back looks like any insertion; verify decides",
    "overtaken-owner": "innocent lives leave the same on disk; the rule about the pause links to it",
    "skipped-input": "store, changelog and all copies agree; only the input knows",
    "unknown-segments": "the rows are right, and the store does not read them; what verify finds came later",
    "restored-buffer": "the wrong keys are in the files, and no key is read",
    "swallowed-flush": "innocent lives leave the same on disk; the law that it breaks links to it",
}


def links(page: Path, folder: str) -> set[str]:
    """Names that a page links to in a folder."""
    return {Path(x).stem for x in re.findall(rf"\]\(([^)#]*{folder}/[^)#]+)\)", page.read_text("utf-8"))}


def runbooks(page: Path) -> set[str]:
    """Runbooks that a page links to, rules as `rules/ID`."""
    found = re.findall(r"\]\([^)#]*runbooks/[\w-]+\.md#([\w-]+)\)", page.read_text("utf-8"))
    return {re.sub("^rules-", "rules/", x) for x in found}


@every("page", PAGES, ids=lambda page: page.stem)
def test_a_page_can_be_acted_on(page: Path) -> None:
    """It names a detector or a rule that links back, one program, and has everything that a report needs."""
    text = page.read_text("utf-8")
    assert [name for name in SECTIONS if f"\n## {name}\n" not in text] == []
    named = runbooks(page)
    assert named
    for name in named:
        runbook = section_of((ROOT / f"docs/{page_of(name)}.md").read_text("utf-8"), anchor_of(name))
        assert f"found/{page.stem}.md" in runbook, name
    assert ("\n## What the disk shows\n" in text) == (page.stem in WITHOUT_DETECTOR)
    assert len(links(page, "repro")) == 1


def test_every_program_is_on_one_page_and_played() -> None:
    """A program reproduces on one release and runs on another one that is right, or in another case."""
    named = [name for page in PAGES for name in links(page, "repro")]
    assert sorted(named) == [program.stem for program in PROGRAMS] == sorted({x[0] for x in PLAYS})
    for program in PROGRAMS:
        verdicts = {word for name, _, words in PLAYS if name == program.stem for word in words.split()}
        assert "OK" in verdicts, program.stem
        assert verdicts & {"LOST", "STUCK"}, program.stem


@every("name, release", sorted({x[:2] for x in PLAYS}))
def test_a_page_names_what_is_played(name: str, release: str) -> None:
    """Each release on which a program is played is on its page."""
    page = next(page for page in PAGES if name in links(page, "repro"))
    assert release in page.read_text("utf-8")


OUTPUT = re.compile(r"^```\nkafka-streams (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@every("page", PAGES, ids=lambda page: page.stem)
def test_output_on_a_page_ends_as_it_is_played(page: Path) -> None:
    """What a program printed has the verdicts that it is played for, in this order."""
    text = page.read_text("utf-8")
    (name,) = links(page, "repro")
    shown = OUTPUT.findall(text)
    assert shown
    for release, output in shown:
        verdicts = re.findall(r"^(LOST|STUCK|OK) ", output, re.MULTILINE)
        assert (name, release, " ".join(verdicts)) in PLAYS


def test_every_bug_without_an_issue_has_a_page() -> None:
    """A detector that names a bug that nobody reported has a page here, or a reason."""
    unreported = {
        x.meta.id for x in DETECTORS if any("no upstream issue" in bug.key for bug in x.meta.upstream)
    }
    covered = {name for page in PAGES if page.stem not in WITHOUT_DETECTOR for name in runbooks(page)}
    assert unreported - covered == set(WITHOUT_PAGE)
