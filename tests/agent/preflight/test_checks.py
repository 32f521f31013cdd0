"""The table of checks: each mistake of the first hour is named, with the line that fixes it, and nothing else is."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import WatchLimitError
from agent.inventory.disk import Unseen
from agent.inventory.settings import Setting
from agent.observe.volume import Mount, Space
from agent.preflight.checks import CHECKS, PATIENT, check, judge
from agent.preflight.facts import Directory, Facts
from agent.preflight.telling import Level
from tests.agent.preflight.preflight_support import (
    GOOD,
    NOW_US,
    STATE,
    STATE_DIR,
    Queue,
    agent,
    levels,
    live_in,
    state,
)

DENIED = Directory("/state/app", 1000, 1000, 0o750, False, NOW_US)
MEMORY, NFS, OVERLAY = (Mount("/x", kind, False) for kind in ("tmpfs", "nfs4", "overlay"))
OWN_LAYER = Mount("/", "overlay", True)

PODS = ("orders-0", "orders-1")
NO_VOLUME = Mount("/", "overlay", False)
TO_COME = state(outcome=Unseen.VANISHED, root=None, below=[], applications=[], tasks=0)


def no_queue() -> Queue:
    raise WatchLimitError


MISTAKES: list[tuple[Facts, str, Level, str, str]] = [
    (replace(GOOD, uid=0), "identity", Level.WARNING, "runs as root", "runAsNonRoot: true"),
    (state(outcome=Unseen.VANISHED, root=None, mount=NO_VOLUME), "state-dir", Level.FAILED, "no such directory",
     "volumeMounts"),
    (TO_COME, "state-dir", Level.WARNING, "a volume is mounted above it", "`state.dir`"),
    (TO_COME, "applications", Level.WARNING, "no application directory", "`state.dir`"),
    (state(outcome=Unseen.VANISHED), "state-dir", Level.FAILED, "not a directory", "volumeMounts"),
    (state(agent(pod="orders-1"), applications=[], tasks=0, strangers=[*PODS], nested=PODS), "applications",
     Level.FAILED, "orders-1 is a state directory (2 are: orders-0, orders-1); give this pod's own",
     "subPathExpr, the same one"),
    (state(links=["orders"]), "applications", Level.WARNING, "not followed: orders", "mount what the link"),
    (state(links=["orders"], applications=[]), "applications", Level.FAILED, "not followed: orders", "mount"),
    (state(outcome=Unseen.UNREADABLE), "state-dir", Level.FAILED, "cannot be listed", "volumeMounts"),
    (state(is_application=True), "state-dir", Level.FAILED, "wants its parent", "STATEWARDEN_STATE_DIR"),
    (state(below=[DENIED]), "access", Level.FAILED, "not in that group", "supplementalGroups: [1000]"),
    (state(below=[DENIED._replace(mode=0o700)]), "access", Level.FAILED,
     "denies its own group, which the agent is not in either", "umask 0027"),
    (state(below=[DENIED._replace(gid=2000, mode=0o700)]), "access", Level.FAILED, "denies its own group",
     "umask 0027"),
    (state(below=[DENIED._replace(gid=2000)]), "access", Level.FAILED, "security module", ""),
    (state(below=[DENIED._replace(gid=0)]), "access", Level.FAILED, "group is root's", "runAsGroup"),
    (state(outcome=Unseen.DENIED, root=None), "access", Level.FAILED, "may not be entered", "volumeMounts"),
    (state(mount=MEMORY), "file-system", Level.WARNING, "tmpfs", "volumeClaimTemplates"),
    (state(mount=NFS), "file-system", Level.WARNING, "polled", "volumeClaimTemplates"),
    (state(mount=OWN_LAYER), "file-system", Level.WARNING, "lost with the pod", "volumeClaimTemplates"),
    (state(mount=OWN_LAYER, applications=[], below=[]), "file-system", Level.FAILED, "no volume is mounted",
     "volumeMounts"),
    (replace(GOOD, now_us=0), "clock", Level.FAILED, "before 2025", "chrony"),
    (replace(GOOD, is_synchronised=False), "clock", Level.WARNING, "unsynchronised", "chrony"),
    (replace(GOOD, now_us=NOW_US - 60_000_000), "clock", Level.WARNING, "60 s in the future", "chrony"),
    (state(applications=[], below=[]), "applications", Level.WARNING, "no application directory", "`state.dir`"),
    (state(applications=[], below=[], strangers=["logs"]), "applications", Level.WARNING, "1 other directories",
     "`state.dir`"),
    (state(applications=[], below=[DENIED]), "applications", Level.WARNING, "cannot be read", ""),
]  # fmt: skip
SEEN: list[tuple[Facts, dict[str, Any], str, Level, str, str]] = [
    (GOOD, {"InotifyQueue": no_queue}, "inotify", Level.FAILED,
     "cannot create an inotify instance (the limit of queues is reached)", "fs.inotify.max_user_instances=512"),
    (GOOD, {"InotifyQueue": lambda: Queue(errno.ENOSPC)}, "inotify", Level.FAILED, "all watches",
     "sysctl -w fs.inotify.max_user_watches=8192"),
    (GOOD, {"InotifyQueue": lambda: Queue(errno.EACCES)}, "inotify", Level.FAILED, "cannot be watched: refused",
     "volumeMounts"),
    (state(directories=9000), {}, "inotify", Level.WARNING,
     "9000 directories need a watch, 7372 are available", "fs.inotify.max_user_watches=32768"),
    (agent(spool=""), {}, "spool", Level.WARNING, "no spool", "STATEWARDEN_SPOOL"),
    (agent(spool=f"{STATE_DIR}/spool"), {}, "spool", Level.FAILED, "never writes", "STATEWARDEN_SPOOL"),
    (GOOD, {"try_to_write": OSError(errno.EROFS, "Read-only"), "find_mount": OWN_LAYER}, "spool", Level.FAILED,
     "no volume is mounted here", "emptyDir"),
    (GOOD, {"try_to_write": OSError(errno.EACCES, "denied")}, "spool", Level.FAILED, "written (denied)", "fsGroup"),
    (replace(GOOD, spool_refusal="broken"), {}, "spool", Level.FAILED, "cannot be written (broken)", "fsGroup"),
    (GOOD, {"other_format": "it has format 9"}, "spool", Level.WARNING, "set aside, not shipped (it has format 9)",
     "STATEWARDEN_SPOOL"),
    (GOOD, {"find_mount": OVERLAY}, "spool", Level.WARNING, "container's own layer", "emptyDir"),
    (GOOD, {"find_mount": STATE.mount}, "spool", Level.WARNING, "takes room", "emptyDir"),
    (GOOD, {"measure_space": Space(1 << 20)}, "spool", Level.WARNING, "1 MiB free, and the spool may want 72 MiB more",
     "STATEWARDEN_SHIP_CAP_MIB"),
    (GOOD, {"find_mount": MEMORY}, "spool", Level.WARNING, "memory limit", "emptyDir"),
    (agent(spool=""), {}, "endpoint", Level.FAILED, "without a spool", "STATEWARDEN_SPOOL"),
    (agent(ship_to="kafka://a/t"), {"find_spec": None}, "endpoint", Level.FAILED, "statewarden[kafka]", "-sinks"),
    (replace(GOOD, sink_refusal="no token"), {}, "endpoint", Level.FAILED, "no token", "STATEWARDEN_SHIP_TO"),
    (GOOD, {"refusals": ["c:443: refused"]}, "endpoint", Level.FAILED, "c:443: refused", "NetworkPolicy"),
    (agent(ship_to="kafka://a:1,b:1/t"), {"refusals": ["a:1: refused"]}, "endpoint", Level.WARNING,
     "1 of 2 addresses", "NetworkPolicy"),
    (agent(ship_to="s3://bucket"), {"refusals": ["c:443: refused"]}, "endpoint", Level.WARNING, "proxy",
     "NetworkPolicy"),
    (agent(ship_to="/out"), {"try_to_write": OSError(errno.EACCES, "denied")}, "endpoint", Level.FAILED,
     "cannot be written: denied", "STATEWARDEN_SHIP_TO"),
    (agent(ship_to=f"{STATE_DIR}/out"), {}, "endpoint", Level.FAILED, "never writes", "STATEWARDEN_SHIP_TO"),
]  # fmt: skip


def test_a_good_pod_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to say means level ok, in the order of the table."""
    live_in(monkeypatch)
    results = judge(GOOD)
    assert [one.check for one in results] == list(CHECKS)
    assert [one for one in results if one.level is not Level.OK or one.change] == []


@pytest.mark.parametrize(
    ("facts", "world", "check_id", "level", "what", "change"),
    [*((facts, {}, *said) for facts, *said in MISTAKES), *SEEN],
)
def test_a_mistake_is_named_with_the_line_to_change(
    monkeypatch: pytest.MonkeyPatch, facts: Facts, world: dict[str, Any], check_id: str, level: Level, what: str,
    change: str,
) -> None:  # fmt: skip
    """Level, cause and manifest line are those of the mistake."""
    live_in(monkeypatch, **world)
    found = check(check_id, facts)
    assert found.level is level
    assert what in found.what
    assert change in found.change
    assert bool(change) == bool(found.change)


def test_each_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path, address or kernel setting that it is about; what is found below or beside names its own."""
    live_in(monkeypatch)
    assert {x.check: x.where for x in judge(GOOD)} == {
        "identity": "", "state-dir": STATE_DIR, "access": STATE_DIR, "file-system": STATE_DIR, "clock": "",
        "inotify": "fs.inotify.max_user_watches=8192", "spool": "/var/lib/statewarden/spool",
        "endpoint": "https://example.com", "applications": STATE_DIR,
    }  # fmt: skip
    assert check("access", state(below=[DENIED])).where == "/state/app"
    assert check("clock", replace(GOOD, now_us=NOW_US - 60_000_000)).where == STATE_DIR
    live_in(monkeypatch, InotifyQueue=no_queue)
    assert check("inotify", GOOD).where == "fs.inotify.max_user_instances=128"


def test_the_page_has_a_row_for_every_check(repository: Path) -> None:
    """Whoever is sent to docs/preflight.md finds the check there, in the order of the table."""
    page = (repository / "docs" / "preflight.md").read_text(encoding="utf-8")
    cells = [
        [x.strip() for x in line.strip("|").split("|")] for line in page.splitlines() if line[:3] == "| `"
    ]
    rows = [row[0] for row in cells if len(row) == 4]
    assert rows == [f"`{check}`" for check in CHECKS]


@pytest.mark.parametrize(
    ("release", "told", "not_told"),
    [
        ("2.7.2", "/tmp/kafka-streams (up to 2.7.x)", "java.io.tmpdir"),
        ("2.8.0", "java.io.tmpdir", "up to 2.7"),
        ("4.3", "java.io.tmpdir", "up to 2.7"),
        ("", "java.io.tmpdir", "\0"),
        ("", "up to 2.7.x", "\0"),
    ],
)
def test_the_default_state_dir_is_named_by_release(release: str, told: str, not_told: str) -> None:
    """Whoever knows the release is told its default only; without it, both."""
    own = {"kafka_streams_version": Setting(release, "")} if release else {}
    book = replace(GOOD.config.applications, common=own)
    facts = replace(GOOD, config=replace(GOOD.config, applications=book))
    found = check("applications", state(facts, applications=[], below=[]))
    assert told in found.what
    assert not_told not in found.what


def test_a_sidecar_waits_for_its_application() -> None:
    """It starts first, so an empty volume is no mistake in the first five minutes."""
    facts = state(applications=[], below=[])
    assert check("applications", replace(facts, waited_s=299.0)).level is Level.OK
    assert check("applications", replace(facts, waited_s=300.0)).level is Level.WARNING
    assert (
        check("applications", state(replace(facts, waited_s=1.0), applications=[], nested=PODS)).level
        is Level.OK
    )
    assert "applications" in PATIENT


def test_a_sidecar_waits_for_the_directory_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """`state.dir` may be a directory on the volume that the application makes: quiet until it should be there."""
    live_in(monkeypatch)
    assert levels(replace(TO_COME, waited_s=1.0)) == {}
    late = {"state-dir": "warning", "applications": "warning"}
    assert levels(replace(TO_COME, waited_s=300.0)) == levels(TO_COME) == late


@pytest.mark.parametrize(("gid", "mode"), [(2000, 0o2775), (0, 0o777)])
def test_before_the_application_comes_the_group_is_foretold(gid: int, mode: int) -> None:
    """The recipe is told, without alarm; also with fsGroup, which ends where Java sets 0750 on a directory."""
    root = Directory("/state", 0, gid, mode, True)
    found = check("access", state(root=root, below=[], applications=[]))
    assert (found.level, "must be one of the agent's" in found.what) == (Level.OK, True)


@given(st.integers(0, 3), st.integers(0, 3), st.lists(st.integers(0, 3)), st.integers(0, 0o7777))
def test_every_denial_has_an_explanation(uid: int, gid: int, groups: Sequence[int], mode: int) -> None:
    """Whatever the bits, a denied directory is a failed check that names owner and mode."""
    denied = Directory("/state/app", 1, 2, mode, False)
    found = check("access", replace(state(below=[denied]), uid=uid, gid=gid, groups=groups))
    assert found.level is Level.FAILED
    assert f"owner 1:2, mode {mode:04o}" in found.what


def test_clock_of_a_file_server_is_named() -> None:
    """File times come from it, and time synchronisation of the node says nothing of it."""
    served = check("clock", state(mount=Mount("/state", "nfs4", False)))
    assert served.level is Level.OK
    assert "file times on /state (nfs4) are the file server's" in served.what
    assert "file server" not in check("clock", GOOD).what
