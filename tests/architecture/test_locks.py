"""The locks pin everything by hash, name no host, and cover what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.every import every

LOCKS = (
    "agent",
    "agent-sinks",
    "agent-verify",
    "build",
    "charts",
    "delivery",
    "dev",
    "java",
    "pythons",
    "rollup",
    "site",
    "supply",
)


def normal(name: str) -> str:
    """Spell a distribution name the one way that comparisons need."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(repository: Path, lock: str) -> dict[str, str]:
    """Read a lock: distribution name -> its whole entry."""
    text = (repository / "deploy" / "locks" / f"{lock}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    return {normal(re.split(r"[=\[ ;]", entry, maxsplit=1)[0]): entry for entry in entries}


def pinned(entry: str) -> Requirement:
    """Read an entry's first line: name, extras, version, marker."""
    return Requirement(entry.partition("\\\n")[0])


def asked(repository: Path) -> dict[str, set[str]]:
    """Read what pyproject.toml asks for, per lock."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    extras = project["project"]["optional-dependencies"]
    base, rollup = project["project"]["dependencies"], extras["rollup"]
    wanted = {
        "agent": base,
        "agent-sinks": base + extras["objectstore"] + extras["kafka"],
        "agent-verify": base + extras["verify"],
        "rollup": base + rollup,
        "build": groups["build"],
        "charts": groups["charts"],
        "delivery": base + extras["objectstore"] + extras["kafka"] + extras["verify"] + groups["delivery"],
        "java": groups["java"],
        "pythons": base + groups["pythons"],
        "site": groups["site"],
        "supply": groups["supply"],
        "dev": base + rollup + groups["build"] + groups["test"] + groups["lint"],
    }
    return {
        lock: {normal(re.split(r"[<>=~!\[; ]", line)[0]) for line in lines} for lock, lines in wanted.items()
    }


@every("lock", LOCKS)
def test_every_entry_is_pinned_by_hash(repository: Path, lock: str) -> None:
    """Each distribution has one exact version and at least one sha256."""
    for name, entry in locked(repository, lock).items():
        assert re.fullmatch(r"==[^*,]+", str(pinned(entry).specifier)), name
        assert "--hash=sha256:" in entry, name


@every("lock", LOCKS)
def test_what_is_asked_for_is_locked(repository: Path, lock: str) -> None:
    """Every dependency that pyproject.toml declares for this set is in its lock."""
    assert asked(repository)[lock] <= set(locked(repository, lock))


def extras_asked(entry: str) -> Iterator[Requirement]:
    """Read which extras of others a locked distribution asks for, if it is installed here."""
    locked_as = pinned(entry)
    try:
        lines = requires(locked_as.name) or []
    except PackageNotFoundError:
        return
    for needed in map(Requirement, lines):
        holds = needed.marker is None or any(
            needed.marker.evaluate({"extra": extra}) for extra in ("", *locked_as.extras)
        )
        if needed.extras and holds:
            yield needed


@every("lock", LOCKS)
def test_extras_are_locked_by_their_names(repository: Path, lock: str) -> None:
    """A pin without its extra does not bind the pip of Python 3.11, which then wants the newest release and fails."""
    entries = locked(repository, lock)
    missing = [
        f"{name} asks for {needed}"
        for name, entry in entries.items()
        for needed in extras_asked(entry)
        if not needed.extras <= pinned(entries[normal(needed.name)]).extras
    ]
    assert not missing


def test_the_sets_agree_on_versions(repository: Path) -> None:
    """What is tested is what is shipped: a distribution has the same version in every lock.

    Not in that of the bills of materials: its tools want other versions, in an environment where nothing of ours
    runs.
    """
    versions: dict[str, set[str]] = {}
    for lock in sorted(set(LOCKS) - {"supply"}):
        for name, entry in locked(repository, lock).items():
            versions.setdefault(name, set()).add(str(pinned(entry).specifier))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_every_lock_is_tested(repository: Path) -> None:
    """No lock lies about unchecked."""
    assert tuple(sorted(path.stem for path in (repository / "deploy" / "locks").glob("*.txt"))) == LOCKS
