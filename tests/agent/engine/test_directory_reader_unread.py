"""Stores that one look does not read: when they are looked at again, and what the agent says meanwhile."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from agent.contract.events import Severity, Status
from agent.engine.rereads import RACED_AGAIN_US, TORN_AGAIN_US
from agent.inventory.blindness import is_blind
from agent.inventory.disk import FileStat
from agent.observe.rocksdb import manifest
from agent.replay.memory_disk import MemoryDisk
from tests.agent.engine.playing import Run, application, opening, second
from tests.support.rocksdb_writer import added, counters, deleted, frame
from tests.support.scenario import Scenario

STORE = "app/0_1/rocksdb/s"


def two_tasks(release: str = "4.3.1") -> Scenario:
    run = Scenario(release)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.puts(task_id, 500)
        app.flushes(task_id)
    run.wait(2)
    app.closes("0_1", 499)
    run.wait(5)
    return run


def put_store(run: Scenario, repository: Path, name: str) -> None:
    """Put a store of the test data in the place of the task's."""
    for path, _ in run.world.children(STORE):
        run.world.play("unlink", f"{STORE}/{path}")
    with tarfile.open(repository / "tests/data/rocksdb/encodings.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if f"{name}/" in member.name else None
            if file is not None:
                run.world.write(f"{STORE}/{Path(member.name).name}", file.read())
    if not run.world.has(f"{STORE}/IDENTITY"):
        run.world.write(f"{STORE}/IDENTITY", b"put-there")


def test_compressed_offsets_are_reported(repository: Path) -> None:
    """A family that the agent cannot read blinds it for that store, for as long as it is so, and for no other."""
    run = two_tasks()
    put_store(run, repository, "compressed")
    run.wait(130)
    finding = run.only("auditor-blind")
    assert (finding.severity, finding.status) == (Severity.WARNING, Status.OPEN)
    assert finding.summary.startswith("Can't read app/0_1/rocksdb/s: ")
    assert "unsupported: compressed block" in finding.summary
    assert run.findings("torn-store") == []
    pipeline = run.world.pipeline
    assert pipeline is not None
    now_us = run.world.now_us
    assert is_blind(pipeline.inventory, "app", "0_1", now_us - 1, now_us, "s")
    assert not is_blind(pipeline.inventory, "app", "0_1", now_us - 1, now_us, "other")
    assert not is_blind(pipeline.inventory, "app", "0_0", now_us - 1, now_us, "s")
    put_store(run, repository, "xxh3")
    run.wait(400)
    assert run.only("auditor-blind").status is Status.RESOLVED


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Give a manifest that takes many looks, as a process has after weeks."""
    monkeypatch.setattr(manifest, "BYTES_PER_READING", 600)
    monkeypatch.setattr(manifest, "_PIECE_BYTES", 300)
    pairs = (added(n, n * 10) + counters(n + 1, n * 10) + deleted(n - 1) for n in range(100, 299))
    return frame([counters(90), *pairs, deleted(298) + counters(300, 3000)])


def test_long_manifest_is_read_on(short_looks: bytes) -> None:
    """It is read on every two seconds; the agent says that it is blind there, and then that it is not."""
    run = two_tasks("3.9.2")
    name = max(name for name, _ in run.world.children(STORE) if "MANIFEST" in name)
    run.world.replace(f"{STORE}/{name}", short_looks, f"{STORE}/temporary")
    pipeline = run.world.pipeline
    assert pipeline is not None
    files = pipeline.inventory.applications["app"].tasks["0_1"].stores["s"].databases[""]
    run.wait(4)
    assert files.goes_on
    assert not files.knows_puts
    run.wait(4)
    assert [x.cause for x in pipeline.inventory.blind if x.ended_us is None] == ["store-being-read"]
    run.wait(60)
    assert run.only("auditor-blind").severity is Severity.INFO
    assert (files.goes_on, files.knows_puts, files.puts) == (False, True, 2980)
    assert [x.cause for x in pipeline.inventory.blind if x.ended_us is None] == []


def test_scan_reads_all_of_it(short_looks: bytes) -> None:
    """Who looks only once reads a long manifest to its end, of every store."""
    run = two_tasks("3.9.2")
    for place in (STORE, STORE.replace("0_1", "0_0")):
        name = max(name for name, _ in run.world.children(place) if "MANIFEST" in name)
        run.world.replace(f"{place}/{name}", short_looks, f"{place}/temporary")
    run.world = run.world.attached_at(len(run.world.operations))
    pipeline = run.world.pipeline
    assert pipeline is not None
    pipeline.confirm(run.world.now_us)
    for task in pipeline.inventory.applications["app"].tasks.values():
        files = task.stores["s"].databases[""]
        assert (files.knows_puts, files.puts) == (True, 2980)


class Restless(MemoryDisk):
    """CURRENT is another file, and names another manifest, at every look, for a while."""

    reads = 0
    restless = False

    def stat(self, path):
        found = super().stat(path)
        self.reads += 1
        if self.restless and path.endswith("/CURRENT") and isinstance(found, FileStat):
            return found._replace(inode=self.reads)
        return found

    def read_at(self, path, offset, length):
        if self.restless and path.endswith("/CURRENT"):
            self.reads += 1
            return b"MANIFEST-%06d\n" % self.reads
        return super().read_at(path, offset, length)


def test_raced_manifest_is_read_again() -> None:
    """A store whose manifest went faster than it could be read is not left unread until something happens."""
    run = Run()
    run.disk = Restless()
    run.pipeline.disk = run.pipeline.looker._disk = run.pipeline.looker.observer.disk = run.disk
    run.play(*application(1), *opening(1))
    run.disk.restless = True
    run.until(second(2))
    store = run.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"]
    assert store.databases[""].manifest_problem == "raced"
    run.disk.restless = False
    run.until(second(2) + RACED_AGAIN_US)
    assert store.databases[""].manifest_problem != "raced"


def test_what_lasts_is_not_read_without_end(repository: Path) -> None:
    """A store that cannot be read is looked at twice, not every few seconds from then on."""
    run = two_tasks()
    put_store(run, repository, "compressed")
    run.wait(15)
    pipeline = run.world.pipeline
    assert pipeline is not None
    files = pipeline.inventory.applications["app"].tasks["0_1"].stores["s"].databases[""]
    assert files.problems
    seen_us = files.seen_us
    run.wait(5 * TORN_AGAIN_US / 1_000_000)
    assert files.seen_us == seen_us
