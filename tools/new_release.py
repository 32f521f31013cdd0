"""Compare two releases of Kafka Streams where our facts rest on them.

The mechanical half of contributing/new-release.md.

    tools/new_release.py --kafka GIT_DIRECTORY 4.3.1 4.4.0

A release is a tag, a branch, a commit, or one of the releases that `tools/upstream/classes.toml` gives a commit for.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agent.judging import upstream  # noqa: E402 - the checkout, not whatever is installed
from agent.judging.base import Upstream  # noqa: E402
from agent.layout.facts import FACTS  # noqa: E402
from agent.layout.releases import ROCKSDB_RELEASES, Release  # noqa: E402
from tools.upstream.data import Classes, known_keys, load_classes, load_issues  # noqa: E402

_KEY = re.compile(r"\bKAFKA-\d+\b")
_ROCKSDB = re.compile(r"rocksDB: *\"([\d.]+)\"")
_SETTING = re.compile(r"String \w+_CONFIG\s*=\s*\"([^\"]+)\"")
_NESTED = re.compile(r"^[+-]\s+(?:\w+ )*(?:class|interface|enum|record) (\w+)", re.MULTILINE)
_LAYOUT = re.compile(r"[+-]\s*(?:(?:import|package) .*)?")
_NAMED_LINES = r"\d+\.\d+(?:(?:, | and | to )\d+\.\d+)*"
_BRANCHES = re.compile(rf"\b({_NAMED_LINES}) branch|\bbranch(?:es)? ({_NAMED_LINES})")
_GIT_TIMEOUT_S = 300


class GitError(Exception):
    """Git could not answer; carries what it said."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit that touched a class of the list."""

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
        """Resolve both releases; `GitError`: no Git directory, or a release that it does not know."""
        self._directory, self._classes = directory, classes
        self.since, self.until = self._resolve(since), self._resolve(until)

    def changed(self) -> dict[str, str]:
        """Map each class that differs to `+added -removed`, or to `new`, or to `gone`; imports do not count.

        Nested classes that only one of the releases has are listed, too.
        """
        found = {}
        for name, path in self._classes.paths.items():
            there = [self._has(revision, path) for revision in (self.since, self.until)]
            if there == [False, True]:
                found[name] = "new"
            elif there == [True, False]:
                found[name] = "gone"
            elif lines := self._changed_lines(path):
                added = sum(line.startswith("+") for line in lines)
                found[name] = f"+{added} -{len(lines) - added}"
                found |= _nested(name, lines)
        return found

    def settings(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the settings that `StreamsConfig` names before and after."""
        path = self._classes.paths["StreamsConfig"]
        texts = ("\n".join(self._show(revision, path)) for revision in (self.since, self.until))
        before, after = (frozenset(_SETTING.findall(text)) for text in texts)
        return before, after

    def _changed_lines(self, path: str) -> list[str]:
        lines = self._git("diff", "--unified=0", self.since, self.until, "--", path)
        changed = [x for x in lines if x[:1] in ("+", "-") and x[:3] not in ("+++", "---")]
        return [x for x in changed if not _LAYOUT.fullmatch(x)]

    def commits(self) -> list[Commit]:
        """List the commits between the releases that touched a class of the list, oldest first."""
        lines = self._git(
            "log", "--reverse", "--no-merges", "--date=short", "--format=%h%x09%cd%x09%s",
            f"{self.since}..{self.until}", "--", *self._classes.paths.values(),
        )  # fmt: skip
        return [Commit(*line.split("\t", 2)) for line in lines]

    def rocksdb(self) -> str | None:
        """Return the version of RocksDB that the later release is built with; None where it is not said."""
        found = _ROCKSDB.search("\n".join(self._show(self.until, "gradle/dependencies.gradle")))
        return found[1] if found else None

    def _resolve(self, release: str) -> str:
        wanted = self._classes.releases.get(release, release)
        for name in (f"refs/tags/{wanted}", f"refs/heads/{wanted}", wanted):
            try:
                return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")[0]
            except (GitError, IndexError):
                continue
        raise GitError(f"{self._directory} knows no tag, branch or commit {wanted}")

    def _show(self, revision: str, path: str) -> list[str]:
        return self._git("show", f"{revision}:{path}") if self._has(revision, path) else []

    def _has(self, revision: str, path: str) -> bool:
        return bool(self._git("ls-tree", "--name-only", revision, "--", path))

    def _git(self, *arguments: str) -> list[str]:
        command = ["git", "-C", str(self._directory), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
        if done.returncode:
            raise GitError(f"git {arguments[0]}: {done.stderr.strip() or done.returncode}")
        return done.stdout.splitlines()


def _nested(name: str, lines: Iterable[str]) -> dict[str, str]:
    """Map the nested classes of which a difference adds or removes the declaration."""
    signs: dict[str, str] = {}
    for line in lines:
        if match := _NESTED.match(line):
            nested = f"{name}.{match[1]}"
            signs[nested] = signs.get(nested, "") + line[0]
    words = {"+": "new", "-": "gone"}
    return {nested: words[sign] for nested, sign in signs.items() if sign in words}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def facts_citing(name: str) -> list[str]:
    """List the layout facts whose source names a class."""
    return [fact.value for fact, row in FACTS.items() if re.search(rf"\b{_last(name)}\b", row.source)]


def files_citing(name: str, root: Path) -> list[str]:
    """List the detectors, their parts and pages whose text names a class."""
    pattern = re.compile(rf"\b{_last(name)}\b")
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


def settings_lines(before: frozenset[str], after: frozenset[str]) -> list[str]:
    """Render which settings came and went."""
    rows = [f"- new: `{name}`" for name in sorted(after - before)]
    rows += [f"- gone: `{name}`" for name in sorted(before - after)]
    return ["", "## Settings", "", *(rows or ["None came, none went."])]


def tables_lines(release: str, rocksdb: str | None, missing: list[str]) -> list[str]:
    """Render what our tables say of the release, and what they do not."""
    known = f"RocksDB {rocksdb}, and every table covers {release}."
    return ["", "## Tables of ours", "", *(f"- {line}" for line in missing or [known])]


def not_known(release: str, rocksdb: str | None) -> list[str]:
    """List what has to be looked up; none: every table covers the release."""
    wanted = Release.parse(release)
    found = [_unlisted_rocksdb(wanted, rocksdb)]
    found += [
        f"agent/layout/facts.py: NOT KNOWN of {wanted}: {fact.value}"
        for fact, row in FACTS.items()
        if any(one.contains(wanted) for one in row.unsure)
    ]
    found += [
        f"{place}: NOT KNOWN whether {wanted} has what is on a branch: {name}: {fixed}"
        for place, name, fixed in _fixes()
        if _is_on_branch(fixed, wanted)
    ]
    listed = (ROOT / "tests/lab/plan.py").read_text(encoding="utf-8")
    if f'"{wanted}"' not in listed:
        found.append(f"tests/lab/plan.py: NOT KNOWN: {wanted} is not in RELEASES, no test runs it")
    return [line for line in found if line]


def _unlisted_rocksdb(release: Release, version: str | None) -> str:
    if version is None:
        return "RocksDB: NOT KNOWN: nothing says which version it is built with"
    ships = ROCKSDB_RELEASES.get(version)
    if ships is None:
        return f"RocksDB {version}: NOT KNOWN: in no row of agent/layout/releases.py"
    if not ships.contains(release):
        return f"RocksDB {version}: NOT KNOWN: its row in agent/layout/releases.py is {ships}"
    return ""


def _fixes() -> list[tuple[str, str, str]]:
    """List place, name and what is said of releases, of all that has a fix."""
    ours = (x for x in vars(upstream).values() if isinstance(x, Upstream))
    found = [("agent/judging/upstream.py", x.key, x.fixed) for x in ours]
    return [
        *found,
        *(("tools/upstream/issues.toml", x.key, f"{x.affected} {x.fixed}".strip()) for x in load_issues()),
    ]


def _is_on_branch(said: str, release: Release) -> bool:
    """Return whether something is said to be on the branch that a release was made from."""
    named = [before or after for before, after in _BRANCHES.findall(said)]
    return any(f"{release.major}.{release.minor}" in re.findall(r"\d+\.\d+", names) for names in named)


def report(repository: Repository, release: str) -> tuple[str, bool]:
    """Render what has to be read (Markdown), and tell whether something is left to do in our lists."""
    changed, commits = repository.changed(), repository.commits()
    gone = [name for name, size in changed.items() if size == "gone" and "." not in name]
    new, rocksdb = unlisted(commits, known_keys()), repository.rocksdb()
    silent = [commit for commit in commits if not commit.keys]
    missing = not_known(release, rocksdb)
    lines = [f"# {repository.since[:10]} to {repository.until[:10]}", "", "## Classes that changed", ""]
    lines += table(changed)
    lines += ["", "## Issues that touch them and are in no list of ours", ""]
    lines += [f"- {x.date} {x.revision} {x.title}" for x in new] or ["None."]
    lines += ["", "## Commits without an issue", ""]
    lines += [f"- {x.date} {x.revision} {x.title}" for x in silent] or ["None."]
    lines += settings_lines(*repository.settings())
    lines += tables_lines(release, rocksdb, missing)
    return "\n".join(lines) + "\n", bool(new or gone or missing)


def main(argv: list[str]) -> int:
    """Print the report; 1 if something is left to do in our lists, 2 if Git could not answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("since", help="release that our facts know")
    parser.add_argument("until", help="release to be read")
    parser.add_argument("--kafka", type=Path, required=True, help="Git directory of Apache Kafka")
    options = parser.parse_args(argv)
    try:
        repository = Repository(options.kafka, options.since, options.until, load_classes())
        text, is_open = report(repository, options.until)
    except (GitError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(text, end="")
    return 1 if is_open else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
