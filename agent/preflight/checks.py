"""The nine checks: facts in, results out. Pure.

A check that fails means that the agent cannot do its work there; a warning, that it does less or will stop to do it.
"""

from __future__ import annotations

import stat
from collections.abc import Callable

from agent.contract.exit_codes import Exit, answer
from agent.inventory.disk import Unseen
from agent.inventory.file_times import SERVED_VOLUMES
from agent.inventory.nested import in_words
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import Release
from agent.observe.volume import Mount, Space, VolumeKind
from agent.preflight import telling
from agent.preflight.facts import Directory, EndpointFacts, Facts, Identity, OwnVolume
from agent.preflight.telling import Level, Result
from agent.watch.limits import budget, enough_instances, enough_watches

_FUTURE_US = 5_000_000
"""How far ahead of the clock a file's time may lie: file systems of other machines are never quite in step."""

_OLDEST_US = 1_735_689_600_000_000  # 2025-01-01: no clock that is right is before the first release

_GROUP_READS = stat.S_IRGRP | stat.S_IXGRP
_RECIPE = "the application will create directories with mode 0750 and its own group, which must be one of the agent's"
_SHOWN = 3
_MIB = 1024 * 1024

Said = tuple[Level, str, str, str]  # level, what was found, where, and what to change


def _ok(what: str, where: str = "") -> Said:
    return Level.OK, what, where, ""


def _warning(what: str, where: str = "", change: str = "") -> Said:
    return Level.WARNING, what, where, change


def _failed(what: str, where: str = "", change: str = "") -> Said:
    return Level.FAILED, what, where, change


def _identity(facts: Facts) -> Said:
    """As whom the agent runs: it needs no privileges, and should have none."""
    if facts.identity.uid == 0:
        what = "the agent runs as root; it needs no privileges, and Pod Security `restricted` refuses it"
        return _warning(what, change=telling.NOT_ROOT)
    return _ok(str(facts.identity))


def _state_dir(facts: Facts) -> Said:
    """The directory is there and is a state directory."""
    state, where = facts.state, facts.state_dir
    if state.is_to_come and facts.is_early:
        return _ok(
            "not there yet; the volume is, and the application makes the directory when it starts", where
        )
    if state.is_to_come:
        what = "no such directory, though a volume is mounted above it: the application has not started, or has another"
        return _warning(f"{what} `state.dir`", where, telling.APPLICATION_STATE_DIR)
    if state.outcome is Unseen.VANISHED:
        what = "no such directory" if state.root is None else "not a directory"
        return _failed(what, where, telling.STATE_MOUNT)
    if state.outcome not in (None, Unseen.DENIED):
        return _failed(f"cannot be listed: {state.outcome.value}", where, telling.STATE_MOUNT)
    if state.is_application:
        what = "this is an application directory; the agent wants its parent, Kafka Streams' `state.dir`"
        return _failed(what, where, telling.STATE_DIR_ENV)
    seen = "is there" if state.root is None else f"is there, {state.root}"
    if state.may_write:
        seen += "; the agent could write to it and never does: `readOnly: true` on its mount is enough"
    return _ok(seen, where)


def _access(facts: Facts) -> Said:
    """Rights: of the state directory, of a sample below it, and before there is one, of what will come."""
    state, identity = facts.state, facts.identity
    if state.outcome is Unseen.DENIED and state.root is None:
        what = f"a directory above the state directory may not be entered ({identity})"
        return _failed(what, facts.state_dir, telling.STATE_MOUNT)
    if state.is_to_come:
        return _ok(f"nothing to read yet; {_RECIPE} ({identity})", facts.state_dir)
    if state.root is None:
        return _warning("unknown: the state directory does not exist", facts.state_dir)
    checked = (state.root, *state.below)
    denied = [one for one in checked if not one.is_readable]
    if denied:
        why, change = _explain(denied[0], identity)
        more = f" ({len(denied)} of {len(checked)} directories)" if len(checked) > 1 else ""
        return _failed(f"cannot be read{more}: {why}", denied[0].path, change)
    if state.below:
        return _ok(f"{len(checked)} directories checked, all can be read", facts.state_dir)
    if identity.uid == 0:
        return _ok(f"{state.root}: new directories will be the agent's to read", facts.state_dir)
    return _ok(f"{state.root}; {_RECIPE} ({identity})", facts.state_dir)


def _explain(denied: Directory, identity: Identity) -> tuple[str, str]:
    """Return why a directory may not be read, and which line changes that.

    Source:
        StateDirectory (2.6.1+, 2.7.1+, 2.8+) makes state and application directory rwxr-x---; what is below them
        follows the application's umask.
    """
    seen = f"{denied}; the agent is {identity}"
    is_member = denied.gid == identity.gid or denied.gid in identity.groups
    if denied.mode & _GROUP_READS != _GROUP_READS:
        neither = "" if is_member else ", which the agent is not in either"
        return f"{seen}: the directory denies its own group{neither}", telling.UMASK
    if is_member:
        return f"{seen}: the bits allow it, so an access list or a security module denies it", ""
    if denied.gid == 0:
        return f"{seen}: the group is root's, and the agent should not be in it", telling.ANY_GROUP
    return f"{seen}: the agent is not in that group", telling.group_line(denied.gid)


def _file_system(facts: Facts) -> Said:
    """The volume: does it outlive the pod, and does it announce what changes on it?"""
    state, where = facts.state, facts.state_dir
    if isinstance(state.mount, Unseen) or (state.outcome is Unseen.VANISHED and not state.is_to_come):
        what = "unknown: the state directory does not exist, or the table of mounts cannot be read"
        return _warning(what, where)
    kind, seen = state.mount.kind, f"{state.mount.filesystem}, mounted at {state.mount.mount_point}"
    if kind is VolumeKind.OVERLAY and not state.applications:
        what = f"{seen}: this is the container's own layer, no volume is mounted here"
        return _failed(what, where, telling.STATE_MOUNT)
    if kind in (VolumeKind.OVERLAY, VolumeKind.MEMORY):
        what = f"{seen}: it is gone with the pod, and every start restores everything"
        return _warning(what, where, telling.STATE_VOLUME)
    if not state.mount.supports_inotify:
        what = f"{seen}: it does not announce what other machines change; it will be polled"
        return _warning(what, where, telling.STATE_VOLUME)
    return _ok(seen, where)


def _inotify(facts: Facts) -> Said:
    """The inotify budget: queues and watches against the need."""
    found, need = facts.inotify, facts.state.directories
    watches, allowed = str(found.watches), budget(found.watches)
    if found.queue_refusal:
        line = telling.sysctl_line(found.instances.name, enough_instances(found.instances))
        what = f"cannot create an inotify instance ({found.queue_refusal}); everything will be polled"
        return _failed(what, str(found.instances), line)
    line = telling.sysctl_line(found.watches.name, enough_watches(need))
    if found.watches_used_up:
        what = f"all watches of this user on the node are taken; {need} are needed, everything will be polled"
        return _failed(what, watches, line)
    if found.watch_refusal and facts.state.outcome is None:
        what = f"the state directory cannot be watched: {found.watch_refusal}"
        return _failed(what, facts.state_dir, telling.STATE_MOUNT)
    if allowed is not None and need > allowed:
        what = f"{need} directories need a watch, {allowed} are available; the rest will be polled"
        return _warning(what, watches, line)
    given = "instance is available" if found.watch_refusal else "instance and a watch are available"
    of = "?" if allowed is None else allowed
    return _ok(f"{need} of {of} watches needed; an inotify {given}", watches)


def _clock(facts: Facts) -> Said:
    """The wall clock: against files, against the calendar, and by the kernel's word."""
    checked = (x for x in (facts.state.root, *facts.state.below) if x is not None)
    newest = max(checked, key=lambda x: x.mtime_us, default=None)
    if facts.now_us < _OLDEST_US:
        what = "the clock is set before 2025; every reported age would be wrong"
        return _failed(what, change=telling.NODE_CLOCK)
    if newest is not None and newest.mtime_us > facts.now_us + _FUTURE_US:
        ahead_s = (newest.mtime_us - facts.now_us) / 1_000_000
        what = (
            f"a directory was changed {ahead_s:.0f} s in the future: this clock is slow, or another was fast"
        )
        return _warning(what, newest.path, telling.NODE_CLOCK)
    if facts.is_synchronised is False:
        what = "the kernel reports an unsynchronised clock; times of two pods cannot be compared"
        return _warning(what, change=telling.NODE_CLOCK)
    kept = (
        "synchronised by a time service"
        if facts.is_synchronised
        else "the kernel does not say whether it is synchronised"
    )
    mount = facts.state.mount
    if isinstance(mount, Mount) and mount.kind in SERVED_VOLUMES:
        kept += (
            f"; file times on {mount.mount_point} ({mount.filesystem}) are the file server's: keep its clock in step,"
            " too. The agent measures the difference while it runs"
        )
    return _ok(kept)


def _spool(facts: Facts) -> Said:
    spool = facts.spool
    mount = None if isinstance(spool.mount, Unseen) else spool.mount
    if not spool.path:
        what = "no spool: events are only logged, nothing can be shipped, and a restart remembers nothing"
        return _warning(what, change=telling.SPOOL_ENV)
    if spool.is_in_state:
        what = "is inside the state directory, where the agent never writes: it runs without a spool"
        return _failed(what, spool.path, telling.SPOOL_ENV)
    if spool.refusal and mount is not None and mount.read_only:
        cause = "the root file system is read-only and no volume is mounted here"
        return _failed(
            f"cannot be written ({cause}): the agent runs without a spool", spool.path, telling.SPOOL_MOUNT
        )
    if spool.refusal:
        change = f"{telling.SPOOL_MOUNT}; where it is one already: {telling.SPOOL_GROUP}"
        return _failed(
            f"cannot be written ({spool.refusal}): the agent runs without a spool", spool.path, change
        )
    if spool.other_format:
        what = f"what waits here is set aside, not shipped ({spool.other_format}): run the agent that wrote it until"
        what = f"{what} the spool is empty, or give this one another directory"
        return _warning(what, spool.path, telling.SPOOL_ENV)
    if mount is not None and mount.kind is VolumeKind.OVERLAY:
        what = "on the container's own layer: events not yet shipped are gone when it restarts"
        return _warning(what, spool.path, telling.SPOOL_MOUNT)
    if _is_one_volume(spool.mount, facts.state.mount):
        what = "on the application's state volume: a full spool takes room from the application"
        return _warning(what, spool.path, telling.SPOOL_MOUNT)
    if isinstance(spool.space, Space) and spool.space.free_bytes < spool.need_bytes:
        what = f"{_room(spool)}, and the spool may want {spool.need_bytes / _MIB:.0f} MiB more: events will be dropped"
        return _warning(what, spool.path, telling.SPOOL_SIZE)
    if mount is not None and mount.kind is VolumeKind.MEMORY:
        what = "in memory: it counts against the memory limit of the container"
        return _warning(what, spool.path, telling.SPOOL_MOUNT)
    return _ok(f"writable, {_room(spool)}", spool.path)


def _is_one_volume(own: Mount | Unseen, of_state: Mount | Unseen) -> bool:
    """Return whether both lie below one mount; a node's own disk may be behind many volumes, so not the device."""
    if isinstance(own, Unseen) or isinstance(of_state, Unseen):
        return False
    return own.mount_point == of_state.mount_point != "/"


def _room(own: OwnVolume) -> str:
    if isinstance(own.space, Unseen):
        return "free space unknown"
    return f"{own.space.free_bytes / _MIB:.0f} MiB free"


def _endpoint(facts: Facts) -> Said:
    found, own = facts.endpoint, facts.endpoint.directory
    if not found.target:
        return _ok("none configured: events stay in the spool, nothing is shipped")
    if not facts.spool.path:
        return _failed("nothing is shipped without a spool", found.target, telling.SPOOL_ENV)
    if found.missing_library:
        what = f"this image lacks what the sink needs: statewarden[{found.missing_library}]"
        return _failed(what, found.target, telling.IMAGE_EXTRAS)
    if found.settings_refusal:
        return _failed(found.settings_refusal, found.target, telling.SHIP_TO)
    if own is None:
        return _network(found)
    if own.is_in_state:
        what = "is inside the state directory, where the agent never writes"
        return _failed(what, found.target, telling.SHIP_TO)
    if own.refusal:
        return _failed(f"cannot be written: {own.refusal}", found.target, telling.SHIP_TO)
    return _ok(f"writable, {_room(own)}", found.target)


def _network(found: EndpointFacts) -> Said:
    said = "; ".join(found.refusals)
    if not found.tried:
        return _ok("not checked: the client library chooses the address", found.target)
    if not found.refusals:
        return _ok(f"reached: {', '.join(found.tried)}", found.target)
    if len(found.refusals) < len(found.tried):
        what = f"{len(found.refusals)} of {len(found.tried)} addresses cannot be reached: {said}"
        return _warning(what, found.target, telling.NETWORK)
    if found.may_go_another_way:
        what = f"cannot be reached directly ({said}); fine only if a proxy is configured"
        return _warning(what, found.target, telling.NETWORK)
    return _failed(f"cannot be reached: {said}", found.target, telling.NETWORK)


def _applications(facts: Facts) -> Said:
    """There is something to watch: the most common mistake of the first hour is that there is not."""
    state, where = facts.state, facts.state_dir
    is_listed = state.outcome is None or state.is_to_come
    is_denied = any(not one.is_readable for one in state.below)
    if state.links:
        what = (
            f"symbolic links are not followed: {_first(state.links)} may be applications, and are not watched"
        )
        return (_warning if state.applications else _failed)(what, where, telling.LINKED)
    if state.applications:
        counted = f"{len(state.applications)} with {state.tasks} task directories"
        return _ok(f"{counted}: {_first(state.applications)}", where)
    if state.nested and not facts.is_early:
        return _failed(in_words(state.nested, facts.pod), where, telling.STATE_DIR_OF_POD)
    if facts.is_early and is_listed and not is_denied:
        return _ok("none yet; the application starts after its sidecar", where)
    if not is_listed:
        return _warning("unknown: the state directory cannot be listed", where)
    if is_denied:
        return _warning("unknown: directories in the state directory cannot be read", where)
    others = f" ({len(state.strangers)} other directories)" if state.strangers else ""
    what = (
        f"no application directory{others}: the application has not started, has no persistent stores, or its"
        f" `state.dir` is not on this volume. Its default is {_default_state_dir(facts.release)}"
    )
    return _warning(what, where, telling.APPLICATION_STATE_DIR)


def _first(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")


def _default_state_dir(release: str) -> str:
    """Return Kafka Streams' default of `state.dir`, of one release or of all where none is named.

    Source:
        StreamsConfig.STATE_DIR_CONFIG; KAFKA-10604 moved it below java.io.tmpdir in 2.8.
    """
    fixed = FACTS[Fact.FIXED_DEFAULT_DIRECTORY].holds
    old = f"/tmp/kafka-streams ({fixed[0]})"  # noqa: S108 - Kafka Streams' default, not ours
    new = "kafka-streams below the JVM's java.io.tmpdir, as a rule /tmp/kafka-streams (2.8 or later)"
    try:
        known = Release.parse(release)
    except ValueError:
        return f"{old}; {new}"
    return old if any(one.contains(known) for one in fixed) else new


CHECKS: dict[str, Callable[[Facts], Said]] = {
    "identity": _identity, "state-dir": _state_dir, "access": _access, "file-system": _file_system,
    "inotify": _inotify, "clock": _clock, "spool": _spool, "endpoint": _endpoint, "applications": _applications,
}  # fmt: skip
"""By id, as in results, log lines and the metric."""

PATIENT = frozenset({"state-dir", "access", "endpoint", "applications"})
"""What may come right by itself in the first minute of a pod: the first complaint is kept back."""


def judge(facts: Facts) -> tuple[Result, ...]:
    """Judge everything, in the order of the table."""
    return tuple(Result(check, *ask(facts)) for check, ask in CHECKS.items())


def exit_code(results: tuple[Result, ...]) -> Exit:
    """Go by the checks that failed; warnings are no failure."""
    return answer(found=any(result.level is Level.FAILED for result in results), unread=False)
