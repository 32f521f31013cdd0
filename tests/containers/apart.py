"""What makes a process a container's, without one: namespaces, a read-only bind mount, another user, no privileges."""

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


def live_apart(uid: int, gid: int, body: Callable[[], int], mount: tuple[Path, Path] | None = None) -> int:
    """Run a function in PID and mount namespaces of its own, as another user; hands SIGTERM on, gives the exit code.

    The function runs in a fork without an exec: what it needs has to be imported before, because the other user may
    not be able to read the interpreter's files.

    Args:
        uid: Its user.
        gid: Its only group.
        body: The function.
        mount: Directory, and where it is mounted read-only.
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
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)  # from root to another user: every capability is gone
        os.umask(0o027)
        _must(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _must(_LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # as after an exec: /proc/self is one's own again
        _must(_LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        code = body()
        sys.stdout.flush()
        os._exit(code)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _must(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
