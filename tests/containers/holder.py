"""An application's process as the agent sees it: it holds locks and a store, in namespaces of its own.

Usage: python holder.py UID GID STATE   Commands on stdin, one answer each: hold, tear, free.

The store is files like one's of RocksDB, with the same lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.apart import live_apart

EMPTY_STORE = b"!(e\xe9\x04\x00\x01\x03\x02\x04\x00"
"""A manifest with one edit: no files, the next one has number 2."""


class Holder:
    """One application with one task and one store."""

    def __init__(self, state: Path) -> None:
        """Remember where; nothing is made yet."""
        self._application = state / "app"
        self._task = self._application / "0_0"
        self._store = self._task / "rocksdb" / "s"
        self._held: list[Any] = []

    def hold(self) -> None:
        """Take the locks, make what is missing of the store, and write a checkpoint where there is none."""
        self._store.mkdir(parents=True, exist_ok=True)
        self._held.append(_locked(self._application / ".lock"))
        self._open_store()
        checkpoint = self._task / ".checkpoint"
        if not checkpoint.exists():
            temporary = checkpoint.with_name(".checkpoint.tmp")
            temporary.write_text("0\n1\napp-s-changelog 0 10\n")
            temporary.rename(checkpoint)

    def tear(self) -> None:
        """Delete the store and leave its checkpoint, as a deletion does that was killed on its way."""
        shutil.rmtree(self._store)

    def free(self) -> None:
        """Let everything go."""
        self._held.clear()

    def _open_store(self) -> None:
        (self._store / "IDENTITY").write_text(f"00000000-0000-4000-8000-{os.urandom(6).hex()}")
        (self._store / "MANIFEST-000001").write_bytes(EMPTY_STORE)
        (self._store / "CURRENT").write_text("MANIFEST-000001\n")
        self._held.append(_locked(self._store / "LOCK"))


def _locked(path: Path) -> Any:
    """Take the lock that the JVM and RocksDB take."""
    file = path.open("wb")
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def main() -> int:
    """Obey until stdin ends."""
    uid, gid, state = sys.argv[1:]
    holder = Holder(Path(state))

    def obey() -> int:
        for line in sys.stdin:
            getattr(holder, line.strip())()
            sys.stdout.write(f"{line.strip()}\n")
            sys.stdout.flush()
        return 0

    return live_apart(obey, (int(uid), int(gid)))


if __name__ == "__main__":
    sys.exit(main())
