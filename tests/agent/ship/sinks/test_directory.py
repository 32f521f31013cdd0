"""The directory sink, the names under which sinks get segments, and how a sink is made from settings."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.delivery import KINDS, SCHEMES, ShipSettings
from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.sinks.base import make_sink, object_name
from agent.ship.sinks.directory import DirectorySink
from agent.ship.sinks.http import HttpSink

NAME = "uid-1/boot1-000000000001-000000000002"
PAYLOAD = b'{"a":1}\n{"b":2}\n'


def test_writes_gzip_json_lines(tmp_path: Path) -> None:
    """The file holds exactly the lines, carries no time, and nothing lies beside it."""
    DirectorySink(tmp_path / "out").put(NAME, PAYLOAD)
    path = tmp_path / "out" / f"{NAME}.jsonl.gz"
    data = path.read_bytes()
    assert gzip.decompress(data) == PAYLOAD
    assert data[4:8] == b"\0\0\0\0"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_same_segment_twice_is_harmless(tmp_path: Path) -> None:
    """The second put changes neither bytes nor file, also if another zlib had written the first."""
    sink, path = DirectorySink(tmp_path), tmp_path / f"{NAME}.jsonl.gz"
    sink.put(NAME, PAYLOAD)
    before = (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns)
    sink.put(NAME, PAYLOAD)
    assert (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) == before
    path.write_bytes(gzip.compress(PAYLOAD, 1, mtime=5))
    sink.put(NAME, PAYLOAD)
    assert gzip.decompress(path.read_bytes()) == PAYLOAD


@pytest.mark.parametrize(
    "there", [gzip.compress(b"other", mtime=0), b"", b"no gzip", gzip.compress(PAYLOAD, mtime=0)[:-4]]
)
def test_another_content_under_the_name_is_permanent(tmp_path: Path, there: bytes) -> None:
    """What is there is never overwritten."""
    path = tmp_path / f"{NAME}.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(there)
    with pytest.raises(PermanentShipError, match="another content"):
        DirectorySink(tmp_path).put(NAME, PAYLOAD)
    assert path.read_bytes() == there


def test_a_leftover_of_a_killed_attempt_is_replaced(tmp_path: Path) -> None:
    """A half-written temporary file is no obstacle and does not stay."""
    folder = tmp_path / "uid-1"
    folder.mkdir()
    (folder / ".boot1-000000000001-000000000002.jsonl.gz.tmp").write_bytes(b"half")
    DirectorySink(tmp_path).put(NAME, PAYLOAD)
    assert [p.name for p in folder.iterdir()] == ["boot1-000000000001-000000000002.jsonl.gz"]


def test_trouble_of_the_file_system_is_retryable(tmp_path: Path) -> None:
    """A place that cannot be written is named and may be tried again."""
    (tmp_path / "out").write_text("a file is in the way")
    with pytest.raises(RetryableShipError, match=r"cannot write .*boot1"):
        DirectorySink(tmp_path / "out").put(NAME, PAYLOAD)


def test_refuses_the_state_directory(tmp_path: Path) -> None:
    """A sink in the state directory is refused before anything is made."""
    with pytest.raises(ConfigError, match="inside the state directory"):
        DirectorySink(tmp_path / "state" / "out", tmp_path / "state")
    DirectorySink(tmp_path / "out", tmp_path / "state")


@pytest.mark.parametrize(
    ("uid", "folder"),
    [
        ("0d9c-11ee", "0d9c-11ee"),
        ("a/b", "a%2Fb"),
        ("..", "%2E."),
        ("", "unknown"),
        ("Prüfung 1", "Pr%C3%BCfung%201"),
    ],
)
def test_folders(uid: str, folder: str) -> None:
    """An ordinary uid stays as it is; what could leave the directory or hide is escaped."""
    assert object_name(uid, "b-1-2") == f"{folder}/b-1-2"


@given(
    first=st.text(st.characters(exclude_categories=())), second=st.text(st.characters(exclude_categories=()))
)
def test_folders_are_safe(first: str, second: str) -> None:
    """Any uid gives one short, visible path component of safe characters; distinct printable uids differ."""
    folder = object_name(first, "n").removesuffix("/n")
    assert re.fullmatch(r"[A-Za-z0-9%_-][A-Za-z0-9%._-]{0,99}", folder)
    if first.isascii() and second.isascii() and first and second:
        assert (folder == object_name(second, "n").removesuffix("/n")) == (first == second)


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
        "import json, sys\nfrom agent.delivery import ShipSettings\nfrom agent.ship.sinks.base import make_sink\n"
        "make_sink('out', ShipSettings(), None)\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, check=True)
    assert not {kind.library for kind in KINDS if kind.library} & set(json.loads(done.stdout))


def test_every_module_is_a_sink_of_one_kind(repository: Path) -> None:
    """The table of kinds names each module beside the shared ones once, each has `make`, and no scheme has two."""
    modules = {path.stem for path in (repository / "agent/ship/sinks").glob("*.py")}
    assert modules - {"__init__", "base"} == {kind.module for kind in KINDS}
    assert all(callable(importlib.import_module(f"agent.ship.sinks.{kind.module}").make) for kind in KINDS)
    assert len(SCHEMES) == sum(len(kind.schemes) for kind in KINDS)
    assert all(kind in SCHEMES.values() for kind in KINDS)
