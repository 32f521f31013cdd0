"""Detector `torn-store`: files of a store that are damaged, and all that only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.contract.events import Affected, Confidence, Severity, Status
from agent.inventory.disk import LockState
from tests.agent.detectors.test_torn_store import two_files
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, store, task

ID, BLIND = "torn-store", "auditor-blind"
STORE = "app/0_1/rocksdb/s"
Damage = Callable[[Scenario], None]


def named(run: Scenario, word: str, place: str = STORE) -> str:
    """Path of the last file of a store with this word in its name."""
    return f"{place}/{max(name for name, _ in run.world.children(place) if word in name)}"


def content(run: Scenario, path: str) -> bytes:
    found = run.world.disk.read_at(path, 0, 1 << 24)
    assert isinstance(found, bytes)
    return found


def rewritten(word: str, change: Callable[[bytes], bytes], place: str = STORE) -> Damage:
    """The file has another content now."""

    def damage(run: Scenario) -> None:
        path = named(run, word, place)
        run.world.replace(path, change(content(run, path)), f"{place}/temporary")

    return damage


def flipped(data: bytes, at_byte: int) -> bytes:
    return data[:at_byte] + bytes([data[at_byte] ^ 1]) + data[at_byte + 1 :]


REFUSED: dict[str, Damage] = {
    "sst of 0 bytes": rewritten(".sst", lambda data: b""),
    "sst cut": rewritten(".sst", lambda data: data[:-5]),
    "sst without footer": rewritten(".sst", lambda data: data[:-53] + bytes(53)),
    "sst with a flipped bit in its properties": rewritten(".sst", lambda data: flipped(data, len(data) - 90)),
    "empty CURRENT": rewritten("CURRENT", lambda data: b""),
    "no manifest": lambda run: run.world.play("unlink", named(run, "MANIFEST")),
    "empty manifest": rewritten("MANIFEST", lambda data: b""),
    "manifest without its first edit": rewritten("MANIFEST", lambda data: data[:20]),
    "manifest with a flipped bit": rewritten("MANIFEST", lambda data: flipped(data, len(data) // 2)),
}
CUT = rewritten("MANIFEST", lambda data: data[:-3])


@pytest.mark.parametrize("damage", REFUSED)
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_reported_as_damaged(damage, release):
    """What RocksDB refuses is damage, confirmed at the second look, and the agent says that it is blind there."""
    run, _ = two_files(release)
    REFUSED[damage](run)
    run.wait(130)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.status) == (
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.store) == ("0_1", "s")
    assert "is damaged" in finding.summary
    assert (finding.mechanism, finding.upstream, finding.affected) == ("damaged-files", (), Affected.NO)
    blind = run.only(BLIND)
    assert "app/0_1/s (store-damaged" in blind.summary
    assert {x.detector for x in run.loud()} == {ID, BLIND}


@pytest.mark.parametrize("damage", REFUSED)
def test_reported_by_an_agent_that_comes_later(damage):
    """Who never saw the store whole says the same, and never that nothing was written to it."""
    run, _ = two_files()
    REFUSED[damage](run)
    run.world = run.world.attached_at(len(run.world.operations))
    run.wait(70)
    assert run.only(ID).confidence is Confidence.CONFIRMED
    assert "store-damaged" in run.only(BLIND).summary


def test_cut_manifest_is_suspected():
    """A record that is cut off may be what a crash of the node left: RocksDB opens it."""
    run, _ = two_files()
    CUT(run)
    run.wait(130)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "opens it without" in finding.summary


def test_fixed():
    """When the volume has come to itself, or the copy is back, both findings end."""
    run, _ = two_files()
    whole = content(run, named(run, "MANIFEST"))
    REFUSED["manifest with a flipped bit"](run)
    run.wait(130)
    assert run.only(ID).status is Status.OPEN
    rewritten("MANIFEST", lambda data: whole)(run)
    run.wait(400)
    assert run.only(ID).status is Status.RESOLVED
    assert run.only(BLIND).status is Status.RESOLVED


def test_ends_with_the_directory():
    """The mitigation ends both."""
    run, app = two_files()
    REFUSED["sst of 0 bytes"](run)
    run.wait(130)
    app.deletes_directory("0_1")
    run.wait(400)
    assert run.only(ID).status is Status.RESOLVED
    assert run.only(BLIND).status is Status.RESOLVED


# -- what only looks like it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [*REFUSED.values(), CUT], ids=[*REFUSED, "cut"])
@pytest.mark.parametrize("place", [STORE, "app/0_0/rocksdb/s"], ids=["free", "held"])
def test_passing(damage, place):
    """What is whole again within seconds was a writer at work, or a volume that shows it late."""
    run, _ = two_files()
    before = {path: content(run, path) for path in run.everything(STORE)}
    damage(run)
    run.wait(3)
    for path, data in before.items():
        if not run.world.has(path) or content(run, path) != data:
            run.world.replace(path, data, f"{STORE}/temporary")
    run.wait(400)
    assert run.findings(ID) == []
    assert run.findings(BLIND) == []


def test_busy_writer():
    """A manifest that ends inside another record at every look is being written, for however long."""
    run, app = two_files()
    held = "app/0_0/rocksdb/s"
    for length in range(1, 40):
        app.puts("0_0", 10)
        app.flushes("0_0")
        whole = content(run, named(run, "MANIFEST", held))
        path = named(run, "MANIFEST", held)
        run.world.replace(path, whole[: -3 * length], f"{held}/temporary")
        run.wait(4)
        run.world.replace(path, whole, f"{held}/temporary")
    run.wait(70)
    assert run.findings(ID) == []
    assert run.findings(BLIND) == []


def test_slow_deletion():
    """A cleaner that has removed the manifest and not yet CURRENT is no damage, and blinds nobody."""
    run, app = two_files()
    names = sorted(name for name, _ in run.world.children(STORE))
    for name in sorted(names, key=lambda name: (name == "CURRENT", not name.startswith("MANIFEST"))):
        run.world.play("unlink", f"{STORE}/{name}")
        run.wait(1.5)
    app.delete_tree("app/0_1")
    run.wait(400)
    assert run.findings(ID) == []
    assert run.findings(BLIND) == []


@pytest.mark.parametrize("damage", ["sst of 0 bytes", "sst without footer", "manifest with a flipped bit"])
def test_held_store_is_suspected_after_a_minute(damage):
    """What a process works on may be shown late by the volume; after a minute it is not."""
    run, app = two_files()
    held = "app/0_0/rocksdb/s"
    app.puts("0_0", 5)
    app.flushes("0_0")
    run.wait(5)
    path = named(run, ".sst" if "sst" in damage else "MANIFEST", held)
    data = content(run, path)
    size = len(data)
    bad = {
        "sst of 0 bytes": b"",
        "sst without footer": data[:-53] + bytes(53),
        "manifest with a flipped bit": flipped(data, size // 2),
    }[damage]
    run.world.replace(path, bad, f"{held}/temporary")
    run.wait(50)
    assert run.findings(ID) == []
    run.wait(90)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "stop this instance first" in finding.next_action


# -- the exact condition ---------------------------------------------------------------------------------------

REFUSED_FILE = "000007.sst: corrupt: file is too short"


def damaged(*problems: str, since: float = 90, seen: float = 95, lock: LockState | None = LockState.FREE):
    """A store whose problems were first found at `since` and last at `seen`."""
    one = database(puts=5, lock=lock)
    one.problems, one.seen_us = problems, at(seen)
    one.problem_since_us = dict.fromkeys(problems, at(since))
    return case(task(store([one])))


@pytest.mark.twin_of("torn-store", "no two readings five seconds apart found it")
def test_two_readings_five_seconds_apart():
    """One look proves nothing, and neither do two in a row."""
    assert len(judge(ID, damaged(REFUSED_FILE))) == 1
    assert judge(ID, damaged(REFUSED_FILE, seen=94.9)) == []
    assert judge(ID, damaged(REFUSED_FILE, since=90, seen=90)) == []


@pytest.mark.parametrize(
    "problem",
    [
        "000007.sst: unsupported: compressed block (kind 7)",
        "000007.sst: elsewhere: it is on another path of the database (db_paths, cf_paths)",
        "000007.sst: denied",
        "000007.sst: vanished",
        "MANIFEST-000005: too-large: more than one reading takes in, the rest follows",
        "offsets: unsupported: entry status: 5 bytes instead of 8",
    ],
)
def test_what_the_agent_cannot_read_is_no_damage(problem):
    """Only what a start finds damaged is told as damage."""
    assert [x for x in judge(ID, damaged(problem)) if x.severity is not Severity.INFO] == []


@pytest.mark.parametrize("lock", [LockState.HELD, LockState.UNKNOWN])
@pytest.mark.twin_of("torn-store", "a process is at it, and a volume may show late what it writes")
def test_confirmed_only_when_no_process_holds_it(lock):
    """Where somebody holds it, or nobody can be asked, it takes a minute and is suspected."""
    assert judge(ID, damaged(REFUSED_FILE, since=41, seen=95, lock=lock)) == []
    assert [x.confidence for x in judge(ID, damaged(REFUSED_FILE, since=40, lock=lock))] == [
        Confidence.SUSPECTED
    ]


def test_says_how_many():
    """The first one is named, the others are counted; the opening is when it was first found."""
    verdict = judge(ID, damaged(REFUSED_FILE, "CURRENT: corrupt: it names no manifest", since=80))[0]
    assert "000007.sst: corrupt: file is too short and 1 more" in verdict.summary
    assert verdict.opened_at_us == at(80)


def test_stores_are_distinguished():
    """Two damaged segments of a task are two findings."""
    one = damaged(REFUSED_FILE)
    assert one.task is not None
    parts = [database(segment="w.0"), database(segment="w.60000")]
    for each in parts:
        each.problems, each.seen_us = (REFUSED_FILE,), at(95)
        each.problem_since_us = {REFUSED_FILE: at(90)}
    one.task.stores = {"w": store(parts, segmented=True, name="w")}
    assert len({x.subject for x in judge(ID, one)}) == 2


@pytest.mark.parametrize("content", [None, b"", bytes(36)])
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_whole_without_identity(release, content):
    """CURRENT, the manifest and the files that it names decide: a remark, also of an agent that comes later."""
    run, _ = two_files(release)
    path = f"{STORE}/IDENTITY"
    if content is None:
        run.world.play("unlink", path)
    else:
        run.world.replace(path, content, f"{STORE}/temporary")
    run.world = run.world.attached_at(len(run.world.operations))
    run.wait(130)
    assert run.loud() == []
    (finding,) = run.findings(ID)
    assert (finding.severity, finding.affected, finding.upstream) == (Severity.INFO, Affected.NO, ())
    assert "RocksDB opens it and makes a new IDENTITY" in finding.summary
