"""The table of checks: each mistake of the first hour is named, with the line that fixes it, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.disk import Unseen
from agent.observe.volume import Mount, Space
from agent.preflight.checks import CHECKS, PATIENT, exit_code, judge
from agent.preflight.facts import Directory, Facts, Identity, OwnVolume
from agent.preflight.telling import Level
from tests.agent.preflight.preflight_support import (
    GOOD,
    NOW_US,
    SPOOL,
    STATE,
    endpoint,
    inotify,
    result,
    spool,
    state,
)

DENIED = Directory("/state/app", 1000, 1000, 0o750, False, NOW_US)
MEMORY, NFS, OVERLAY = (Mount("/x", kind, False) for kind in ("tmpfs", "nfs4", "overlay"))
OWN_LAYER = Mount("/", "overlay", True)
DIRECTORY_SINK = OwnVolume(path="/out", space=Space(1 << 30))

PODS = ("orders-0", "orders-1")
NO_VOLUME = Mount("/", "overlay", False)
TO_COME = state(outcome=Unseen.VANISHED, root=None, below=(), applications=(), tasks=0)
MISTAKES: list[tuple[Facts, str, Level, str, str]] = [
    (replace(GOOD, identity=Identity(0, 0)), "identity", Level.WARNING, "runs as root", "runAsNonRoot: true"),
    (state(outcome=Unseen.VANISHED, root=None, mount=NO_VOLUME), "state-dir", Level.FAILED, "no such directory",
     "volumeMounts"),
    (TO_COME, "state-dir", Level.WARNING, "a volume is mounted above it", "`state.dir`"),
    (TO_COME, "applications", Level.WARNING, "no application directory", "`state.dir`"),
    (state(outcome=Unseen.VANISHED), "state-dir", Level.FAILED, "not a directory", "volumeMounts"),
    (replace(state(applications=(), tasks=0, strangers=PODS, nested=PODS), pod="orders-1"), "applications",
     Level.FAILED, "orders-1 is a state directory (2 are: orders-0, orders-1); give this pod's own",
     "subPathExpr, the same one"),
    (state(links=("orders",)), "applications", Level.WARNING, "not followed: orders", "mount what the link"),
    (state(links=("orders",), applications=()), "applications", Level.FAILED, "not followed: orders", "mount"),
    (state(outcome=Unseen.UNREADABLE), "state-dir", Level.FAILED, "cannot be listed", "volumeMounts"),
    (state(is_application=True), "state-dir", Level.FAILED, "wants its parent", "STATEWARDEN_STATE_DIR"),
    (state(below=(DENIED,)), "access", Level.FAILED, "not in that group", "supplementalGroups: [1000]"),
    (state(below=(replace(DENIED, mode=0o700),)), "access", Level.FAILED,
     "denies its own group, which the agent is not in either", "umask 0027"),
    (state(below=(replace(DENIED, gid=2000, mode=0o700),)), "access", Level.FAILED, "denies its own group",
     "umask 0027"),
    (state(below=(replace(DENIED, gid=2000),)), "access", Level.FAILED, "security module", ""),
    (state(below=(replace(DENIED, gid=0),)), "access", Level.FAILED, "group is root's", "runAsGroup"),
    (state(outcome=Unseen.DENIED, root=None), "access", Level.FAILED, "may not be entered", "volumeMounts"),
    (state(mount=MEMORY), "file-system", Level.WARNING, "tmpfs", "volumeClaimTemplates"),
    (state(mount=NFS), "file-system", Level.WARNING, "polled", "volumeClaimTemplates"),
    (state(mount=OWN_LAYER), "file-system", Level.WARNING, "lost with the pod", "volumeClaimTemplates"),
    (state(mount=OWN_LAYER, applications=(), below=()), "file-system", Level.FAILED, "no volume is mounted",
     "volumeMounts"),
    (inotify(queue_refusal="the limit of queues is reached"), "inotify", Level.FAILED,
     "cannot create an inotify instance", "fs.inotify.max_user_instances=512"),
    (inotify(watches_used_up=True), "inotify", Level.FAILED, "all watches",
     "sysctl -w fs.inotify.max_user_watches=8192"),
    (inotify(watch_refusal="Permission denied"), "inotify", Level.FAILED, "Permission denied", "volumeMounts"),
    (replace(state(directories=9000), inotify=GOOD.inotify), "inotify", Level.WARNING,
     "9000 directories need a watch, 7372 are available", "fs.inotify.max_user_watches=32768"),
    (replace(GOOD, now_us=0), "clock", Level.FAILED, "before 2025", "chrony"),
    (replace(GOOD, is_synchronised=False), "clock", Level.WARNING, "unsynchronised", "chrony"),
    (replace(GOOD, now_us=NOW_US - 60_000_000), "clock", Level.WARNING, "60 s in the future", "chrony"),
    (replace(GOOD, spool=OwnVolume()), "spool", Level.WARNING, "no spool", "STATEWARDEN_SPOOL"),
    (spool(is_in_state=True), "spool", Level.FAILED, "never writes", "STATEWARDEN_SPOOL"),
    (spool(refusal="Read-only file system", mount=Mount("/", "overlay", True)), "spool", Level.FAILED,
     "no volume is mounted here", "emptyDir"),
    (spool(refusal="Permission denied"), "spool", Level.FAILED, "Permission denied", "fsGroup"),
    (spool(other_format="it has format 9"), "spool", Level.WARNING, "set aside, not shipped (it has format 9)",
     "STATEWARDEN_SPOOL"),
    (spool(mount=OVERLAY), "spool", Level.WARNING, "container's own layer", "emptyDir"),
    (spool(mount=STATE.mount), "spool", Level.WARNING, "takes room", "emptyDir"),
    (spool(space=Space(1 << 20)), "spool", Level.WARNING, "1 MiB free", "STATEWARDEN_SHIP_CAP_MIB"),
    (spool(mount=MEMORY), "spool", Level.WARNING, "memory limit", "emptyDir"),
    (replace(GOOD, spool=OwnVolume()), "endpoint", Level.FAILED, "without a spool", "STATEWARDEN_SPOOL"),
    (endpoint(missing_library="kafka"), "endpoint", Level.FAILED, "statewarden[kafka]", "-sinks"),
    (endpoint(settings_refusal="no token"), "endpoint", Level.FAILED, "no token", "STATEWARDEN_SHIP_TO"),
    (endpoint(refusals=("c:443: refused",)), "endpoint", Level.FAILED, "c:443: refused", "NetworkPolicy"),
    (endpoint(tried=("a:1", "b:1"), refusals=("a:1: refused",)), "endpoint", Level.WARNING, "1 of 2 addresses",
     "NetworkPolicy"),
    (endpoint(refusals=("c:443: refused",), may_go_another_way=True), "endpoint", Level.WARNING, "proxy",
     "NetworkPolicy"),
    (endpoint(directory=replace(DIRECTORY_SINK, refusal="Permission denied")), "endpoint", Level.FAILED,
     "Permission denied", "STATEWARDEN_SHIP_TO"),
    (endpoint(directory=replace(DIRECTORY_SINK, is_in_state=True)), "endpoint", Level.FAILED, "never writes",
     "STATEWARDEN_SHIP_TO"),
    (state(applications=(), below=()), "applications", Level.WARNING, "no application directory", "`state.dir`"),
    (state(applications=(), below=(), strangers=("logs",)), "applications", Level.WARNING, "1 other directories",
     "`state.dir`"),
    (state(applications=(), below=(DENIED,)), "applications", Level.WARNING, "cannot be read", ""),
]  # fmt: skip


def test_a_good_pod_is_quiet() -> None:
    """Nothing to say means level ok, in the order of the table, and exit code 0."""
    results = judge(GOOD)
    assert [one.check for one in results] == list(CHECKS)
    assert [one for one in results if one.level is not Level.OK or one.change] == []
    assert exit_code(results) == 0


@pytest.mark.parametrize(("facts", "check", "level", "what", "change"), MISTAKES)
def test_a_mistake_is_named_with_the_line_to_change(
    facts: Facts, check: str, level: Level, what: str, change: str
) -> None:
    """Level, cause and manifest line are those of the mistake."""
    found = result(facts, check)
    assert found.level is level
    assert what in found.what
    assert change in found.change
    assert bool(change) == bool(found.change)
    assert exit_code(judge(facts)) == int(any(x.level is Level.FAILED for x in judge(facts)))


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
    found = result(replace(state(applications=(), below=()), release=release), "applications")
    assert told in found.what
    assert not_told not in found.what


def test_a_sidecar_waits_for_its_application() -> None:
    """It starts first, so an empty volume is no mistake in the first five minutes."""
    facts = state(applications=(), below=())
    assert result(replace(facts, waited_s=299.0), "applications").level is Level.OK
    assert result(replace(facts, waited_s=300.0), "applications").level is Level.WARNING
    assert "applications" in PATIENT


def test_a_sidecar_waits_for_the_directory_itself() -> None:
    """`state.dir` may be a directory on the volume that the application makes: quiet until it should be there."""
    early = [x for x in judge(replace(TO_COME, waited_s=1.0)) if x.level is not Level.OK]
    late = {x.check for x in judge(replace(TO_COME, waited_s=300.0)) if x.level is not Level.OK}
    assert early == []
    assert late == {"state-dir", "applications"}
    assert exit_code(judge(TO_COME)) == 0


@pytest.mark.parametrize(("gid", "mode"), [(2000, 0o2775), (0, 0o777)])
def test_before_the_application_comes_the_group_is_foretold(gid: int, mode: int) -> None:
    """The recipe is told, without alarm; also with fsGroup, which ends where Java sets 0750 on a directory."""
    root = Directory("/state", 0, gid, mode, True)
    found = result(state(root=root, below=(), applications=()), "access")
    assert (found.level, "must be one of the agent's" in found.what) == (Level.OK, True)


def test_a_spool_that_is_full_already_is_not_counted_twice() -> None:
    """What lies in the spool is room that it has."""
    assert result(spool(space=Space(1 << 20), need_bytes=0), "spool").level is Level.OK


@given(
    st.builds(Identity, st.integers(0, 3), st.integers(0, 3), st.frozensets(st.integers(0, 3))),
    st.integers(0, 0o7777),
)
def test_every_denial_has_an_explanation(identity: Identity, mode: int) -> None:
    """Whatever the bits, a denied directory is a failed check that names owner and mode."""
    denied = Directory("/state/app", 1, 2, mode, False)
    found = result(replace(state(below=(denied,)), identity=identity), "access")
    assert found.level is Level.FAILED
    assert f"owner 1:2, mode {mode:04o}" in found.what
    assert SPOOL.path not in found.what


def test_clock_of_a_file_server_is_named() -> None:
    """File times come from it, and time synchronisation of the node says nothing of it."""
    (served,) = (x for x in judge(state(mount=Mount("/state", "nfs4", False))) if x.check == "clock")
    assert served.level is Level.OK
    assert "file times on /state (nfs4) are the file server's" in served.what
    (local,) = (x for x in judge(GOOD) if x.check == "clock")
    assert "file server" not in local.what
