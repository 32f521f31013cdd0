"""Render docs/releases.md: which layout facts hold for which Kafka Streams release."""

from __future__ import annotations

from agent.layout.facts import FACTS, Fact
from agent.layout.releases import LAST_PATCHES, ROCKSDB_RELEASES, Release, ReleaseRange

LINES = tuple(f"{major}.{minor}" for major, minor in LAST_PATCHES)


_HEAD = """# State format by Kafka Streams release

<!-- generated from `agent/layout/facts.py` by `make docs`; do not edit -->

What each release does with its state directory; [state format](state-format.md) explains it, and
[am I affected?](affected.md) says which releases have which fault. `agent/layout/facts.py` has the source of each line.

| what holds | releases |
|---|---|
"""


def render_releases_page() -> str:
    """Render the whole page."""
    return "\n".join((_HEAD + "\n".join(map(_row, FACTS)), "", *_rocksdb())) + "\n"


def _row(fact: Fact) -> str:
    row = FACTS[fact]
    holds = " and ".join(str(one) for one in row.holds) or "no release"
    unsure = f"; not checked: {' and '.join(str(one) for one in row.unsure)}" if row.unsure else ""
    return f"| {row.statement} | {holds}{unsure} |"


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
