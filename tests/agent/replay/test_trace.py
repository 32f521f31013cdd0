"""The trace reader: what a line means, and what is refused with file and line."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import TraceError
from agent.replay.trace import OPERATIONS, Encoded, Operation, read_trace

GOOD = {"t": 1.5, "op": "mkdir", "path": "app"}


def written(tmp_path: Path, *lines: object, name: str = "trace.jsonl") -> Path:
    """Write lines (bytes as they are, anything else as JSON) to a trace."""
    path = tmp_path / name
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    content = b"".join(line + b"\n" for line in raw)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def refused(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        list(read_trace(path))
    return str(caught.value)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz", "misnamed.jsonl", "plain.gz"])
def test_plain_and_packed(tmp_path: Path, name: str) -> None:
    """The content decides whether a trace is packed, not its name; blank lines are nothing."""
    path = written(tmp_path, GOOD, b"", GOOD, name="x.jsonl.gz" if name == "misnamed.jsonl" else "x.jsonl")
    renamed = path.rename(tmp_path / name)
    assert list(read_trace(renamed)) == [Operation(1_500_000, "mkdir", "app")] * 2


def test_every_field(tmp_path: Path) -> None:
    """All recorded fields arrive; times are whole microseconds."""
    lines = [
        {"t": 1795225436.166116, "op": "start", "version": "4.1.2", "pid": 7, "note": "first"},
        {"t": 2, "op": "write", "path": "a/b", "b64": base64.b64encode(b"\x00\xff").decode(), "off": 7},
        {"t": 2, "op": "write", "path": "a/b", "b64": "", "deleted": True},
        {"t": 2, "op": "truncate", "path": "a/b", "size": 9},
        {"t": 2, "op": "open_w", "path": "a/b", "append": True},
        {"t": 2, "op": "rename", "path": "a/b", "to": "a/c"},
        {"t": 3, "op": "exit", "how": "killed"},
        {"t": 3, "op": "exit", "how": "clean", "code": 1},
    ]
    assert list(read_trace(written(tmp_path, *lines))) == [
        Operation(1_795_225_436_166_116, "start", version="4.1.2"),
        Operation(2_000_000, "write", "a/b", data=b"\x00\xff", offset=7),
        Operation(2_000_000, "write", "a/b", nameless=True),
        Operation(2_000_000, "truncate", "a/b", size=9),
        Operation(2_000_000, "open_w", "a/b", append=True),
        Operation(2_000_000, "rename", "a/b", to="a/c"),
        Operation(3_000_000, "exit", killed=True),
        Operation(3_000_000, "exit"),
    ]


def test_reading_is_lazy(tmp_path: Path) -> None:
    """Operations before a bad line are given before it is complained about."""
    reading = read_trace(written(tmp_path, GOOD, b"garbage"))
    assert next(reading).op == "mkdir"
    with pytest.raises(TraceError):
        next(reading)


def test_a_truncated_file(tmp_path: Path) -> None:
    """A packed trace that ends too early says after which line."""
    path = written(tmp_path, *[{**GOOD, "path": str(n) * 50} for n in range(200)], name="x.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-60])
    assert f"{path}: damaged or truncated after line " in refused(path)


def test_a_damaged_file(tmp_path: Path) -> None:
    """A flipped bit inside is found, at the latest by the checksum."""
    path = written(tmp_path, *[GOOD] * 50, name="x.jsonl.gz")
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    assert "damaged or truncated" in refused(path)


def test_a_line_that_ends_in_the_middle(tmp_path: Path) -> None:
    """A plain trace that was cut in a line names that line."""
    path = written(tmp_path, GOOD, GOOD)
    path.write_bytes(path.read_bytes()[:-9])
    assert f"{path}: line 2: not a trace operation" in refused(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        *(
            (line, "line 2: not a trace operation")
            for line in (
                b"garbage", b"\xff\xfe\x00", [1], None, {**GOOD, "t": "soon"}, {**GOOD, "t": float("nan")},
                {**GOOD, "op": ["mkdir"]}, {**GOOD, "path": 5}, {**GOOD, "op": "rename", "to": ["x"]},
                {**GOOD, "op": "truncate", "size": "x"}, {**GOOD, "op": "write", "off": 1.5},
                {**GOOD, "op": "write", "off": -1}, {**GOOD, "op": "write", "b64": "***"},
                {**GOOD, "op": "write", "b64": "A"}, {**GOOD, "op": "write", "b64": "A" * 9_999},
                {**GOOD, "op": "write", "b64": 7},
            )
        ),
        (json.dumps(GOOD).encode() * 2, "line 2: not a trace operation (more than one value, the second at column "),
        ({"t": 1}, "line 2: not a trace operation ('op')"),
        ({"op": "mkdir", "path": "x"}, "line 2: not a trace operation ('t')"),
        ({**GOOD, "op": "chmod"}, "line 2: unknown operation 'chmod'"),
    ],
)  # fmt: skip
def test_a_bad_line(tmp_path: Path, line: object, words: str) -> None:
    """Each bad line is refused with file and line, never read as something else."""
    path = written(tmp_path, GOOD, line)
    assert refused(path).startswith(f"{path}: {words}")


def test_nothing_to_read(tmp_path: Path) -> None:
    """A missing file, a directory and an empty file are three different complaints."""
    assert refused(tmp_path / "none") == f"{tmp_path / 'none'}: cannot be read: No such file or directory"
    assert refused(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
    assert "empty; a trace has at least one operation" in refused(written(tmp_path))


@given(st.binary(max_size=200))
def test_garbage_is_a_trace_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever the bytes, the answer is operations or a TraceError that names the file."""
    path = tmp_path_factory.mktemp("garbage") / "trace"
    path.write_bytes(content)
    found, complaint = [], f"{path}: "
    try:
        found = list(read_trace(path))
    except TraceError as error:
        complaint = str(error)
    assert complaint.startswith(f"{path}: ")
    assert all(operation.op in OPERATIONS for operation in found)


def test_the_recorded_operations_are_all_known(repository: Path) -> None:
    """A recorded run uses nothing that the reader leaves out."""
    trace = repository / "tests/data/traces/benign-move-3.9.2/trace-pod-a.jsonl.gz"
    lines = gzip.decompress(trace.read_bytes()).splitlines()
    keys = {key for line in lines for key in json.loads(line)}
    assert keys <= {
        "t", "op", "path", "to", "b64", "off", "size", "deleted", "append", "version", "how", "pid", "code",
        "note", "by",
    }  # fmt: skip
    assert len(list(read_trace(trace))) == len(lines)


Numbers = st.none() | st.integers(-40, 40)


@given(st.binary(max_size=30), Numbers, Numbers)
def test_a_slice_is_that_of_the_bytes(content: bytes, start: int | None, end: int | None) -> None:
    """Length and every slice are as of the decoded bytes."""
    encoded = Encoded(base64.b64encode(content).decode())
    assert len(encoded) == len(content)
    assert encoded[start:end] == content[start:end]


@given(st.text(alphabet="AZaz09+/=- \n\u00e9", max_size=12))
def test_what_is_taken_is_base64(text: str) -> None:
    """Nothing is taken that the strict decoder refuses."""
    try:
        encoded = Encoded(text)
    except ValueError:
        return
    assert encoded[:] == binascii.a2b_base64(text, strict_mode=True)


@pytest.mark.parametrize(
    "text", ["A", "AA=", "A===", "=AAA", "AA=A", "AA==AA==", "AAA-", "AA A", "AAA\u00e9"]
)
def test_what_is_no_base64_is_refused(text: str) -> None:
    """A wrong character, length or padding is noticed before anything is decoded."""
    with pytest.raises(ValueError, match=r"base64|ascii"):
        Encoded(text)
