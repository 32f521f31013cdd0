"""Fuzz every parser with atheris (coverage-guided): by hand, or as a part of `make prove`.

    python tests/fuzz/run.py [--seconds 30] [--jobs 2] [PARSER ...]

Starts from the seeds in tests/data/fuzz, which the normal tests read; `--keep` adds inputs that reached new code, made
as small as possible. atheris lives in an environment of its own (`.cache/fuzz-venv`), made at the first run.
Exit code 1 if a parser raised what it must not, ran for more than ten seconds or took more than 1 GiB.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
DATA = ROOT / "tests" / "data" / "fuzz"
ATHERIS = "atheris==3.0.0"
MAX_INPUT_BYTES = 8192
KEPT = 12
"""New inputs that `--keep` takes over per parser, the smallest ones."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, tell what was found."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--inside"]:  # in the environment that has atheris; what follows is for libFuzzer
        return _fuzz(given[1], given[2:])
    sys.path.insert(0, str(ROOT))
    names = list(
        importlib.import_module("tests.fuzz.parsers").PARSERS
    )  # inside, it is imported under atheris
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "parsers", nargs="*", metavar="PARSER", help=f"which of {', '.join(names)} (default: all)"
    )
    parser.add_argument("--seconds", type=int, default=30, help="per parser (default: 30)")
    parser.add_argument("--jobs", type=int, default=2, help="side by side (default: 2)")
    parser.add_argument("--keep", action="store_true", help="add new interesting inputs to tests/data/fuzz")
    asked = parser.parse_args(given)
    unknown = set(asked.parsers) - set(names)
    if unknown:
        parser.error(f"no such parser: {', '.join(sorted(unknown))}")
    python = _environment()
    with ThreadPoolExecutor(asked.jobs) as pool:
        codes = list(
            pool.map(lambda name: _run(python, name, asked.seconds, keep=asked.keep), asked.parsers or names)
        )
    return int(any(codes))


def _environment() -> Path:
    place = CACHE / "fuzz-venv"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", ATHERIS], check=True)
    return python


def _run(python: Path, name: str, seconds: int, *, keep: bool) -> int:
    corpus, found = CACHE / "fuzz-corpus" / name, CACHE / "fuzz-found" / name
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = DATA / name
    command = [
        *(str(python), __file__, "--inside", name, str(corpus), *([str(seeds)] if seeds.is_dir() else [])),
        *(f"-max_total_time={seconds}", f"-max_len={MAX_INPUT_BYTES}", "-timeout=10", "-rss_limit_mb=1024"),
        *(f"-artifact_prefix={found}/", "-print_final_stats=1", "-verbosity=0"),
    ]
    ours = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}  # what the agent needs lies with us
    done = subprocess.run(command, cwd=ROOT, env=ours, capture_output=True, text=True, check=False)
    runs = next((x.split()[-1] for x in done.stderr.splitlines() if "number_of_executed_units" in x), "?")
    said = "nothing found" if done.returncode == 0 else f"FOUND, see {found}\n{done.stderr[-3000:]}"
    sys.stdout.write(f"{name:<14}{runs:>12} inputs  {said}\n")
    sys.stdout.flush()
    if keep and done.returncode == 0:
        _keep(corpus, seeds)
    return done.returncode


def _keep(corpus: Path, seeds: Path) -> None:
    seeds.mkdir(parents=True, exist_ok=True)
    known = {x.read_bytes() for x in seeds.iterdir()}
    fresh = sorted(
        (x for x in corpus.iterdir() if x.read_bytes() not in known), key=lambda x: x.stat().st_size
    )
    step = max(1, len(fresh) // KEPT)
    for file in fresh[::step][:KEPT]:
        shutil.copy(file, seeds / f"{file.name[:12]}.bin")  # never read as text


def _fuzz(name: str, arguments: Sequence[str]) -> int:
    sys.path.insert(0, str(ROOT))
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["agent"]):
        parsers = importlib.import_module("tests.fuzz.parsers")
    atheris.Setup([sys.argv[0], *arguments], lambda content: parsers.run_parser(name, content))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
