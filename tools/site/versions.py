"""The versions of the site beside each other: their list for the switch, and the pages that lead to the newest."""

from __future__ import annotations

import json
from pathlib import Path

HOME = "docs/README.html"

_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>statewarden</title>
<meta http-equiv="refresh" content="0; url={0}">
<a href="{0}">statewarden</a>
"""


def write_start(folder: Path, target: str) -> None:
    """Write a start page that leads on, as a server shows it for the folder."""
    (folder / "index.html").write_text(_REDIRECT.format(target), "utf-8")


def write_versions(site: Path) -> None:
    """List all versions in a directory, newest first, each with its pages; the start page leads to the newest.

    Args:
        site: The directory that holds one directory per version, at least one.
    """
    names = sorted((x.parent.parent.name for x in site.glob(f"*/{HOME}")), key=_order, reverse=True)
    versions = [{"name": name, "pages": _pages(site / name)} for name in names]
    (site / "versions.js").write_text(f"window.STATEWARDEN_VERSIONS = {json.dumps(versions)};\n", "utf-8")
    write_start(site, f"{names[0]}/{HOME}")


def _pages(version: Path) -> list[str]:
    return sorted(x.relative_to(version).with_suffix("").as_posix() for x in version.rglob("*.html"))


def _order(name: str) -> list[tuple[int, str]]:
    """Order releases by number; what is no number comes before: 0.2.0.dev1 before 0.2.0 before 0.10.0."""
    parts = [(int(x), "") if x.isdigit() else (-1, x) for x in name.split(".")]
    return [*parts, (0, "")]
