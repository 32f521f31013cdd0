"""Standard error holds what is wrong, and no greetings."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import sys
for line in (
    "WARNING: Using incubator modules: jdk.incubator.vector",
    'Setting default log level to "WARN".',
    "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).",
    "WARNING: the disk is full",
):
    print(line, file=sys.stderr)
"""

PARENT = """
import subprocess, sys
from spark_rollup.spark.quiet import banner_dropped
with banner_dropped():
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
print("after", file=sys.stderr)
child.wait()
import threading
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(120)
"""


def test_chatter_is_dropped_and_all_else_is_passed_on():
    """Three lines of Java and Spark are gone; a warning and our own words are there."""
    done = subprocess.run(
        [sys.executable, "-c", PARENT, CHILD], capture_output=True, text=True, check=True, timeout=240
    )
    assert sorted(done.stderr.splitlines()) == ["WARNING: the disk is full", "after"]


def test_a_closed_standard_error_does_no_harm():
    """Daemons may have none."""
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.close(2)\n{PARENT}", "pass"], capture_output=True, timeout=240
    )
    assert done.stdout == b""
