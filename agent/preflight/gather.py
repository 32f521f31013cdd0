"""Gathers what the checks judge: the edge of preflight. Reads; writes only a probe in the agent's own directories."""

from __future__ import annotations

import errno
import importlib.util
import os
from dataclasses import replace
from pathlib import Path

from agent.clock import Clock, is_clock_synchronised
from agent.config import Config
from agent.delivery import DIRECTORY, OBJECT_STORE, parse_target
from agent.errors import WatchError, WatchLimitError
from agent.inventory.disk import Unseen
from agent.layout.paths import PathRole
from agent.observe.volume import Mount, find_mount, measure_space
from agent.preflight import reach
from agent.preflight.facts import ClockFacts, EndpointFacts, Facts, Identity, InotifyFacts, OwnVolume
from agent.preflight.survey import survey
from agent.ship.database import DATABASE_NAME
from agent.ship.home import is_inside, nearest, try_to_write
from agent.ship.queue import other_format
from agent.watch.inotify import InotifyQueue
from agent.watch.limits import instance_limit, watch_limit

BASELINE_BYTES = 8 * 1024 * 1024
"""Room for the baseline, twice: it is replaced in one step."""


def gather(config: Config, clock: Clock, *, waited_s: float | None = None, sink_refusal: str = "") -> Facts:
    """Gather everything that a check asks about.

    Args:
        config: Effective settings.
        clock: For the time.
        waited_s: See `Facts`.
        sink_refusal: Why the sink could not be made; empty = it was, or was not tried.

    Cost:
        A few hundred readings, whatever the size of the state directory, and up to three seconds for the network.
    """
    root = Path(config.agent.state_dir)
    release = config.applications.common.get("kafka_streams_version")
    return Facts(
        state_dir=str(root),
        identity=Identity(os.geteuid(), os.getegid(), frozenset(os.getgroups())),
        state=survey(root),
        inotify=ask_inotify(root),
        clock=ClockFacts(clock.now_us(), is_clock_synchronised()),
        spool=probe_spool(config, root),
        endpoint=probe_endpoint(config, root, sink_refusal),
        waited_s=waited_s,
        release=release.value if release is not None else "",
        pod=config.agent.pod,
    )


def ask_inotify(root: Path) -> InotifyFacts:
    """Open a queue, watch the state directory, and give both back."""
    watches, instances = watch_limit(), instance_limit()
    try:
        queue = InotifyQueue()
    except WatchLimitError:
        return InotifyFacts(watches, instances, queue_refusal="the limit of queues is reached")
    except WatchError as error:
        return InotifyFacts(watches, instances, queue_refusal=str(error))
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            queue.add(descriptor, PathRole.STATE_DIRECTORY)
        finally:
            os.close(descriptor)
    except OSError as error:
        refusal = error.strerror or str(error)
        return InotifyFacts(
            watches, instances, watch_refusal=refusal, watches_used_up=error.errno == errno.ENOSPC
        )
    finally:
        queue.close()
    return InotifyFacts(watches, instances)


def probe_own_volume(directory: str, root: Path, need_bytes: int = 0) -> OwnVolume:
    """Read a directory that the agent writes to, and try to write."""
    if not directory:
        return OwnVolume()
    path = Path(directory)
    if is_inside(path, root):
        return OwnVolume(path=directory, is_in_state=True)
    place = nearest(path)
    error = try_to_write(path, root)
    mount = find_mount(place)
    return OwnVolume(
        path=directory,
        refusal="" if error is None else error.strerror or str(error),
        is_read_only=not isinstance(mount, Unseen) and mount.read_only,
        space=measure_space(place),
        mount=mount,
        shares_state_volume=_is_one_volume(mount, find_mount(root)),
        need_bytes=max(0, need_bytes - _used_bytes(path)),
    )


def probe_spool(config: Config, root: Path) -> OwnVolume:
    """Read the spool's directory, try to write, and ask what is there of which format it is."""
    found = probe_own_volume(config.agent.spool, root, _spool_need(config))
    if not found.path or found.is_in_state or found.refusal:
        return found
    return replace(found, other_format=other_format(Path(found.path) / DATABASE_NAME))


def probe_endpoint(config: Config, root: Path, sink_refusal: str = "") -> EndpointFacts:
    """Find out whether the sink could be reached."""
    text = config.agent.ship_to
    if not text:
        return EndpointFacts()
    target = parse_target(text)
    if target.kind is DIRECTORY:
        return EndpointFacts(text, directory=probe_own_volume(target.url, root))
    library = target.kind.library
    if library and importlib.util.find_spec(library) is None:
        return EndpointFacts(text, missing_library=target.kind.extra)
    if sink_refusal:
        return EndpointFacts(text, settings_refusal=sink_refusal)
    tried = reach.addresses(target, config.ship)
    said = reach.refusals(tried, config.ship, by_tls=reach.is_by_tls(target))
    return EndpointFacts(
        text,
        tried=tuple(reach.written(tried)),
        refusals=tuple(said),
        may_go_another_way=target.kind is OBJECT_STORE and not config.ship.endpoint,
    )


def _spool_need(config: Config) -> int:
    return int(config.ship.cap_mib * 1024 * 1024) + BASELINE_BYTES


def _used_bytes(directory: Path) -> int:
    """Add up what is in a spool already; what cannot be seen counts nothing."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += (Path(folder) / name).lstat().st_size
            except OSError:
                continue
    return total


def _is_one_volume(own: Mount | Unseen, of_state: Mount | Unseen) -> bool:
    """Return whether both lie below one mount; a node's own disk may be behind many volumes, so not the device."""
    if isinstance(own, Unseen) or isinstance(of_state, Unseen):
        return False
    return own.mount_point == of_state.mount_point != "/"
