"""One version: what is built, installed, deployed and described has the same."""

from __future__ import annotations

import re
from pathlib import Path

import agent
from tests.architecture.test_repository_text import tracked_files
from tools.set_version import HOMES, named_versions, set_version

IMAGE = re.compile(r"statewarden-(?:agent|rollup):(\d+\.\d+\.\d+)")


def test_every_home_names_the_agents_version(repository: Path) -> None:
    """Packages, distribution, charts, tags of images, and the tests of these tags."""
    named = named_versions(repository)
    assert {name: found for name, found in named.items() if found != {agent.__version__}} == {}
    unused = [
        files
        for files in HOMES
        if not {x.relative_to(repository).as_posix() for x in repository.glob(files)} & set(named)
    ]
    assert unused == []


def test_the_changelog_knows_it(repository: Path) -> None:
    """It has a section of this version."""
    assert f"\n## [{agent.__version__}]" in (repository / "CHANGELOG.md").read_text("utf-8")


def test_no_image_is_named_elsewhere(repository: Path) -> None:
    """A tag in a file that the tool does not write would stay behind."""
    written = {path for files in HOMES for path in repository.glob(files)}
    texts = {path: path.read_text("utf-8") for path in tracked_files(repository) if "data" not in path.parts}
    found = {path.relative_to(repository).as_posix() for path, text in texts.items() if IMAGE.search(text)}
    assert found - {path.relative_to(repository).as_posix() for path in written} == set()


def test_a_version_is_set_in_all_places(repository: Path, tmp_path: Path) -> None:
    """After it, every place names the new one, and nothing else changed."""
    for name in named_versions(repository):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((repository / name).read_text("utf-8"), "utf-8")
    assert set_version(tmp_path, "9.8.7") == list(named_versions(repository))
    assert set().union(*named_versions(tmp_path).values()) == {"9.8.7"}
    for name in named_versions(repository):
        assert (tmp_path / name).read_text("utf-8").replace("9.8.7", agent.__version__) == (
            repository / name
        ).read_text("utf-8")
