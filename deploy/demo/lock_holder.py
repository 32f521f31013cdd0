"""The stand-in for one JVM: does file operations on request and so owns their descriptors and locks.

Started by `materialise.py`, one process per recorded JVM run, inside the state directory. It reads one operation
per line on stdin (JSON) and answers each with `ok` or with what went wrong. Standard library only.

A POSIX record lock belongs to the process and goes when the process closes *any* descriptor of that file. So every
file is opened once, and a recorded open for reading is not repeated here.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import sys
from collections.abc import Callable
from typing import Any

Operation = dict[str, Any]


class Files:
    """The open files of one process, by path; a file without a name is kept apart."""

    def __init__(self) -> None:
        """Start with nothing open."""
        self._open: dict[str, int] = {}
        self._nameless: dict[str, int] = {}
        self._do: dict[str, Callable[[Operation], object]] = {
            "mkdir": lambda op: os.mkdir(op["path"], 0o755),
            "rmdir": lambda op: os.rmdir(op["path"]),
            "touch": lambda op: os.close(os.open(op["path"], os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)),
            "utime": lambda op: os.utime(op["path"]),
            "open_w": self._open_for_writing,
            "write": self._write,
            "truncate": lambda op: os.ftruncate(self._descriptor(op), op["size"]),
            "close_w": self._close,
            "lock": lambda op: self._set_lock(op, fcntl.LOCK_EX | fcntl.LOCK_NB),
            "unlock": lambda op: self._set_lock(op, fcntl.LOCK_UN),
            "unlink": self._unlink,
            "rename": self._rename,
        }

    def do(self, operation: Operation) -> None:
        """Do one operation.

        Raises:
            OSError: The file system refused.
            KeyError: The operation is unknown, or its file is not open.
        """
        self._do[operation["op"]](operation)

    def _descriptor(self, operation: Operation) -> int:
        return (self._nameless if operation.get("deleted") else self._open)[operation["path"]]

    def _open_for_writing(self, operation: Operation) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC  # read and write, as RocksDB opens LOCK
        flags |= os.O_CREAT | os.O_EXCL if operation.get("new") else 0
        flags |= os.O_APPEND if operation.get("append") else 0
        self._open[operation["path"]] = os.open(operation["path"], flags, 0o644)

    def _write(self, operation: Operation) -> None:
        descriptor, data = self._descriptor(operation), memoryview(base64.b64decode(operation["b64"]))
        offset = operation.get("off")
        while data:
            written = os.write(descriptor, data) if offset is None else os.pwrite(descriptor, data, offset)
            data = data[written:]
            offset = None if offset is None else offset + written

    def _close(self, operation: Operation) -> None:
        os.close((self._nameless if operation.get("deleted") else self._open).pop(operation["path"]))

    def _set_lock(self, operation: Operation, how: int) -> None:
        fcntl.lockf(self._descriptor(operation), how)

    def _unlink(self, operation: Operation) -> None:
        os.unlink(operation["path"])
        self._lose_name(operation["path"])

    def _rename(self, operation: Operation) -> None:
        path, to = operation["path"], operation["to"]
        os.rename(path, to)
        self._lose_name(to)
        if path in self._open:
            self._open[to] = self._open.pop(path)

    def _lose_name(self, path: str) -> None:
        if path in self._open:
            self._nameless[path] = self._open.pop(path)


def main() -> None:
    """Serve operations until `exit` or until the parent is gone."""
    files = Files()
    os.umask(0o022)
    for line in sys.stdin.buffer:
        operation = json.loads(line)
        if operation["op"] == "exit":
            break
        try:
            files.do(operation)
            answer = "ok"
        except (OSError, KeyError) as error:
            answer = repr(error)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    os._exit(0)  # like a JVM that ends: the kernel closes the files and releases the locks


if __name__ == "__main__":
    main()
