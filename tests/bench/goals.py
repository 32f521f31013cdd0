"""What the project promises in numbers: the one home of the goals, by which benchmarks judge."""

from __future__ import annotations

from typing import NamedTuple


class Goal(NamedTuple):
    text: str  # as the page says it
    limit: float  # the number
    is_least: bool = False  # the number must be reached; else it must not be exceeded

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit


GOALS = {
    "watching": Goal("watching alone: at most 1.5 x the CPU of `inotifywait`", 1.5),
    "semantics": Goal("with all semantic work: at most 4.8 x", 4.8),
    "spool": Goal("with spool: at most 6 x", 6.0),
    "real": Goal("100 tasks of a recorded application: at most 1.2 % of a core", 1.2),
    "lost": Goal("nothing lost at 3,000 checkpoint replacements a second", 0),
    "delay": Goal("from the rename to a scrape that shows it: p99 at most 1.5 s", 1.5),
    "real-lost": Goal("nothing lost under the realistic load", 0),
    "idle": Goal("idle at 10,000 tasks: at most 0.2 % of a core", 0.2),
    "known": Goal("every last checkpoint, deletion and re-creation known afterwards", 0),
    "memory-1000": Goal("resident at 1,000 tasks, all histories full: at most 60 MiB", 60),
    "memory-10000": Goal("resident at 10,000 tasks, all histories full: at most 160 MiB", 160),
    "scan": Goal("scan of 10,000 tasks: at most 5 s on two cores", 5.0),
    "replay": Goal("replay: at least 20,000 operations per CPU second", 20_000, is_least=True),
    "rocksdb": Goal("reading a store's metadata: not slower than rocksdict", 1.0),
    "audit-constant": Goal("audit, constant part: at most 12 CPU s", 12.0),
    "audit-growth": Goal("audit: CPU grows at most with exponent 1.05", 1.05),
    "rules-5": Goal("two rules: at most 4 x DuckDB's CPU at 5 million events", 4.0),
    "rules-50": Goal("two rules: at most 2 x DuckDB's CPU at 50 million events", 2.0),
    "rules-equal": Goal("two rules by hand in DuckDB: the same findings", 0),
}
