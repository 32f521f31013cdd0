"""DuckDB's answers to questions of the fleet audit, from the same Parquet; needs the packages of `make setup-delivery`.

    python tests/bench/ask_duckdb.py BRONZE OUT THREADS MEMORY [OTHER]

Written from the rules' descriptions, event by event, without the rollup's shortcuts: also an oracle. One Parquet file
per question; prints seconds per question, the peak memory, and, if OTHER holds somebody else's answers under the same
names, how many rows only one of the two has, as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import duckdb

US = 1_000_000
TASK = "namespace, application_id, task_id"

HOLDERS = f"""
WITH points AS (
  SELECT {TASK}, pod, observed_at_us, boot_id, sequence,
    CASE WHEN change = 'task-held' THEN true
         WHEN change IN ('task-released', 'task-deleted') THEN false
         WHEN kind = 'summary' THEN held END AS now_held
  FROM events WHERE task_id IS NOT NULL),
changes AS (
  SELECT *, lag(now_held) OVER w AS was_held FROM points WHERE now_held IS NOT NULL
  WINDOW w AS (PARTITION BY {TASK}, pod ORDER BY observed_at_us, boot_id, sequence)),
steps AS (
  SELECT *, lead(observed_at_us) OVER w AS until_us FROM changes WHERE was_held IS NULL OR was_held <> now_held
  WINDOW w AS (PARTITION BY {TASK}, pod ORDER BY observed_at_us, boot_id, sequence)),
heard AS (SELECT namespace, pod, max(observed_at_us) AS last_us FROM events GROUP BY ALL)
SELECT {TASK}, pod, observed_at_us AS from_us, coalesce(until_us, last_us) AS to_us, until_us IS NULL AS lasting
FROM steps JOIN heard USING (namespace, pod) WHERE now_held
"""

HOLES = """
WITH seen AS (
  SELECT namespace, pod, pod_uid, boot_id, sequence, observed_at_us,
    coalesce(lag(sequence) OVER w, 0) AS before,
    coalesce(lag(observed_at_us) OVER w, observed_at_us) AS before_us
  FROM events WINDOW w AS (PARTITION BY namespace, pod, pod_uid, boot_id ORDER BY sequence))
SELECT namespace, pod, CASE WHEN before = 0 THEN 'earlier-events-not-in-input' ELSE 'lost-events' END AS cause,
  before_us AS from_us, greatest(observed_at_us, before_us) AS to_us, sequence - before - 1 AS missing
FROM seen WHERE sequence > before + 1
"""

PAUSES = f"""
WITH seen AS (
  SELECT namespace, pod, observed_at_us, lag(observed_at_us) OVER w AS before_us,
    coalesce(lag(phase) OVER w = 'stopping', false) AS stopped
  FROM events WINDOW w AS (PARTITION BY namespace, pod ORDER BY observed_at_us, pod_uid, boot_id, sequence))
SELECT namespace, pod, CASE WHEN stopped THEN 'agent-not-running' ELSE 'silent-agent' END AS cause,
  before_us AS from_us, observed_at_us AS to_us, NULL::BIGINT AS missing
FROM seen WHERE CASE WHEN stopped THEN observed_at_us > before_us ELSE observed_at_us - before_us > {90 * US} END
"""

CLONES = f"""
WITH stores AS (
  SELECT namespace, application_id, pod, pod_uid, boot_id, observed_at_us, 'store' AS what, part.identity AS key,
    task_id, part.store AS store
  FROM (SELECT *, unnest(stores) AS part FROM events WHERE kind = 'summary') WHERE part.identity IS NOT NULL
  UNION ALL
  SELECT namespace, application_id, pod, pod_uid, boot_id, observed_at_us, 'store', identity, task_id, store
  FROM events WHERE kind = 'transition' AND identity IS NOT NULL AND task_id IS NOT NULL
  UNION ALL
  SELECT namespace, application_id, pod, pod_uid, boot_id, observed_at_us, 'process', process_id, NULL, NULL
  FROM events WHERE process_id IS NOT NULL),
seen AS (
  SELECT namespace, application_id, pod, pod_uid, boot_id, what, key, task_id, store,
    min(observed_at_us) AS from_us, max(observed_at_us) AS to_us
  FROM stores GROUP BY ALL)
SELECT a.namespace, a.application_id, a.pod, b.pod AS other_pod,
  min(greatest(a.from_us, b.from_us)) AS from_us, max(least(a.to_us, b.to_us)) AS to_us,
  count(DISTINCT CASE WHEN what = 'process' THEN key END) AS processes,
  count(DISTINCT CASE WHEN what = 'store' THEN key END) AS stores
FROM seen a JOIN seen b USING (what, key)
WHERE a.namespace = b.namespace AND a.application_id = b.application_id
  AND a.task_id IS NOT DISTINCT FROM b.task_id AND a.store IS NOT DISTINCT FROM b.store AND a.pod < b.pod
  AND least(a.to_us, b.to_us) - greatest(a.from_us, b.from_us) > {10 * US}
GROUP BY a.namespace, a.application_id, a.pod, b.pod
"""

SIZES = f"""
CREATE OR REPLACE TEMP VIEW looks AS
SELECT {TASK}, part.store AS store, pod, observed_at_us AS at_us, part.identity AS identity,
  coalesce(part."offset", CASE WHEN len(offsets) = 1 THEN offsets[1]."offset" END) AS "offset",
  part.puts AS puts, part.entries_low AS entries_low, part.entries_high AS entries_high
FROM (SELECT *, unnest(stores) AS part FROM events WHERE kind = 'summary') WHERE part.segment IS NULL
UNION ALL
SELECT {TASK}, store, pod, observed_at_us, identity, offset_after, puts, entries_low, entries_high
FROM events WHERE change = 'store-closed' AND store IS NOT NULL
"""

DIVERGED = f"""
WITH named AS (
  SELECT DISTINCT {TASK}, store FROM looks
  UNION SELECT DISTINCT {TASK}, part.store
    FROM (SELECT *, unnest(stores) AS part FROM events WHERE kind = 'summary') WHERE part.segment IS NOT NULL
  UNION SELECT DISTINCT {TASK}, store FROM events WHERE kind = 'transition' AND task_id IS NOT NULL
    AND store IS NOT NULL),
single AS (SELECT {TASK}, min(store) AS store FROM named GROUP BY {TASK} HAVING count(*) = 1),
anchors AS (
  SELECT DISTINCT {TASK}, s.store, e.pod, e.offset_after AS "offset", e.puts, e.identity
  FROM events e JOIN single s USING ({TASK}) WHERE change = 'checkpoint-written' AND e.puts IS NOT NULL
  UNION SELECT {TASK}, store, pod, offset_after, puts, identity
    FROM events WHERE change = 'store-closed' AND store IS NOT NULL),
settled AS (
  SELECT {TASK}, store, "offset", pod, identity, entries_low, entries_high, min(at_us) AS first_us
  FROM looks l WHERE "offset" > 0 AND entries_low IS NOT NULL AND entries_high IS NOT NULL
    AND task_id <> 'global'
    AND EXISTS (FROM anchors w WHERE w.namespace = l.namespace AND w.application_id = l.application_id
      AND w.task_id = l.task_id AND w.store = l.store AND w.pod = l.pod AND w."offset" = l."offset"
      AND w.puts = l.puts AND coalesce(w.identity = l.identity, true))
  GROUP BY ALL)
SELECT {TASK}, store, l.pod AS less_pod, m.pod AS more_pod, max("offset") AS "offset"
FROM settled l JOIN settled m USING ({TASK}, store, "offset")
WHERE l.entries_high < m.entries_low AND l.pod <> m.pod GROUP BY ALL
"""

QUESTIONS = {"holders": HOLDERS, "holes": HOLES, "pauses": PAUSES, "clones": CLONES, "diverged": DIVERGED}


def different(base: duckdb.DuckDBPyConnection, own: Path, other: Path, name: str) -> list[int]:
    """Count this answer's rows, and those that only one of the two answers has."""
    mine, theirs = f"read_parquet('{own}/{name}.parquet')", f"read_parquet('{other}/{name}/*.parquet')"
    columns = ", ".join(f'"{row[0]}"' for row in base.execute(f"DESCRIBE FROM {mine}").fetchall())
    questions = (
        f"SELECT count(*) FROM {mine}",
        f"SELECT count(*) FROM (SELECT {columns} FROM {mine} EXCEPT ALL SELECT {columns} FROM {theirs})",
        f"SELECT count(*) FROM (SELECT {columns} FROM {theirs} EXCEPT ALL SELECT {columns} FROM {mine})",
    )
    return [int(base.execute(question).fetchone()[0]) for question in questions]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and CPU seconds of some work."""
    began = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - began[0], time.process_time() - began[1]


def tell(
    base: duckdb.DuckDBPyConnection,
    questions: Mapping[str, str],
    seconds: dict[str, tuple[float, float]],
    out: Path,
    other: Path | None,
) -> None:
    """Answer questions into files, compare them with another's answers, and print what it cost.

    Args:
        base: Where to ask.
        questions: Name -> SQL.
        seconds: What was done before, by name.
        out: Where the answers go.
        other: Where another's are; None = they are not compared.
    """
    for name, question in questions.items():
        seconds[name] = timed(partial(base.execute, f"COPY ({question}) TO '{out}/{name}.parquet'"))
    found = {name: different(base, out, other, name) for name in questions} if other else {}
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{json.dumps({'seconds': seconds, 'peak_mib': peak_mib, 'different': found})}\n")


def main() -> int:
    """Answer every question."""
    bronze, out, threads, memory = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    out.mkdir(parents=True)
    base = duckdb.connect()
    base.execute(
        f"SET threads = {threads}; SET memory_limit = '{memory}'; SET temp_directory = '{out}/spill'"
    )
    base.execute(
        f"CREATE VIEW events AS FROM read_parquet('{bronze}/events/**/*.parquet', union_by_name = true)"
    )
    base.execute(SIZES)
    tell(base, QUESTIONS, {}, out, Path(sys.argv[5]) if len(sys.argv) > 5 else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
