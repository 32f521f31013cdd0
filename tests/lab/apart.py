"""Run a command in a PID namespace of its own, as a sidecar without a shared one is: it sees no other process.

Usage: `python apart.py COMMAND ...`. SIGTERM is handed on; the exit code is the command's. Needs the right to make
namespaces (root, or CAP_SYS_ADMIN).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000


def main() -> int:
    """Become the parent of the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    _must(libc.unshare(CLONE_NEWNS | CLONE_NEWPID))
    child = os.fork()
    if child == 0:
        _must(libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG: never left behind
        _must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        _must(libc.mount(b"proc", b"/proc", b"proc", 0, None))
        # process 1 of a namespace ignores signals that it has no handler for; the agent has handlers
        os.execvp(sys.argv[1], sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _must(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    sys.exit(main())
