"""May the agent read what the application made? The permission bits say why not, and which line helps. Pure."""

from __future__ import annotations

import stat

from agent.inventory.disk import Unseen
from agent.preflight import manifest
from agent.preflight.facts import Directory, Facts, Identity, Level, Result

_GROUP_READS = stat.S_IRGRP | stat.S_IXGRP
_RECIPE = "the application will create directories with mode 0750 and its own group, which must be one of the agent's"


def judge_access(facts: Facts) -> Result:
    """Judge rights: of the state directory, of a sample below it, and before there is one, of what will come."""
    state, identity = facts.state, facts.identity
    if state.outcome is Unseen.DENIED and state.root is None:
        what = f"a directory above the state directory may not be entered ({identity})"
        return Result("access", Level.FAILED, what, facts.state_dir, manifest.STATE_MOUNT)
    if state.is_to_come:
        return Result("access", Level.OK, f"nothing to read yet; {_RECIPE} ({identity})", facts.state_dir)
    if state.root is None:
        return Result("access", Level.WARNING, "unknown: the state directory does not exist", facts.state_dir)
    checked = (state.root, *state.below)
    denied = [one for one in checked if not one.is_readable]
    if denied:
        why, change = explain(denied[0], identity)
        more = f" ({len(denied)} of {len(checked)} directories)" if len(checked) > 1 else ""
        return Result("access", Level.FAILED, f"cannot be read{more}: {why}", denied[0].path, change)
    if state.below:
        what = f"{len(checked)} directories checked, all can be read"
        return Result("access", Level.OK, what, facts.state_dir)
    return Result("access", Level.OK, _forecast(state.root, identity), facts.state_dir)


def explain(denied: Directory, identity: Identity) -> tuple[str, str]:
    """Return why a directory may not be read, and which line changes that.

    Source:
        StateDirectory (2.6.1+, 2.7.1+, 2.8+) makes state and application directory rwxr-x---; what is below them
        follows the application's umask.
    """
    seen = f"{denied}; the agent is {identity}"
    if identity.is_member(denied.gid):
        if denied.mode & _GROUP_READS == _GROUP_READS:
            return f"{seen}: the bits allow it, so an access list or a security module denies it", ""
        return f"{seen}: the directory denies its own group", manifest.UMASK
    if denied.mode & _GROUP_READS != _GROUP_READS:
        return f"{seen}: the directory denies its own group, which the agent is not in either", manifest.UMASK
    if denied.gid == 0:
        return f"{seen}: the group is root's, and the agent should not be in it", manifest.any_group_line()
    return f"{seen}: the agent is not in that group", manifest.group_line(denied.gid)


def _forecast(root: Directory, identity: Identity) -> str:
    """Say what can be said before the application has made its directory."""
    if identity.uid == 0:
        return f"{root}: new directories will be the agent's to read"
    return f"{root}; {_RECIPE} ({identity})"
