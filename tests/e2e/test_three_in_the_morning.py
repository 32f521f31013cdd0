"""The story of `docs/journeys.md` to its end: page, `explain`, `plan`, the script, `verify`, and it is over.

A real agent, a real broker, the recorded state directory of a killed instance with KAFKA-20685 in two tasks. Kafka
Streams is played by what the script starts: it restores both tasks from the changelog.
"""

from __future__ import annotations

import re
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.demo.agents import Agent
from tests.agent.cli.conftest import statewarden as statewarden
from tests.agent.cli.test_plan import APPLICATION, SET, Printed, printed, program
from tests.agent.cli.test_plan import state as state
from tests.agent.verify.changelog_double import AT_MS
from tests.delivery import servers
from tests.delivery.secured import hands, wait
from tests.delivery.servers import Broker

pytestmark = [pytest.mark.delivery, pytest.mark.e2e, pytest.mark.inotify, pytest.mark.timeout(600)]

BOTH, RECORDS = ("0_0", "0_2"), 500
TOPIC = f"{APPLICATION}-s-changelog"

RESTORES = f"""
import sys
from pathlib import Path
from tests.agent.verify.changelog_double import write_database
for number in (0, 2):
    task = Path(sys.argv[1], f"0_{{number}}")
    rows = [(b"k%05d" % x, ({AT_MS}).to_bytes(8, "big") + b"v%d" % x) for x in range({RECORDS})]
    write_database(task / "rocksdb" / "s", {{"default": [], "keyValueWithTimestamp": rows}})
    (task / ".checkpoint").write_text(f"0\\n1\\n{TOPIC} {{number}} {RECORDS - 1}\\n")
"""


@pytest.fixture
def changelog(broker: Broker) -> str:
    """Give the address of a broker that has the changelog of both tasks."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import NewTopic

    wait(hands(broker).create_topics([NewTopic(TOPIC, 3, 1, config={"cleanup.policy": "compact"})]))
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 2})
    for number in range(RECORDS):
        for partition in (0, 2):
            producer.produce(TOPIC, b"v%d" % number, b"k%05d" % number, partition=partition, timestamp=AT_MS)
    producer.flush()
    return broker.address


@pytest.fixture
def bucket(statewarden: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give an object store to which agents ship, with what reaches it in the environment."""
    with servers.moto(tmp_path) as service:
        for name, value in service.ship.items():
            monkeypatch.setenv(
                f"STATEWARDEN_SHIP_{name.upper()}", str(value).lower() if value is True else value
            )
        yield f"s3://{servers.BUCKET}/events"


@pytest.fixture
def agent(tmp_path: Path, state: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """Start the agent of the stopped instance; the environment names its spool."""
    monkeypatch.setenv("STATEWARDEN_SPOOL", str(tmp_path / "own" / "spool"))
    told = dict(word.split("=") for word in SET[1::2])
    running = Agent("pod-7", state, tmp_path / "own", bucket, told)
    try:
        running.wait_ready()
        yield running
    finally:
        running.kill()


def page(agent: Agent) -> str:
    """Read the agent's page."""
    with urllib.request.urlopen(f"{agent.url}/", timeout=60) as answer:
        return answer.read().decode()


def known_in(script: str) -> list[str]:
    """What a script knows, but for when it was seen and where that is asked."""
    return [
        x for x in script.splitlines() if re.match(r"(INCIDENT|APPLICATION|TASKS|STORES|POD|STATE_DIR)=", x)
    ]


def filled(script: str, tmp_path: Path, state: Path, brokers: str) -> Printed:
    """Fill in what the operator knows; `statewarden` and the application are at hand."""
    python = f'PYTHONPATH={Path.cwd()} exec "{sys.executable}"'
    program(tmp_path, "statewarden", f'{python} -m agent "$@"\n')
    program(tmp_path, "orders", f'echo start; {python} - "{state / APPLICATION}" <<"E"\n{RESTORES}\nE\n')
    return printed(script, tmp_path, state, BROKERS=brokers, STOP="true", START="orders", WATCH_FOR_S="60")


def test_a_bug_in_two_tasks_is_repaired(
    statewarden: Callable, tmp_path: Path, state: Path, agent: Agent, bucket: str, changelog: str,
    eventually: Callable[..., object],
) -> None:  # fmt: skip
    """One id leads from the page to the end, one step names both tasks; the object store knows them, too."""
    incident = re.findall(r"i-[0-9a-f]{12}", page(agent))[0]  # the worst is first
    together = (
        "Do this for tasks 0_0, 0_2 in one stop: copy all directories, remove all, and only then start."
    )
    assert together in " ".join(page(agent).split())
    said = statewarden("explain", incident, "--events", agent.url)
    assert said.out.startswith(f"CRITICAL stale-eos-checkpoint  {APPLICATION}/0_0, 0_2  (suspected, open)\n")
    assert together in " ".join(said.out.split())
    assert f"    as a script: statewarden plan {incident} {agent.url}\n" in said.out
    asked = ("repaired", incident, agent.url, "--state-dir", state, *SET)
    assert statewarden(*asked).code == 1

    plan = statewarden("plan", incident, agent.url, "--state-dir", state, *SET)
    assert (plan.code, plan.err) == (0, "")
    before = {x: x.read_bytes() for x in (state / APPLICATION / "0_0").rglob("*") if x.is_file()}
    eventually(
        lambda: (
            statewarden("explain", incident, "--events", bucket).out == said.out.replace(agent.url, bucket)
        )
    )
    stored = statewarden("plan", incident, bucket, "--state-dir", state, *SET).out
    assert known_in(stored) == known_in(plan.out)
    script = filled(plan.out, tmp_path, state, changelog)
    ran = script.run()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert script.copies == [*BOTH]
    kept = tmp_path / "copies" / incident
    assert all((kept / x.relative_to(state)).read_bytes() == was for x, was in before.items())
    told = " ".join(ran.stdout.split())
    for words in (
        f"{incident}: repaired", f"{agent.url} has it resolved",
        *(f"verified: {APPLICATION}/{task} holds what its changelogs say" for task in BOTH),
    ):  # fmt: skip
        assert words in told

    assert statewarden(*asked, "--bootstrap-servers", changelog).code == 0
    proved = f"verified: {APPLICATION}/0_0 holds what its changelogs say. The same in task 0_2."

    def ended() -> str:
        return " ".join(statewarden("explain", incident, "--events", bucket).out.split())

    eventually(lambda: proved in ended())  # shipped, too
    assert "(suspected, resolved)" in ended()
    assert "(suspected, resolved)" in statewarden("explain", incident, "--events", agent.url).out
    eventually(lambda: incident not in page(agent))
    again = statewarden("plan", incident, agent.url, "--state-dir", state, *SET)
    assert again.code == 3
    assert "the incident is over" in again.err
