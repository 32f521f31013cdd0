"""Runs inside a container of the agent's image: how long from the process's start to a watch on every directory.

Prints JSON: seconds and CPU seconds to the end of the imports, and to the armed watch; the number of watches.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path


def since_start_s() -> float:
    """Tell how long this process has lived, to the hundredth of a second."""
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


def main(state: str) -> int:
    """Import what `statewarden run` does, then watch; nothing is looked at beside the directories."""
    for name in ("agent.cli", "agent.process.supervisor"):
        importlib.import_module(name)
    from agent.clock import SystemClock
    from agent.watch.inotify import InotifyQueue
    from agent.watch.inotify_source import InotifySource
    from agent.watch.mailbox import Mailbox
    from agent.watch.tree_watch import TreeWatch

    imported = {"import_s": since_start_s(), "import_cpu_s": time.process_time()}
    mailbox = Mailbox()
    source = InotifySource(TreeWatch(Path(state), InotifyQueue(), SystemClock()), mailbox)
    source.start()
    while not mailbox.drain(10.0):  # the request for the first look comes when every watch is in place
        pass
    armed = {
        "armed_s": since_start_s(),
        "armed_cpu_s": time.process_time(),
        "watches": source.watch.counters().watches,
    }
    source.stop(1.0)
    print(json.dumps(imported | armed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
