"""Operation -> the notifications that a kernel watch of the same directories would have delivered."""

from __future__ import annotations

from agent.inventory.hints import WATCHED_EVENTS, Hint, HintKind
from agent.layout.paths import classify
from agent.replay.trace import OPERATIONS, Operation

_SIMPLE = {
    "mkdir": HintKind.CREATED,
    "create": HintKind.CREATED,
    "rmdir": HintKind.DELETED,
    "unlink": HintKind.DELETED,
    "close_w": HintKind.WRITTEN,
}
_SILENT = OPERATIONS - _SIMPLE.keys() - {"rename"}


class Player:
    """Turns operations into hints by the same table from which the kernel watch derives its masks.

    The end of a process raises nothing here: a kill is found by polling the locks, as with a kernel that
    closes the descriptors of a dead process only after a while.
    """

    def __init__(self) -> None:
        """Start with no directory classified."""
        self._asked: dict[str, frozenset[HintKind]] = {}

    def hints(self, operation: Operation) -> tuple[Hint, ...]:
        """List the hints that one operation raises, in kernel order."""
        if operation.nameless or operation.op in _SILENT:
            return ()
        if operation.op == "rename":
            pairs = ((HintKind.MOVED_OUT, operation.path), (HintKind.MOVED_IN, operation.to))
            return tuple(
                Hint(path, kind, operation.at_us) for kind, path in pairs if kind in self._events(path)
            )
        kind = _SIMPLE[operation.op]
        if kind not in self._events(operation.path):
            return ()
        is_directory = operation.op in ("mkdir", "rmdir")
        return (Hint(operation.path, kind, operation.at_us, is_directory),)

    def _events(self, path: str) -> frozenset[HintKind]:
        parent = path.rpartition("/")[0]
        events = self._asked.get(parent)
        if events is None:
            events = self._asked[parent] = WATCHED_EVENTS.get(classify(parent).role, frozenset())
        return events
