"""Own volume and endpoint: can events be kept, and can they leave? Pure."""

from __future__ import annotations

from agent.inventory.disk import Unseen
from agent.observe.volume import VolumeKind
from agent.preflight import manifest
from agent.preflight.facts import EndpointFacts, Facts, Level, OwnVolume, Result

_MIB = 1024 * 1024


def judge_spool(facts: Facts) -> Result:
    """Judge the agent's own volume."""
    spool = facts.spool
    if not spool.path:
        what = "no spool: events are only logged, nothing can be shipped, and a restart remembers nothing"
        return Result("spool", Level.WARNING, what, change=manifest.SPOOL_ENV)
    if spool.is_in_state:
        what = "is inside the state directory, where the agent never writes: it runs without a spool"
        return Result("spool", Level.FAILED, what, spool.path, manifest.SPOOL_ENV)
    if spool.refusal:
        cause = (
            "the root file system is read-only and no volume is mounted here"
            if spool.is_read_only
            else spool.refusal
        )
        what = f"cannot be written ({cause}): the agent runs without a spool"
        change = manifest.SPOOL_MOUNT
        if not spool.is_read_only:
            change = f"{change}; where it is one already: {manifest.SPOOL_GROUP}"
        return Result("spool", Level.FAILED, what, spool.path, change)
    if spool.other_format:
        what = f"what waits here is set aside, not shipped ({spool.other_format}): run the agent that wrote it until"
        what = f"{what} the spool is empty, or give this one another directory"
        return Result("spool", Level.WARNING, what, spool.path, manifest.SPOOL_ENV)
    trouble = _weakness(spool)
    if trouble is not None:
        return Result("spool", Level.WARNING, trouble[0], spool.path, trouble[1])
    return Result("spool", Level.OK, f"writable, {_room(spool)}", spool.path)


def _weakness(spool: OwnVolume) -> tuple[str, str] | None:
    kind = None if isinstance(spool.mount, Unseen) else spool.mount.kind
    if kind is VolumeKind.OVERLAY:
        return (
            "on the container's own layer: events not yet shipped are gone when it restarts",
            manifest.SPOOL_MOUNT,
        )
    if spool.shares_state_volume:
        return (
            "on the application's state volume: a full spool takes room from the application",
            manifest.SPOOL_MOUNT,
        )
    if not isinstance(spool.space, Unseen) and spool.space.free_bytes < spool.need_bytes:
        what = f"{_room(spool)}, and the spool may want {spool.need_bytes / _MIB:.0f} MiB more: events will be dropped"
        return what, manifest.SPOOL_SIZE
    if kind is VolumeKind.MEMORY:
        return "in memory: it counts against the memory limit of the container", manifest.SPOOL_MOUNT
    return None


def _room(spool: OwnVolume) -> str:
    if isinstance(spool.space, Unseen):
        return "free space unknown"
    return f"{spool.space.free_bytes / _MIB:.0f} MiB free"


def judge_endpoint(facts: Facts) -> Result:
    """Judge whether the sink can be reached."""
    found = facts.endpoint
    if not found.target:
        return Result("endpoint", Level.OK, "none configured: events stay in the spool, nothing is shipped")
    if not facts.spool.path:
        what = "nothing is shipped without a spool"
        return Result("endpoint", Level.FAILED, what, found.target, manifest.SPOOL_ENV)
    if found.missing_library:
        what = f"this image lacks what the sink needs: statewarden[{found.missing_library}]"
        return Result("endpoint", Level.FAILED, what, found.target, manifest.IMAGE_EXTRAS)
    if found.settings_refusal:
        return Result("endpoint", Level.FAILED, found.settings_refusal, found.target, manifest.SHIP_TO)
    if found.directory is not None:
        return _of_directory(found.target, found.directory)
    return _of_network(found)


def _of_directory(target: str, directory: OwnVolume) -> Result:
    if directory.is_in_state:
        what = "is inside the state directory, where the agent never writes"
        return Result("endpoint", Level.FAILED, what, target, manifest.SHIP_TO)
    if directory.refusal:
        what = f"cannot be written: {directory.refusal}"
        return Result("endpoint", Level.FAILED, what, target, manifest.SHIP_TO)
    return Result("endpoint", Level.OK, f"writable, {_room(directory)}", target)


def _of_network(found: EndpointFacts) -> Result:
    if not found.tried:
        return Result(
            "endpoint", Level.OK, "not checked: the client library chooses the address", found.target
        )
    said = "; ".join(found.refusals)
    if len(found.refusals) < len(found.tried):
        if found.refusals:
            what = f"{len(found.refusals)} of {len(found.tried)} addresses cannot be reached: {said}"
            return Result("endpoint", Level.WARNING, what, found.target, manifest.NETWORK)
        return Result("endpoint", Level.OK, f"reached: {', '.join(found.tried)}", found.target)
    if found.may_go_another_way:
        what = f"cannot be reached directly ({said}); fine only if a proxy is configured"
        return Result("endpoint", Level.WARNING, what, found.target, manifest.NETWORK)
    return Result("endpoint", Level.FAILED, f"cannot be reached: {said}", found.target, manifest.NETWORK)
