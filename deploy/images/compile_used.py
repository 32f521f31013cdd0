"""Compile what an image's program loads: its own packages whole, the standard library as far as it is used.

A container with a read-only root and another user can keep no byte code: every start would compile everything again.
All of the standard library would be 20 MB; what is loaded is a tenth of that. Byte code is not checked against its
source at run time, because a layer never changes.

Usage: python compile_used.py agent|rollup
"""

from __future__ import annotations

import compileall
import contextlib
import importlib
import pkgutil
import py_compile
import sys
import sysconfig
from pathlib import Path

ROOTS = {"agent": ("agent",), "rollup": ("agent.contract", "spark_rollup", "pyspark.testing.utils")}
"""Spark itself loads what it tests with, to see which libraries there are."""
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
LATE = (
    "encodings.ascii",
    "encodings.idna",
    "encodings.unicode_escape",
    "ssl",
    "gzip",
    "http.client",
    "json.decoder",
    "_strptime",
)
"""Loaded only when something happens: a connection, a strange name, a file that is opened as ASCII."""


def load(root: str) -> None:
    """Import a module, with everything in it; what needs a library that is not installed is left out."""
    found = importlib.import_module(root)
    for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{root}."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def compile_loaded() -> None:
    """Compile every module of this process that has a source file, this script left out."""
    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for file in sorted(x for x in loaded if x and x.endswith(".py") and Path(x).is_file()):
        if not Path(file).samefile(__file__):
            py_compile.compile(file, doraise=True, invalidation_mode=UNCHECKED)


def main(image: str) -> int:
    """Load everything, then compile it, and all of the site-packages."""
    for name in ROOTS[image]:
        load(name)
    for name in LATE:
        importlib.import_module(name)
    compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=1, invalidation_mode=UNCHECKED)
    compile_loaded()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
