"""Is the state directory the right one, on a volume that lasts, and is an application in it? Pure."""

from __future__ import annotations

from agent.inventory.disk import Unseen
from agent.inventory.nested import in_words
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import Release
from agent.observe.volume import VolumeKind
from agent.preflight import manifest
from agent.preflight.facts import Facts, Level, Result

_SHOWN = 3


def judge_state_dir(facts: Facts) -> Result:
    """Judge whether the directory is there and is a state directory."""
    state, where = facts.state, facts.state_dir
    if state.is_to_come:
        return _to_come(facts)
    if state.outcome is Unseen.VANISHED:
        what = "no such directory" if state.root is None else "not a directory"
        return Result("state-dir", Level.FAILED, what, where, manifest.STATE_MOUNT)
    if state.outcome not in (None, Unseen.DENIED):
        what = f"cannot be listed: {state.outcome.value}"
        return Result("state-dir", Level.FAILED, what, where, manifest.STATE_MOUNT)
    if state.is_application:
        what = "this is an application directory; the agent wants its parent, Kafka Streams' `state.dir`"
        return Result("state-dir", Level.FAILED, what, where, manifest.STATE_DIR_ENV)
    seen = "is there" if state.root is None else f"is there, {state.root}"
    if state.may_write:
        seen += "; the agent could write to it and never does: `readOnly: true` on its mount is enough"
    return Result("state-dir", Level.OK, seen, where)


def _to_come(facts: Facts) -> Result:
    if facts.is_early:
        what = "not there yet; the volume is, and the application makes the directory when it starts"
        return Result("state-dir", Level.OK, what, facts.state_dir)
    what = "no such directory, though a volume is mounted above it: the application has not started, or has another"
    return Result(
        "state-dir", Level.WARNING, f"{what} `state.dir`", facts.state_dir, manifest.APPLICATION_STATE_DIR
    )


def judge_file_system(facts: Facts) -> Result:
    """Judge the volume: does it outlive the pod, and does it announce what changes on it?"""
    state, where = facts.state, facts.state_dir
    if isinstance(state.mount, Unseen) or (state.outcome is Unseen.VANISHED and not state.is_to_come):
        what = "unknown: the state directory does not exist, or the table of mounts cannot be read"
        return Result("file-system", Level.WARNING, what, where)
    kind, seen = state.mount.kind, f"{state.mount.filesystem}, mounted at {state.mount.mount_point}"
    if kind is VolumeKind.OVERLAY and not state.applications:
        what = f"{seen}: this is the container's own layer, no volume is mounted here"
        return Result("file-system", Level.FAILED, what, where, manifest.STATE_MOUNT)
    if kind in (VolumeKind.OVERLAY, VolumeKind.MEMORY):
        what = f"{seen}: it is gone with the pod, and every start restores everything"
        return Result("file-system", Level.WARNING, what, where, manifest.STATE_VOLUME)
    if not state.mount.supports_inotify:
        what = f"{seen}: it does not announce what other machines change; it will be polled"
        return Result("file-system", Level.WARNING, what, where, manifest.STATE_VOLUME)
    return Result("file-system", Level.OK, seen, where)


def judge_applications(facts: Facts) -> Result:
    """Judge whether there is anything to watch: the most common mistake of the first hour is that there is not."""
    state, where = facts.state, facts.state_dir
    if state.links:
        listed = ", ".join(state.links[:_SHOWN]) + (" ..." if len(state.links) > _SHOWN else "")
        what = f"symbolic links are not followed: {listed} may be applications, and are not watched"
        level = Level.WARNING if state.applications else Level.FAILED
        return Result("applications", level, what, where, manifest.LINKED)
    if state.applications:
        names = ", ".join(state.applications[:_SHOWN]) + (" ..." if len(state.applications) > _SHOWN else "")
        what = f"{len(state.applications)} with {state.tasks} task directories: {names}"
        return Result("applications", Level.OK, what, where)
    if state.nested and not facts.is_early:
        return Result(
            "applications", Level.FAILED, in_words(state.nested, facts.pod), where, manifest.STATE_DIR_OF_POD
        )
    if facts.is_early and (state.outcome is None or state.is_to_come) and not _denied(facts):
        return Result("applications", Level.OK, "none yet; the application starts after its sidecar", where)
    if state.outcome is not None and not state.is_to_come:
        what = "unknown: the state directory cannot be listed"
        return Result("applications", Level.WARNING, what, where)
    if _denied(facts):
        what = "unknown: directories in the state directory cannot be read"
        return Result("applications", Level.WARNING, what, where)
    others = f" ({len(state.strangers)} other directories)" if state.strangers else ""
    what = (
        f"no application directory{others}: the application has not started, has no persistent stores, or its"
        f" `state.dir` is not on this volume. Its default is {default_state_dir(facts.release)}"
    )
    return Result("applications", Level.WARNING, what, where, manifest.APPLICATION_STATE_DIR)


def _denied(facts: Facts) -> bool:
    return any(not one.is_readable for one in facts.state.below)


def default_state_dir(release: str) -> str:
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
