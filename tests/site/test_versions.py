"""The switch knows every version that is there, and the start page the newest."""

from __future__ import annotations

import json
from pathlib import Path

from tools.site.versions import HOME, write_versions


def site(folder: Path, *names: str) -> Path:
    """Write versions of one page each, and a directory that is none."""
    for name in names:
        (folder / name / "docs").mkdir(parents=True)
        (folder / name / HOME).write_text("", "utf-8")
    (folder / "logs").mkdir()
    return folder


def test_versions_are_listed_by_number_newest_first(tmp_path: Path) -> None:
    """Ten comes after two, and a version under way before its release."""
    write_versions(site(tmp_path, "0.2.0", "0.10.0", "0.10.0.dev1", "0.1.0"))
    script = (tmp_path / "versions.js").read_text("utf-8")
    listed = json.loads(script.removeprefix("window.STATEWARDEN_VERSIONS = ").removesuffix(";\n"))
    assert [x["name"] for x in listed] == ["0.10.0", "0.10.0.dev1", "0.2.0", "0.1.0"]
    assert listed[0]["pages"] == ["docs/README"]
    assert f"url=0.10.0/{HOME}" in (tmp_path / "index.html").read_text("utf-8")


def test_a_version_that_was_removed_is_gone_from_the_list(tmp_path: Path) -> None:
    """The list is rewritten with each build."""
    write_versions(site(tmp_path, "0.1.0", "0.2.0"))
    (tmp_path / "0.2.0" / HOME).unlink()
    write_versions(tmp_path)
    assert "0.2.0" not in (tmp_path / "versions.js").read_text("utf-8")
