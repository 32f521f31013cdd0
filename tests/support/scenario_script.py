"""A life in a line: the steps of a scenario, by their names.

    life("start, opens, puts 500, flushes, 30 s, crash", Scenario, "3.9.2", "exactly_once_v2")

A step is the name of something a process does (`scenario_app`) with its arguments, of task 0_0 unless another one is
named: `puts 0_1 500 segment=60000`. `start` begins the next process, after an upgrade `start 4.3.1`; `30 s` lets time
pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import signature
from typing import Any

from tests.support.scenario import App, Scenario

TASK = re.compile(r"(?:__\w+__/)?\d+_\d+|global")
SECONDS = re.compile(r"([\d.]+) s")


def life(script: str, base: Callable[..., Scenario], *told: Any, **more: Any) -> Callable[[], Scenario]:
    """What plays a life: it begins as `base` does, with what it is told."""
    return lambda: play(base(*told, **more), script)


def play(run: Scenario, script: str) -> Scenario:
    """Play steps, after what was played before."""
    for step in filter(None, map(str.strip, script.split(","))):
        if seconds := SECONDS.fullmatch(step):
            run.wait(float(seconds[1]))
            continue
        name, *words = step.split()
        if name == "start":
            run.start(*words)
        else:
            _does(run.app, name, words)
    return run


def _does(app: App, name: str, words: list[str]) -> None:
    does = getattr(app.cleaner if name in ("deletes", "probes") else app, name)
    task = words.pop(0) if words and TASK.fullmatch(words[0]) else "0_0"
    named = dict(word.split("=") for word in words if "=" in word)
    values = [_value(word) for word in words if "=" not in word]
    if name == "stops":
        does({task: values[0]} if values else None)
    else:
        of_task = [task] if "task_id" in signature(does).parameters else []
        does(*of_task, *values, **{key: _value(word) for key, word in named.items()})


def _value(word: str) -> int | str | bool:
    if word in ("True", "False"):
        return word == "True"
    return int(word) if re.fullmatch(r"-?\d+", word) else word
