"""Settings -> sink: the right one, its library only when it is chosen, and a message that names the extra."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.delivery import KINDS, SCHEMES, ShipSettings
from agent.errors import ConfigError
from agent.ship.sinks.directory import DirectorySink
from agent.ship.sinks.factory import make_sink
from agent.ship.sinks.http import HttpSink


@pytest.mark.parametrize(
    ("ship_to", "library", "extra"),
    [
        ("s3://bucket/prefix", "obstore", "statewarden[objectstore]"),
        ("gs://bucket/prefix", "obstore", "statewarden[objectstore]"),
        ("kafka://b:9092/t", "confluent_kafka", "statewarden[kafka]"),
    ],
)
def test_a_missing_library_names_its_extra(
    ship_to: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start says what to install; nothing else fails."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError) as caught:
        make_sink(ship_to, ShipSettings(), None)
    assert f"{ship_to} needs" in str(caught.value)
    assert f"pip install '{extra}'" in str(caught.value)


def test_directories_and_collectors_need_no_library(tmp_path: Path) -> None:
    """A path, a file URL and an address."""
    assert isinstance(make_sink(str(tmp_path), ShipSettings(), None), DirectorySink)
    assert isinstance(make_sink(f"file://{tmp_path}", ShipSettings(), None), DirectorySink)
    assert isinstance(make_sink("https://example.com/e", ShipSettings(), None), HttpSink)


def test_a_directory_below_the_state_directory_is_refused(tmp_path: Path) -> None:
    """The agent never writes there, by whatever spelling."""
    with pytest.raises(ConfigError, match="is inside the state directory"):
        make_sink(f"file://{tmp_path}/state/out", ShipSettings(), tmp_path / "state")


def test_no_library_is_loaded_before_it_is_chosen(repository: Path) -> None:
    """A process that made a directory sink holds neither of them."""
    program = (
        "import json, sys\nfrom agent.delivery import ShipSettings\nfrom agent.ship.sinks.factory import make_sink\n"
        "make_sink('out', ShipSettings(), None)\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, check=True)
    assert not {kind.library for kind in KINDS if kind.library} & set(json.loads(done.stdout))


def test_every_module_is_a_sink_of_one_kind(repository: Path) -> None:
    """The table of kinds names each module beside the shared ones once, each has `make`, and no scheme has two."""
    modules = {path.stem for path in (repository / "agent/ship/sinks").glob("*.py")}
    assert modules - {"__init__", "base", "factory"} == {kind.module for kind in KINDS}
    assert all(callable(importlib.import_module(f"agent.ship.sinks.{kind.module}").make) for kind in KINDS)
    assert len(SCHEMES) == sum(len(kind.schemes) for kind in KINDS)
    assert all(kind in SCHEMES.values() for kind in KINDS)
