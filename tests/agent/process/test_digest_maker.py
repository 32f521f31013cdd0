"""Digests at the close of stores: what a process says becomes an event, and nothing waits for it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.config import load_config
from agent.contract.events import Kind, Record
from agent.errors import ConfigError, UsageError
from agent.inventory.model import Inventory
from agent.process import digest_maker
from agent.process.digest_maker import DigestMaker
from agent.verify.closes import SETTLES_US
from agent.verify.worker import Asked, command, make
from tests.agent.ship.ship_support import HandClock
from tests.agent.verify.test_closes import APP, inventory, store, task

BODY = {
    "application_id": APP, "task_id": "0_0", "store": "s",
    "digests": [{"state": "closed", "databases": [{"entries": 3}]}],
}  # fmt: skip
SAY = f"import sys; print('a warning', file=sys.stderr, flush=True); sys.stdout.write({json.dumps(BODY)!r})"


class Made:
    """A maker with a hand-moved clock, whose processes run a program of the test."""

    def __init__(self, tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(digest_maker, "find_spec", lambda name: SimpleNamespace())
        monkeypatch.setattr(digest_maker, "command", self._command)
        flags = {"state_dir": str(tmp_path), "spool": str(tmp_path / "spool"), "digest.at": "close"}
        self.inventory, self.records, self.asked, self.clock = (
            Inventory(),
            list[Record](),
            list[Asked](),
            HandClock(),
        )
        self.program = program
        self.maker = DigestMaker(
            load_config(flags=flags), tmp_path, self.inventory, self.records.append, self.clock
        )

    def _command(self, asked: Asked) -> list[str]:
        self.asked.append(asked)
        return [sys.executable, "-c", self.program]

    def tells(self, released_us: int | None) -> None:
        """Let the inventory hold a store that was let go then, and tell of it."""
        self.inventory.applications = inventory(task(store("s", released_us))).applications
        self.maker.hear(Record(Kind.TRANSITION, 1, {"application_id": APP, "task_id": "0_0"}))

    def turns(self) -> bool:
        """Turn once; return whether there is nothing left to do."""
        self.maker.turn()
        return not self.maker.is_busy

    @property
    def outcomes(self) -> dict[str, int]:
        return {name: count for name, count in self.maker.metrics().outcomes.items() if count}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Give a maker whose processes say a body; the clock stands where every close has settled."""
    one = Made(tmp_path, SAY, monkeypatch)
    one.clock.at_s += 10 * SETTLES_US / 1e6
    return one


def test_what_the_process_says_is_emitted(made: Made, tmp_path: Path, eventually: Callable[..., Any]) -> None:
    """With the settings it needs, as one record of its own kind."""
    made.tells(1)
    eventually(made.turns)
    (record,) = made.records
    assert (record.kind, record.body) == (Kind.DIGEST, BODY)
    assert made.outcomes == {"made": 1}
    assert made.maker.metrics().cpu_s > 0
    assert list(tmp_path.iterdir()) == []
    (asked,) = made.asked
    assert (asked.application, asked.task, asked.store, asked.buckets, asked.cpu_share) == (
        APP, "0_0", "s", 4096, 0.1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.stdout.write('it is gone'); sys.exit(1)", "it is gone"),
        (SAY.replace("closed", "killed"), "do not show"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("print('hello')", "not understood: b'hello"),
    ],
    ids=["refused", "not closed", "killed", "not a body"],
)
def test_a_process_without_a_digest_is_counted_and_logged(
    made: Made, eventually: Callable[..., Any], caplog: pytest.LogCaptureFixture, program: str, why: str
) -> None:
    """Nothing is emitted, and it is not tried again."""
    made.program = program
    made.tells(1)
    eventually(made.turns)
    made.tells(1)
    made.maker.turn()
    assert (made.records, made.outcomes) == ([], {"failed": 1})
    assert [why in record.getMessage() for record in caplog.records] == [True]


def test_a_store_that_is_opened_again_ends_the_process(made: Made, eventually: Callable[..., Any]) -> None:
    """What it says after that is not taken; the next close gets a process of its own."""
    made.program = "import time; time.sleep(60)"
    made.tells(1)
    made.maker.turn()
    made.tells(None)
    made.maker.turn()
    assert made.outcomes == {"overtaken": 1}
    made.program = SAY
    made.tells(2)
    eventually(made.turns)
    assert len(made.asked) == 2
    assert (len(made.records), made.outcomes) == (1, {"overtaken": 1, "made": 1})


def test_a_process_that_does_not_end_is_killed(made: Made, eventually: Callable[..., Any]) -> None:
    """After some seconds of patience."""
    made.program = (
        "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    )
    made.tells(1)
    made.maker.turn()
    making = made.maker._making
    assert making is not None
    eventually(lambda: digest_maker._content(making.output))
    made.tells(None)
    made.maker.turn()
    made.clock.at_s += 60
    made.tells(2)
    made.program = SAY
    eventually(made.turns)
    assert made.outcomes == {"overtaken": 1, "made": 1}


def test_the_end_of_the_agent_leaves_out_what_waits(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    """Counted and told; no process stays behind."""
    made.program = "import time; time.sleep(60)"
    made.tells(1)
    made.maker.turn()
    making = made.maker._making
    assert making is not None
    made.maker.stop()
    assert making.process.returncode is not None
    assert made.outcomes == {"left-out": 1}
    assert [record.getMessage() for record in caplog.records] == ["digests skipped: the agent is stopping"]


def test_without_a_process_the_close_has_failed(
    made: Made, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No memory, too many processes: told, and the agent goes on."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refuse)
    made.tells(1)
    made.maker.turn()
    assert made.outcomes == {"failed": 1}
    assert "can't start a process: Resource temporarily unavailable" in caplog.text


def test_without_a_directory_of_its_own_nothing_is_written_elsewhere(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    """The directory of temporary files may be anybody's, even below the state directory."""
    made.maker._work = None
    made.tells(1)
    made.maker.turn()
    assert (made.outcomes, made.asked) == ({"failed": 1}, [])
    assert "the agent has no directory of its own" in caplog.text


def test_what_an_earlier_run_left_is_read(made: Made, eventually: Callable[..., Any]) -> None:
    """A store that was closed before the agent was started again."""
    made.inventory.applications = inventory(task(store("s"))).applications
    made.maker.turn()
    assert not made.maker.is_busy
    made.maker.resume()
    eventually(made.turns)
    assert made.outcomes == {"made": 1}


def test_too_many_closes_are_reported(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    """How many were left out; once."""
    caplog.set_level(logging.INFO)
    made.program = "import time; time.sleep(60)"
    stores = [store(f"s{number}", number + 1) for number in range(70)]
    made.inventory.applications = inventory(task(*stores)).applications
    made.maker.resume()
    made.maker.turn()
    made.maker.turn()
    told = [x for x in caplog.records if x.getMessage().startswith("digests skipped")]
    assert [x.__dict__["stores"] for x in told] == [6]
    made.maker.stop()


def test_a_private_directory_of_a_killed_process_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the agent's own directory, at the next start."""
    leftover = tmp_path / "statewarden-verify-x"
    (leftover / "view-y").mkdir(parents=True)
    (tmp_path / "baseline").touch()
    Made(tmp_path, SAY, monkeypatch)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["baseline"]


def test_what_it_needs_is_asked_for_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries, by the name of what installs them; and a spool."""
    flags = {"state_dir": str(tmp_path), "digest.at": "close"}

    def maker(**more: str) -> DigestMaker:
        return DigestMaker(
            load_config(flags=flags | more), tmp_path, Inventory(), lambda record: None, HandClock()
        )

    monkeypatch.setattr(digest_maker, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs rocksdict and xxhash: pip install 'statewarden\[verify\]'"):
        maker(spool=str(tmp_path / "spool"))
    monkeypatch.setattr(digest_maker, "find_spec", lambda name: SimpleNamespace())
    with pytest.raises(ConfigError, match="needs a spool"):
        maker()


def test_a_store_that_is_gone_has_no_digest(tmp_path: Path) -> None:
    """What is asked for reaches the process whole, however strange the names; there it is looked for."""
    asked = Asked(str(tmp_path), "a\udcff'b", "0_0", "s", 4096, 0.5, None, 1)
    assert Asked(**json.loads(command(asked)[-1])) == asked
    with pytest.raises(UsageError, match="it is gone"):
        make(asked, lambda: None)
