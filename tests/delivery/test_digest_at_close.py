"""An agent that makes digests at the close of stores, beside an application on real RocksDB."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rocksdict", reason="run: make test-services")
pytest.importorskip("xxhash", reason="run: make test-services")

from agent.cli.main import main
from deploy.demo.agents import Agent
from tests.conftest import wait_until as eventually
from tests.delivery.test_digests import tree
from tests.lifelike.stage import Instance
from tests.support.shipped import Data, shipped_records

pytestmark = [pytest.mark.delivery, pytest.mark.inotify, pytest.mark.timeout(600)]

CLOSE = ("flush 0_0 counts", "ckpt 0_0 orders-counts-changelog 0 {}", "close 0_0 counts", "taskunlock 0_0")

TO_42 = tuple(line.format(1999) for line in CLOSE)
FROM_43 = (
    "mkdir 0_1", "open43 0_1 sums", "put 0_1 sums 0 2000", "flush 0_1 sums", "sleep 1.5",
    "offset 0_1 sums orders-sums-changelog-1 1999", "status 0_1 sums 0", "flush 0_1 sums", "close 0_1 sums",
)  # fmt: skip


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir()
    return path


@pytest.fixture
def application(state: Path) -> Iterator[Instance]:
    """Give an application that has written 2,000 entries."""
    running = Instance(state, "orders")
    try:
        running.does(
            "applock", "tasklock 0_0", "open 0_0 counts", "put 0_0 counts 0 2000", "flush 0_0 counts"
        )
        yield running
    finally:
        running.ends()


@pytest.fixture
def agent(
    request: pytest.FixtureRequest,
    state: Path,
    application: Instance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Agent]:
    """Give an agent that watches the application; its parameter is the share of a core for digests."""
    monkeypatch.setenv("STATEWARDEN_DIGEST_AT", "close")
    monkeypatch.setenv("STATEWARDEN_DIGEST_CPU_SHARE", getattr(request, "param", "1"))
    monkeypatch.setenv("STATEWARDEN_SHIP_SEAL_SECONDS", "0.5")
    running = Agent("orders-0", state, tmp_path / "agent", tmp_path / "shipped", {})
    try:
        running.wait_ready()
        yield running
    finally:
        running.kill()


def digests(tmp_path: Path) -> list[Data]:
    """Give the digests that were shipped."""
    return [x for x in shipped_records(tmp_path / "shipped") if x["kind"] == "digest"]


def outcomes(agent: Agent) -> dict[str, float]:
    """Give what became of closes, as the metrics tell it."""
    with urllib.request.urlopen(f"{agent.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = [x for x in lines if x.startswith("statewarden_agent_digests_total")]
    return {x.split('"')[1]: float(x.rpartition(" ")[2]) for x in found}


@pytest.mark.parametrize(("close", "task"), [(TO_42, "0_0"), (FROM_43, "0_1")], ids=["to 4.2", "from 4.3"])
def test_the_event_is_the_line_that_the_command_writes(
    agent: Agent, application: Instance, state: Path, tmp_path: Path, close: tuple[str, ...], task: str
) -> None:
    """After the close, of the whole store, once; the task's directory stays as it is."""
    none = {"made": 0, "overtaken": 0, "left-out": 0, "failed": 0}
    eventually(lambda: outcomes(agent) == none)
    application.does(*close)
    closed = state / "orders" / task  # RocksDB goes on writing the LOG of a store that is open
    before = tree(closed)
    eventually(lambda: len(digests(tmp_path)) == 1)
    assert tree(closed) == before
    output = tmp_path / "line.jsonl"
    assert main(["digest", str(state), "--output", str(output), "--pod", "orders-0", "--task", task]) == 0
    wanted = json.loads(output.read_text())
    (event,) = digests(tmp_path)
    (said,), (by_hand,) = event["digests"], wanted["digests"]
    assert said["made_us"] <= event["observed_at_us"] <= by_hand["made_us"]
    assert said | {"made_us": 0} == by_hand | {"made_us": 0}
    whose = ("kind", "pod", "application_id", "task_id", "store")
    assert [event[name] for name in whose] == [wanted[name] for name in whose]
    assert (said["state"], said["offset"], said["databases"][0]["entries"]) == ("closed", 1999, 2000)
    assert not list((tmp_path / "agent" / "spool").glob("statewarden-verify-*"))


def test_a_store_that_goes_on_has_a_digest_of_each_close(
    agent: Agent, application: Instance, tmp_path: Path
) -> None:
    """Opened and closed again with more in it; closed with nothing new it needs none."""
    application.does(*(line.format(1999) for line in CLOSE))
    eventually(lambda: outcomes(agent).get("made") == 1)
    application.does("tasklock 0_0", "open 0_0 counts", *(line.format(1999) for line in CLOSE))
    application.does("tasklock 0_0", "open 0_0 counts", "put 0_0 counts 2000 500", "sleep 1")
    application.does(*(line.format(2499) for line in CLOSE))
    eventually(lambda: outcomes(agent).get("made") == 2)
    assert agent.stop() == 0
    assert [x["digests"][0]["offset"] for x in digests(tmp_path)] == [1999, 2499]
    assert [x["digests"][0]["databases"][0]["entries"] for x in digests(tmp_path)] == [2000, 2500]


@pytest.mark.parametrize("agent", ["0.001"], indirect=True)
def test_an_open_ends_the_making(agent: Agent, application: Instance, state: Path, tmp_path: Path) -> None:
    """No event of it, nothing left behind; the process that made it is gone."""
    application.does(*(line.format(1999) for line in CLOSE))
    home = tmp_path / "agent" / "spool"
    eventually(lambda: list(home.glob("statewarden-verify-*")))
    application.does("tasklock 0_0", "open 0_0 counts")
    eventually(lambda: outcomes(agent).get("overtaken") == 1)
    eventually(lambda: not list(home.glob("statewarden-verify-*")))
    before = set(tree(state))
    assert agent.stop() == 0
    assert set(tree(state)) == before
    assert digests(tmp_path) == []
