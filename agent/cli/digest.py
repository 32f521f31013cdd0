"""`digest`: what stores hold, as numbers of entries and fingerprints that say nothing about content."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from agent.cli.arguments import add_selection, add_settings, config_of, place
from agent.cli.offline import require_state_directory
from agent.cli.streams import complain
from agent.cli.verify import asked_stores, by_store
from agent.clock import SystemClock
from agent.contract.buckets import BUCKETS, MAX_BUCKETS, body_of
from agent.contract.codec import Encoder, printable
from agent.contract.events import Kind as EventKind
from agent.contract.events import Record
from agent.contract.exit_codes import answer
from agent.errors import LayoutError, UsageError
from agent.observe.kernel_disk import KernelDisk


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("state_dir", type=place, metavar="STATE_DIR", help="Kafka Streams' state.dir")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE",
                        help="*.jsonl or *.jsonl.gz; a file that is there is replaced")  # fmt: skip
    add_selection(parser)
    parser.add_argument("--kind", action="append", default=[], metavar="STORE=KIND",
                        help="kind of a store that has no entry to show it; may be repeated")  # fmt: skip
    parser.add_argument(
        "--buckets", type=int, default=BUCKETS, metavar="N",
        help=f"buckets of each database, a power of two up to {MAX_BUCKETS} (default {BUCKETS})",
    )  # fmt: skip
    parser.add_argument("--pod", metavar="NAME", help="pod (default: POD_NAME, else the host name)")
    parser.add_argument("--namespace", metavar="NAME", help="namespace (default: POD_NAMESPACE)")
    parser.add_argument("--cluster", metavar="NAME", help="cluster or region")
    parser.add_argument("--work", type=Path, metavar="DIR",
                        help="place for the private directory (default: temporary)")  # fmt: skip
    add_settings(parser)
    parser.set_defaults(command=digest)


def digest(chosen: argparse.Namespace) -> int:
    """Digest every store that is asked for.

    Raises `UsageError`: a library is missing, there is nothing to read, or the output cannot be written.
    """
    # what it needs beside the rest is loaded only where it is asked for
    from agent.verify import buckets
    from agent.verify.digest import digest_store
    from agent.verify.kinds import Kind
    from agent.verify.stores import load
    from agent.verify.view import private_directory

    own = config_of(chosen, {x: getattr(chosen, x) for x in ("pod", "namespace", "cluster")}).agent
    disk = KernelDisk(chosen.state_dir)
    require_state_directory(disk, chosen.state_dir)
    require_output(chosen.output, chosen.state_dir)
    if not 0 < chosen.buckets <= MAX_BUCKETS or chosen.buckets & (chosen.buckets - 1):
        raise UsageError(f"--buckets {chosen.buckets}: a power of two up to {MAX_BUCKETS} is needed")
    kinds = by_store(chosen.kind, "--kind", Kind)
    load()
    buckets.load()
    stores = asked_stores(chosen, with_global=False)
    # those of an agent of this pod that was started for them
    origin = own.origin(os.urandom(6).hex(), own.pod or socket.gethostname())
    encoder, clock = Encoder(origin), SystemClock()
    lines: list[str] = []
    with private_directory(chosen.work, chosen.state_dir) as work:
        for store in stores:
            now_us = clock.now_us()
            try:
                made = digest_store(store, kinds, now_us, disk, work, chosen.buckets)
            except (UsageError, LayoutError, OverflowError) as error:
                complain(printable(f"{store.path}: no digest: {error}"))
                continue
            event = encoder.encode(Record(EventKind.DIGEST, now_us, body_of(made)), len(lines) + 1)
            # without its envelope: nobody takes it for the word of an agent that watches
            lines.append(json.dumps(json.loads(event)["data"], separators=(",", ":")))
    write(chosen.output, lines)
    print(f"{len(lines)} of {len(stores)} stores digested, in {chosen.output}")
    return answer(found=False, unread=len(lines) < len(stores))


def require_output(output: Path, state_dir: Path) -> None:
    """Refuse a place where nothing is ever written, or that the rollup would not read.

    Raises `UsageError`: says which.
    """
    if output.resolve().is_relative_to(state_dir.resolve()):
        raise UsageError(f"--output {output} is inside {state_dir}, where nothing is ever written")
    if not output.name.endswith((".jsonl", ".jsonl.gz")):
        raise UsageError(f"--output {output}: give a name that ends with .jsonl or .jsonl.gz")


def write(output: Path, lines: Iterable[str]) -> None:
    """Write the lines, compressed where the name says so; the same lines give the same bytes.

    Raises `UsageError`: the file cannot be written.
    """
    content = "".join(f"{line}\n" for line in lines).encode("ascii")
    if output.name.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    try:
        output.write_bytes(content)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from error
