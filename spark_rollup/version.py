"""`--version`: name and version in the first line, what a bug report needs below it."""

from __future__ import annotations

import platform
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from agent.contract.built import COMMIT
from agent.contract.events import SCHEMA_MAJOR
from spark_rollup import __version__

_RELEASE = re.compile(r"""__version__.*?["']([^"']+)["']""")


def version_text() -> str:
    """Describe this installation; Spark is not loaded for it."""
    return (
        f"statewarden-rollup {__version__}\n"
        f"commit    {COMMIT}\n"
        f"python    {platform.python_version()}, {sys.executable}\n"
        f"spark     {_spark() or 'not installed'}\n"
        f"contract  reads {SCHEMA_MAJOR}.x\n"
    )


def _spark() -> str | None:
    """Read the release of Spark's Python package: one that `spark-submit` brings has no metadata."""
    found = find_spec("pyspark")
    for folder in found.submodule_search_locations or () if found else ():
        release = _RELEASE.search((Path(folder) / "version.py").read_text("utf-8"))
        if release is not None:
            return release[1]
    return None
