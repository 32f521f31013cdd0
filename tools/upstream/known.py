"""Where our tables end before a release: what they do not say of it, without a word about it."""

from __future__ import annotations

import re
from pathlib import Path

from agent.judging import upstream
from agent.judging.base import Upstream
from agent.layout.facts import FACTS
from agent.layout.releases import ROCKSDB_RELEASES, Release
from tools.upstream.data import load_issues

_LINES = r"\d+\.\d+(?:(?:, | and | to )\d+\.\d+)*"
_BRANCHES = re.compile(rf"\b({_LINES}) branch|\bbranch(?:es)? ({_LINES})")
ROOT = Path(__file__).resolve().parent.parent.parent


def not_known(release: str, rocksdb: str | None) -> list[str]:
    """List what has to be looked up; none: every table covers the release.

    Raises:
        ValueError: no release.
    """
    wanted = Release.parse(release)
    found = [_rocksdb(wanted, rocksdb)]
    found += [
        f"agent/layout/facts.py: NOT KNOWN of {wanted}: {fact.value}"
        for fact, row in FACTS.items()
        if any(one.contains(wanted) for one in row.unsure)
    ]
    found += [
        f"{place}: NOT KNOWN whether {wanted} has what is on a branch: {name}: {fixed}"
        for place, name, fixed in _fixes()
        if _is_on_branch(fixed, wanted)
    ]
    listed = (ROOT / "tests/lab/plan.py").read_text(encoding="utf-8")
    if f'"{wanted}"' not in listed:
        found.append(f"tests/lab/plan.py: NOT KNOWN: {wanted} is not in RELEASES, no test runs it")
    return [line for line in found if line]


def _rocksdb(release: Release, version: str | None) -> str:
    if version is None:
        return "RocksDB: NOT KNOWN: nothing says which version it is built with"
    ships = ROCKSDB_RELEASES.get(version)
    if ships is None:
        return f"RocksDB {version}: NOT KNOWN: in no row of agent/layout/releases.py"
    if not ships.contains(release):
        return f"RocksDB {version}: NOT KNOWN: its row in agent/layout/releases.py is {ships}"
    return ""


def _fixes() -> list[tuple[str, str, str]]:
    """List place, name and what is said of releases, of all that has a fix."""
    ours = (x for x in vars(upstream).values() if isinstance(x, Upstream))
    found = [("agent/judging/upstream.py", x.key, x.fixed) for x in ours]
    return [
        *found,
        *(("tools/upstream/issues.toml", x.key, f"{x.affected} {x.fixed}".strip()) for x in load_issues()),
    ]


def _is_on_branch(said: str, release: Release) -> bool:
    """Return whether something is said to be on the branch that a release was made from."""
    named = [before or after for before, after in _BRANCHES.findall(said)]
    return any(f"{release.major}.{release.minor}" in re.findall(r"\d+\.\d+", names) for names in named)
