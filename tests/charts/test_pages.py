"""YAML of the pages: values that the charts take, dependencies that there are, manifests that Kubernetes knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks
from tests.docs.shown import lines_of_blocks, lines_of_sentences
from tests.support.charts import APPLICATION, CHARTS, LIBRARY, NEWEST, Helm, mistakes, objects

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

DIRECTORY = APPLICATION / "ci" / "directory-values.yaml"

YAML = [block for block in blocks() if block.language == "yaml"]
PLACEHOLDERS = {"BUCKET": "streams-audit", "REGISTRY": "registry.example.com"}
VALUES = {"# the application\n": ("sidecar",), "# the audit\n": ("chart",), "# both\n": ("chart", "sidecar")}


def about(*beginnings: str) -> list[Block]:
    return [block for block in YAML if block.text.startswith(beginnings)]


def test_every_block_is_tried() -> None:
    """As `tests/docs` sorts them, and no other way."""
    tried = about(*VALUES, "# Chart.yaml", "apiVersion:")
    assert tried
    assert [block.place for block in YAML if block not in tried] == []


@pytest.mark.parametrize("block", about(*VALUES), ids=lambda block: block.place)
def test_values_are_taken(block: Block, chart: Helm, sidecar: Helm, tmp_path: Path) -> None:
    """Beside what every installation has; a key that the chart does not know is refused by its schema."""
    (given,) = (charts for beginning, charts in VALUES.items() if block.text.startswith(beginning))
    file = tmp_path / "values.yaml"
    for name in given:
        is_below = name == "sidecar" and block.text.startswith("# both")
        inner = "".join(f"  {line}\n" for line in block.text.splitlines())
        text = f"{LIBRARY.name}:\n{inner}" if is_below else block.text
        file.write_text(re.sub("|".join(PLACEHOLDERS), lambda found: PLACEHOLDERS[found[0]], text))
        done = sidecar.template(file) if name == "sidecar" else chart.template(file, image__preloaded=True)
        assert done.returncode == 0, done.stderr


RELEASE = "audit"
OURS = re.compile(rf"\b([a-z]+)/({RELEASE}-{APPLICATION.name}[a-z-]*)")


def test_objects_are_called_as_commands_call_them(chart: Helm) -> None:
    """`kubectl` commands name what a release `audit` of the chart makes."""
    made = {f"{x['kind'].lower()}/{x['metadata']['name']}" for x in chart.objects(DIRECTORY)}
    named = {
        "/".join(found)
        for line in (*lines_of_blocks(), *lines_of_sentences())
        for found in OURS.findall(line.text)
    }
    assert named
    assert named - made == set()


@pytest.mark.parametrize("block", about("# Chart.yaml"), ids=lambda block: block.place)
def test_a_dependency_is_one_of_our_charts(block: Block) -> None:
    """With the version that it has."""
    (found,) = objects(block.text)
    for one in found["dependencies"]:
        (about_it,) = objects((CHARTS / one["name"] / "Chart.yaml").read_text("utf-8"))
        assert one["version"] == about_it["version"]


@pytest.mark.parametrize("block", about("apiVersion:"), ids=lambda block: block.place)
def test_a_manifest_is_valid(block: Block) -> None:
    """Strictly, by the newest schemas."""
    assert mistakes(block.text, NEWEST) == []
