"""Build the documentation site, and fail on anything that is not right: `make site`.

    tools/site/build.py                      build/site/VERSION
    tools/site/build.py --output DIR         the same elsewhere
    tools/site/build.py --external           ask every address outside the site instead; nothing is built

It runs in a separate environment (deploy/locks/site.txt).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.alerts.model import RUNBOOKS  # noqa: E402 - the checkout
from tools.site.check import problems, runbooks, without_page  # noqa: E402

HOME = "docs/README.html"

_START = f"""<!doctype html>
<meta charset="utf-8">
<title>statewarden</title>
<meta http-equiv="refresh" content="0; url={HOME}">
<a href="{HOME}">statewarden</a>
"""
"""The start page, as a server shows it for the folder."""


def main(argv: list[str]) -> int:
    """Build one version; it takes the place of the one before only if nothing is wrong, else 1."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--output", type=Path, default=ROOT / "build/site", help="where the version goes")
    parser.add_argument("--external", action="store_true", help="check addresses outside the site")
    chosen = parser.parse_args(argv)
    with TemporaryDirectory(prefix="statewarden-site-") as folder:
        built = Path(folder, "built")
        if chosen.external:
            return _sphinx("linkcheck", built)
        if failed := _sphinx("html", built):
            return failed
        (built / "index.html").write_text(_START, "utf-8")
        wrong = problems(built) + without_page(runbooks(ROOT / "deploy/alerts"), RUNBOOKS, built / "docs")
        for line in wrong:
            print(line, file=sys.stderr)
        if wrong:
            return 1
        version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        target = chosen.output / version
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(built, target)
    print(target / HOME)
    return 0


def _sphinx(builder: str, target: Path) -> int:
    # always from nothing: a page that has not changed does not warn a second time
    flags = ("--fail-on-warning", "--quiet", "--jobs", "2")
    where = ("-c", str(ROOT / "tools/site"), "-d", str(target.with_name("parsed")))
    return int(sphinx(["-b", builder, *flags, *where, str(ROOT), str(target)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
