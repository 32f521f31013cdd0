"""Reproduce what we found in Kafka Streams (docs/found) with released jars and a real broker.

    python tests/live/repro/run.py                                       everything that is on a page
    python tests/live/repro/run.py LostSegment --releases 4.3.1 --show   by hand, with all that it writes

Each program is one Java file without anything of ours: a committer can take it as it is. Needs what `tests/live/run.py`
needs. 1 if a program did not end with the verdicts that are listed here.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.live.processes import Broker
from tests.live.toolbox import reproduction_classes, tool

BROKER = "4.3.1"
WITHIN_S = 900
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_VERDICTS = ("LOST", "OK", "UNDECIDED")

PLAYS: tuple[tuple[str, str, str], ...] = (
    ("LostSegment", "4.3.1", "LOST LOST"),
    ("LostSegment", "4.3.0", "LOST LOST"),
    ("LostSegment", "4.2.2", "OK OK"),
    ("FalseCleanStore", "4.3.1", "LOST"),
    ("FalseCleanStore", "4.2.2", "OK"),
    ("InterruptedWipe", "4.3.1", "LOST"),
    ("InterruptedWipe", "4.2.2", "LOST"),
    ("InterruptedWipe", "3.9.2", "LOST"),
    ("InterruptedWipe", "3.7.2", "OK"),
    ("RevivedTask", "4.3.1", "LOST OK"),
    ("RevivedTask", "4.2.2", "LOST OK"),
    ("RevivedTask", "3.0.0", "OK OK"),
    ("OvertakenOwner", "2.5.1", "LOST OK"),
    ("OvertakenOwner", "2.3.1", "LOST OK"),
    ("OvertakenOwner", "2.6.3", "OK OK"),
    ("SwallowedFlush", "2.5.1", "LOST LOST"),
    ("SwallowedFlush", "2.4.1", "LOST LOST"),
    ("SwallowedFlush", "2.6.3", "OK OK"),
    ("SwallowedFlush", "2.3.1", "OK OK"),
    ("AbortedNeighbour", "4.3.1", "LOST OK"),
    ("AbortedNeighbour", "3.9.2", "LOST OK OK"),
    ("AbortedNeighbour", "2.8.2", "LOST OK OK"),
    ("TornDeletion", "4.3.1", "OK LOST OK LOST"),
    ("TornDeletion", "4.2.2", "LOST LOST LOST LOST"),
    ("SkippedInput", "4.3.1", "LOST OK LOST"),
    ("SkippedInput", "4.2.2", "LOST OK LOST"),
    ("SkippedInput", "3.8.0", "LOST OK LOST"),
    ("SkippedInput", "3.7.2", "OK OK OK"),
    ("ForgottenTombstone", "4.3.1", "LOST OK OK"),
    ("ForgottenTombstone", "4.2.2", "LOST OK OK"),
    ("ForgottenTombstone", "3.5.2", "LOST OK OK"),
)
"""Program, release of Kafka Streams, what its cases end with: of every bug affected releases and one that is not."""


def play(program: str, release: str, address: str, scratch: Path) -> tuple[str, str]:
    """Run a program.

    Returns:
        Its verdicts, one word a case, and all that it wrote.
    """
    command = [
        tool("java"),
        *_JVM,
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        reproduction_classes(program, release),
    ]
    done = subprocess.run(
        [*command, program, address], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    words = [line.split(" ", 1)[0] for line in done.stdout.splitlines()]
    output = done.stdout + (done.stderr if done.returncode else "")
    return " ".join(word for word in words if word in _VERDICTS), output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, one line each; everything that a program wrote where it did not do what it should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all")
    parser.add_argument("--releases", nargs="+", metavar="RELEASE", help="default: all")
    parser.add_argument("--show", action="store_true", help="show everything that they write")
    chosen = parser.parse_args(arguments)
    plays = [x for x in PLAYS if x[0] in (chosen.programs or x) and x[1] in (chosen.releases or x)]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="statewarden-repro-") as scratch:
        broker = Broker(Path(scratch) / "broker", BROKER)
        try:
            for program, release, expected in plays:
                verdicts, output = play(program, release, broker.address, Path(scratch))
                wrong += verdicts != expected
                mark = "ok " if verdicts == expected else "BAD"
                sys.stdout.write(f"{mark} {program} {release}: {verdicts}, expected {expected}\n")
                if chosen.show or verdicts != expected:
                    sys.stdout.write(output)
                sys.stdout.flush()
        finally:
            broker.stop()
    sys.stdout.write(f"{len(plays)} reproductions, {wrong} wrong\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
