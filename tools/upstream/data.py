"""The lists beside this file: classes that our facts rest on, and upstream issues."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.detectors import DETECTORS
from agent.judging.base import Upstream

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of Kafka Streams that our facts rest on."""

    paths: dict[str, str]  # Class -> its file in Kafka's repository
    gone: frozenset[str]  # Classes that only earlier releases have
    releases: dict[str, str]  # Release -> commit, for copies of the repository without tags


@dataclass(frozen=True, slots=True)
class Issue:
    """One upstream issue."""

    key: str  # its key, or the name of a hazard without one
    what: str  # what goes wrong, one sentence
    shows: str
    source: str  # Class, method and release, pull request or commit that were read
    why: str = ""  # why no detector speaks; empty where one does
    affected: str = ""  # Releases; empty where a detector names the issue, which says it then
    fixed: str = ""
    harm: str = ""  # what is wrong then, a few words; empty = nothing is lost and no start fails
    guarantee: str = ""  # the processing guarantee that it needs; empty = either
    stores: str = "all"
    until_fixed: str = ""  # what to set or do on an affected release; empty where there is no harm
    found: str = ""  # its page in `docs/found`; empty = none
    shown_by: str = ""  # what shows it where no detector does; empty = `verify`


def load_classes() -> Classes:
    """Read `classes.toml`."""
    data = _load("classes.toml")
    paths = {
        name: "/".join(part for part in (data["root"], package, f"{name}.java") if part)
        for name, package in data["classes"].items()
    }
    return Classes(paths, frozenset(data["gone"]), data["releases"])


def load_issues() -> tuple[Issue, ...]:
    """Read the issues that leave something on disk, or seem to, in the order of the file."""
    return tuple(Issue(**row) for row in _load("issues.toml")["issue"])


def load_quiet() -> dict[str, tuple[str, ...]]:
    """Read the issues that change nothing on disk: reason -> keys."""
    return {row["why"]: tuple(row["keys"]) for row in _load("issues.toml")["quiet"]}


def known_keys() -> frozenset[str]:
    """Return every key of both lists."""
    quiet = (key for keys in load_quiet().values() for key in keys)
    return frozenset(issue.key for issue in load_issues()).union(quiet)


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def named_upstream() -> dict[str, list[tuple[Upstream, str]]]:
    """Map each key that detectors name to what they say of it: releases and fix, and the detector's id."""
    named: dict[str, list[tuple[Upstream, str]]] = {}
    for detector in DETECTORS:
        for upstream in detector.meta.upstream:
            named.setdefault(upstream.key, []).append((upstream, detector.meta.id))
    return named
