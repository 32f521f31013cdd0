"""The rollup's program is installed with the agent's; without its extra it says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_rollup.cli import WITHOUT_SPARK

PROGRAM = """
import sys
class Without:
    def find_spec(name, *_):
        if name == "pyspark":
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
sys.meta_path.insert(0, Without)
from spark_rollup.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "words",
    [
        "audit --input IN --output OUT",
        "ingest --input IN --bronze OUT",
        "verify --digests IN --output OUT",
        "safe-to-restart --input IN",
        "jars delta",
    ],
)
def test_a_command_that_needs_spark_says_what_to_install(
    words: str, tmp_path: Path, repository: Path
) -> None:
    """One line and 2: not 1, which would mean that something was found."""
    events = tmp_path / "in"
    events.mkdir()
    (events / "a.jsonl").write_text("{}\n")
    told = words.replace("IN", str(events)).replace("OUT", str(tmp_path / "out")).split()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *told],
        cwd=repository, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"statewarden-rollup: {WITHOUT_SPARK}\n"
