"""`statewarden verify` against real brokers: transactions, rights, TLS, and everything that can be refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.errors import UsageError
from agent.interrupt import guarded
from agent.verify.changelog import Changelogs
from deploy.demo.agents import free_port
from tests.agent.verify.changelog_double import APP, AT_MS, DAY_MS, StateDir, write_database
from tests.delivery.secured import Secured, hands, secured, wait
from tests.delivery.servers import Broker, Certificates

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(600)]

LONG = 90_000
"""Records; a producer keeps no more of them in its queue."""
AT = AT_MS.to_bytes(8, "big")
Rows = Mapping[bytes, bytes]


@pytest.fixture(autouse=True)
def _library() -> None:
    pytest.importorskip("rocksdict", reason="run: make test-services")


class Done:
    """How the command ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        """Take its code and what it said."""
        self.code, self.out, self.error = done.returncode, done.stdout, done.stderr

    @property
    def row(self) -> dict[str, Any]:
        """The only store's line."""
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


class Ground:
    """A state directory with one store of its own application, and its changelog."""

    def __init__(self, broker: Broker, root: Path) -> None:
        """Name the application as nothing else is named."""
        from confluent_kafka import Producer
        from confluent_kafka.admin import NewTopic

        self.state = StateDir(root / "state")
        self.app = f"{APP}-{uuid.uuid4().hex[:8]}"
        (self.state.root / APP).rename(self.state.root / self.app)
        self.state.task = self.state.root / self.app / "0_0"
        self.topic = f"{self.app}-kv-changelog"
        self.broker, self.work = broker, root / "work"
        self.work.mkdir()
        kept = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
        wait(hands(broker).create_topics([NewTopic(self.topic, 3, 1, config=kept)]))
        self._settings = {"bootstrap.servers": broker.address, "linger.ms": 5, "log_level": 2}
        self._plain = Producer(self._settings)

    def produce(self, rows: Rows, *, transaction: str = "") -> None:
        """Write records: `commit` or `abort` a transaction with them, or none."""
        from confluent_kafka import Producer

        producer = self._plain
        if transaction:
            producer = Producer(self._settings | {"transactional.id": uuid.uuid4().hex})
            producer.init_transactions()
            producer.begin_transaction()
        for key, value in rows.items():
            producer.produce(self.topic, value, key, partition=0, timestamp=AT_MS)
        producer.flush()
        if transaction:
            getattr(producer, f"{transaction}_transaction")()

    def hold(self, rows: Rows, offset: int) -> None:
        """Write the store, with its checkpoint."""
        entries = [(key, AT + value) for key, value in rows.items()]
        write_database(self.state.store("kv"), {"default": [], "keyValueWithTimestamp": entries})
        self.state.checkpoint_lines([f"{self.topic} 0 {offset}"])

    def verify(self, *arguments: object, servers: str = "", code: int | None = None) -> Done:
        """Run the command; it touches nothing and leaves nothing."""
        before = self.state.tree()
        done = Done(
            subprocess.run(
                [*self.command(servers), "--json", *map(str, arguments)],
                capture_output=True,
                text=True,
                check=False,
            )
        )
        assert self.state.tree() == before
        assert list(self.work.iterdir()) == []
        assert code in (None, done.code), done.error + done.out
        return done

    def command(self, servers: str = "") -> list[str]:
        place = ["--bootstrap-servers", servers or self.broker.address, "--work", str(self.work)]
        return [sys.executable, "-m", "agent", "verify", str(self.state.root), *place]


@pytest.fixture
def ground(broker: Broker, tmp_path: Path) -> Ground:
    """Give a store and its changelog on an open broker."""
    return Ground(broker, tmp_path)


def keyed(count: int) -> dict[bytes, bytes]:
    """Give so many records."""
    return {b"k%05d" % number: b"v%d" % number for number in range(count)}


def whole(listing: Any) -> Any:
    """Give a broker's answer, or nothing if a part of it is an error."""
    return None if listing.errors else listing


def test_a_store_with_everything_is_equal_and_no_group_is_left(
    ground: Ground, eventually: Callable[..., object]
) -> None:
    """More records than a batch has; what was read is committed nowhere."""
    rows = keyed(12_000)
    ground.produce(rows)
    ground.hold(rows, 11_999)
    done = ground.verify(code=0)
    assert done.row["counts"] == {"equal": 12_000}
    # A broker that still loads its coordinator gives only a part of the list.
    admin = hands(ground.broker)
    groups: Any = eventually(lambda: whole(admin.list_consumer_groups().result(120)))
    assert not [x.group_id for x in groups.valid if "statewarden" in x.group_id]


def test_what_was_planted_is_found_with_its_offset(ground: Ground) -> None:
    """Exit code 1; keys as hashes, or in the clear when asked."""
    rows = keyed(1000)
    ground.produce(rows)
    held = rows | {b"k00500": b"flipped", b"added": b"v"}
    del held[b"k00501"]
    ground.hold(held, 999)
    row = ground.verify("--explain", 3, "--show-keys", code=1).row
    assert row["counts"] == {"missing": 1, "extra": 1, "different": 1, "equal": 998}
    assert {(x["word"], x["key"], x["offset"]) for x in row["examples"]} == {
        ("missing", "'k00501'", 501),
        ("extra", "'added'", None),
        ("different", "'k00500'", 500),
    }
    hidden = ground.verify("--explain", 3, code=1)
    assert "k0050" not in hidden.out
    assert ground.verify("--fail-on", "ahead", code=0).row["word"] == "missing"


def test_an_aborted_transaction_is_named(ground: Ground) -> None:
    """Its values should not be below the store's offset."""
    ground.produce(keyed(10), transaction="commit")
    ground.produce({b"ghost": b"v"}, transaction="abort")
    ground.produce({b"last": b"v"}, transaction="commit")
    ground.hold(keyed(10) | {b"last": b"v", b"ghost": b"v"}, 13)
    row = ground.verify("--explain", 1, code=1).row
    assert row["counts"] == {"extra": 1, "equal": 11}
    assert row["examples"][0]["note"].endswith("of a transaction that was aborted or has not ended")


def test_records_of_a_transaction_that_has_not_ended_are_ahead(ground: Ground) -> None:
    """Under exactly-once a store that is open has no offset and more than is committed."""
    ground.produce(keyed(10), transaction="commit")
    ground.produce({b"ghost": b"v"}, transaction="abort")
    ground.hold(keyed(10) | {b"ghost": b"v"}, -4)
    assert ground.verify(code=0).row["counts"] == {"ahead": 1, "equal": 10}


# ------------------------------------------------------------------------------------------- refused


def test_a_broker_that_is_away_is_one_line(ground: Ground) -> None:
    """Exit code 3, with the address and the reason."""
    ground.hold(keyed(1), 0)
    address = f"127.0.0.1:{free_port()}"
    done = ground.verify(servers=address, code=3)
    assert done.out == ""
    assert done.error.count("\n") == 1
    assert address in done.error
    assert "refused" in done.error


def test_a_topic_that_is_gone_is_undecidable(ground: Ground) -> None:
    """Exit code 3; the store is named with the topic."""
    ground.hold(keyed(1), 0)
    wait(hands(ground.broker).delete_topics([ground.topic]))
    done = ground.verify(code=3)
    assert (done.row["word"], done.row["reason"]) == (
        "undecidable",
        f"{ground.topic}: no such topic, or no right to describe it",
    )


def test_a_log_cut_beyond_the_offset_is_undecidable(ground: Ground) -> None:
    """What the store lacks is nowhere any more."""
    from confluent_kafka import TopicPartition

    ground.produce(keyed(100))
    ground.hold(keyed(10), 9)
    wait(hands(ground.broker).delete_records([TopicPartition(ground.topic, 0, 50)]))
    done = ground.verify(code=3)
    assert "offset 9 is before the start of the changelog, 50" in done.row["reason"]


def test_settings_that_are_wrong_are_one_line(ground: Ground, tmp_path: Path) -> None:
    """A name that librdkafka does not know; one that is ours."""
    ground.hold(keyed(1), 0)
    for line, reason in (
        ("no.such.setting=1", "no.such.setting"),
        ("group.id=mine", "group.id is set by verify"),
    ):
        (tmp_path / "client.properties").write_text(f"{line}\n")
        done = ground.verify("--client-config", tmp_path / "client.properties", code=2)
        assert reason in done.error
        assert done.error.count("\n") == 1


# -------------------------------------------------------------------------------------------- rights


@pytest.fixture(scope="module")
def safe(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Give a broker with TLS, SCRAM and rights."""
    with secured(tmp_path_factory.mktemp("secured"), certificates) as running:
        yield running


def test_read_and_describe_are_enough(safe: Secured, tmp_path: Path) -> None:
    """TLS and SCRAM; no right on any group, none on the topic's settings."""
    ground = Ground(safe.broker, tmp_path)
    ground.produce(keyed(100))
    ground.hold(keyed(100), 99)
    safe.add_user("reader")
    safe.grant("reader", ground.topic, "Read", "Describe")
    arguments = ("--client-config", safe.settings("reader", tmp_path))
    assert ground.verify(*arguments, servers=safe.address, code=0).row["counts"] == {"equal": 100}


def test_windows_are_compared_without_the_right_to_their_retention(safe: Secured, tmp_path: Path) -> None:
    """No DescribeConfigs: what the segments on disk cover is judged; with it, or the retention, all is."""
    ground = Ground(safe.broker, tmp_path)
    start_ms = AT_MS // DAY_MS * DAY_MS
    rows = {b"k%02d" % x + (start_ms + x).to_bytes(8, "big") + b"\0\0\0\0": b"v" for x in range(20)}
    older = {b"old" + (start_ms - 1).to_bytes(8, "big") + b"\0\0\0\0": b"v"}
    ground.produce(older | rows)
    entries = [(key, AT + value) for key, value in list(rows.items())[1:]]
    families = {"default": [], "keyValueWithTimestamp": entries}
    write_database(ground.state.segment("kv", start_ms), families)
    ground.state.checkpoint_lines([f"{ground.topic} 0 20"])
    safe.add_user("windows")
    safe.grant("windows", ground.topic, "Read", "Describe")
    arguments = ("--client-config", safe.settings("windows", tmp_path))
    row = ground.verify(*arguments, servers=safe.address, code=1).row
    assert row["counts"] == {"missing": 1, "equal": 19, "expired": 1}
    assert f"oldest segment, {start_ms}, " in row["note"]
    given = ("--retention", f"kv={2 * DAY_MS}")
    row = ground.verify(*arguments, *given, servers=safe.address, code=1).row
    assert row["counts"] == {"missing": 2, "equal": 19}
    assert row["note"] is None


@pytest.mark.parametrize(
    ("rights", "password", "reason"),
    [
        ((), "", "grant Read and Describe"),
        (("Describe",), "", "grant Read and Describe"),
        (("Read",), "wrong", "authentication"),
    ],
)
def test_what_is_refused_is_said(
    safe: Secured, tmp_path: Path, rights: tuple[str, ...], password: str, reason: str
) -> None:
    """Exit code 3: which right is missing, or that nobody came in."""
    ground = Ground(safe.broker, tmp_path)
    ground.produce(keyed(10))
    ground.hold(keyed(10), 9)
    user = f"user-{uuid.uuid4().hex[:6]}"
    safe.add_user(user)
    if rights:
        safe.grant(user, ground.topic, *rights)
    settings = safe.settings(user, tmp_path, **({"password": password} if password else {}))
    done = ground.verify("--client-config", settings, servers=safe.address, code=3)
    assert reason.lower() in (done.out + done.error).lower()


# ----------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_early_end_leaves_nothing_behind(
    ground: Ground, number: signal.Signals, code: int, eventually: Callable[..., object]
) -> None:
    """Ctrl-C or SIGTERM while the changelog is read, which takes seconds."""
    ground.produce(keyed(LONG))
    ground.hold(keyed(10), LONG - 1)
    command = [*ground.command(), "--client-config", os.devnull]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: list(ground.work.iterdir()))
    running.send_signal(number)
    assert running.wait(120) == code
    assert list(ground.work.iterdir()) == []


@pytest.mark.parametrize("asked", ["topics", "range", "read"])
def test_an_interrupt_that_the_client_drops_is_not_lost(asked: str) -> None:
    """In a callback of the library it becomes an error about something else, which would be exit code 1 or 2."""
    reading = Changelogs(f"127.0.0.1:{free_port()}", {"reconnect.backoff.ms": "10"})
    struck = []

    def strike(_: Any) -> None:
        struck.append(True)
        os.kill(os.getpid(), signal.SIGINT)

    reading._settings["error_cb"] = strike
    reading._reader = reading._consumer(committed=False)

    def work() -> int:
        try:
            ask: dict[str, Callable[[], object]] = {
                "topics": lambda: reading.topics(""),
                "range": lambda: reading.range("t", 0),
                "read": lambda: list(reading.read("t", 0, 0, 9, committed=True)),
            }
            ask[asked]()
        except (UsageError, SystemError):
            return 2
        return 1

    assert guarded(work) == 130
    assert struck
