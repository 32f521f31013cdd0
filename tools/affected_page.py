"""Render docs/affected.md: which bugs a release has, and what to do.

Releases and fixes are those of the detectors, or of `tools/upstream/issues.toml` where no detector speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from agent.contract.runbooks import address_of
from agent.layout.releases import LAST_PATCHES, ROCKSDB_RELEASES, Release, ReleaseRange
from tools.upstream.data import Issue, load_issues, named_upstream

_NO_ISSUE = " (no upstream issue)"
_LINES = tuple(f"{major}.{minor}" for major, minor in LAST_PATCHES)

_TABLE = "| release | under either guarantee | exactly-once only | at-least-once only |"
_BUGS = """
## Bugs that do harm

All stores on disk with a changelog, under either guarantee, unless a bug says otherwise. The first line of each bug
lowers the risk; the runbook repairs the damage.
"""
_HARMLESS = """
## What loses nothing

What detectors know of. `tools/upstream/issues.toml` has more that was read and does no harm.

| issue | what goes wrong | affected | fixed | detector |
|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that does harm, with the releases that have it."""

    issue: Issue
    releases: tuple[ReleaseRange, ...]
    fixed: str
    detectors: tuple[str, ...]  # who reports it; empty = only contents show it, or what the issue says


def harmful() -> tuple[Bug, ...]:
    """List the bugs that do harm, in the order of the list of issues."""
    named = named_upstream()
    bugs = []
    for issue in load_issues():
        said = named.get(issue.key, [])
        ranges = tuple(dict.fromkeys(one for upstream, _ in said for one in upstream.releases))
        fixes = dict.fromkeys(upstream.fixed for upstream, _ in said)
        fixed = "; ".join(x for x in fixes if not any(y != x and y.startswith(x) for y in fixes))
        detectors = tuple(dict.fromkeys(id_ for _, id_ in said))
        if issue.harm:
            bugs.append(Bug(issue, ranges or as_ranges(issue.affected), fixed or issue.fixed, detectors))
    return tuple(bugs)


def as_ranges(text: str) -> tuple[ReleaseRange, ...]:
    """Read the releases of an issue without a detector: `up to 2.5.1`, `3.5.0 or later`, `2.4.0 to 2.5.1`."""
    if match := re.fullmatch(r"up to (\S+)", text):
        return (ReleaseRange.until(match[1]),)
    if match := re.fullmatch(r"(\S+) or later", text):
        return (ReleaseRange.since(match[1]),)
    if match := re.fullmatch(r"(\S+) to (\S+)", text):
        return (ReleaseRange.between(match[1], match[2]),)
    raise ValueError(f"affected releases {text!r}; expected `up to A`, `A or later` or `A to B`")


def render_affected_page(page: str) -> str:
    """Render the page below its first paragraphs."""
    bugs = harmful()
    named = named_upstream()
    harmless = [issue for issue in load_issues() if not issue.harm and issue.key in named]
    lines = [f"{page.partition(_TABLE)[0].rstrip()}\n", _TABLE, "|---|---|---|---|"]
    everywhere = [bug for bug in bugs if ReleaseRange() in bug.releases]
    lines.append(f"| any | {', '.join(_link(bug, 'all') for bug in everywhere)} | | |")
    others = tuple(bug for bug in bugs if bug not in everywhere)
    for cells, group in groupby(reversed(tuple(_lines(others))), key=itemgetter(1)):
        title = _title([line for line, _ in group])
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines.append(_BUGS)
    lines += ["\n".join(_section(bug)) for bug in bugs]
    lines += [_HARMLESS, *map(_harmless, harmless)]
    return "\n".join(lines) + "\n"


def _lines(bugs: tuple[Bug, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each published line with its bugs: under either guarantee, exactly-once only, at-least-once only."""
    for line in _LINES:
        own = line_range(line)
        if not any(own.overlaps(one) for one in ROCKSDB_RELEASES.values()):
            continue
        of_line = [(bug, patches) for bug in bugs if (patches := _patches(bug, own))]
        cells = (
            [_link(bug, patches) for bug, patches in of_line if bug.issue.guarantee[:5] == needs]
            for needs in ("", "exact", "at-le")
        )
        yield line, tuple(", ".join(cell) for cell in cells)


def line_range(text: str) -> ReleaseRange:
    """Return all patch releases of a line such as `4.1`."""
    return ReleaseRange(Release.parse(text), Release.parse(f"{text}.x"))


def _patches(bug: Bug, line: ReleaseRange) -> str:
    """Say which patch releases of a line have the bug; empty = none."""
    if line.within(*bug.releases):
        return "all"
    parts = [both for one in bug.releases if (both := line.intersect(one)) is not None]
    return " and ".join(f"{one.low} or later" if one.high == line.high else str(one) for one in parts)


def _link(bug: Bug, patches: str) -> str:
    name = name_of(bug.issue.key)
    return f"[{name}](#{anchor_of_bug(name)}){'' if patches == 'all' else f' ({patches})'}"


def _section(bug: Bug) -> tuple[str, ...]:
    issue = bug.issue
    said = issue.what.lower().startswith(issue.guarantee or "-")
    guarantee = f" Guarantee: {issue.guarantee}." if issue.guarantee and not said else ""
    stores = f" Stores: {issue.stores}." if issue.stores != "all" else ""
    found = f" [Proof](found/{issue.found}.md)." if issue.found else ""
    return (
        f"### {name_of(bug.issue.key)}",
        "",
        f"**{issue.until_fixed}**",
        "",
        f"- Then: {issue.harm}.{guarantee}{stores}",
        f"- {issue.what}",
        f"- Releases: {_releases(bug)}. Fix: {bug.fixed}. Reported by {_reported(bug)}.{found}",
        "",
    )


def _harmless(issue: Issue) -> str:
    said = named_upstream().get(issue.key, [])
    affected = "; ".join(dict.fromkeys(" and ".join(map(str, x.releases)) for x, _ in said)) or issue.affected
    fixed = "; ".join(dict.fromkeys(x.fixed for x, _ in said)) or issue.fixed
    return f"| {issue.key} | {issue.what} | {affected} | {fixed} | {_linked(dict.fromkeys(id_ for _, id_ in said))} |"


def _reported(bug: Bug) -> str:
    return _linked(bug.detectors) or bug.issue.shown_by or "[verify](verify.md) only"


def _linked(detectors: Iterable[str]) -> str:
    return ", ".join(f"[{id_}]({address_of(id_, '.md')})" for id_ in detectors)


def _releases(bug: Bug) -> str:
    widest = [x for x in bug.releases if not x.within(*(y for y in bug.releases if y != x))]
    return ", ".join(map(str, widest))


def name_of(key: str) -> str:
    """Return how a bug is called in headings."""
    name = key.removesuffix(_NO_ISSUE)
    return name[0].upper() + name[1:]


def anchor_of_bug(name: str) -> str:
    """Return the anchor of a bug's section."""
    return name.lower().replace(" ", "-")


def _title(lines: list[str]) -> str:
    return lines[0] if len(lines) == 1 else f"{lines[-1]} to {lines[0]}"
