"""The nine checks: facts in, results out. Pure.

A check that fails means that the agent cannot do its work there; a warning, that it does less or will stop to do it.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from operator import itemgetter

from agent.contract.exit_codes import Exit, answer
from agent.inventory.disk import Unseen
from agent.inventory.file_times import SERVED_VOLUMES
from agent.inventory.nested import in_words
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import Release
from agent.observe.volume import Mount, Space, VolumeKind
from agent.preflight import telling
from agent.preflight.facts import Directory, Facts, Identity, OwnVolume
from agent.preflight.telling import Level, Result
from agent.watch.limits import budget, enough_instances, enough_watches

_FUTURE_US = 5_000_000
"""How far ahead of the clock a file's time may lie: file systems of other machines are never quite in step."""

_OLDEST_US = 1_735_689_600_000_000  # 2025-01-01: no clock that is right is before the first release

_GROUP_READS = stat.S_IRGRP | stat.S_IXGRP
_RECIPE = "the application will create directories with mode 0750 and its own group, which must be one of the agent's"
_SHOWN = 3
_MIB = 1024 * 1024

OK, WARNING, FAILED = Level
Said = tuple[Level, str, str, str]  # level, what was found, where, and what to change


def _first_of(*rules: tuple[object, Level, str, str, str]) -> Said:
    """Say what the first rule says that holds."""
    return next(said for holds, *said in rules if holds)  # type: ignore[return-value]


def _identity(facts: Facts) -> Said:
    """As whom the agent runs: it needs no privileges, and should have none."""
    if facts.identity.uid == 0:
        what = "the agent runs as root; it needs no privileges, and Pod Security `restricted` refuses it"
        return WARNING, what, "", telling.NOT_ROOT
    return OK, str(facts.identity), "", ""


def _state_dir(facts: Facts) -> Said:
    """The directory is there and is a state directory."""
    state, where = facts.state, facts.state_dir
    seen = "is there" if state.root is None else f"is there, {state.root}"
    if state.may_write:
        seen += "; the agent could write to it and never does: `readOnly: true` on its mount is enough"
    return _first_of(
        (state.is_to_come and facts.is_early, OK,
         "not there yet: the application makes the directory when it starts", where, ""),
        (state.is_to_come, WARNING, "no such directory, though a volume is mounted above it: the application has not"
         " started, or has another `state.dir`", where, telling.APPLICATION_STATE_DIR),
        (state.outcome is Unseen.VANISHED, FAILED,
         "no such directory" if state.root is None else "not a directory", where, telling.STATE_MOUNT),
        (state.outcome not in (None, Unseen.DENIED), FAILED, f"cannot be listed: {state.outcome}", where,
         telling.STATE_MOUNT),
        (state.is_application, FAILED, "this is an application directory; the agent wants its parent, Kafka Streams'"
         " `state.dir`", where, telling.STATE_DIR_ENV),
        (True, OK, seen, where, ""),
    )  # fmt: skip


def _access(facts: Facts) -> Said:
    """Rights: of the state directory, of a sample below it, and before there is one, of what will come."""
    state, identity, where = facts.state, facts.identity, facts.state_dir
    if state.outcome is Unseen.DENIED and state.root is None:
        what = f"a directory above the state directory may not be entered ({identity})"
        return FAILED, what, where, telling.STATE_MOUNT
    if state.is_to_come:
        return OK, f"nothing to read yet; {_RECIPE} ({identity})", where, ""
    if state.root is None:
        return WARNING, "unknown: the state directory does not exist", where, ""
    checked = (state.root, *state.below)
    denied = [one for one in checked if not one.is_readable]
    if denied:
        why, change = _explain(denied[0], identity)
        more = f" ({len(denied)} of {len(checked)} directories)" if len(checked) > 1 else ""
        return FAILED, f"cannot be read{more}: {why}", denied[0].path, change
    return _first_of(
        (state.below, OK, f"{len(checked)} directories checked; all are readable", where, ""),
        (identity.uid == 0, OK, f"{state.root}: the agent can read new directories", where, ""),
        (True, OK, f"{state.root}; {_RECIPE} ({identity})", where, ""),
    )


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
        return WARNING, what, where, ""
    kind, seen = state.mount.kind, f"{state.mount.filesystem}, mounted at {state.mount.mount_point}"
    return _first_of(
        (kind is VolumeKind.OVERLAY and not state.applications, FAILED,
         f"{seen}: this is the container's own layer, no volume is mounted here", where, telling.STATE_MOUNT),
        (kind in (VolumeKind.OVERLAY, VolumeKind.MEMORY), WARNING,
         f"{seen}: it is lost with the pod, and every start restores everything", where, telling.STATE_VOLUME),
        (not state.mount.supports_inotify, WARNING,
         f"{seen}: changes by other machines are not announced; it will be polled", where, telling.STATE_VOLUME),
        (True, OK, seen, where, ""),
    )  # fmt: skip


def _inotify(facts: Facts) -> Said:
    """The inotify budget: queues and watches against the need."""
    found, need = facts.inotify, facts.state.directories
    watches, allowed = str(found.watches), budget(found.watches)
    queues = telling.sysctl_line(found.instances.name, enough_instances(found.instances))
    line = telling.sysctl_line(found.watches.name, enough_watches(need))
    given = "instance is available" if found.watch_refusal else "instance and a watch are available"
    return _first_of(
        (found.queue_refusal, FAILED, f"cannot create an inotify instance ({found.queue_refusal}); everything will be"
         " polled", str(found.instances), queues),
        (found.watches_used_up, FAILED, f"all watches of this user on the node are taken; {need} are needed,"
         " everything will be polled", watches, line),
        (found.watch_refusal and facts.state.outcome is None, FAILED,
         f"the state directory cannot be watched: {found.watch_refusal}", facts.state_dir, telling.STATE_MOUNT),
        (allowed is not None and need > allowed, WARNING,
         f"{need} directories need a watch, {allowed} are available; the rest will be polled", watches, line),
        (True, OK, f"{need} of {'?' if allowed is None else allowed} watches needed; an inotify {given}", watches, ""),
    )  # fmt: skip


def _clock(facts: Facts) -> Said:
    """The wall clock: against files, against the calendar, and by the kernel's word."""
    checked = (x for x in (facts.state.root, *facts.state.below) if x is not None)
    newest_us, place = max(((x.mtime_us, x.path) for x in checked), key=itemgetter(0), default=(0, ""))
    ahead_s = (newest_us - facts.now_us) / 1_000_000
    kept, mount = "the kernel does not say whether it is synchronised", facts.state.mount
    if facts.is_synchronised:
        kept = "synchronised by a time service"
    if isinstance(mount, Mount) and mount.kind in SERVED_VOLUMES:
        kept += (
            f"; file times on {mount.mount_point} ({mount.filesystem}) are the file server's: keep its clock in step,"
            " too. The agent measures the difference while it runs"
        )
    return _first_of(
        (facts.now_us < _OLDEST_US, FAILED, "the clock is set before 2025; every reported age would be wrong", "",
         telling.NODE_CLOCK),
        (newest_us > facts.now_us + _FUTURE_US, WARNING, f"a directory was changed {ahead_s:.0f} s in the future: this"
         " clock is slow, or another was fast", place, telling.NODE_CLOCK),
        (facts.is_synchronised is False, WARNING,
         "the kernel reports an unsynchronised clock; times of two pods cannot be compared", "", telling.NODE_CLOCK),
        (True, OK, kept, "", ""),
    )  # fmt: skip


def _spool(facts: Facts) -> Said:
    spool, path = facts.spool, facts.spool.path
    mount = None if isinstance(spool.mount, Unseen) else spool.mount
    kind = None if mount is None else mount.kind
    lacks_room = isinstance(spool.space, Space) and spool.space.free_bytes < spool.need_bytes
    without = "the agent runs without a spool"
    return _first_of(
        (not path, WARNING, "no spool: events are only logged, nothing is shipped, and a restart loses the baseline",
         "", telling.SPOOL_ENV),
        (spool.is_in_state, FAILED, "is inside the state directory, where the agent never writes: it runs without a"
         " spool", path, telling.SPOOL_ENV),
        (spool.refusal and mount is not None and mount.read_only, FAILED, "cannot be written (the root file system is"
         f" read-only and no volume is mounted here): {without}", path, telling.SPOOL_MOUNT),
        (spool.refusal, FAILED, f"cannot be written ({spool.refusal}): {without}", path,
         f"{telling.SPOOL_MOUNT}; where it is one already: {telling.SPOOL_GROUP}"),
        (spool.other_format, WARNING, f"waiting records will be set aside, not shipped ({spool.other_format}): run the"
         " agent that wrote it until the spool is empty, or give this one another directory", path, telling.SPOOL_ENV),
        (kind is VolumeKind.OVERLAY, WARNING, "on the container's own layer: unshipped events are lost at a restart",
         path, telling.SPOOL_MOUNT),
        (_is_one_volume(spool.mount, facts.state.mount), WARNING, "on the application's state volume: a full spool"
         " takes room from the application", path, telling.SPOOL_MOUNT),
        (lacks_room, WARNING, f"{_room(spool)}, and the spool may want {spool.need_bytes / _MIB:.0f} MiB more: events"
         " will be dropped", path, telling.SPOOL_SIZE),
        (kind is VolumeKind.MEMORY, WARNING, "in memory: it counts against the memory limit of the container", path,
         telling.SPOOL_MOUNT),
        (True, OK, f"writable, {_room(spool)}", path, ""),
    )  # fmt: skip


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
    found, own, where = facts.endpoint, facts.endpoint.directory or OwnVolume(), facts.endpoint.target
    said, silent, tried = "; ".join(found.refusals), len(found.refusals), len(found.tried)
    is_far = found.directory is None
    return _first_of(
        (not where, OK, "no sink: nothing is shipped", "", ""),
        (not facts.spool.path, FAILED, "nothing is shipped without a spool", where, telling.SPOOL_ENV),
        (found.missing_library, FAILED,
         f"this image lacks what the sink needs: statewarden[{found.missing_library}]", where, telling.IMAGE_EXTRAS),
        (found.settings_refusal, FAILED, found.settings_refusal, where, telling.SHIP_TO),
        (is_far and not tried, OK, "not checked: the client library chooses the address", where, ""),
        (is_far and not silent, OK, f"reached: {', '.join(found.tried)}", where, ""),
        (is_far and silent < tried, WARNING, f"{silent} of {tried} addresses cannot be reached: {said}", where,
         telling.NETWORK),
        (is_far and found.may_go_another_way, WARNING,
         f"cannot be reached directly ({said}); fine only if a proxy is configured", where, telling.NETWORK),
        (is_far, FAILED, f"cannot be reached: {said}", where, telling.NETWORK),
        (own.is_in_state, FAILED, "is inside the state directory, where the agent never writes", where,
         telling.SHIP_TO),
        (own.refusal, FAILED, f"cannot be written: {own.refusal}", where, telling.SHIP_TO),
        (True, OK, f"writable, {_room(own)}", where, ""),
    )  # fmt: skip


def _applications(facts: Facts) -> Said:
    """There is something to watch: the most common mistake of the first hour is that there is not."""
    state, where = facts.state, facts.state_dir
    is_listed = state.outcome is None or state.is_to_come
    is_denied = any(not one.is_readable for one in state.below)
    others = f" ({len(state.strangers)} other directories)" if state.strangers else ""
    counted = f"{len(state.applications)} with {state.tasks} task directories"
    return _first_of(
        (state.links, WARNING if state.applications else FAILED, f"symbolic links are not followed:"
         f" {_some(state.links)} may be applications, and are not watched", where, telling.LINKED),
        (state.applications, OK, f"{counted}: {_some(state.applications)}", where, ""),
        (state.nested and not facts.is_early, FAILED, in_words(state.nested, facts.pod) if state.nested else "", where,
         telling.STATE_DIR_OF_POD),
        (facts.is_early and is_listed and not is_denied, OK, "none yet; the application starts after its sidecar",
         where, ""),
        (not is_listed, WARNING, "unknown: can't list the state directory", where, ""),
        (is_denied, WARNING, "unknown: directories in the state directory cannot be read", where, ""),
        (True, WARNING, f"no application directory{others}: the application has not started, has no persistent stores,"
         f" or its `state.dir` is not on this volume. Its default is {_default_state_dir(facts.release)}", where,
         telling.APPLICATION_STATE_DIR),
    )  # fmt: skip


def _some(names: tuple[str, ...]) -> str:
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
