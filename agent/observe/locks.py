"""Lock query: asks the kernel who would be in the way of a read lock, and takes nothing.

Works on a read-only descriptor, on a read-only mount and across PID namespaces, where `/proc/locks` is empty
(docs/state-format.md#reading-locks).
"""

from __future__ import annotations

import fcntl
import os
import struct

from agent.inventory.disk import LockState

# struct flock of 64-bit Linux (x86-64, aarch64): short l_type, short l_whence, off_t l_start, off_t l_len,
# pid_t l_pid; `0q` pads the end to the alignment of off_t, as the C compiler does.
_FLOCK = struct.Struct("@hhqqi0q")
_WHOLE_FILE = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)


def query_lock(descriptor: int) -> LockState:
    """Ask whether another process holds a write lock on a file that is open for reading.

    Closing it afterwards is harmless: a close drops the record locks of the closing process only, and the agent has
    none. UNKNOWN where the file system does not say (no lock service).

    Source:
        FileChannel.lock of the JVM and RocksDB's LockOrUnlock both take an fcntl write lock over the whole
        file; a query of type F_RDLCK conflicts with exactly that and needs no write permission.
    """
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _WHOLE_FILE)
    except OSError:
        return LockState.UNKNOWN
    return LockState.FREE if _FLOCK.unpack(answer)[0] == fcntl.F_UNLCK else LockState.HELD
