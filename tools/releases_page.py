"""Render docs/releases.md: which layout facts hold for which Kafka Streams release."""

from __future__ import annotations

from agent.layout.facts import FACTS
from agent.layout.profile import Profile, Truth
from agent.layout.releases import ROCKSDB_RELEASES, Release, ReleaseRange

LINES = (
    "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5",
    "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4",
)  # fmt: skip
_MARKS = {Truth.YES: "●", Truth.NO: "·", Truth.MAYBE: "◐"}


def render_releases_page() -> str:
    """Render the whole page."""
    return "\n".join((*_head(), *_matrix(), *_details(), *_rocksdb())) + "\n"


def _head() -> tuple[str, ...]:
    return (
        "# State format by Kafka Streams release",
        "",
        "<!-- generated from `agent/layout/facts.py` by `make docs`; do not edit -->",
        "",
        "What each release does with its state directory; [state format](state-format.md) explains it, and"
        " [upstream issues](upstream.md) says which releases have which fault."
        " ● every patch release of the line, ◐ some (the details say"
        " which) or not known, · none. Evidence: `recorded` = seen in runs of the released jars, `source` = read in"
        " the source at the release tag.",
        "",
        "## Matrix",
        "",
    )


def _matrix() -> tuple[str, ...]:
    rows = [f"| fact | {' | '.join(LINES)} |", f"|---|{'---|' * len(LINES)}"]
    for fact in FACTS:
        marks = [_MARKS[Profile(line_range(line)).says(fact)] for line in LINES]
        rows.append(f"| [{fact.value}](#{fact.value}) | {' | '.join(marks)} |")
    return (*rows, "")


def _details() -> tuple[str, ...]:
    rows = ["## Facts", ""]
    for fact, row in FACTS.items():
        holds = " and ".join(str(one) for one in row.holds) or "no release"
        unsure = f"; not checked: {' and '.join(str(one) for one in row.unsure)}" if row.unsure else ""
        rows += [f"### {fact.value}", "", f"{row.statement} Holds for: {holds}{unsure}.", ""]
        rows += [f"Source: {row.source}. Evidence: {row.evidence}.", ""]
    return tuple(rows)


def _rocksdb() -> tuple[str, ...]:
    rows = [
        "## RocksDB",
        "",
        "What `OPTIONS-*` names; users may replace the library, so it is never proof.",
        "",
    ]
    rows += ["| RocksDB | shipped with |", "|---|---|"]
    rows += [f"| {version} | {one} |" for version, one in ROCKSDB_RELEASES.items()]
    return tuple(rows)


def line_range(text: str) -> ReleaseRange:
    """Return all patch releases of a line such as `4.1`."""
    low = Release.parse(text)
    return ReleaseRange(low, Release.parse(f"{text}.x"))
