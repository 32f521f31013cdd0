"""Render docs/affected.md, which bugs a release has and what to do, and the table of our finds in README.md.

Releases and fixes are those of the detectors, or of `tools/upstream/issues.toml` where no detector speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from agent.contract.runbooks import address_of
from agent.layout.releases import ROCKSDB_RELEASES, ReleaseRange
from tools.releases_page import LINES, line_range
from tools.upstream.data import Issue, load_issues
from tools.upstream.page import named_upstream

BEGIN = "<!-- found in Kafka Streams (make docs) -->"
END = "<!-- /found in Kafka Streams -->"
_NO_ISSUE = " (no upstream issue)"

_HEAD = """# Am I affected?

<!-- generated from `tools/upstream/issues.toml` and the detectors' metadata by `make docs`; do not edit -->

1. Find the line of your release. A row concerns you if its patch releases, guarantee and stores are yours.
2. The link in the row leads to [what to do](#what-to-do): what lowers the risk until you can upgrade, who reports it,
   and the page with proof and repair.
3. Is it on this disk, now? `statewarden scan STATE_DIR` with your release, guarantee and standbys
   ([step by step](journeys.md#is-my-412-exactly-once-application-exposed)). "No incident" holds for that moment only;
   `statewarden run` keeps watching.

`all` means every patch release that was published when the [sources were read](upstream.md). Stores are those on disk
that have a changelog; in-memory stores have none of these bugs, unless the column says so. What loses nothing is in
[upstream issues](upstream.md) only.
"""


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that does harm, with the releases that have it.

    Args of the dataclass:
        issue: What is known of it.
        releases: Affected ranges.
        fixed: Where the fix is.
        detectors: Who reports it; empty = only contents show it, or what the issue says.
    """

    issue: Issue
    releases: tuple[ReleaseRange, ...]
    fixed: str
    detectors: tuple[str, ...]


def harmful() -> tuple[Bug, ...]:
    """List the bugs that do harm, in the order of the list of issues."""
    named = named_upstream()
    bugs = []
    for issue in load_issues():
        said = named.get(issue.key, [])
        ranges = tuple(dict.fromkeys(one for upstream, _ in said for one in upstream.releases))
        fixed = "; ".join(dict.fromkeys(upstream.fixed for upstream, _ in said))
        detectors = tuple(dict.fromkeys(id_ for _, id_ in said))
        if issue.harm:
            bugs.append(Bug(issue, ranges or as_ranges(issue.affected), fixed or issue.fixed, detectors))
    return tuple(bugs)


def as_ranges(text: str) -> tuple[ReleaseRange, ...]:
    """Read the releases of an issue without a detector: `up to 2.5.1`, `3.5.0 or later`, `2.4.0 to 2.5.1`.

    Raises:
        ValueError: it is worded otherwise.
    """
    if match := re.fullmatch(r"up to (\S+)", text):
        return (ReleaseRange.until(match[1]),)
    if match := re.fullmatch(r"(\S+) or later", text):
        return (ReleaseRange.since(match[1]),)
    if match := re.fullmatch(r"(\S+) to (\S+)", text):
        return (ReleaseRange.between(match[1], match[2]),)
    raise ValueError(f"affected releases {text!r}; expected `up to A`, `A or later` or `A to B`")


def render_affected_page() -> str:
    """Render the whole page."""
    bugs = harmful()
    by_rows = groupby(reversed(tuple(_lines(bugs))), key=itemgetter(1))
    groups = [(_title([line for line, _ in group]), rows) for rows, group in by_rows]
    lines = [_HEAD, "| release | bugs under exactly-once | under at-least-once |", "|---|---|---|"]
    for title, rows in groups:
        eos, alos = (_count(rows, one) for one in ("exactly-once", "at-least-once"))
        lines.append(f"| [{title}](#{_anchor(title)}) | {eos} | {alos} |")
    for title, rows in groups:
        lines += ["", f"## {title}", "", "| bug | patch releases | guarantee | stores | what is wrong then |"]
        lines += ["|---|---|---|---|---|", *(text for _, text in rows)]
    lines += [
        "",
        "## What to do",
        "",
        "What is damaged already: follow the page of the detector. To stay away from it:",
    ]
    for bug in bugs:
        lines += ["", *_section(bug)]
    return "\n".join(lines) + "\n"


def render_found_table(page: str) -> str:
    """Put the table of what we found in Kafka Streams between its markers; all else stays."""
    rows = ["| bug | releases | what is wrong then | how it shows |", "|---|---|---|---|"]
    for bug in harmful():
        if bug.issue.found:
            who = (
                f"exactly-once: {bug.issue.harm}"
                if bug.issue.guarantee.startswith("exactly")
                else bug.issue.harm
            )
            link = f"[{_name(bug)}](docs/found/{bug.issue.found}.md)"
            rows.append(f"| {link} | {_releases(bug)} | {who} | {_reported(bug, 'docs/')} |")
    table = "\n".join((BEGIN, *rows, END))
    before, begin, rest = page.partition(BEGIN)
    after = rest.partition(END)[2] if begin else "\n"
    return f"{before}{table}{after}"


def _lines(bugs: tuple[Bug, ...]) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield each published line with its rows: the guarantee that a bug needs, and the row's text."""
    for line in LINES:
        own = line_range(line)
        if not any(own.overlaps(one) for one in ROCKSDB_RELEASES.values()):
            continue
        rows = ((bug, _patches(bug, own)) for bug in bugs)
        yield line, tuple((bug.issue.guarantee, _row(bug, patches)) for bug, patches in rows if patches)


def _patches(bug: Bug, line: ReleaseRange) -> str:
    """Say which patch releases of a line have the bug; empty = none."""
    if line.within(*bug.releases):
        return "all"
    parts = [both for one in bug.releases if (both := line.intersect(one)) is not None]
    return " and ".join(f"{one.low} or later" if one.high == line.high else str(one) for one in parts)


def _row(bug: Bug, patches: str) -> str:
    issue, name = bug.issue, _name(bug)
    return f"| [{name}](#{_anchor(name)}) | {patches} | {issue.guarantee or 'either'} | {issue.stores} | {issue.harm} |"


def _section(bug: Bug) -> tuple[str, ...]:
    found = f" Proof, with a program: [found](found/{bug.issue.found}.md)." if bug.issue.found else ""
    return (
        f"### {_name(bug)}",
        "",
        f"{bug.issue.until_fixed}",
        "",
        f"Releases: {_releases(bug)}. Fix: {bug.fixed}. Reported by {_reported(bug, '')}.{found}",
    )


def _reported(bug: Bug, folder: str) -> str:
    by = ", ".join(f"[{id_}]({folder}{address_of(id_, '.md')})" for id_ in bug.detectors)
    return by or bug.issue.shown_by or f"[verify]({folder}verify.md) only"


def _releases(bug: Bug) -> str:
    widest = [x for x in bug.releases if not x.within(*(y for y in bug.releases if y != x))]
    return " and ".join(map(str, widest))


def _name(bug: Bug) -> str:
    name = bug.issue.key.removesuffix(_NO_ISSUE)
    return name[0].upper() + name[1:]


def _count(rows: tuple[tuple[str, str], ...], guarantee: str) -> int:
    return sum(not needs or needs.startswith(guarantee) for needs, _ in rows)


def _title(lines: list[str]) -> str:
    return lines[0] if len(lines) == 1 else f"{lines[-1]} to {lines[0]}"


def _anchor(title: str) -> str:
    return title.lower().replace(".", "").replace(" ", "-")
