"""What makes a process a container's, without one: namespaces, a read-only bind mount, another user, no privileges.

`python apart.py COMMAND ...` runs a command in a PID namespace of its own, as a sidecar without a shared one is: it
sees no other process. Needs the right to make namespaces (root, or CAP_SYS_ADMIN).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
_LIBC = ctypes.CDLL(None, use_errno=True)


def live_apart(
    body: Callable[[], int], user: tuple[int, int] | None = None, mount: tuple[Path, Path] | None = None
) -> int:
    """Run a function in PID and mount namespaces of its own; hands SIGTERM on, gives the exit code.

    The function runs in a fork without an exec: what it needs has to be imported before, because another user may not
    be able to read the interpreter's files. `user`: its user and only group; None: ours. `mount`: a directory, and
    where it is mounted read-only.
    """
    _must(_LIBC.unshare(CLONE_NEWNS | CLONE_NEWPID))
    child = os.fork()
    if child == 0:
        _must(_LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        _must(_LIBC.mount(b"proc", b"/proc", b"proc", 0, None))
        if mount is not None:
            source, target = (os.fsencode(path) for path in mount)
            _must(_LIBC.mount(source, target, None, MS_BIND, None))
            _must(_LIBC.mount(source, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY, None))
        if user is not None:
            _become(*user)
        _must(_LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))  # never left behind
        code = body()
        sys.stdout.flush()
        os._exit(code)
    # process 1 of a namespace ignores signals that it has no handler for; the agent has handlers
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)  # from root to another user: every capability is gone
    os.umask(0o027)
    _must(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _must(_LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # as after an exec: /proc/self is one's own again


def _must(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    sys.exit(live_apart(lambda: os.execvp(sys.argv[1], sys.argv[1:])))
