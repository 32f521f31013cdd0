"""What `verify` and `digest` ask of the kernel below a state directory: they may read, and nothing else (strace)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

from tests.lab.toolbox import tool
from tests.verify.looking import ROOT, Run, tree

READS = frozenset({
    "access", "close", "execve", "faccessat", "faccessat2", "fadvise64", "fstat", "fstatfs", "getdents64",
    "getxattr", "ioctl", "lgetxattr", "lseek", "lstat", "newfstatat", "pread64", "preadv", "read",
    "readahead", "readlink", "readlinkat", "readv", "stat", "statfs", "statx",
})  # fmt: skip
"""Calls that change nothing, whatever their arguments."""

_CALL = re.compile(r"^(\w+)\(")
_OPENS_TO_WRITE = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)")
_HARMLESS_FCNTL = re.compile(r"F_(?:GETFD|SETFD|GETFL|DUPFD\w*|GETLK|OFD_GETLK)\b")


def is_read(line: str) -> bool:
    """Tell whether a line of strace is a call that only reads."""
    found = _CALL.match(line)
    name = found.group(1) if found else ""
    if name in ("open", "openat"):
        return not _OPENS_TO_WRITE.search(line)
    if name == "fcntl":
        return bool(_HARMLESS_FCNTL.search(line))
    if name == "mmap":
        return "MAP_PRIVATE" in line or "PROT_WRITE" not in line
    return name in READS


def traced(run: Run) -> None:
    """While the application runs, killed and closed."""
    stage = run.stage
    stage.start()
    stage.send(2000)
    stage.settle()
    _trace(run, "running")
    stage.kill()
    _trace(run, "killed")
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()
    _trace(run, "closed")


def _trace(run: Run, when: str) -> None:
    stage, state_dir = run.stage, run.stage.state_dir("a")
    work = stage.home / "work"
    work.mkdir(exist_ok=True)
    brokers = ["--bootstrap-servers", stage.broker.address, "--work", str(work)]
    commands = {
        "verify": [*brokers, "--explain", "3"],
        "digest": ["--output", str(stage.home / "digest.jsonl"), "--work", str(work)],
    }
    for name, arguments in commands.items():
        before = {} if stage.pods["a"].is_alive else tree(state_dir)
        calls = stage.home / "calls"  # a file for each thread: no line is cut in two
        shutil.rmtree(calls, ignore_errors=True)
        calls.mkdir()
        strace = [tool("strace"), "-ff", "-y", "-qq", "-s", "4096", "-o", str(calls / "of"), "--"]
        done = subprocess.run(
            [*strace, sys.executable, "-m", "agent", name, str(state_dir), *arguments],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        if before and tree(state_dir) != before:
            run.wrong.append(f"{when}: {name} has touched the state directory")
        said = [line for file in calls.iterdir() for line in file.read_text(errors="replace").splitlines()]
        lines = [line for line in said if str(state_dir) in line]
        writes = [line for line in lines if not is_read(line)]
        run.rows += 1
        print(
            f"  {'BAD' if writes else 'ok '} {when:<8} {name}: exit {done.returncode}, {len(lines)} calls below the"
            f" state directory, {len(writes)} that do not only read; {_names(lines)}",
            flush=True,
        )
        # 3: a store of segments without an entry has no digest
        is_done = done.returncode == 0 or (name == "digest" and done.returncode == 3)
        if writes or not lines or not is_done:
            run.wrong.append(f"{when}: {name}: {writes[:5]} {done.stderr[-500:]}")


def _names(lines: Iterable[str]) -> dict[str, int]:
    found = (_CALL.match(line) for line in lines)
    return dict(Counter(x.group(1) for x in found if x).most_common())
