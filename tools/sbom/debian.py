"""The Debian part of an image: the base that a recipe names, what it installs, and what dpkg has recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BASE = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)
_INSTALL = re.compile(r"apt-get install((?: +(?!&&)\S+)+)")


@dataclass(frozen=True, slots=True)
class Package:
    """One Debian package; without a version where the recipe leaves it to the day of the build."""

    name: str
    version: str = ""
    architecture: str = ""


def base_image(recipe: str) -> tuple[str, str]:
    """Read name and tag (or digest) of the base that a recipe begins from.

    Raises:
        ValueError: The recipe names none.
    """
    found = _BASE.search(recipe)
    if found is None:
        raise ValueError("the recipe has no ARG BASE")
    name, _, digest = found[1].partition("@")
    name, _, tag = name.partition(":")
    return name, digest or tag


def image_markers(recipe: str) -> dict[str, str]:
    """Give the marker variables of the Python that the base has, as its tag says."""
    python = re.match(r"\d+\.\d+", base_image(recipe)[1])
    if python is None:
        raise ValueError("the tag of the base does not begin with a version of Python")
    return {"python_full_version": f"{python[0]}.0", "python_version": python[0], "sys_platform": "linux"}


def installed_packages(recipe: str) -> list[Package]:
    """List the packages that the last stages of a recipe install: those of the stage `build` stay there."""
    kept = [stage for stage in re.split(r"^FROM ", recipe, flags=re.MULTILINE)[1:] if not _is_build(stage)]
    commands = "".join(kept).replace("\\\n", " ")
    names = {word for words in _INSTALL.findall(commands) for word in words.split() if word[0] != "-"}
    return [Package(name) for name in sorted(names)]


def recorded_packages(status: str) -> Iterator[Package]:
    """Read what dpkg has recorded (`/var/lib/dpkg/status`): every package that is fully installed."""
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.*)$", stanza, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield Package(fields["Package"], fields["Version"], fields["Architecture"])


def _is_build(stage: str) -> bool:
    return stage.splitlines()[0].endswith(" AS build")
