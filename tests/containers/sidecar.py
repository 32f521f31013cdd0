"""The agent as a sidecar without containers.

Usage: python sidecar.py UID GID STATE MOUNT_AT ARGUMENT ...   (of `statewarden`; it sees STATE read-only at MOUNT_AT)
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import agent
from agent.cli import main as statewarden
from tests.support.apart import live_apart


def load_everything() -> None:
    """Load what the agent may want later: its new user cannot read the interpreter's files everywhere."""
    for module in pkgutil.walk_packages(agent.__path__, "agent."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("ascii", "idna", "latin_1", "unicode_escape"):
        importlib.import_module(f"encodings.{name}")


def main() -> int:
    """Become one."""
    uid, gid, state, mount_at, *arguments = sys.argv[1:]
    load_everything()
    user, mount = (int(uid), int(gid)), (Path(state), Path(mount_at))
    return live_apart(lambda: statewarden(arguments), user, mount)


if __name__ == "__main__":
    sys.exit(main())
