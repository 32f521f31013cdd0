"""What strace wrote becomes a trace: descriptors of interleaved threads, locks, renames, kills; no strace, no Java."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from tests.lab.recording import differences, has_ended, list_directory, replayed
from tests.lab.strace_lines import read_calls
from tests.lab.trace_writer import TraceWriter

ROOT = "/state/a"


def text(value: str) -> str:
    """As `strace -xx` writes it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in value.encode()) + '"'


def path(name: str) -> str:
    """A path below the state directory."""
    return text(f"{ROOT}/{name}")


def traced(lines: list[str], runs: int = 1) -> TraceWriter:
    """Write lines `THREAD MILLISECONDS CALL` as so many runs."""
    writer = TraceWriter(ROOT)
    for number in range(runs):
        stamped = [
            f"{line.split()[0]} {1700 + number}.{int(line.split()[1]):03d}000 {line.split(None, 2)[2]}\n"
            for line in lines
        ]
        writer.run(read_calls(stamped), "4.1.2", "note")
    return writer


def rows(writer: TraceWriter) -> list[dict[str, object]]:
    """Operations between start and exit, without their times."""
    return [{k: v for k, v in x.items() if k != "t"} for x in writer.operations]


def test_a_file_is_made_written_moved_and_removed():
    """Adjacent writes are one; a descriptor knows the file's new name and its end."""
    writer = traced(
        [
            f"7 1 mkdir({path('app')}, 0777) = 0",
            f"7 2 openat(AT_FDCWD, {path('app/x.tmp')}, O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5",
            f"7 3 write(5, {text('ab')}, 2) = 2",
            f"8 4 writev(5, [{{iov_base={text('c')}, iov_len=1}}, {{iov_base={text('de')}, iov_len=2}}], 2) = 2",
            f"7 5 rename({path('app/x.tmp')}, {path('app/x')}) = 0",
            f"7 6 unlink({path('app/x')}) = 0",
            "7 7 close(5) = 0",
            f"7 8 openat(AT_FDCWD, {text('/elsewhere')}, O_WRONLY|O_CREAT, 0666) = 5",
            f"7 9 write(5, {text('ab')}, 2) = 2",
            "7 10 +++ exited with 1 +++",
        ]
    )
    assert rows(writer) == [
        {"op": "start", "pid": 7, "version": "4.1.2", "note": "note"},
        {"op": "mkdir", "path": "app"},
        {"op": "create", "path": "app/x.tmp"},
        {"op": "open_w", "path": "app/x.tmp"},
        {"op": "write", "path": "app/x.tmp", "data": b"abcd"},
        {"op": "rename", "path": "app/x.tmp", "to": "app/x"},
        {"op": "unlink", "path": "app/x"},
        {"op": "close_w", "path": "app/x", "deleted": True},
        {"op": "exit", "how": "clean", "pid": 7, "code": 1},
    ]


def test_descriptors_of_threads_that_interrupt_each_other():
    """Thread 9 gets number 5 while the text still waits for the end of thread 8's close of the old 5."""
    writer = traced(
        [
            f"7 1 openat(AT_FDCWD, {path('old')}, O_WRONLY|O_CREAT, 0666) = 5",
            "8 2 close(5 <unfinished ...>",
            f"9 3 openat(AT_FDCWD, {path('new')}, O_RDWR|O_CREAT <unfinished ...>",
            "8 4 <... close resumed>) = 0",
            "9 5 <... openat resumed>, 0666) = 5",
            f"9 6 pwrite64(5, {text('z')}, 1, 4096) = 1",
            f"9 7 write(5, {text('lost')} <unfinished ...>",
            "9 8 +++ killed by SIGKILL +++",
            "7 8 +++ killed by SIGKILL +++",
        ]
    )
    assert [(x["op"], x.get("path")) for x in rows(writer)[1:]] == [
        ("create", "old"),
        ("open_w", "old"),
        ("close_w", "old"),
        ("create", "new"),
        ("open_w", "new"),
        ("write", "new"),
        ("exit", None),
    ]
    assert rows(writer)[-2]["off"] == 4096
    assert rows(writer)[-1]["how"] == "killed"


def test_locks_are_given_back_by_hand_by_close_and_by_the_end():
    """As POSIX has it: any close of the file, and the end of the process."""
    lock = "fcntl(5, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0"
    opened = f"openat(AT_FDCWD, {path('LOCK')}, O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 5"
    writer = traced(
        [
            f"7 1 {opened}",
            f"7 2 {lock}",
            f"7 3 {lock.replace('WRLCK', 'UNLCK')}",
            f"7 4 {lock}",
            "7 5 close(5) = 0",
            f"7 6 {opened}",
            f"7 7 {lock.replace('= 0', '= -1 EAGAIN')}",
            f"7 8 {lock}",
            "7 9 +++ killed by SIGKILL +++",
        ],
    )
    assert [(x["op"], x.get("by")) for x in rows(writer) if "lock" in str(x["op"])] == [
        ("lock", None),
        ("unlock", None),
        ("lock", None),
        ("unlock", "close"),
        ("lock", None),
        ("unlock", "exit"),
    ]


def test_a_second_run_knows_the_files_of_the_first(tmp_path):
    """An old file that is emptied is told as truncated, reading is told of a few names, and the replay is right."""
    writer = traced(
        [
            f"7 1 openat(AT_FDCWD, {path('.checkpoint')}, O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5",
            f"7 2 write(5, {text('0')}, 1) = 1",
            "7 3 close(5) = 0",
            f"7 4 openat(AT_FDCWD, {path('.checkpoint')}, O_RDONLY) = 5",
            f"7 4 openat(AT_FDCWD, {path('LOG')}, O_WRONLY|O_CREAT|O_APPEND, 0666) = 6",
            f"7 4 write(6, {text('l')}, 1) = 1",
            f"7 5 openat(AT_FDCWD, {path('LOG')}, O_RDONLY) = 5",
            f"7 5 openat(AT_FDCWD, {path('absent')}, O_RDONLY) = -1 ENOENT (No such file or directory)",
            "7 6 +++ exited with 0 +++",
        ],
        runs=2,
    )
    assert [x["op"] for x in rows(writer)].count("truncate") == 1
    assert [x["op"] for x in rows(writer)].count("create") == 2
    assert [x["path"] for x in rows(writer) if x["op"] == "open_r"] == [".checkpoint"] * 2
    trace = tmp_path / "trace.jsonl.gz"
    with gzip.open(trace, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in writer.lines())
    assert replayed(trace)[1] == {
        ".checkpoint": hashlib.sha256(b"0").hexdigest(),
        "LOG": hashlib.sha256(b"ll").hexdigest(),
    }


def test_a_trace_that_differs_from_the_disk_is_found_out(tmp_path):
    """A path too many, one too few, other content."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "same").write_text("s")
    (tmp_path / "other").write_text("o")
    (tmp_path / "more").write_text("m")
    real = list_directory(tmp_path)
    mine = {"d": "", "d/same": real["d/same"], "other": "x", "gone": ""}
    assert differences(mine, real) == ["gone", "more", "other"]


@pytest.mark.parametrize(
    ("last", "ended"),
    [
        ("7 1.0 +++ killed by SIGKILL +++", True),
        ("8 1.0 +++ exited with 0 +++", False),
        ("7 1.0 close(1", False),
    ],
)
def test_the_end_is_that_of_the_first_thread(tmp_path, last, ended):
    """Other threads end before it."""
    calls = tmp_path / "calls"
    calls.write_text(f"7 0.0 close(1) = 0\n{last}\n")
    assert has_ended(calls) is ended
