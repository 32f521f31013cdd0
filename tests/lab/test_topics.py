"""Topics are compared with what was sent, by files that the broker's tool wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.topics import changelog_differences, output_differences, store_behind
from tests.lab.truth import Batch, Difference, Spans

SPANS = Spans(10_000, 120_000)
SENT = [Batch(0, 0, 2, 100_000, 1), Batch(0, 1, 2, 100_000, 1)]
RIGHT = {"p0-0": 1, "p0-1": 2}


class Tool:
    """Answers `read` with contents of topics."""

    def __init__(self, topics: dict[str, dict[str, int]]) -> None:
        self.topics = topics

    def do(self, command: str) -> str:
        _, topic, file, _ = command.split()
        Path(file).write_text("".join(f"{key}\t{value}\n" for key, value in self.topics[topic].items()))
        return "read"


def changelogs(topics: dict[str, dict[str, int]], words: list[str], scratch: Path) -> tuple[Difference, ...]:
    broker: Any = Tool(topics)
    return changelog_differences(broker, "app", dict.fromkeys(words, SENT), SPANS, scratch)


def test_a_changelog_holds_what_its_store_must_hold(tmp_path: Path) -> None:
    assert changelogs({"app-kv-changelog": RIGHT}, ["kv", "window"], tmp_path) == ()
    behind = changelogs({"app-kv-changelog": {"p0-0": 1, "p0-1": 1}}, ["kv"], tmp_path)
    assert behind == (Difference("kv-changelog", 0, 1, 0, 2, ("p0-1=1 of 2",)),)


@pytest.mark.parametrize(
    ("found", "exact", "at_least"),
    [(RIGHT, 0, 0), ({"p0-0": 2, "p0-1": 2}, 1, 0), ({"p0-0": 1}, 1, 1), ({"p0-0": 1, "p0-1": 1}, 1, 1)],
)
def test_the_output_has_each_update_once_or_at_least_once(
    found: dict[str, int], exact: int, at_least: int, tmp_path: Path
) -> None:
    broker: Any = Tool({"out": found})
    counts = [
        len(output_differences(broker, "out", "kv", SENT, SPANS, tmp_path, is_exact=is_exact))
        for is_exact in (True, False)
    ]
    assert counts == [exact, at_least]


def test_a_difference_of_a_topic_belongs_to_its_store() -> None:
    assert [store_behind(name) for name in ("kv-changelog", "kv-b-output", "kv")] == ["kv", "kv-b", "kv"]
