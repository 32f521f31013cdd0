"""Compare two releases of Kafka Streams where our facts rest on them.

The mechanical half of contributing/new-release.md.

    tools/new_release.py --kafka GIT_DIRECTORY 4.3.1 4.4.0
    tools/new_release.py --kafka GIT_DIRECTORY 4.3.1 4.4.0 --diff AbstractSegments
    tools/new_release.py --jars kafka-streams-4.2.1.jar kafka-streams-4.2.2.jar

A release is a tag, a branch, a commit, or one of the releases that `tools/upstream/classes.toml` gives a commit for.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from agent.layout.facts import FACTS  # noqa: E402 - the checkout, not whatever is installed
from agent.layout.releases import ROCKSDB_RELEASES  # noqa: E402
from tools.upstream.data import Classes, known_keys, load_classes  # noqa: E402
from tools.upstream.jars import changed_classes  # noqa: E402

_KEY = re.compile(r"\bKAFKA-\d+\b")
_ROCKSDB = re.compile(r"rocksDB: *\"([\d.]+)\"")
_GIT_TIMEOUT_S = 300


class GitError(Exception):
    """Git could not answer; carries what it said."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit that touched a class of the list.

    Args of the dataclass:
        revision: Short hash.
        date: Day of the commit.
        title: First line of its message.
    """

    revision: str
    date: str
    title: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Issue keys in the title."""
        return tuple(_KEY.findall(self.title))


class Repository:
    """Two releases in a Git directory (bare or not) of Apache Kafka."""

    def __init__(self, directory: Path, since: str, until: str, classes: Classes) -> None:
        """Resolve both releases.

        Raises:
            GitError: no Git directory, or a release that it does not know.
        """
        self._directory, self._classes = directory, classes
        self.since, self.until = self._resolve(since), self._resolve(until)

    def changed(self) -> dict[str, str]:
        """Map each class that differs to `+added -removed`, or to `new`, or to `gone`."""
        found = {}
        lines = self._git("diff", "--numstat", self.since, self.until, "--", *self._classes.paths.values())
        counts = {path: (added, removed) for added, removed, path in map(str.split, lines)}
        for name, path in self._classes.paths.items():
            there = [self._has(revision, path) for revision in (self.since, self.until)]
            if there == [False, True]:
                found[name] = "new"
            elif there == [True, False]:
                found[name] = "gone"
            elif path in counts:
                found[name] = "+{} -{}".format(*counts[path])
        return found

    def commits(self) -> list[Commit]:
        """List the commits between the releases that touched a class of the list, oldest first."""
        lines = self._git(
            "log", "--reverse", "--no-merges", "--date=short", "--format=%h%x09%cd%x09%s",
            f"{self.since}..{self.until}", "--", *self._classes.paths.values(),
        )  # fmt: skip
        return [Commit(*line.split("\t", 2)) for line in lines]

    def diff(self, name: str) -> str:
        """Return the difference of one class.

        Raises:
            GitError: the list has no such class.
        """
        if name not in self._classes.paths:
            raise GitError(f"{name} is not in tools/upstream/classes.toml")
        return "\n".join(self._git("diff", self.since, self.until, "--", self._classes.paths[name]))

    def rocksdb(self) -> str | None:
        """Return the version of RocksDB that the later release is built with; None where it is not said."""
        found = _ROCKSDB.search("\n".join(self._git("show", f"{self.until}:gradle/dependencies.gradle")))
        return found[1] if found else None

    def _resolve(self, release: str) -> str:
        wanted = self._classes.releases.get(release, release)
        for name in (f"refs/tags/{wanted}", f"refs/heads/{wanted}", wanted):
            try:
                return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")[0]
            except (GitError, IndexError):
                continue
        raise GitError(f"{self._directory} knows no tag, branch or commit {wanted}")

    def _has(self, revision: str, path: str) -> bool:
        return bool(self._git("ls-tree", "--name-only", revision, "--", path))

    def _git(self, *arguments: str) -> list[str]:
        command = ["git", "-C", str(self._directory), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
        if done.returncode:
            raise GitError(f"git {arguments[0]}: {done.stderr.strip() or done.returncode}")
        return done.stdout.splitlines()


def facts_citing(name: str) -> list[str]:
    """List the layout facts whose source names a class."""
    return [fact.value for fact, row in FACTS.items() if re.search(rf"\b{name}\b", row.source)]


def files_citing(name: str, root: Path) -> list[str]:
    """List the detectors, their parts and pages whose text names a class."""
    pattern = re.compile(rf"\b{name}\b")
    places: Iterable[Path] = (*sorted((root / "agent").rglob("*.py")), root / "docs" / "state-format.md")
    found = [x.relative_to(root).as_posix() for x in places if pattern.search(x.read_text(encoding="utf-8"))]
    return [x for x in found if x != "agent/layout/facts.py"]


def unlisted(commits: Iterable[Commit], known: frozenset[str]) -> list[Commit]:
    """Keep the commits that name an issue, and none that `tools/upstream/issues.toml` lists."""
    return [commit for commit in commits if commit.keys and not known.intersection(commit.keys)]


def table(changed: dict[str, str]) -> list[str]:
    """Render what changed, and what of ours cites it."""
    lines = ["| class | lines | facts | cited in |", "|---|---|---|---|"]
    for name, size in changed.items():
        cited = ", ".join(files_citing(name, ROOT))
        lines.append(f"| {name} | {size} | {', '.join(facts_citing(name))} | {cited} |")
    return lines


def report(repository: Repository) -> tuple[str, bool]:
    """Render what has to be read.

    Returns:
        The report (Markdown), and whether something is left to do in our lists.
    """
    changed, commits = repository.changed(), repository.commits()
    gone = [name for name, size in changed.items() if size == "gone"]
    new, version = unlisted(commits, known_keys()), repository.rocksdb()
    silent = [commit for commit in commits if not commit.keys]
    lines = [f"# {repository.since[:10]} to {repository.until[:10]}", "", "## Classes that changed", ""]
    lines += table(changed)
    lines += ["", "## Issues that touch them and are in no list of ours", ""]
    lines += [f"- {x.date} {x.revision} {x.title}" for x in new] or ["None."]
    lines += ["", "## Commits without an issue", ""]
    lines += [f"- {x.date} {x.revision} {x.title}" for x in silent] or ["None."]
    lines += ["", "## RocksDB", "", f"{version}: {'known' if version in ROCKSDB_RELEASES else 'NOT KNOWN'}"]
    return "\n".join(lines) + "\n", bool(new or gone or version not in ROCKSDB_RELEASES)


def main(argv: list[str]) -> int:
    """Print the report, or the difference of one class.

    Returns:
        0; 1 if an issue is in no list, a class is gone or RocksDB's version is not known; 2 if Git could not answer
        or a jar not be read.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("since", help="release that our facts know")
    parser.add_argument("until", help="release to be read")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--kafka", type=Path, help="Git directory of Apache Kafka")
    where.add_argument(
        "--jars", action="store_true", help="compare two published jars: the releases are their paths"
    )
    parser.add_argument("--diff", metavar="CLASS", help="print the difference of one class instead")
    options = parser.parse_args(argv)
    try:
        if options.jars:
            print("\n".join(table(changed_classes(Path(options.since), Path(options.until), load_classes()))))
            return 0
        repository = Repository(options.kafka, options.since, options.until, load_classes())
        if options.diff:
            print(repository.diff(options.diff))
            return 0
        text, is_open = report(repository)
    except (GitError, OSError, zipfile.BadZipFile) as error:
        print(error, file=sys.stderr)
        return 2
    print(text, end="")
    return 1 if is_open else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
