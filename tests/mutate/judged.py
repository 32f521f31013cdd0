"""Survivors that were judged: broken on paper, the same in every run."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutate.mutants import Mutant

FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Mutants that no test can notice, and why.

    A judgement holds by what the lines say, not by where they are: it survives edits elsewhere in the module and
    is void as soon as the line itself changes.

    Args of the dataclass:
        file: Module.
        function: Qualified name of the function around the line; `` at module level.
        was: The source line or lines, joined and without indentation.
        becomes: What the mutants make of it.
        reason: Why nothing can tell.
    """

    file: str
    function: str
    was: str
    becomes: tuple[str, ...]
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        """Tell whether this mutant was judged here."""
        return (
            (mutant.path, mutant.function) == (self.file, self.function)
            and _plain(mutant.was) == _plain(self.was)
            and _plain(mutant.becomes) in {_plain(x) for x in self.becomes}
        )


def _plain(line: str) -> str:
    return " ".join(line.split())


def read_judgements(file: Path = FILE) -> list[Judgement]:
    """Read the file of judgements."""
    rows = tomllib.loads(file.read_text("utf-8")).get("equivalent", [])
    return [Judgement(x["file"], x["function"], x["was"], tuple(x["becomes"]), x["reason"]) for x in rows]


def is_void(judgement: Judgement, root: Path) -> bool:
    """Tell whether the line that was judged is no longer there."""
    text = (root / judgement.file).read_text("utf-8") if (root / judgement.file).is_file() else ""
    return _plain(judgement.was) not in _plain(text)


def judgement_on(mutant: Mutant, judgements: Sequence[Judgement]) -> Judgement | None:
    """Find the judgement on a mutant."""
    return next((x for x in judgements if x.covers(mutant)), None)
