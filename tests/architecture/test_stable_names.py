"""Names of tests depend on nothing but the files: workers that collect for themselves must come to the same ones.

A parameter that holds the time, the order of a set or an address makes a name that no other process has: xdist then
ends a run with "Different tests were collected".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.another_time import NAMES_TO

UNSTABLE = """
import gzip, random
from datetime import datetime
import pytest

@pytest.mark.parametrize("value", [gzip.compress(b"x")])
def test_the_time(value): pass

@pytest.mark.parametrize("value", [datetime.now().strftime("%Y-%m-%d")])
def test_the_day(value): pass

@pytest.mark.parametrize("value", ["-".join({str(x) for x in range(20)})])
def test_the_order_of_a_set(value): pass

@pytest.mark.parametrize("value", [str(object())])
def test_an_address(value): pass

@pytest.mark.parametrize("value", [random.random()])
def test_chance(value): pass

@pytest.mark.parametrize("value", [1, b"x", "y"])
def test_stable(value): pass
"""


def names_elsewhere(root: Path, places: Iterable[str], names_to: Path) -> set[str]:
    """Collect in another process: another hash seed, another day, no fixed seed of chance."""
    ours = os.environ.get("PYTHONHASHSEED")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:randomly", "-p", "no:cacheprovider",
         "-p", "tests.support.another_time", f"--rootdir={root}", *places],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "2" if ours == "1" else "1", NAMES_TO: str(names_to),
             "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True, text=True, timeout=230, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return set(json.loads(names_to.read_text("utf-8")))


@pytest.mark.timeout(600)
def test_names_are_the_same_in_another_process_and_at_another_time(
    request: pytest.FixtureRequest, repository: Path, tmp_path: Path
) -> None:
    """What this process has collected, another one finds by the same names: in `make test` all tests, else a part."""
    ours = {item.nodeid for item in request.session.items}
    files = sorted({name.partition("::")[0] for name in ours})
    missing = ours - names_elsewhere(repository, files, tmp_path / "names.json")
    assert sorted(missing)[:20] == []


def test_unstable_names_are_found(tmp_path: Path) -> None:
    """Each kind of name that only one process has is seen by collecting twice."""
    (tmp_path / "test_unstable.py").write_text(UNSTABLE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    elsewhere = names_elsewhere(tmp_path, ["test_unstable.py"], tmp_path / "names.json")
    here = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
         "test_unstable.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": "3"}, capture_output=True, text=True, timeout=230,
        check=True,
    )  # fmt: skip
    same = elsewhere & set(here.stdout.splitlines())
    assert len(elsewhere) == 8
    assert {name.partition("[")[0] for name in same} == {"test_unstable.py::test_stable"}
