"""A written play: words one after the other, each a `Step` as those that are drawn."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.lab.design import Step
from tests.lab.stage import Stage
from tests.lab.words import FUNCTIONS, METHODS


@dataclass(frozen=True)
class Play:
    """A life of an application."""

    about: str  # what happens, in a sentence
    # Words with their arguments, between `;` or on lines of their own. A number is the first argument that takes
    # one, a text the first that takes one; `name=value` says which.
    text: str

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The text, read; see `parse`."""
        clauses = (line.strip() for line in self.text.replace(";", "\n").splitlines())
        return tuple(parse(clause) for clause in clauses if clause)

    def __call__(self, stage: Stage) -> None:
        perform(stage, self.steps)


def perform(stage: Stage, steps: Iterable[Step]) -> None:
    """Play the steps of a written play."""
    for step in steps:
        if step.action in METHODS:
            getattr(stage, METHODS[step.action].__name__)(**step.args)
        else:
            FUNCTIONS[step.action](stage, **step.args)


def parse(clause: str) -> Step:
    """Read one word with its arguments; `ValueError`: it is not known, or does not take what it is given."""
    word, *given = shlex.split(clause)
    played = METHODS.get(word) or FUNCTIONS.get(word)
    if played is None:
        raise ValueError(f"no such word: {clause}")
    _, *parameters = inspect.signature(played).parameters.values()
    args: dict[str, Any] = {}
    for text in given:
        name, has_name, value = text.partition("=")
        named = next((x for x in parameters if has_name and x.name == name), None)
        fits = named or next((x for x in parameters if x.name not in args and _kind(x) is _shape(text)), None)
        if fits is None:
            raise ValueError(f"{word} does not take {text}: {clause}")
        args[fits.name] = _kind(fits)(value if named else text)
    if missing := [x.name for x in parameters if x.default is x.empty and x.name not in args]:
        raise ValueError(f"{', '.join(missing)} is missing: {clause}")
    return Step(word, args)


def _kind(parameter: inspect.Parameter) -> Callable[[str], Any]:
    """Tell how an argument's text is read; annotations are texts."""
    if "bool" in str(parameter.annotation):
        return _yes
    return _number if any(x in str(parameter.annotation) for x in ("int", "float")) else str


def _shape(text: str) -> Callable[[str], Any]:
    return _number if text.replace(".", "", 1).lstrip("-").isdecimal() else str


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _yes(text: str) -> bool:
    return {"yes": True, "no": False}[text]
