"""`verify`: does each store hold what its changelog says."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent.cli.arguments import add_selection, place
from agent.cli.offline import require_state_directory
from agent.cli.progress import progress_line
from agent.cli.streams import complain
from agent.clock import SystemClock
from agent.contract.codec import printable
from agent.errors import ConfigError, UsageError
from agent.observe.kernel_disk import KernelDisk

if TYPE_CHECKING:
    from agent.verify.fold import Progress
    from agent.verify.places import Store
    from agent.verify.rule import Word
    from agent.verify.verify import Given

DEFAULT_FAIL_ON = "missing,extra,different"
_NAMED = 5  # stores that a complaint names at most
T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("state_dir", type=place, metavar="STATE_DIR", help="Kafka Streams' state.dir")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,...",
                        help="brokers of the application's cluster")  # fmt: skip
    parser.add_argument("--client-config", default="", metavar="FILE",
                        help="key=value lines by librdkafka's names: TLS, SASL")  # fmt: skip
    add_selection(parser)
    group = parser.add_argument_group(
        "not on disk", "Give these where an error asks for them, by store; each may be repeated."
    )
    group.add_argument("--topic", action="append", default=[], metavar="STORE=TOPIC", help="its changelog")
    group.add_argument("--kind", action="append", default=[], metavar="STORE=KIND",
                       help="its kind, one that the error names")  # fmt: skip
    group.add_argument("--retention", action="append", default=[], metavar="STORE=MS",
                       help="its retention, milliseconds")  # fmt: skip
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one store per line")
    group.add_argument("--fail-on", default=DEFAULT_FAIL_ON, metavar="WORDS",
                       help=f"words of a store that make the exit code 1 (default {DEFAULT_FAIL_ON})")  # fmt: skip
    group.add_argument("--explain", type=int, default=0, metavar="N",
                       help="show up to N keys of each bad word, as hashes")  # fmt: skip
    group.add_argument("--show-keys", action="store_true", help="show these keys in the clear")
    group.add_argument("--work", type=Path, metavar="DIR",
                       help="place for the private directory (default: temporary)")  # fmt: skip
    parser.set_defaults(command=verify)


def verify(chosen: argparse.Namespace) -> int:
    """Compare, print and say how it went.

    Raises `UsageError`: a library is missing, no broker answers, or there is nothing to compare.
    """
    # what verify needs beside the rest is loaded only where it is asked for
    from agent.ship.sinks.kafka import properties
    from agent.verify.changelog import Changelogs
    from agent.verify.global_stores import GlobalComparison
    from agent.verify.report import exit_code, json_line, paragraph
    from agent.verify.stores import load
    from agent.verify.verify import Comparison, notes_of, verify_store
    from agent.verify.view import private_directory

    require_state_directory(KernelDisk(chosen.state_dir), chosen.state_dir)
    given, fail_on = _given(chosen), _words(chosen.fail_on)
    load()
    stores = asked_stores(chosen, with_global=True)
    try:
        settings = properties(chosen.client_config)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    clock, results = SystemClock(), []
    with (
        closing(Changelogs(chosen.bootstrap_servers, settings)) as cluster,
        private_directory(chosen.work, chosen.state_dir) as work,
    ):
        cluster.topics("")
        for store in stores:
            with _progress(store, clock.monotonic_s) as progress:
                kind = GlobalComparison if store.is_global else Comparison
                result = verify_store(store, cluster, given, work, clock.now_us() / 1e6, progress, kind)
                notes = notes_of(result, cluster) if chosen.explain else {}
            write = json_line if chosen.json else paragraph
            sys.stdout.write(write(result, notes, show_keys=chosen.show_keys))
            sys.stdout.flush()  # one store may take minutes
            results.append(result)
    return exit_code(results, fail_on)


def asked_stores(chosen: argparse.Namespace, *, with_global: bool) -> list[Store]:
    """List the stores that were asked for, the global ones last, or say that these are left out.

    Raises `UsageError`: there is none, or a directory cannot be read.
    """
    from agent.verify.places import find_stores

    only = {"application": chosen.application, "task": chosen.task, "name": chosen.store}
    stores = []
    for store in find_stores(chosen.state_dir, **only):
        if with_global or not store.is_global:
            stores.append(store)
        else:
            complain(printable(f"{store.path}: skipped; a global store has every partition of its topic"))
    if not stores:
        there = [x.path for x in find_stores(chosen.state_dir) if with_global or not x.is_global]
        raise UsageError(f"{chosen.state_dir}: {_none_of(there, only)}")
    return stores


def _none_of(there: Sequence[str], only: Mapping[str, str | None]) -> str:
    """Say which stores there are instead of those that were asked for, the first few."""
    if not there:
        return "no store on disk"
    asked = " ".join(f"--{'store' if key == 'name' else key} {value}" for key, value in only.items() if value)
    more = f", and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
    return printable(f"no store of {asked}; there are {', '.join(sorted(there)[:_NAMED])}{more}")


@contextmanager
def _progress(store: Store, seconds: Callable[[], float]) -> Iterator[Progress]:
    """Draw a line with rate and time left on a terminal; nothing elsewhere."""
    began_s = seconds()

    def words(done: int, total: int) -> str:
        rate = done / max(seconds() - began_s, 1e-3)
        left_s = (total - done) / max(rate, 1)
        name = printable(f"{store.task}/{store.name}")
        return f"{name}: {done} of {total} offsets, {rate:.0f}/s, {left_s:.0f} s left"

    with progress_line(seconds=seconds) as line:
        yield lambda done, total: line.show(lambda: words(done, total))


def _given(chosen: argparse.Namespace) -> Given:
    from agent.verify.kinds import Kind
    from agent.verify.verify import Given

    return Given(
        topics=by_store(chosen.topic, "--topic", str),
        kinds=by_store(chosen.kind, "--kind", Kind),
        retentions=by_store(chosen.retention, "--retention", int),
        examples=chosen.explain,
    )


def by_store(texts: list[str], flag: str, read: Callable[[str], T]) -> dict[str, T]:
    """Read options of the form STORE=VALUE. Raises `UsageError`: one has another."""
    found = {}
    for text in texts:
        store, _, value = text.rpartition("=")
        if not store:
            raise UsageError(f"{flag} {text}: expected STORE=...")
        try:
            found[store] = read(value)
        except ValueError as error:
            raise UsageError(f"{flag} {text}: {error}") from error
    return found


def _words(text: str) -> frozenset[Word]:
    from agent.verify.rule import Word

    try:
        return frozenset(Word(word.strip()) for word in text.split(",") if word.strip())
    except ValueError as error:
        raise UsageError(f"--fail-on {text}: {error}; the words are {', '.join(Word)}") from error
