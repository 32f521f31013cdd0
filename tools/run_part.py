"""Run `tests/<part>/run.py`, or say plainly that this checkout has no such part."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(argv: list[str]) -> int:
    """Hand over to the part's script.

    Args:
        argv: Name of the part, then arguments for it.

    Returns:
        2 if there is no such part; otherwise the script ends the process itself.
    """
    part, *rest = argv
    script = ROOT / "tests" / part / "run.py"
    if not script.is_file():
        print(f"nothing to run: {script.relative_to(ROOT)} is not in this checkout", file=sys.stderr)
        return 2
    sys.argv = [str(script), *rest]
    sys.path[0] = str(ROOT)  # the scripts import `tests.support` and `deploy.demo`
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
