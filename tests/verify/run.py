"""The proof of `verify` on real releases: every kind of store; no wrong word, and losses counted.

    python tests/verify/run.py [--releases 2.8.2,4.3.1] [--work DIR]

Needs what tests/live needs, and the extra `verify`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.live import segments
from tests.live.plan import ALOS, EOS, Plan, is_exposed, numbers
from tests.live.processes import Broker, LiveError
from tests.live.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("2.8.2", "3.9.2", "4.2.1", "4.3.1")
HEALTHY = {"equal", "behind", "ahead"}
Row = dict[str, object]


def rows_of(stage: Stage, *arguments: str) -> list[Row]:
    """Run the command on pod a's state directory."""
    is_still = not stage.pods["a"].is_alive
    before = tree(stage.state_dir("a")) if is_still else {}
    command = [sys.executable, "-m", "agent", "verify", str(stage.state_dir("a"))]
    command += ["--bootstrap-servers", stage.broker.address, "--json", "--explain", "3", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode not in (0, 1, 2) or not done.stdout:
        raise RuntimeError(f"{done.returncode}: {done.stderr[-2000:]}")
    if is_still and tree(stage.state_dir("a")) != before:
        raise RuntimeError("the state directory was touched")
    return [json.loads(line) for line in done.stdout.splitlines()]


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

    def look(self, when: str, held: Mapping[str, int] | None = None, *, closed: bool = False) -> list[Row]:
        """Verify; a healthy store has a healthy word, closed in order the word `equal`."""
        rows, held = rows_of(self.stage), held or {}
        for row in rows:
            good = {"equal"} if closed else HEALTHY
            mark = "ok " if row["word"] in good else "BAD"
            self.rows += 1
            print(
                f"  {mark} {when:<22} {row['task_id']} {row['store']:<45} {row['kind']!s:<18} {row['word']:<12}"
                f" {row['counts']} {row['offset']} {row['reason'] or ''}",
                flush=True,
            )
            if row["word"] not in good and not self._is_real(row, held):
                self.wrong.append(f"{when}: {json.dumps(row)}")
                print(f"      {json.dumps(row)}", flush=True)
        return rows

    def held(self) -> dict[str, int]:
        """Ask the application how many entries each join's window store holds; empty where none runs."""
        java = self.stage.pods["a"]
        names = {path.name for path in self.stage.task("a", "0_0").glob("KSTREAM-*-store") if path.is_dir()}
        return {name: int(java.ask(f"windows {name}").split()[0]) for name in names} if java.is_alive else {}

    def _is_real(self, row: Row, held: Mapping[str, int]) -> bool:
        """KAFKA-20685: what an aborted transaction wrote stays; the application must count the same."""
        if self.stage.plan.guarantee != EOS or not is_exposed(self.stage.plan.release):
            return False
        counts, examples = row["counts"], row["examples"]
        assert isinstance(counts, dict)
        assert isinstance(examples, list)
        is_counted = held.get(str(row["store"])) == counts.get("extra", 0) + counts.get("equal", 0)
        is_aborted = bool(examples) and all("aborted" in (x["note"] or "") for x in examples)
        is_real = is_aborted and (is_counted or str(row["store"]) not in held)
        if is_real:
            self.found.append(
                f"{row['store']} {counts}, of aborted transactions; the application counts {held}"
            )
        return is_real

    def expect(self, when: str, missing: dict[str, int]) -> None:
        """Verify; exactly these numbers of keys are missing, and nothing else is wrong."""
        for row in rows_of(self.stage):
            counts = row["counts"]
            assert isinstance(counts, dict)
            found = {word: counts.get(word, 0) for word in ("missing", "extra", "different", "undecidable")}
            wanted = {
                "missing": missing.get(str(row["store"]), 0),
                "extra": 0,
                "different": 0,
                "undecidable": 0,
            }
            mark = "ok " if found == wanted else "BAD"
            self.rows += 1
            place = f"{row['task_id']} {row['store']:<45} {row['word']:<12}"
            print(f"  {mark} {when:<22} {place} {counts} {row['reason'] or ''}", flush=True)
            if found != wanted:
                self.wrong.append(f"{when}: wanted {wanted}: {json.dumps(row)}")


def healthy(run: Run) -> None:
    """Running, closed, killed, run again: nothing may be said against it."""
    stage = run.stage
    stage.start()
    stage.send(2000)
    stage.settle()
    run.look("running")
    stage.wait_committed()
    run.look("running, committed")
    stage.stop()
    run.look("closed", closed=True)
    stage.start()
    stage.send(1500)
    stage.send_again(0, 0, 700)
    stage.settle()
    stage.kill()
    run.look("killed")
    stage.start()
    stage.settle()
    run.look("running after kill")
    stage.wait_committed()
    held = run.held()
    stage.stop()
    run.look("closed after kill", held, closed=True)


def lost_segment(run: Run) -> None:
    """An older segment is lost in a kill (4.3): named while the application runs on, with the number that it counts."""
    stage = run.stage
    assert isinstance(stage, Unwatched)
    stage.before_stop = lambda: run.expect("lost, running", losses(stage))
    segments.lost_segment(stage)
    run.expect("lost, closed", losses(stage))


def losses(stage: Stage) -> dict[str, int]:
    """What the application itself counted before and after the kill."""
    lines = [line.removeprefix("LOST of ") for line in stage.proof if line.startswith("LOST of ")]
    return {name: int(rest.split()[0]) for name, _, rest in (line.partition(": ") for line in lines)}


class Unwatched(Stage):
    """A stage without agents."""

    before_stop: Callable[[], object] | None = None

    def start(
        self,
        pod: str = "a",
        release: str | None = None,
        *,
        slow_unlink_us: int = 0,
        slow_sync_us: int = 0,
        watched: bool = False,
    ) -> None:
        """Start an instance."""
        super().start(pod, release, slow_unlink_us=slow_unlink_us, slow_sync_us=slow_sync_us, watched=watched)

    def stop(self, pod: str = "a") -> None:
        """Close an instance; look before, if asked."""
        if self.before_stop is not None:
            self.before_stop()
        super().stop(pod)


def stores_of(release: str, title: str) -> str:
    """Every kind of store that the release has, and that it can count where it is asked to."""
    found = ["kv", "plain", "window", "join", "repartition", "foreign"]
    if numbers(release) >= (3, 1) or title != "lost_segment":
        found.append("session")
    if numbers(release) >= (3, 5):
        found.append("versioned")
    return ",".join(found)


def main() -> int:
    """Play every run; exit code 1 if a word was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", default=",".join(RELEASES))
    parser.add_argument("--guarantees", default=f"{ALOS},{EOS}")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--stores")
    parser.add_argument("--plays", default="healthy,lost_segment")
    chosen = parser.parse_args()
    plays: dict[str, Callable[[Run], None]] = {"healthy": healthy, "lost_segment": lost_segment}
    plays = {name: plays[name] for name in chosen.plays.split(",")}
    wrong: list[str] = []
    looks = 0
    with tempfile.TemporaryDirectory(dir=chosen.work) as name:
        broker = Broker(Path(name) / "broker")
        try:
            for release in chosen.releases.split(","):
                for guarantee in chosen.guarantees.split(","):
                    for title, play in plays.items():
                        print(f"{release} {guarantee} {title}", flush=True)
                        plan = Plan(
                            release, guarantee, chosen.stores or stores_of(release, title), partitions=1
                        )
                        stage = Unwatched(broker, Path(name) / "stage", title, plan)
                        run = Run(stage)
                        try:
                            play(run)
                        except (LiveError, RuntimeError, ValueError) as error:
                            run.wrong.append(f"not played: {error}")
                        finally:
                            stage.close()
                        looks += run.rows
                        for line in run.found:
                            print(f"  found KAFKA-20685: {line}", flush=True)
                        wrong += [f"{release} {guarantee} {title} {line}" for line in run.wrong]
        finally:
            broker.stop()
    print(f"{looks} words, {len(wrong)} wrong")
    for line in wrong:
        print("WRONG", line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
