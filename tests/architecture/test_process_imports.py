"""Lazy imports escape the import contracts, so real processes are asked what they loaded."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.delivery import KINDS

LOADED = """
import importlib, json, sys
for name in {names!r}:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""

SPARK_SIDE = {"pyspark", "py4j", "pyarrow", "pandas", "numpy", "spark_rollup"}
OPTIONAL_SINKS = {kind.library for kind in KINDS if kind.library}
AGENT_SIDE = {"watchdog", "psutil", "prometheus_client"}


def modules_of(package: str, root: Path) -> list[str]:
    """List a package's modules, packages below it included, without importing them."""
    found = pkgutil.walk_packages([str(root / package)], prefix=f"{package}.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def loaded_after(names: list[str], root: Path) -> set[str]:
    """Import the modules in a fresh interpreter and tell which top-level packages it holds then."""
    program = LOADED.format(names=names)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_the_command_loads_no_spark_and_no_optional_sink(repository: Path) -> None:
    """Importing the agent's command loads neither Spark's world nor a sink that nobody configured."""
    loaded = loaded_after(["agent.cli"], repository)
    assert not loaded & (SPARK_SIDE | OPTIONAL_SINKS)


def test_a_command_loads_no_heavy_part(repository: Path) -> None:
    """A look at a disk does without the exporter's library, OpenSSL, a mail parser and psutil: 12 MiB."""
    loaded = loaded_after(["agent.cli"], repository)
    assert not loaded & {"ssl", "_ssl", "email", "psutil", "prometheus_client"}


def test_the_agent_loads_psutil_only_where_it_is_needed(repository: Path) -> None:
    """Watching asks /proc itself; psutil comes with the first process that is seen."""
    loaded = loaded_after(["agent.process.supervisor"], repository)
    assert "prometheus_client" in loaded
    assert "psutil" not in loaded


def test_every_agent_module_loads_without_spark(repository: Path) -> None:
    """All modules of the agent together load nothing of Spark's world."""
    names = modules_of("agent", repository)
    assert "agent.layout.paths" in names
    assert not loaded_after(names, repository) & SPARK_SIDE


@pytest.mark.parametrize("package", ["agent.contract", "agent.layout"])
def test_the_leaves_load_only_the_standard_library(repository: Path, package: str) -> None:
    """Contract and layout cost nothing: whatever they load comes with Python."""
    names = [name for name in modules_of("agent", repository) if f"{name}.".startswith(f"{package}.")]
    before = loaded_after([], repository)
    extra = loaded_after(names, repository) - before - set(sys.stdlib_module_names)
    assert extra == {"agent"}


def test_rollup_modules_load_nothing_of_the_agent_but_the_contract(repository: Path) -> None:
    """All rollup modules together leave the agent's libraries alone."""
    names = modules_of("spark_rollup", repository)
    assert "spark_rollup.schemas" in names
    assert not loaded_after(names, repository) & AGENT_SIDE
