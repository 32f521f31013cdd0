"""One table of exit codes, held by the commands of both programs; what a process of its own decides is asked of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import main as agent
from agent.cli.help_pages import PAGES as AGENT
from agent.contract.exit_codes import Exit
from spark_rollup import __version__
from spark_rollup.cli import main as rollup
from spark_rollup.help_pages import PAGES as ROLLUP
from spark_rollup.report import last_audit
from spark_rollup.report.restart_answer import Known
from spark_rollup.spark.outputs import MARKER
from tests.agent.cli.commands import PLAIN, plant
from tests.spark_rollup.report.page.page_rows import answer

pytestmark = pytest.mark.e2e

GATE = ("--may-be-empty", "--fail-on=critical", *PLAIN)

STRANGER = """
import contextlib, io, os, sys
from agent.__main__ import main
from agent.cli import main as command
with contextlib.redirect_stdout(io.StringIO()):
    command(sys.argv[1:])  # whatever Python loads late is loaded while it still may
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main())
"""
BROKEN = """
import sys
from agent.engine import one_reading
one_reading.coverage = None  # a fault of ours
from agent.cli import offline
offline.coverage = None
from agent.__main__ import main
sys.exit(main())
"""


def process(repository: Path, *words: object, code: str = "", stdout: int = -1) -> int:
    """Run a command in a process; give what it ended with."""
    start = ["-c", code] if code else ["-m", "agent"]
    done = subprocess.run(
        [sys.executable, *start, *map(str, words)], cwd=repository, stdin=subprocess.DEVNULL, stdout=stdout,
        stderr=subprocess.PIPE, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr or code == BROKEN, done.stderr
    return done.returncode


def ended(*words: object, command: Callable[[list[str]], int] = agent) -> int:
    """Run a command; give what it ends with."""
    try:
        return command([*map(str, words)])
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A directory with damage in one of two tasks, that every user may read."""
    for place in (tmp_path, *tmp_path.parents):
        if place == tmp_path or place.name.startswith(("pytest-", "popen-")):
            place.chmod(0o755)
    plant(tmp_path / "state", task="0_1")
    return plant(tmp_path / "state")


def without_damage(state: Path) -> Path:
    """Take the checkpoints away that are older than their stores."""
    for file in state.glob("app/0_*/.checkpoint"):
        file.unlink()
    return state


def test_scan_as_a_gate(repository: Path, state: Path) -> None:
    """0 opens; damage is 1, a wrong path 2, a task or link that is not read 3, a full disk 4; 1 goes before 3."""
    assert process(repository, "scan", state, *GATE) == ended("scan", state, *GATE) == Exit.FOUND
    assert ended("scan", state / "app", *GATE) == Exit.WRONG_USE
    task = state / "app" / "0_0"
    task.chmod(0o700 if os.geteuid() == 0 else 0o000)
    assert process(repository, "scan", state, *GATE, code=STRANGER) == Exit.FOUND
    (state / "app" / "0_1" / ".checkpoint").unlink()
    assert process(repository, "scan", state, *GATE, code=STRANGER) == Exit.UNREAD
    task.chmod(0o755)
    (task / ".checkpoint").write_bytes(b"garbage")
    assert ended("scan", state, *GATE) == Exit.UNREAD
    without_damage(state)
    assert ended("scan", state, *GATE) == Exit.CLEAR
    assert process(repository, "scan", state, *GATE, code=BROKEN) == Exit.BROKE
    with Path("/dev/full").open("w") as full:
        assert process(repository, "scan", state, *GATE, stdout=full.fileno()) == Exit.BROKE
    (state / "app").rename(state.parent / "larger-disk")
    (state / "app").symlink_to(state.parent / "larger-disk")
    assert ended("scan", state, *GATE) == Exit.UNREAD
    (state / "app").unlink()
    assert ended("scan", state, *GATE) == Exit.CLEAR


def test_the_other_commands_of_the_agent(state: Path, tmp_path: Path) -> None:
    """What cannot be read is 3 for each of them, and no difference, no digest is whole then."""
    whole = without_damage(state)
    (whole / "app" / "0_1" / "rocksdb" / "s" / "CURRENT").write_bytes(b"")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "app").symlink_to(whole / "app")
    assert ended("diff", linked, linked) == Exit.UNREAD
    assert ended("verify", linked, "--bootstrap-servers", "localhost:1") in (
        Exit.UNREAD,
        Exit.WRONG_USE,
    )
    assert ended("preflight", linked) == Exit.FOUND
    (tmp_path / "trace.jsonl.gz").write_bytes(b"garbage\n")
    assert ended("replay", tmp_path / "trace.jsonl.gz") == Exit.UNREAD


def test_safe_to_restart(tmp_path: Path) -> None:
    """Safe is 0, a copy that is in the way 1, a name that is not known 2, doubt and age 3."""
    row = answer(pod="keeper", answer="keep", kinds=["keep"])
    doubts = {"keeper": None, "idle": None, "silent": "not heard since 10:00"}
    pods = [{"namespace": "shop", "pod": x, "doubt": why, "gone": False} for x, why in doubts.items()]
    written = "2026-11-18T00:00:00.000000Z"
    last_audit.write(Known([row], pods, as_of_us=1_700_000_000_000_000), written, tmp_path)
    (tmp_path / MARKER).write_text(json.dumps({"written": written, "version": __version__}))

    def asked(*more: str) -> int:
        return ended("safe-to-restart", "--from", tmp_path, *more, command=rollup)

    fresh = ("--max-age", "any")
    assert asked(*fresh, "--pod", "idle") == Exit.CLEAR
    assert asked(*fresh, "--pod", "keeper") == Exit.FOUND
    assert asked(*fresh) == Exit.FOUND
    assert asked(*fresh, "--pod", "nobody") == Exit.WRONG_USE
    assert asked(*fresh, "--pod", "silent") == Exit.UNREAD
    assert asked("--pod", "idle") == Exit.UNREAD
    (tmp_path / last_audit.FILE).write_text("[")
    assert asked(*fresh) == Exit.UNREAD


@pytest.mark.parametrize("pages", [AGENT, ROLLUP])
def test_every_command_is_in_the_table(repository: Path, pages: dict[str, object]) -> None:
    """The page lists each of them; no command says another number."""
    page = (repository / "docs/exit-codes.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in pages)
    assert [code.value for code in Exit] == [0, 1, 2, 3, 4]
