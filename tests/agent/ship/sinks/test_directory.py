"""The directory sink: whole files only, the same bytes for the same segment."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.sinks.directory import DirectorySink

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
