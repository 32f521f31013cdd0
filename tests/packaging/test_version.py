"""`--version`: a first line for scripts, then what a bug report needs."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import agent
import spark_rollup
from agent.cli import version as agent_version
from agent.contract.codec import SCHEMA_VERSION
from spark_rollup import version as rollup_version


def fields(text: str) -> dict[str, str]:
    """Read the lines as name and rest."""
    return dict(line.split(maxsplit=1) for line in text.splitlines())


def test_the_first_line_is_name_and_version() -> None:
    """`statewarden --version | head -1`."""
    assert agent_version.version_text().splitlines()[0] == f"statewarden {agent.__version__}"
    assert rollup_version.version_text().splitlines()[0] == f"statewarden-rollup {spark_rollup.__version__}"


def test_the_lines_below_describe_the_installation() -> None:
    """Commit, Python, libraries and the contract."""
    said = fields(agent_version.version_text())
    assert said["commit"] == "unknown"  # a checkout: git knows it
    assert said["python"].startswith(f"{platform.python_version()}, /")
    assert said["contract"] == SCHEMA_VERSION
    rollup = fields(rollup_version.version_text())
    assert rollup["spark"] == version("pyspark")
    assert rollup["contract"] == f"reads {SCHEMA_VERSION.partition('.')[0]}.x"


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ((), "none; not installed: objectstore, kafka, verify, rollup"),
        (("confluent_kafka", "rocksdict"), "kafka; not installed: objectstore, verify, rollup"),
        (
            ("confluent_kafka", "rocksdict", "xxhash", "obstore", "pyspark"),
            "objectstore, kafka, verify, rollup; not installed: none",
        ),
    ],
)
def test_an_extra_is_there_with_all_its_modules(
    monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], said: str
) -> None:
    """`verify` without a hash is no `verify`."""
    monkeypatch.setattr(agent_version, "find_spec", lambda name: object() if name in there else None)
    assert fields(agent_version.version_text())["extras"] == said


def test_without_spark_the_rollup_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed without the extra, it still says what it is."""
    monkeypatch.setattr(rollup_version, "find_spec", lambda _: None)
    assert fields(rollup_version.version_text())["spark"] == "not installed"


PROGRAM = """
import sys
from {module} import main
try:
    code = main(["--version"])
except SystemExit as stop:
    code = stop.code
assert not code, code
assert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)
"""


@pytest.mark.parametrize("module", ["agent.cli", "spark_rollup.cli"])
def test_it_loads_no_library(module: str, repository: Path) -> None:
    """It is quick: what is there is searched for, and git is not asked."""
    heavy = {"pyspark", "obstore", "confluent_kafka", "rocksdict", "xxhash", "psutil", "subprocess"} - (
        {"subprocess"} if module == "spark_rollup.cli" else set()
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module, heavy=heavy)],
        cwd=repository, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("say", [agent_version.version_text, rollup_version.version_text])
def test_it_is_plain_text(say: Callable[[], str]) -> None:
    """Name, blanks, rest: nothing that `awk` cannot read."""
    assert all(len(line.split(maxsplit=1)) == 2 for line in say().splitlines())
