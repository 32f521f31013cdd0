"""Reproduce what we found in Kafka Streams (docs/found) with released jars and a real broker.

    python tests/lab/repro/run.py                                       everything that is on a page
    python tests/lab/repro/run.py LostSegment --releases 4.3.1 --show   by hand, with all that it writes
    python tests/lab/repro/run.py --releases 4.5.0                      all on a new release, which is to end as before

Each program is one Java file without anything of ours: a committer can take it as it is. Needs what `tests/lab/run.py`
needs. 1 if a program did not end with the verdicts that are listed here: those of the last release before where it is
not listed on one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lab.plan import numbers
from tests.lab.processes import Broker
from tests.lab.toolbox import reproduction_classes, tool

BROKER = "4.3.1"
WITHIN_S = 900
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_WORDS = ("LOST", "STUCK", "OK", "UNDECIDED")

VERDICTS: Mapping[str, Mapping[str, str]] = {
    "LostSegment": {"4.4.0": "LOST LOST LOST", "4.3.1": "LOST LOST", "4.3.0": "LOST LOST", "4.2.2": "OK OK"},
    "LeakedSegment": {"4.4.0": "STUCK OK", "4.3.1": "STUCK OK", "4.2.2": "OK OK"},
    "EnableTransactional": {"4.4.0": "LOST STUCK OK OK", "4.3.1": "OK OK OK OK"},
    "UpgradedCheckpoint": {"4.4.0": "LOST OK", "4.3.1": "LOST OK"},
    "FalseCleanStore": {"4.4.0": "LOST", "4.3.1": "LOST", "4.2.2": "OK"},
    "InterruptedWipe": {
        "4.4.0": "OK LOST", "4.3.1": "LOST LOST", "4.2.2": "LOST LOST", "3.9.2": "LOST LOST",
        "3.7.2": "OK OK",
    },
    "InterruptedStop": {
        "4.4.0": "LOST OK", "4.3.1": "LOST OK", "4.2.2": "LOST LOST", "3.4.1": "LOST LOST", "3.3.2": "OK OK",
    },
    "RevivedTask": {"4.4.0": "OK OK", "4.3.1": "LOST OK", "4.2.2": "LOST OK", "3.0.0": "OK OK"},
    "OvertakenOwner": {"2.5.1": "LOST OK", "2.3.1": "LOST OK", "2.6.3": "OK OK"},
    "SwallowedFlush": {"2.5.1": "LOST LOST", "2.4.1": "LOST LOST", "2.6.3": "OK OK", "2.3.1": "OK OK"},
    "AbortedNeighbour": {
        "4.4.0": "LOST OK", "4.3.1": "LOST OK", "3.9.2": "LOST OK OK", "2.8.2": "LOST OK OK",
    },
    "TornDeletion": {"4.4.0": "OK LOST OK LOST", "4.3.1": "OK LOST OK LOST", "4.2.2": "LOST LOST LOST LOST"},
    "SkippedInput": {
        "4.4.0": "LOST OK LOST LOST OK", "4.3.1": "LOST OK LOST LOST OK", "4.2.2": "LOST OK LOST LOST OK",
        "3.8.0": "LOST OK LOST LOST OK", "3.7.2": "OK OK OK OK OK",
    },
    "UnknownSegments": {"4.4.0": "LOST OK", "4.3.1": "LOST OK", "3.5.2": "LOST OK"},
    "RestoredBuffer": {"4.4.0": "LOST OK LOST", "4.3.1": "LOST OK LOST", "3.6.2": "LOST OK LOST"},
    "ForgottenTombstone": {
        "4.4.0": "LOST OK OK", "4.3.1": "LOST OK OK", "4.2.2": "LOST OK OK", "3.5.2": "LOST OK OK",
    },
}  # fmt: skip
"""Program -> release of Kafka Streams -> what its cases end with; of each bug a release that has it not, too."""
PLAYS = tuple((name, *row) for name, rows in VERDICTS.items() for row in rows.items())
BEFORE = {"EnableTransactional": ("4.2.2",), "UpgradedCheckpoint": ("3.9.2", "4.2.2")}
"""Programs that let older releases run first, on the same directory."""
OF_OLD = {"OvertakenOwner": "2.6.3", "SwallowedFlush": "2.6.3"}
"""Programs of bugs that ended long ago, with the last release whose API they use."""


def plays(programs: Sequence[str], releases: Sequence[str]) -> list[tuple[str, str, str]]:
    """Choose what is played; no programs, no releases: all that is listed.

    A program that is not listed on a release is to end there as on the last one before.
    """
    chosen = [x for x in PLAYS if not programs or x[0] in programs]
    if not releases:
        return chosen
    found = []
    for name in dict.fromkeys(x[0] for x in chosen):
        for release in releases:
            before = [x for x in chosen if x[0] == name and numbers(x[1]) <= numbers(release)]
            if before and numbers(release) <= numbers(OF_OLD.get(name, release)):
                found.append((name, release, max(before, key=lambda x: numbers(x[1]))[2]))
    return found


def play(program: str, release: str, address: str, scratch: Path) -> tuple[str, str]:
    """Run a program; gives its verdicts, one word a case, and all that it wrote."""
    older = [reproduction_classes(program, before) for before in BEFORE.get(program, ())]
    command = [
        tool("java"),
        *_JVM,
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        reproduction_classes(program, release),
    ]
    done = subprocess.run(
        [*command, program, address, *older], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    words = [line.split(" ", 1)[0] for line in done.stdout.splitlines()]
    output = done.stdout + (done.stderr if done.returncode else "")
    return " ".join(word for word in words if word in _WORDS), output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, one line each; everything that a program wrote where it did not do what it should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all")
    parser.add_argument("--releases", nargs="+", metavar="RELEASE", help="default: all")
    parser.add_argument("--show", action="store_true", help="show everything that they write")
    chosen = parser.parse_args(arguments)
    todo = plays(chosen.programs, chosen.releases or ())
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="statewarden-repro-") as scratch:
        broker = Broker(Path(scratch) / "broker", BROKER)
        try:
            for program, release, expected in todo:
                verdicts, output = play(program, release, broker.address, Path(scratch))
                wrong += verdicts != expected
                mark = "ok " if verdicts == expected else "BAD"
                sys.stdout.write(f"{mark} {program} {release}: {verdicts}, expected {expected}\n")
                if chosen.show or verdicts != expected:
                    sys.stdout.write(output)
                sys.stdout.flush()
        finally:
            broker.stop()
    sys.stdout.write(f"{len(todo)} reproductions, {wrong} wrong\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
