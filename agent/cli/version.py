"""`--version`: name and version in the first line, what a bug report needs below it."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
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


class Version(argparse.Action):
    """Print it and exit; made only when asked for, because every command makes the parser."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002 - argparse's name
        """Take no value."""
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit with 0."""
        sys.stdout.write(version_text())
        parser.exit()
