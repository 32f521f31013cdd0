"""Task directories of a scenario, and how they are deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.scenario_database import SimDatabase
from tests.support.scenario_world import World

WINDOWED = "windowed"
KEY_VALUE = "key-value"
TIMESTAMPED = "timestamped"
IN_MEMORY = "in-memory"
UNLOGGED = "unlogged"


@dataclass(slots=True)
class SimTask:
    """A task directory as the scenario knows it: databases by (store, segment); segment "" = the only one."""

    id: str
    path: str
    databases: dict[tuple[str, str], SimDatabase] = field(default_factory=dict)


def _walk_order(child: tuple[str, bool]) -> tuple[bool, int, str]:
    """The order of ext4 in the recordings: directories, then the lock, then the rest, the checkpoint last.

    Within a database: the manifest and the WAL file go before CURRENT (the torn deletion of the recordings).
    """
    name, is_directory = child
    order = {".checkpoint": 9, "LOCK": 6, "CURRENT": 5, "IDENTITY": 4}
    if name.endswith(".sst"):
        return not is_directory, 7, name
    return not is_directory, order.get(name, 3), name


def delete_tree(world: World, path: str, stop_after: str | None = None, *, keep: Iterable[str] = ()) -> bool:
    """Delete recursively: directories first, `.checkpoint` last, each after its content; tells whether it went through.

    `stop_after`: end of the path after whose removal the deletion stops. Names to `keep` keep their directory, too.
    """
    kept = set(keep)
    for name, is_directory in sorted(world.children(path), key=_walk_order):
        child = f"{path}/{name}"
        if name in kept:
            continue
        if is_directory:
            if not delete_tree(world, child, stop_after):
                return False
            continue
        world.play("unlink", child)
        if stop_after is not None and child.endswith(stop_after):
            return False
    if kept and world.children(path):
        return True
    world.play("rmdir", path)
    return not (stop_after is not None and path.endswith(stop_after))
