"""What of Debian is in an image: certain things by the recipe, all of it by dpkg's record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.sbom.debian import Package, base_image, image_markers, installed_packages, recorded_packages

STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


def test_only_what_is_installed_is_recorded() -> None:
    assert list(recorded_packages(STATUS)) == [Package("libc6", "2.36-9", "amd64")]


def test_a_recipe_names_its_base() -> None:
    assert base_image("ARG BASE=python:3.13-slim\nFROM ${BASE}\n") == ("python", "3.13-slim")
    assert base_image("ARG BASE=one/python@sha256:ab\n") == ("one/python", "sha256:ab")
    with pytest.raises(ValueError, match="ARG BASE"):
        base_image("FROM scratch\n")


def test_the_bases_tag_names_the_python_that_markers_ask_about() -> None:
    markers = image_markers("ARG BASE=python:3.13-slim\nFROM ${BASE}\n")
    assert markers == {"python_full_version": "3.13.0", "python_version": "3.13", "sys_platform": "linux"}
    with pytest.raises(ValueError, match="version of Python"):
        image_markers("ARG BASE=debian:bookworm\n")


def test_what_only_the_build_installs_is_not_in_the_image(repository: Path) -> None:
    recipes = repository / "deploy" / "images"
    rollup = (recipes / "rollup.Containerfile").read_text(encoding="utf-8")
    assert installed_packages(rollup) == [Package("openjdk-17-jre-headless")]
    assert installed_packages((recipes / "agent.Containerfile").read_text(encoding="utf-8")) == []
