"""The nine checks: each says what it found. Writes only a probe in the agent's own directories; bounded in time.

A check that fails means that the agent cannot do its work there; a warning, that it does less or will stop to do it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path

from agent.delivery import DIRECTORY, OBJECT_STORE, parse_target
from agent.errors import WatchError, WatchLimitError
from agent.inventory.disk import Unseen
from agent.inventory.file_times import SERVED_VOLUMES
from agent.inventory.nested import in_words
from agent.layout.facts import FACTS, Fact
from agent.layout.paths import PathRole
from agent.layout.releases import Release
from agent.observe.volume import Mount, Space, VolumeKind, find_mount, measure_space
from agent.preflight import telling
from agent.preflight.facts import Directory, Facts
from agent.preflight.reach import addresses, refusals
from agent.preflight.telling import Level, Result
from agent.ship.database import DATABASE_NAME
from agent.ship.home import is_inside, nearest, try_to_write
from agent.ship.queue import other_format, size_of
from agent.watch.inotify import InotifyQueue
from agent.watch.limits import budget, enough_instances, enough_watches, instance_limit, watch_limit

_FUTURE_US = 5_000_000
"""How far ahead of the clock a file's time may lie: file systems of other machines are never quite in step."""

_OLDEST_US = 1_735_689_600_000_000  # 2025-01-01: no clock that is right is before the first release

_GROUP_READS = stat.S_IRGRP | stat.S_IXGRP
_RECIPE = "the application will create directories with mode 0750 and its own group, which must be one of the agent's"
_SHOWN = 3
_MIB = 1024 * 1024
_BASELINE_MIB = 8  # room for the baseline, twice: it is replaced in one step

OK, WARNING, FAILED = Level
Said = tuple[Level, str, *tuple[str, ...]]
"""Level, what was found, what to change, and where it is, if not in the place that the check is about."""

# tables of rules: lines as wide as their sentences
# fmt: off


def _first_of(*rules: tuple[object, Level, *tuple[str, ...]]) -> Said:
    """Say what the first rule says that holds."""
    return next(said for holds, *said in rules if holds)  # type: ignore[return-value]


def _identity(facts: Facts) -> Said:
    """As whom the agent runs: it needs no privileges, and should have none."""
    what = "the agent runs as root; it needs no privileges, and Pod Security `restricted` refuses it"
    return (WARNING, what, telling.NOT_ROOT) if facts.uid == 0 else (OK, facts.who)


def _state_dir(facts: Facts) -> Said:
    """The directory is there and is a state directory."""
    state = facts.state
    seen = "is there" if state.root is None else f"is there, {_owned(state.root)}"
    if state.may_write:
        seen += "; the agent could write to it and never does: `readOnly: true` on its mount is enough"
    return _first_of(
        (state.is_to_come and facts.is_early, OK, "not there yet: the application makes the directory when it starts"),
        (state.is_to_come, WARNING, "no such directory, though a volume is mounted above it: the application has not"
         " started, or has another `state.dir`", telling.APPLICATION_STATE_DIR),
        (state.outcome is Unseen.VANISHED, FAILED,
         "no such directory" if state.root is None else "not a directory", telling.STATE_MOUNT),
        (state.outcome not in (None, Unseen.DENIED), FAILED, f"cannot be listed: {state.outcome}", telling.STATE_MOUNT),
        (state.is_application, FAILED, "this is an application directory; the agent wants its parent, Kafka Streams'"
         " `state.dir`", telling.STATE_DIR_ENV),
        (True, OK, seen),
    )


def _access(facts: Facts) -> Said:
    """Rights: of the state directory, of a sample below it, and before there is one, of what will come."""
    state, who = facts.state, facts.who
    if state.outcome is Unseen.DENIED and state.root is None:
        return FAILED, f"a directory above the state directory may not be entered ({who})", telling.STATE_MOUNT
    if state.is_to_come:
        return OK, f"nothing to read yet; {_RECIPE} ({who})"
    if state.root is None:
        return WARNING, "unknown: the state directory does not exist"
    checked = (state.root, *state.below)
    denied = [one for one in checked if not one.is_readable]
    if denied:
        why, change = _explain(denied[0], facts)
        more = f" ({len(denied)} of {len(checked)} directories)" if len(checked) > 1 else ""
        return FAILED, f"cannot be read{more}: {why}", change, denied[0].path
    return _first_of(
        (state.below, OK, f"{len(checked)} directories checked; all are readable"),
        (facts.uid == 0, OK, f"{_owned(state.root)}: the agent can read new directories"),
        (True, OK, f"{_owned(state.root)}; {_RECIPE} ({who})"),
    )


def _owned(directory: Directory) -> str:
    return f"owner {directory.uid}:{directory.gid}, mode {directory.mode:04o}"


def _explain(denied: Directory, facts: Facts) -> tuple[str, str]:
    """Return why a directory may not be read, and which line changes that.

    Source:
        StateDirectory (2.6.1+, 2.7.1+, 2.8+) makes state and application directory rwxr-x---; what is below them
        follows the application's umask.
    """
    seen, is_member = f"{_owned(denied)}; the agent is {facts.who}", denied.gid in (facts.gid, *facts.groups)
    if denied.mode & _GROUP_READS != _GROUP_READS:
        neither = "" if is_member else ", which the agent is not in either"
        return f"{seen}: the directory denies its own group{neither}", telling.UMASK
    if is_member:
        return f"{seen}: the bits allow it, so an access list or a security module denies it", ""
    if denied.gid == 0:
        return f"{seen}: the group is root's, and the agent should not be in it", telling.ANY_GROUP
    return f"{seen}: the agent is not in that group", telling.GROUP.format(denied.gid)


def _file_system(facts: Facts) -> Said:
    """The volume: does it outlive the pod, and does it announce what changes on it?"""
    state, mount = facts.state, facts.state.mount
    if isinstance(mount, Unseen) or (state.outcome is Unseen.VANISHED and not state.is_to_come):
        return WARNING, "unknown: the state directory does not exist, or the table of mounts cannot be read"
    seen = f"{mount.filesystem}, mounted at {mount.mount_point}"
    return _first_of(
        (mount.kind is VolumeKind.OVERLAY and not state.applications, FAILED,
         f"{seen}: this is the container's own layer, no volume is mounted here", telling.STATE_MOUNT),
        (mount.kind in (VolumeKind.OVERLAY, VolumeKind.MEMORY), WARNING,
         f"{seen}: it is lost with the pod, and every start restores everything", telling.STATE_VOLUME),
        (not mount.supports_inotify, WARNING,
         f"{seen}: changes by other machines are not announced; it will be polled", telling.STATE_VOLUME),
        (True, OK, seen),
    )


def _inotify(facts: Facts) -> Said:
    """The inotify budget, queues and watches against the need: one of each is taken, and given back."""
    watches, instances, need = watch_limit(), instance_limit(), facts.state.directories
    allowed, at, refusal = budget(watches), str(watches), None
    line = telling.SYSCTL.format(watches.name, enough_watches(need))
    try:
        queue = InotifyQueue()
    except WatchError as error:
        why = "the limit of queues is reached" if isinstance(error, WatchLimitError) else error
        change = telling.SYSCTL.format(instances.name, enough_instances(instances))
        return FAILED, f"cannot create an inotify instance ({why}); everything will be polled", change, str(instances)
    try:
        descriptor = os.open(facts.config.agent.state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            queue.add(descriptor, PathRole.STATE_DIRECTORY)
        finally:
            os.close(descriptor)
    except OSError as error:
        refusal = error
    finally:
        queue.close()
    given = "instance is available" if refusal else "instance and a watch are available"
    return _first_of(
        (refusal and refusal.errno == errno.ENOSPC, FAILED, f"all watches of this user on the node are taken; {need}"
         " are needed, everything will be polled", line, at),
        (refusal and facts.state.outcome is None, FAILED, f"the state directory cannot be watched: {_reason(refusal)}",
         telling.STATE_MOUNT),
        (allowed is not None and need > allowed, WARNING,
         f"{need} directories need a watch, {allowed} are available; the rest will be polled", line, at),
        (True, OK, f"{need} of {'?' if allowed is None else allowed} watches needed; an inotify {given}", "", at),
    )


def _reason(error: OSError | None) -> str:
    return "" if error is None else error.strerror or str(error)


def _clock(facts: Facts) -> Said:
    """The wall clock: against files, against the calendar, and by the kernel's word."""
    checked = (x for x in (facts.state.root, *facts.state.below) if x is not None)
    newest_us, place = max(((x.mtime_us, x.path) for x in checked), key=itemgetter(0), default=(0, ""))
    ahead_s, mount = (newest_us - facts.now_us) / 1_000_000, facts.state.mount
    kept = "synchronised by a time service"
    if not facts.is_synchronised:
        kept = "the kernel does not say whether it is synchronised"
    if isinstance(mount, Mount) and mount.kind in SERVED_VOLUMES:
        kept += (f"; file times on {mount.mount_point} ({mount.filesystem}) are the file server's: keep its clock in"
                 " step, too. The agent measures the difference while it runs")
    return _first_of(
        (facts.now_us < _OLDEST_US, FAILED, "the clock is set before 2025; every reported age would be wrong",
         telling.NODE_CLOCK),
        (newest_us > facts.now_us + _FUTURE_US, WARNING, f"a directory was changed {ahead_s:.0f} s in the future: this"
         " clock is slow, or another was fast", telling.NODE_CLOCK, place),
        (facts.is_synchronised is False, WARNING,
         "the kernel reports an unsynchronised clock; times of two pods cannot be compared", telling.NODE_CLOCK),
        (True, OK, kept),
    )


def _spool(facts: Facts) -> Said:
    """The agent's own volume: there, writable, room enough."""
    path, root, of_state = facts.config.agent.spool, Path(facts.config.agent.state_dir), facts.state.mount
    place, database = Path(path), Path(path, DATABASE_NAME)
    if not path:
        what = "no spool: events are only logged, nothing is shipped, and a restart loses the baseline"
        return WARNING, what, telling.SPOOL_ENV
    if is_inside(place, root):
        what = "is inside the state directory, where the agent never writes: it runs without a spool"
        return FAILED, what, telling.SPOOL_ENV
    mount, space = find_mount(nearest(place)), measure_space(nearest(place))
    kind = mount.kind if isinstance(mount, Mount) else None
    refusal = facts.spool_refusal or _reason(try_to_write(place, root))
    if not refusal and database.exists() and not database.is_file():
        refusal = f"{DATABASE_NAME} is no file"
    odd = "" if refusal else other_format(database)
    used_bytes = size_of(Path(folder, name) for folder, _, files in os.walk(place) for name in files)
    need_mib = max(0.0, facts.config.ship.cap_mib + _BASELINE_MIB - used_bytes / _MIB)
    # below one mount; a node's own disk may be behind many volumes, so the device says nothing
    is_shared = isinstance(of_state, Mount) and of_state.mount_point != "/" and mount == of_state
    without = "the agent runs without a spool"
    return _first_of(
        (refusal and isinstance(mount, Mount) and mount.read_only, FAILED, "cannot be written (the root file system is"
         f" read-only and no volume is mounted here): {without}", telling.SPOOL_MOUNT),
        (refusal, FAILED, f"cannot be written ({refusal}): {without}",
         f"{telling.SPOOL_MOUNT}; where it is one already: {telling.SPOOL_GROUP}"),
        (odd, WARNING, f"waiting records will be set aside, not shipped ({odd}): run the agent that wrote it until the"
         " spool is empty, or give this one another directory", telling.SPOOL_ENV),
        (kind is VolumeKind.OVERLAY, WARNING, "on the container's own layer: unshipped events are lost at a restart",
         telling.SPOOL_MOUNT),
        (is_shared, WARNING, "on the application's state volume: a full spool takes room from the application",
         telling.SPOOL_MOUNT),
        (isinstance(space, Space) and space.free_bytes / _MIB < need_mib, WARNING, f"{_room(space)}, and the spool may"
         f" want {need_mib:.0f} MiB more: events will be dropped", telling.SPOOL_SIZE),
        (kind is VolumeKind.MEMORY, WARNING, "in memory: it counts against the memory limit of the container",
         telling.SPOOL_MOUNT),
        (True, OK, f"writable, {_room(space)}"),
    )


def _room(space: Space | Unseen) -> str:
    return f"{space.free_bytes / _MIB:.0f} MiB free" if isinstance(space, Space) else "free space unknown"


def _endpoint(facts: Facts) -> Said:
    """The sink can be reached."""
    agent, ship = facts.config.agent, facts.config.ship
    if not agent.ship_to:
        return OK, "no sink: nothing is shipped"
    if not agent.spool:
        return FAILED, "nothing is shipped without a spool", telling.SPOOL_ENV
    target = parse_target(agent.ship_to)
    kind, place = target.kind, Path(target.url)
    if kind is DIRECTORY:
        refusal = _reason(try_to_write(place, Path(agent.state_dir)))
        return _first_of(
            (is_inside(place, Path(agent.state_dir)), FAILED,
             "is inside the state directory, where the agent never writes", telling.SHIP_TO),
            (refusal, FAILED, f"cannot be written: {refusal}", telling.SHIP_TO),
            (True, OK, f"writable, {_room(measure_space(nearest(place)))}"),
        )
    if kind.library and find_spec(kind.library) is None:
        return FAILED, f"this image lacks what the sink needs: statewarden[{kind.extra}]", telling.IMAGE_EXTRAS
    if facts.sink_refusal:
        return FAILED, facts.sink_refusal, telling.SHIP_TO
    tried = addresses(target, ship)
    by_tls = target.url.partition("://")[0] in kind.encrypted.values()  # a library has its own rules
    silent = refusals(tried, ship.ca_file, by_tls=by_tls)
    said = "; ".join(silent)
    return _first_of(
        (not tried, OK, "not checked: the client library chooses the address"),
        (not silent, OK, f"reached: {', '.join(f'{host}:{port}' for host, port in tried)}"),
        (len(silent) < len(tried), WARNING, f"{len(silent)} of {len(tried)} addresses cannot be reached: {said}",
         telling.NETWORK),
        (kind is OBJECT_STORE and not ship.endpoint, WARNING,
         f"cannot be reached directly ({said}); fine only if a proxy is configured", telling.NETWORK),
        (True, FAILED, f"cannot be reached: {said}", telling.NETWORK),
    )


def _applications(facts: Facts) -> Said:
    """There is something to watch: the most common mistake of the first hour is that there is not."""
    state, found = facts.state, _some(facts.state.applications)
    is_listed = state.outcome is None or state.is_to_come
    is_denied = any(not one.is_readable for one in state.below)
    others = f" ({len(state.strangers)} other directories)" if state.strangers else ""
    below = in_words(state.nested, facts.config.agent.pod) if state.nested else ""
    return _first_of(
        (state.links, WARNING if found else FAILED, f"symbolic links are not followed: {_some(state.links)} may be"
         " applications, and are not watched", telling.LINKED),
        (found, OK, f"{len(state.applications)} with {state.tasks} task directories: {found}"),
        (below and not facts.is_early, FAILED, below, telling.STATE_DIR_OF_POD),
        (facts.is_early and is_listed and not is_denied, OK, "none yet; the application starts after its sidecar"),
        (not is_listed, WARNING, "unknown: can't list the state directory"),
        (is_denied, WARNING, "unknown: directories in the state directory cannot be read"),
        (True, WARNING, f"no application directory{others}: the application has not started, has no persistent stores,"
         f" or its `state.dir` is not on this volume. Its default is {_default_state_dir(facts)}",
         telling.APPLICATION_STATE_DIR),
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")


def _default_state_dir(facts: Facts) -> str:
    """Return Kafka Streams' default of `state.dir`, of the release that the operator named or of all.

    Source:
        StreamsConfig.STATE_DIR_CONFIG; KAFKA-10604 moved it below java.io.tmpdir in 2.8.
    """
    fixed = FACTS[Fact.FIXED_DEFAULT_DIRECTORY].holds
    release = facts.config.applications.common.get("kafka_streams_version")
    old = f"/tmp/kafka-streams ({fixed[0]})"  # noqa: S108 - Kafka Streams' default, not ours
    new = "kafka-streams below the JVM's java.io.tmpdir, as a rule /tmp/kafka-streams (2.8 or later)"
    try:
        known = Release.parse(release.value if release else "")
    except ValueError:
        return f"{old}; {new}"
    return old if any(one.contains(known) for one in fixed) else new


CHECKS: dict[str, Callable[[Facts], Said]] = {
    "identity": _identity, "state-dir": _state_dir, "access": _access, "file-system": _file_system,
    "inotify": _inotify, "clock": _clock, "spool": _spool, "endpoint": _endpoint, "applications": _applications,
}
"""By id, as in results, log lines and the metric."""

PATIENT = frozenset({"state-dir", "access", "endpoint", "applications"})
"""What may come right by itself in the first minute of a pod: the first complaint is kept back."""


def judge(facts: Facts) -> tuple[Result, ...]:
    """Judge everything, in the order of the table. Cost: up to three seconds for the network."""
    return tuple(check(id_, facts) for id_ in CHECKS)


def check(id_: str, facts: Facts) -> Result:
    """Judge one thing."""
    agent = facts.config.agent
    places = {"identity": "", "clock": "", "spool": agent.spool, "endpoint": agent.ship_to}
    level, what, *more = CHECKS[id_](facts)
    change, where = (*more, "", "")[:2]
    return Result(id_, level, what, where or places.get(id_, str(Path(agent.state_dir))), change)
