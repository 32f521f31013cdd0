"""All oracles: each module beside this one has `ORACLES`, rule -> what it says of a world."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator

from tests.spark_rollup import oracle
from tests.spark_rollup.oracle.facts import World
from tests.spark_rollup.oracle.verdicts import Said

_MODULES = [
    importlib.import_module(f"{oracle.__name__}.{found.name}")
    for found in pkgutil.iter_modules(oracle.__path__)
    if found.name != "registry"
]

ORACLES: dict[str, Callable[[World], Iterator[Said]]] = {
    rule: judge for module in _MODULES for rule, judge in getattr(module, "ORACLES", {}).items()
}
