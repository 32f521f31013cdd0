"""The list of upstream issues and the detectors say the same, and every class that a fact cites can be compared."""

from __future__ import annotations

import re
from collections import Counter

from agent.layout.facts import FACTS
from tests.support.every import every
from tools.upstream.data import Issue, known_keys, load_classes, load_issues, load_quiet, named_upstream

ISSUES = load_issues()
CLASS = re.compile(r"\b(?:[A-Z][a-z]+){2,}\w*|\b[A-Z]\w+Impl\b")
NO_CLASS = {"RocksDB"}


def test_every_key_of_a_detector_is_listed() -> None:
    """What a detector names as its upstream issue is in the list."""
    assert set(named_upstream()) - {issue.key for issue in ISSUES} == set()


@every("issue", ISSUES, ids=lambda issue: issue.key)
def test_an_issue_has_a_detector_or_a_reason(issue: Issue) -> None:
    """An issue is named by a detector, which knows its releases, or says why none speaks, and which releases it has."""
    said = (issue.why, issue.affected, issue.fixed)
    assert said == ("", "", "") if issue.key in named_upstream() else all(said)


@every("issue", ISSUES, ids=lambda issue: issue.key)
def test_an_issue_says_what_was_read(issue: Issue) -> None:
    """A claim can be followed: what goes wrong, what is on disk, and the class or pull request."""
    assert issue.what
    assert issue.shows
    assert re.search(r"\d", issue.source)


def test_no_key_is_listed_twice() -> None:
    """One entry a key."""
    keys = [issue.key for issue in ISSUES] + [key for keys in load_quiet().values() for key in keys]
    assert [key for key, count in Counter(keys).items() if count > 1] == []


def test_issues_named_beside_another() -> None:
    """A key in the text of an entry is in the list, too, so that the comparison of releases knows it."""
    named = {key for issue in ISSUES for key in re.findall(r"KAFKA-\d+", f"{issue.what} {issue.fixed}")}
    assert named - known_keys() == set()


def test_every_class_that_a_fact_cites_is_compared() -> None:
    """`tools/new_release.py` compares the classes of its list only."""
    classes = load_classes()
    cited = {name for row in FACTS.values() for name in CLASS.findall(row.source)} - NO_CLASS
    assert cited
    assert cited - set(classes.paths) - classes.gone == set()
