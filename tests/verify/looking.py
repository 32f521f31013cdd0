"""Looking at an application's stores by the command: every word is judged, what is wrong is remembered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from tests.lab.plan import EOS, is_exposed, numbers
from tests.lab.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
HEALTHY = {"equal", "behind", "ahead"}
MERGED = {"missing", "equal"}
DAMAGE = ("missing", "extra", "different", "undecidable")
Row = dict[str, Any]


def tree(root: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, size and time of everything below a directory."""
    return {
        str(path): (path.lstat().st_ino, path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in [root, *root.rglob("*")]
    }


class Run:
    """One application through its states; what is wrong is remembered."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.wrong: list[str] = []
        self.found: list[str] = []
        self.rows = 0

    def look(
        self,
        when: str,
        held: Mapping[str, int] | None = None,
        *,
        closed: bool = False,
        pod: str = "a",
        also: AbstractSet[str] = frozenset(),
    ) -> list[Row]:
        """Verify; a healthy store has a healthy word, or one of `also`, closed in order the word `equal`."""
        rows, good = self.rows_of(pod), {"equal"} if closed else HEALTHY | also
        for row in rows:
            is_good = row["word"] in good or self._is_real(row, held or {})
            self.judge(when, row, is_good=is_good, wanted=sorted(good))
        return rows

    def held(self) -> dict[str, int]:
        """Ask the application how many entries each join's store and, from 3.1 on, each store of sessions holds."""
        java, task = self.stage.pods["a"], self.stage.task("a", "0_0")
        if not java.is_alive:
            return {}
        names = {path.name: "windows" for path in task.glob("KSTREAM-*-store") if path.is_dir()}
        if numbers(self.stage.plan.release) >= (3, 1):
            names |= {path.name: "sessions" for path in task.glob("*session") if path.is_dir()}
        return {name: int(java.ask(f"{what} {name}").split()[0]) for name, what in names.items()}

    def _is_real(self, row: Row, held: Mapping[str, int]) -> bool:
        """Three things are so after a kill; the application counts them, too.

        Under at-least-once a join's store keeps what was flushed and never sent: it is processed again under another
        number. Under exactly-once, where KAFKA-20685 leaves out the wipe, a store keeps what an aborted transaction
        wrote, and lacks the sessions that it merged into others.
        """
        plan, counts, examples = self.stage.plan, row["counts"], row["examples"]
        counted = held.get(str(row["store"]))
        said = f"{row['store']} {counts}; the application counts {counted}"
        is_unwiped = plan.guarantee == EOS and is_exposed(plan.release)
        if row["word"] == "missing":
            # each key has one session, which is all that the application holds; the changelog has those before, too
            is_real = is_unwiped and counted == sum(self.stage.sent.values()) and not counts.keys() - MERGED
        elif row["word"] == "extra" and counted == sum(counts.values()):
            unsent = "no record of the key is there"
            notes = [example["note"] or "" for example in examples]
            is_real = all(x == unsent or ("aborted" in x and is_unwiped) for x in notes)
            is_real = is_real and (is_unwiped or plan.guarantee != EOS)
        else:
            is_real = False
        if is_real:
            self.found.append(said)
        return is_real

    def rows_of(self, pod: str = "a", state_dir: Path | None = None, more: Sequence[str] = ()) -> list[Row]:
        """Run the command on a pod's state directory, or on a copy of one."""
        is_still = state_dir is not None or not self.stage.pods[pod].is_alive
        state_dir = state_dir or self.stage.state_dir(pod)
        before = tree(state_dir) if is_still else {}
        command = [sys.executable, "-m", "agent", "verify", str(state_dir), "--json", "--explain", "3"]
        command += ["--bootstrap-servers", self.stage.broker.address, *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode not in (0, 1, 3) or not done.stdout:
            raise RuntimeError(f"{done.returncode}: {done.stderr[-2000:]}")
        if is_still and tree(state_dir) != before:
            raise RuntimeError("the state directory was touched")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def judge(self, when: str, row: Row, *, is_good: bool, wanted: object = "") -> None:
        """Show a row; remember it if it is wrong."""
        self.rows += 1
        print(
            f"  {'ok ' if is_good else 'BAD'} {when:<22} {row['task_id']} {row['store']:<45} {row['kind']!s:<18}"
            f" {row['word']:<12} {row['counts']} {row['offset']} {row['reason'] or ''}",
            flush=True,
        )
        if not is_good:
            self.wrong.append(f"{when}: wanted {wanted}: {json.dumps(row)}")

    def exact(self, when: str, row: Row, wanted: Mapping[str, int]) -> None:
        """Judge a row: just these numbers, nothing else is wrong or undecidable."""
        due = {word: wanted.get(word, 0) for word in DAMAGE}
        is_good = damage([row]) == due and not row["reason"]
        self.judge(when, row, is_good=is_good, wanted=due)

    def expect(self, when: str, missing: dict[str, int]) -> None:
        """Verify; exactly these numbers of keys are missing, and nothing else is wrong."""
        for row in self.rows_of():
            self.exact(when, row, {"missing": missing.get(str(row["store"]), 0)})

    def total(self, when: str, lost: int, store: str = "kv") -> None:
        """Verify; over all tasks exactly so many keys of a store are missing, and nothing else is wrong."""
        rows = [row for row in self.rows_of() if row["store"] == store]
        due = dict.fromkeys(DAMAGE, 0) | {"missing": lost}
        for row in rows:
            self.judge(when, row, is_good=damage(rows) == due and lost > 0, wanted=due)


def damage(rows: Sequence[Row]) -> dict[str, int]:
    """Sum up what is wrong or undecidable."""
    return {word: sum(row["counts"].get(word, 0) for row in rows) for word in DAMAGE}


def losses(stage: Stage) -> dict[str, int]:
    """What the application itself counted before and after the kill."""
    lines = [line.removeprefix("LOST of ") for line in stage.proof if line.startswith("LOST of ")]
    return {name: int(rest.split()[0]) for name, _, rest in (line.partition(": ") for line in lines)}


class Unwatched(Stage):
    """A stage without agents."""

    has_agents = False
    before_stop: Callable[[], object] | None = None

    def stop(self, pod: str = "a") -> None:
        """Close an instance; look before, if asked."""
        if self.before_stop is not None:
            self.before_stop()
        super().stop(pod)
