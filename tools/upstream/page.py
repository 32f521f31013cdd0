"""Render docs/upstream.md: upstream issues, what the disk shows of each, and which detector speaks."""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.runbooks import address_of
from agent.detectors import DETECTORS
from agent.judging.base import Upstream
from tools.upstream.data import Issue, load_issues, load_quiet

_HEAD = """# Upstream issues

<!-- generated from `tools/upstream/issues.toml` and the detectors' metadata by `make docs`; do not edit -->

What public sources say about Kafka Streams' local state (2.0 and later), what the disk shows of it, and which detector
speaks. Read were the source at the release tags, the branches 4.1 to 4.4 and trunk as of 2026-08-22, and pull requests
up to 2026-09-17; not the issue tracker itself. Of 4.2.2, which is younger, the class files of the published jar were
read; 4.1.3, 4.3.2 and 4.4.0 were not published on 2026-11-22: "branch 4.3" is what a 4.3.2 of August would hold.
[State format](state-format.md#bugs) has the signatures at length,
[a new release](../contributing/new-release.md) how this page stays current.
"""


def named_upstream() -> dict[str, list[tuple[Upstream, str]]]:
    """Map each key that detectors name to what they say of it: releases and fix, and the detector's id."""
    named: dict[str, list[tuple[Upstream, str]]] = {}
    for detector in DETECTORS:
        for upstream in detector.meta.upstream:
            named.setdefault(upstream.key, []).append((upstream, detector.meta.id))
    return named


def render_upstream_page() -> str:
    """Render the whole page."""
    named = named_upstream()
    issues = load_issues()
    spoken = [issue for issue in issues if issue.key in named]
    silent = [issue for issue in issues if issue.key not in named]
    lines = [
        _HEAD,
        "## A detector speaks",
        "",
        "| issue | what goes wrong | affected | fixed | on disk | detector |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    lines += [_spoken(issue, named[issue.key]) for issue in spoken]
    lines += [
        "",
        "## No detector, and why",
        "",
        "| issue | what goes wrong | affected | fixed | on disk | why none |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    lines += [f"| {x.key} | {x.what} | {x.affected} | {x.fixed} | {x.shows} | {x.why} |" for x in silent]
    lines += ["", "## Nothing on disk", ""]
    lines += [f"- {why}: {', '.join(keys)}." for why, keys in load_quiet().items()]
    lines += [
        "",
        "## What was read",
        "",
        "| issue | class, method and release, or pull request |",
        "|---|---|",
    ]
    lines += [f"| {issue.key} | {issue.source} |" for issue in issues]
    return "\n".join(lines) + "\n"


def _spoken(issue: Issue, said: list[tuple[Upstream, str]]) -> str:
    affected = "; ".join(_once(" and ".join(map(str, upstream.releases)) for upstream, _ in said))
    fixed = "; ".join(_once(upstream.fixed for upstream, _ in said))
    detectors = ", ".join(_once(f"[{id_}]({address_of(id_, '.md')})" for _, id_ in said))
    return f"| {issue.key} | {issue.what} | {affected} | {fixed} | {issue.shows} | {detectors} |"


def _once(texts: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
