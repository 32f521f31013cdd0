"""The auditor writes nothing: the calls that could are found in the code, wherever they hide.

ruff's banned-API list sees functions of modules; this sees methods (`Path.unlink`), modes of `open` and
flags of `os.open` too. What really happens to a state directory is asserted end to end elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

OWN_FILES = ("agent/ship/", "agent/home/", "agent/cli/", "agent/verify/")
"""Only these may write, and only what is ours: spool, sink, baseline, a command's output, its private directory."""

WRITING_METHODS = {
    "chmod", "chown", "copy", "copyfile", "copytree", "hardlink_to", "lchmod", "link", "makedirs", "mkdir",
    "mkfifo", "mknod", "move", "removedirs", "rename", "renames", "rmdir", "rmtree", "setxattr", "symlink",
    "symlink_to", "touch", "truncate", "unlink", "utime", "write_bytes", "write_text",
}  # fmt: skip
WRITING_FUNCTIONS = {
    ("os", "remove"),
    ("os", "replace"),
    ("os", "write"),
    ("os", "pwrite"),
    ("os", "ftruncate"),
}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"}
LOCKING = {"flock", "lockf", "F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW"}
ASKING_THE_TIME = {("time", "time"), ("time", "time_ns"), ("time", "monotonic"), ("time", "monotonic_ns")}


def offences(source: str) -> Iterator[str]:
    """List calls and names that change files or take locks, as `line: name`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in WRITING_FLAGS | LOCKING:
            yield f"{node.lineno}: {node.attr}"
        elif isinstance(node, ast.Call) and (name := _writing_call(node)):
            yield f"{node.lineno}: {name}"


def _writing_call(call: ast.Call) -> str | None:
    if _opens_for_writing(call):
        return "open for writing"
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
    if call.func.attr in WRITING_METHODS or (owner, call.func.attr) in WRITING_FUNCTIONS:
        return call.func.attr
    return None


def _opens_for_writing(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        position = 1  # open(path, mode)
    elif isinstance(call.func, ast.Attribute):
        position = 0 if call.func.attr == "open" else 1  # path.open(mode), gzip.open(path, mode)
    else:
        return False
    name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
    if name not in {"open", "fdopen", "GzipFile"}:
        return False
    candidates = [*call.args[position : position + 2], *(k.value for k in call.keywords if k.arg == "mode")]
    modes = [
        node.value for node in candidates if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return any(set(mode) & set("wax+") and set(mode) <= set("rwaxbt+U") for mode in modes)


def agent_modules(repository: Path) -> dict[str, str]:
    """Read every module of the agent, keyed by its path in the repository."""
    return {
        path.relative_to(repository).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((repository / "agent").rglob("*.py"))
    }


def test_only_the_agents_own_files_are_written(repository: Path) -> None:
    """Outside the spool, the baseline and the commands, no module can write, delete, rename or lock."""
    found = {
        path: bad
        for path, source in agent_modules(repository).items()
        if not path.startswith(OWN_FILES) and (bad := list(offences(source)))
    }
    assert found == {}


def test_only_the_agents_own_directories_are_locked(repository: Path) -> None:
    """The file locks that are ever taken keep two agents off one spool, and off one home."""
    found = {
        path: names
        for path, source in agent_modules(repository).items()
        if not path.startswith(("agent/ship/", "agent/home/"))
        and (names := [line for line in offences(source) if line.rpartition(" ")[2] in LOCKING])
    }
    assert found == {}


def test_only_the_clock_asks_the_time(repository: Path) -> None:
    """Wall clock and monotonic clock are read in one module."""
    found = [
        f"{path}:{node.lineno}"
        for path, source in agent_modules(repository).items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if (node.value.id, node.attr) in ASKING_THE_TIME and path != "agent/clock.py"
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "path.unlink()",
        "Path(x).rename(y)",
        "os.remove(x)",
        "open(x, 'w')",
        "open(x, mode='ab')",
        "path.open('r+b')",
        "gzip.open(x, 'wt')",
        "os.open(x, os.O_RDONLY | os.O_CREAT)",
        "fcntl.lockf(fd, 1)",
        "fcntl.fcntl(fd, fcntl.F_SETLK, data)",
    ],
)
def test_writing_is_recognised(source: str) -> None:
    """Each way to write or lock is seen."""
    assert list(offences(source))


@pytest.mark.parametrize(
    "source",
    [
        "open(x)",
        "path.open('rb')",
        "gzip.open(x, 'rt')",
        "os.open(x, os.O_RDONLY | os.O_NOFOLLOW)",
        "fcntl.fcntl(fd, fcntl.F_GETLK, data)",
        "text.replace('a', 'w')",
        "stream.write(line)",
    ],
)
def test_reading_is_let_pass(source: str) -> None:
    """Reading, asking about locks and writing to a stream are no offences."""
    assert not list(offences(source))
