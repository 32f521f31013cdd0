"""The proof of digests on real releases: every kind of store, against its changelog on Spark; no wrong word.

    python tests/verify/digests.py [--releases 3.9.2,4.3.1] [--work DIR]

Needs what tests/lab and tests/delivery need, and the extra `verify`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.delivery import rollups  # noqa: E402 - the path comes first
from tests.lab.plan import EOS, is_exposed  # noqa: E402
from tests.lab.stage import Stage  # noqa: E402
from tests.verify.looking import Row, Run, tree  # noqa: E402
from tests.verify.run import Making, main  # noqa: E402

HEALTHY = {"equal", "partly-equal", "undecidable"}


class DigestRun(Run):
    """One application through its states; digests are compared on Spark at each of them."""

    def __init__(self, stage: Stage, rollup: rollups.Rollup, work: Path) -> None:
        super().__init__(stage)
        self._rollup = rollup
        self._work = work

    def look(
        self,
        when: str,
        held: Mapping[str, int] | None = None,
        *,
        closed: bool = False,
        pod: str = "a",
        also: AbstractSet[str] = frozenset(),
    ) -> list[Row]:
        """A healthy store never differs; one that was closed in order is equal, or has what KAFKA-20685 leaves."""
        rows, plan = self._rows(pod), self.stage.plan
        for row in rows:
            good = {"equal"} if closed else HEALTHY | also
            if plan.guarantee == EOS and is_exposed(plan.release) and row["extra"] and not row["missing"]:
                good = {"differs"}
            self._said(when, row, is_good=row["verdict"] in good, wanted=good)
        return rows

    def expect(self, when: str, missing: dict[str, int]) -> None:
        """Stores with lost keys differ by just as many; no other store differs."""
        for row in self._rows():
            number = missing.get(str(row["store"]), 0)
            found = {name: row[name] or 0 for name in ("missing", "extra", "different")}
            wanted = {"missing": number, "extra": 0, "different": 0}
            self._said(when, row, is_good=found == wanted, wanted=wanted)

    def _said(self, when: str, row: Row, *, is_good: bool, wanted: object) -> None:
        self.rows += 1
        counts = {name: row[name] for name in ("equal", "unknown", "missing", "extra", "different")}
        print(
            f"  {'ok ' if is_good else 'BAD'} {when:<22} {row['task_id']} {row['store']:<45} {row['state']:<7}"
            f" {row['verdict']:<12} {counts} {row['offset']} {row['why'] or ''}",
            flush=True,
        )
        if not is_good:
            self.wrong.append(f"{when}: wanted {wanted}: {json.dumps(row)}")

    def _rows(self, pod: str = "a") -> list[Row]:
        """Digest a pod's stores and compare them."""
        digests = Path(tempfile.mkdtemp(dir=self._work))
        state_dir = self.stage.state_dir(pod)
        is_still = not self.stage.pods[pod].is_alive
        before = tree(state_dir) if is_still else {}
        made = subprocess.run(
            [sys.executable, "-m", "agent", "digest", str(state_dir), "--output", str(digests / "a.jsonl")],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        if made.returncode not in (0, 2) or not made.stdout:
            raise RuntimeError(f"{made.returncode}: {made.stderr[-2000:]}")
        if is_still and tree(state_dir) != before:
            raise RuntimeError("the state directory was touched")
        for line in made.stderr.splitlines():
            print(f"      {line}", flush=True)
        output = digests / "out"
        brokers = ("--kafka", self.stage.broker.address)
        told = self._rollup.run("verify", "--digests", str(digests), *brokers, "--output", str(output))
        if told.code not in (0, 1):
            raise RuntimeError(f"{told.code}: {told.err[-2000:]}")
        return [json.loads(line) for line in (output / "verdicts.jsonl").read_text().splitlines()]


@contextmanager
def making(work: Path) -> Iterator[Making]:
    """Give what makes a run, with one rollup for all of them."""
    with rollups.rollup(work / "rollup.log") as rollup:
        yield partial(DigestRun, rollup=rollup, work=work)


if __name__ == "__main__":
    sys.exit(main(("healthy", "lost_segment"), making))
