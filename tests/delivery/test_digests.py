"""Stores written by RocksDB, their changelogs in a real broker, digests by the agent, the comparison on Spark."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.agents import free_port
from tests.delivery.rollups import Rollup, Told
from tests.delivery.servers import Broker

rocksdict = pytest.importorskip("rocksdict", reason="the extra `verify` is not installed")
pytest.importorskip("xxhash", reason="the extra `verify` is not installed")

from agent.cli.main import main as agent  # noqa: E402 - needs the extra

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(900)]

ENTRIES = 20_000
AT_MS = 1_790_000_000_000
TOPIC = "orders-counts-changelog"


def produce(broker: Broker, topic: str, entries: Mapping[bytes, bytes | None], transaction: str = "") -> Any:
    """Append records; in a transaction, if it is given a name, which is left open."""
    from confluent_kafka import Producer

    settings: dict[str, Any] = {"bootstrap.servers": broker.address, "linger.ms": 50}
    if transaction:
        settings["transactional.id"] = transaction
    producer = Producer(settings)
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    for key, value in entries.items():
        producer.produce(topic, key=key, value=value, partition=0, timestamp=AT_MS)
        producer.poll(0)
    assert producer.flush(60) == 0
    return producer


def make_store(state_dir: Path, entries: Mapping[bytes, bytes], offset: int) -> None:
    """Write a key-value store as 3.x leaves it after an orderly close: store, then checkpoint."""
    task = state_dir / "orders" / "0_0"
    (task / "rocksdb").mkdir(parents=True)
    place = str(task / "rocksdb" / "counts")
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    family = "keyValueWithTimestamp"
    database = rocksdict.Rdict(place, options, column_families={family: rocksdict.Options(raw_mode=True)})
    stored = database.get_column_family(family)
    for key, value in entries.items():
        stored[key] = struct.pack(">q", AT_MS) + value
    stored.flush()
    stored.close()
    database.close()
    (Path(place) / "rocksdict-config.json").unlink()
    (state_dir / "orders" / "kafka-streams-process-metadata").write_text(
        '{"processId":"5d1a7a59-0d22-4d4c-9d0c-6a4d1e0c9a51"}'
    )
    (task / ".checkpoint").write_text(f"0\n1\n{TOPIC} 0 {offset}\n")


def digested(state_dir: Path, pod: str, output: Path) -> dict[str, Any]:
    """Make a digest; nothing in the state directory changes."""
    before = tree(state_dir)
    assert agent(["digest", str(state_dir), "--output", str(output), "--pod", pod]) == 0
    assert tree(state_dir) == before
    (line,) = output.read_text().splitlines()
    (made,) = json.loads(line)["digests"]
    return dict(made)


def tree(folder: Path) -> dict[str, tuple[int, ...]]:
    """Note inode, size and time of every file and directory."""
    found: dict[str, tuple[int, ...]] = {}
    for path in (folder, *folder.rglob("*")):
        stat = path.lstat()
        found[str(path)] = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_mode)
    return found


def verdicts(output: Path) -> dict[str, dict[str, Any]]:
    """Read the verdicts, by pod."""
    lines = (output / "verdicts.jsonl").read_text().splitlines()
    return {row["pod"]: row for row in map(json.loads, lines)}


def verify(rollup: Rollup, broker: Broker, digests: Path, output: Path, *more: str | Path) -> Told:
    return rollup.run("verify", "--digests", digests, "--kafka", broker.address, "--output", output, *more)


def test_planted_damage_is_found_and_nothing_else(rollup: Rollup, broker: Broker, tmp_path: Path) -> None:
    """One byte flipped, one key removed, one added; a whole copy is equal, aborted records do not count."""
    broker.make_topic(TOPIC, cleanup_policy="compact")
    entries = {b"key-%d" % n: b"%d" % (n * n) for n in range(ENTRIES)}
    old = dict.fromkeys(list(entries)[:5000], b"old")
    produce(broker, TOPIC, {**old, b"deleted": b"1"})
    produce(broker, TOPIC, {b"deleted": None})
    produce(broker, TOPIC, entries)
    last = len(old) + 1 + 1 + ENTRIES - 1
    aborted = produce(broker, TOPIC, {b"key-1": b"aborted", b"new": b"aborted"}, "one")
    aborted.abort_transaction(30)
    key = b"key-4711"
    copies = {
        "whole": entries,
        "flipped": {**entries, key: entries[key][:-1] + bytes([entries[key][-1] ^ 1])},
        "removed": {k: v for k, v in entries.items() if k != key},
        "added": {**entries, b"zombie": b"1"},
    }
    digests = tmp_path / "digests"
    digests.mkdir()
    for pod, held in copies.items():
        make_store(tmp_path / pod, held, last)
        made = digested(tmp_path / pod, pod, digests / f"{pod}.jsonl")
        assert (made["kind"], made["state"], made["databases"][0]["is_exact"]) == (
            "key-value",
            "closed",
            True,
        )
        assert made["databases"][0]["entries"] == len(held)
        identity = (tmp_path / pod / "orders/0_0/rocksdb/counts/IDENTITY").read_text()
        assert made["databases"][0]["identity"] == identity.strip()
    told = verify(rollup, broker, digests, tmp_path / "out")
    assert told.code == 1, told
    rows = verdicts(tmp_path / "out")
    assert {pod: (x["verdict"], x["missing"], x["extra"], x["different"]) for pod, x in rows.items()} == {
        "whole": ("equal", 0, 0, 0), "flipped": ("differs", 0, 0, 1), "removed": ("differs", 1, 0, 0),
        "added": ("differs", 0, 1, 0),
    }  # fmt: skip
    findings = [json.loads(x) for x in (tmp_path / "out" / "findings.jsonl").read_text().splitlines()]
    assert {(x["detector"], x["severity"], x["confidence"], x["pod"]) for x in findings} == {
        ("state-differs", "critical", "confirmed", pod) for pod in ("flipped", "removed", "added")
    }  # fmt: skip
    _without_a_broker(rollup, digests, tmp_path)
    _beside_an_open_transaction(rollup, broker, digests, tmp_path)


def _without_a_broker(rollup: Rollup, digests: Path, tmp_path: Path) -> None:
    """Copies at the same offset are compared with each other; two equal ones are no finding."""
    told = rollup.run("verify", "--digests", digests, "--output", tmp_path / "alone", "--json")
    assert told.code == 1
    found = [json.loads(line) for line in told.out.splitlines()]
    assert {(x["detector"], x["severity"]) for x in found} == {("replicas-differ", "critical")}
    assert len(found) == 3  # each other copy with the first
    same = tmp_path / "same"
    same.mkdir()
    for pod in ("a", "b"):
        line = (digests / "whole.jsonl").read_text().replace('"pod":"whole"', f'"pod":"{pod}"')
        (same / f"{pod}.jsonl").write_text(line)
    told = rollup.run("verify", "--digests", same, "--output", tmp_path / "same-out")
    assert (told.code, told.out) == (0, "1 pair of copies at the same offset against each other\n")


def _beside_an_open_transaction(rollup: Rollup, broker: Broker, digests: Path, tmp_path: Path) -> None:
    """A transaction that has not ended hides nothing that was there before it."""
    producer = produce(broker, TOPIC, {b"key-7": b"open"}, "two")
    only = tmp_path / "only"
    only.mkdir()
    shutil.copy(digests / "whole.jsonl", only)
    told = verify(rollup, broker, only, tmp_path / "open")
    producer.abort_transaction(30)
    assert told.code == 0, told
    assert verdicts(tmp_path / "open")["whole"]["verdict"] == "equal"


def test_what_a_broker_does_not_have_is_undecidable(rollup: Rollup, broker: Broker, tmp_path: Path) -> None:
    """No such topic; an offset behind the end; nobody there: words or one line, never a finding."""
    make_store(tmp_path / "pod", {b"a": b"1"}, 999_999)
    digests = tmp_path / "digests"
    digests.mkdir()
    digested(tmp_path / "pod", "pod", digests / "pod.jsonl")
    text = (digests / "pod.jsonl").read_text()
    (digests / "absent.jsonl").write_text(
        text.replace(TOPIC, "absent-changelog").replace('"pod":"pod"', '"pod":"absent"')
    )
    told = verify(rollup, broker, digests, tmp_path / "out")
    assert told.code == 0, told
    rows = verdicts(tmp_path / "out")
    assert {row["verdict"] for row in rows.values()} == {"undecidable"}
    assert "have no topic absent-changelog" in rows["absent"]["why"]
    client = tmp_path / "client.properties"
    client.write_text("default.api.timeout.ms=2000\nrequest.timeout.ms=2000\n")
    nobody = ("--kafka", f"127.0.0.1:{free_port()}", "--kafka-config", client)
    told = rollup.run("verify", "--digests", digests, "--output", tmp_path / "none", *nobody)
    assert (told.code, told.out, told.err.count("\n")) == (3, "", 1)
    assert "no broker answered within 2 s" in told.err
