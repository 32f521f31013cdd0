"""A run as data: what is played, before anything is started. It can be written down, read back and cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.lab.plan import ALOS, EOS

PODS = ("a", "b", "c")
SHORT = {ALOS: "alos", EOS: "eos"}
Args = Mapping[str, Any]
"""What was drawn for one action: numbers and words only."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a run with what was drawn for it."""

    action: str
    args: Args = field(default_factory=dict)

    def words(self) -> str:
        """Say it in one line."""
        return " ".join((self.action, *(f"{key}={value}" for key, value in self.args.items())))


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that a run is."""

    # It was drawn from, together with release and guarantee; of a written play its name in the catalogue, and after
    # it what settings it has instead of its own
    seed: int | str
    release: str
    guarantee: str
    stores: tuple[str, ...]  # kinds as `App.java` takes them
    partitions: int = 1  # of the input topics
    pods: tuple[str, ...] = ("a",)  # instances at the beginning
    # Of Kafka Streams and `App.java`, beside the usual ones of a stage
    settings: Args = field(default_factory=dict)
    # In order; what is true is checked wherever one of them is `check`, and at the end
    steps: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        """What `--replay` takes, for example `4.3.1-eos-17`."""
        return f"{self.release}-{SHORT[self.guarantee]}-{self.seed}".replace("/", "_")

    @property
    def label(self) -> str:
        """Name of a written play, with its settings; empty: it was drawn."""
        return self.seed if isinstance(self.seed, str) else ""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "steps": [[step.action, dict(step.args)] for step in self.steps]}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Run:
        lists = {name: tuple(row[name]) for name in ("stores", "pods")}
        return Run(**{**row, **lists, "steps": tuple(Step(*step) for step in row["steps"])})


def parse_name(name: str) -> tuple[str, str, str]:
    """Give release, guarantee and seed, or what is written, of a run's name; `ValueError`: it is none."""
    release, guarantee, seed = name.split("-", 2)
    return release, {short: long for long, short in SHORT.items()}[guarantee], seed
