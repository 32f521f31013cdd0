"""Play lifelike stories under the real agent, and judge what it says: `make lifelike`, or by hand.

    python tests/lifelike/run.py                       every story, half a minute to a minute each
    python tests/lifelike/run.py zero versioned -j 4   those whose name contains a word, four at a time
    python tests/lifelike/run.py path/to/story.txt     one from elsewhere

Real RocksDB, real locks, real SIGKILL; no broker and no Java. Exit code 0 when every story came out as its head says,
1 when one did not, 2 when something is missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lifelike.stage import play
from tests.lifelike.story import Story, StoryError, read_story

STORIES = Path(__file__).with_name("stories")


def choose(words: Sequence[str]) -> list[Path]:
    """Take stories by path, or by a word in their name (none has it: `StoryError`); without words, all."""
    everything = sorted(STORIES.glob("*.txt"))
    chosen: set[Path] = set() if words else set(everything)
    for word in words:
        found = {Path(word)} if word.endswith(".txt") else {path for path in everything if word in path.stem}
        if not found:
            raise StoryError(f"no story is named *{word}*")
        chosen |= found
    return sorted(chosen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and print; 1 if a story came out wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="STORY", help="a word in its name, or a path")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="stories at a time (default: 2)")
    parser.add_argument("--keep", type=Path, help="keep what the stories leave below this directory")
    options = parser.parse_args(arguments)
    try:
        stories = [read_story(path) for path in choose(options.words)]
    except (StoryError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if find_spec("rocksdict") is None:
        sys.stderr.write("rocksdict is missing: make setup-delivery\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="lifelike-") as scratch:
        return _play_all(stories, options.keep or Path(scratch), options.jobs)


def _play_all(stories: Sequence[Story], base: Path, jobs: int) -> int:
    wrong = 0
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(lambda story: play(story, base / story.name), stories)
        for story, faults in zip(stories, outcomes, strict=True):
            wrong += bool(faults)
            told = f"BAD  {story.name} | {'; '.join(faults)[:600]}" if faults else f"ok   {story.name}"
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{wrong} wrong of {len(stories)}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
