"""`--version`: name and version in the first line, what a bug report needs below it."""

from __future__ import annotations

import platform
import sys
from importlib.util import find_spec

from agent import __version__
from agent.contract.built import COMMIT
from agent.contract.codec import SCHEMA_VERSION
from agent.delivery import KINDS

_OF_SINKS = {kind.extra: (kind.library,) for kind in KINDS if kind.extra and kind.library}
EXTRAS = {**_OF_SINKS, "verify": (*_OF_SINKS["kafka"], "rocksdict", "xxhash"), "rollup": ("pyspark",)}
"""Extra -> the modules that it brings."""


def version_text() -> str:
    """Describe this installation; libraries are searched for, not loaded."""
    there = [extra for extra, modules in EXTRAS.items() if all(map(find_spec, modules))]
    missing = [extra for extra in EXTRAS if extra not in there]
    return (
        f"statewarden {__version__}\n"
        f"commit    {COMMIT}\n"
        f"python    {platform.python_version()}, {sys.executable}\n"
        f"extras    {', '.join(there) or 'none'}; not installed: {', '.join(missing) or 'none'}\n"
        f"contract  {SCHEMA_VERSION}\n"
    )
