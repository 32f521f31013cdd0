"""The agent's image in real containers, beside real Kafka Streams: `make check-containers`.

    python tests/containers/run.py                 every part but `rollup`
    python tests/containers/run.py image pod       parts by name

Parts: `image` (size, who runs it, what is not in it), `pod` (Kafka Streams in one container, the agent in the other),
`order` (SIGTERM to both), `workload` (the demo workload's manifest), `memory` and `cpu` (limits), `cold` (start); by
name only: `rollup` (the fleet audit in its own image). Needs root, the Debian packages podman, buildah, runc,
catatonit and debootstrap, Java 17 and Maven; a tool that is missing is named and its parts fail.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.containers import limits, proofs, workload
from tests.containers.podman import AGENT, ContainerError, make_image, missing_tools
from tests.containers.proofs import ProofError
from tests.lab.processes import LiveError
from tests.lab.toolbox import MissingToolError

Part = Callable[[Path], Iterator[str]]

PARTS: dict[str, Part] = {
    "image": proofs.image,
    "pod": proofs.pod,
    "order": proofs.order,
    "workload": workload.workload,
    "memory": limits.memory,
    "cpu": limits.cpu,
    "cold": limits.cold_start,
    "rollup": proofs.rollup,
}
BY_NAME_ONLY = frozenset({"rollup"})
"""Five minutes and 2 GB the first time."""


BROKEN = (
    ProofError,
    ContainerError,
    LiveError,
    MissingToolError,
    OSError,
    AssertionError,
    subprocess.SubprocessError,
    pytest.skip.Exception,  # what tests and parts share skips where a tool is missing; here that is a failure
)


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a directory that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="statewarden-pod-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; 0 = all held."""
    parser = argparse.ArgumentParser(
        prog="check-containers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts",
        nargs="*",
        choices=list(PARTS),
        metavar="PART",
        help="in this order; none = every part but `rollup`",
    )
    everything = [name for name in PARTS if name not in BY_NAME_ONLY]
    asked = list(sys.argv[1:] if arguments is None else arguments) or everything
    parts = parser.parse_args(asked).parts
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: nothing is left behind
    missing = missing_tools()
    if missing:
        sys.stdout.write(
            f"FAILED: not here: {missing}. Debian: apt-get install podman buildah runc debootstrap\n"
        )
        return 1
    sys.stdout.write(f"image: {make_image(AGENT)}\n")
    failed = []
    for name in parts:
        began_s = time.monotonic()
        sys.stdout.write(f"== {name}\n")
        try:
            with scratch() as home:
                for line in PARTS[name](home):
                    sys.stdout.write(f"   {line}\n")
                    sys.stdout.flush()
        except BROKEN as error:  # a part that breaks is told with the others
            sys.stdout.write(f"   FAILED: {type(error).__name__}: {error}\n")
            failed.append(name)
        sys.stdout.write(f"   {time.monotonic() - began_s:.0f} s\n")
    sys.stdout.write(f"failed: {', '.join(failed) or 'nothing'}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
