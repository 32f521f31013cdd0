"""What is committed in the application's topics, compared with what was sent: changelogs of counts, and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.processes import Broker
from tests.lab.truth import STORES, Batch, Contents, Difference, Spans, compare, count_keys

COUNTS = ("kv", "kv-b", "plain", "memory", "third")
"""Stores whose changelog has a count by a key in plain text."""
CHANGELOG = "-changelog"
OUTPUT = "-output"
FILE = "topic.dump"


def changelog_differences(
    broker: Broker, application: str, sent: Mapping[str, Sequence[Batch]], spans: Spans, scratch: Path
) -> tuple[Difference, ...]:
    """Compare the latest record of each key with what its store must hold: a restoration gives nothing else.

    `sent`: store of the topology -> what was sent while it was there.
    """
    return tuple(
        one
        for word in COUNTS
        if sent.get(word)
        for one in compare(
            f"{word}{CHANGELOG}",
            STORES[word].expect(sent[word], spans),
            _read(broker, f"{application}-{word}{CHANGELOG} {scratch / FILE} latest", scratch),
        )
    )


def output_differences(
    broker: Broker,
    topic: str,
    word: str,
    sent: Sequence[Batch],
    spans: Spans,
    scratch: Path,
    *,
    is_exact: bool,
) -> tuple[Difference, ...]:
    """Compare how many records each key has with how often it was sent: each record updates a count once.

    `word`: store of the counts. If not `is_exact`, only what is missing counts.
    """
    found = _read(broker, f"{topic} {scratch / FILE} count", scratch)
    differences = compare(f"{word}{OUTPUT}", count_keys(sent, spans), found)
    return tuple(one for one in differences if is_exact or one.lost)


def store_behind(name: str) -> str:
    """Give the store that a difference is about, which may be one of its topics."""
    return name.removesuffix(CHANGELOG).removesuffix(OUTPUT)


def _read(broker: Broker, what: str, scratch: Path) -> Contents:
    broker.do(f"read {what}")
    lines = (scratch / FILE).read_text().splitlines()
    return {key: value for key, _, value in (line.partition("\t") for line in lines)}
