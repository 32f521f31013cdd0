"""The watch without the pipeline, a process of its own: reads notifications, makes hints, throws them away.

Prints `ready` when the watches stand, and the number of notifications when it is told to stop.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from agent.clock import SystemClock
from agent.watch.inotify import InotifyQueue
from agent.watch.inotify_source import InotifySource
from agent.watch.mailbox import Mailbox
from agent.watch.tree_watch import TreeWatch


def main(root: Path) -> None:
    """Watch until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    mailbox = Mailbox()
    source = InotifySource(TreeWatch(root, InotifyQueue(), SystemClock()), mailbox)
    source.start()
    is_ready = False
    while not stop.is_set():
        if mailbox.drain(0.2) and not is_ready:
            is_ready = True
            print("ready", flush=True)
    source.stop()
    print(source.watch.counters().events, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
