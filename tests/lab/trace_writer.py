"""Turn the calls of a process into the operations of a trace, in the format of `tests/data/traces/README.md`."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from tests.lab.strace_lines import Call

READ_NAMES = ("CURRENT", "LOCK", ".lock", "kafka-streams-process-metadata")
MERGE_S = 0.02
MERGE_BYTES = 1 << 20
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True, eq=False)
class _File:
    path: str
    size: int = 0
    is_locked: bool = False
    is_gone: bool = False


@dataclass(slots=True, eq=False)
class _Handle:
    file: _File
    writes: bool
    appends: bool
    position: int = 0


@dataclass(slots=True)
class TraceWriter:
    """Holds the state directory as it must be now, over all runs of a pod."""

    root: str  # the state directory, absolute; it was empty when the first run began
    operations: list[dict[str, Any]] = field(default_factory=list)  # written so far
    _files: dict[str, _File] = field(default_factory=dict)
    _handles: dict[int, _Handle] = field(default_factory=dict)

    def run(self, calls: Iterable[Call], version: str, note: str) -> None:
        """Add one run of the process, from its start to its end."""
        process = 0
        self._handles.clear()
        for call in calls:
            if not process:
                process = call.thread
                self._add(call.at_us, "start", pid=process, version=version, note=note)
            if call.name in ("exited", "killed"):
                if call.thread == process:
                    self._end(call, process)
            elif play := _PLAYERS.get(call.name):
                play(self, call)

    def _end(self, call: Call, process: int) -> None:
        for file in {handle.file for handle in self._handles.values() if handle.file.is_locked}:
            self._unlock(call.at_us, file, by="exit")
        code: dict[str, Any] = {"code": call.result} if call.result else {}
        self._add(call.at_us, "exit", how="killed" if call.name == "killed" else "clean", pid=process, **code)

    # ------------------------------------------------------------------------------------ names

    def _mkdir(self, call: Call) -> None:
        if path := self._path(call.texts[0]):
            self._add(call.at_us, "mkdir", path=path)

    def _unlink(self, call: Call) -> None:
        path = self._path(call.texts[0])
        if not path:
            return
        is_directory = call.name == "rmdir" or "AT_REMOVEDIR" in call.words
        self._add(call.at_us, "rmdir" if is_directory else "unlink", path=path)
        if file := self._files.pop(path, None):
            file.is_gone = True

    def _rename(self, call: Call) -> None:
        path, to = (self._path(text) for text in call.texts)
        if not path or not to:
            return
        self._add(call.at_us, "rename", path=path, to=to)
        for name in [x for x in self._files if x == path or x.startswith(f"{path}/")]:
            file, new = self._files.pop(name), to + name[len(path) :]
            if replaced := self._files.get(new):
                replaced.is_gone = True
            file.path, self._files[new] = new, file

    # ------------------------------------------------------------------------------------ descriptors

    def _open(self, call: Call) -> None:
        path = self._path(call.texts[0])
        self._handles.pop(call.result, None)
        if not path:
            return
        if path not in self._files:
            if "O_CREAT" not in call.words:
                return  # a directory
            self._files[path] = _File(path)
            self._add(call.at_us, "create", path=path)
        file = self._files[path]
        writes = "O_WRONLY" in call.words or "O_RDWR" in call.words
        appends = "O_APPEND" in call.words
        append: dict[str, Any] = {"append": True} if appends else {}
        if writes:
            self._add(call.at_us, "open_w", path=path, **append)
        elif is_read(path):
            self._add(call.at_us, "open_r", path=path)
        if "O_TRUNC" in call.words and file.size:
            file.size = 0
            self._add(call.at_us, "truncate", path=path, size=0)
        self._handles[call.result] = _Handle(file, writes, appends)

    def _close(self, call: Call) -> None:
        handle = self._handles.pop(_number(call, 0), None)
        if handle is None:
            return
        if handle.file.is_locked:
            self._unlock(call.at_us, handle.file, by="close")
        if handle.writes:
            self._add(call.at_us, "close_w", handle.file)

    def _write(self, call: Call) -> None:
        handle = self._handles.get(_number(call, 0))
        if handle is None:
            return
        data = b"".join(call.texts)[: call.result]
        if call.name.startswith("pwrite"):
            at = _number(call, -1)
            self._add(call.at_us, "write", handle.file, data=data, off=at)
        else:
            at = handle.file.size if handle.appends else handle.position
            handle.position = at + len(data)
            self._append(call.at_us, handle.file, data)
        handle.file.size = max(handle.file.size, at + len(data))

    def _truncate(self, call: Call) -> None:
        if handle := self._handles.get(_number(call, 0)):
            handle.file.size = _number(call, -1)
            self._add(call.at_us, "truncate", handle.file, size=handle.file.size)

    def _fcntl(self, call: Call) -> None:
        handle = self._handles.get(_number(call, 0))
        if handle is None or "F_SETLK" not in call.words:
            return
        if "F_WRLCK" in call.words:
            handle.file.is_locked = True
            self._add(call.at_us, "lock", handle.file)
        elif "F_UNLCK" in call.words:
            self._unlock(call.at_us, handle.file)

    # ------------------------------------------------------------------------------------ operations

    def _append(self, at_us: int, file: _File, data: bytes) -> None:
        last = self.operations[-1]
        if (
            last["op"] == "write"
            and last["path"] == file.path
            and "off" not in last
            and at_us / 1e6 - last["t"] <= MERGE_S
            and len(last["data"]) + len(data) <= MERGE_BYTES
        ):
            last["data"] += data
        else:
            self._add(at_us, "write", file, data=data)

    def _unlock(self, at_us: int, file: _File, by: str = "") -> None:
        file.is_locked = False
        self._add(at_us, "unlock", file, **({"by": by} if by else {}))

    def _add(self, at_us: int, op: str, file: _File | None = None, **fields: Any) -> None:
        where: dict[str, Any] = {} if file is None else {"path": file.path}
        gone = {"deleted": True} if file is not None and file.is_gone else {}
        self.operations.append({"t": at_us / 1e6, "op": op, **where, **fields, **gone})

    def _path(self, text: bytes) -> str:
        """Give a path relative to the state directory; empty outside of it."""
        path = text.decode()
        return path[len(self.root) + 1 :] if path.startswith(f"{self.root}/") else ""

    def lines(self) -> Iterable[dict[str, Any]]:
        """Give the operations as they are written, content in base64."""
        for operation in self.operations:
            row = dict(operation)
            if "data" in row:
                row["b64"] = base64.b64encode(row.pop("data")).decode()
            yield row


def is_read(path: str) -> bool:
    """Tell whether reading this file belongs into a trace."""
    name = PurePosixPath(path).name
    return name in READ_NAMES or name.startswith(".checkpoint") or name.endswith(".position")


def _number(call: Call, index: int) -> int:
    return int(_DIGITS.findall(call.words)[index])


_PLAYERS = {
    "mkdir": TraceWriter._mkdir,
    "mkdirat": TraceWriter._mkdir,
    "rmdir": TraceWriter._unlink,
    "unlink": TraceWriter._unlink,
    "unlinkat": TraceWriter._unlink,
    "rename": TraceWriter._rename,
    "renameat": TraceWriter._rename,
    "renameat2": TraceWriter._rename,
    "open": TraceWriter._open,
    "openat": TraceWriter._open,
    "creat": TraceWriter._open,
    "close": TraceWriter._close,
    "write": TraceWriter._write,
    "writev": TraceWriter._write,
    "pwrite64": TraceWriter._write,
    "ftruncate": TraceWriter._truncate,
    "fcntl": TraceWriter._fcntl,
}
