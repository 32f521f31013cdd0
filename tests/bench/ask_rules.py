"""Two rules of the fleet audit written for DuckDB by hand, on the same Parquet: what they cost where nothing is shared.

    python -m tests.bench.ask_rules BRONZE OUT THREADS MEMORY AS_OF_US [OTHER]

`unrestored-task` starts from agents' findings, `split-owner` from the fleet alone; both need holders, readings, gaps.
Written from the rules' descriptions and event by event, so it is an oracle, too. One Parquet file per rule; prints
seconds per rule, those of the facts that both read, the peak memory, and, if OTHER holds the rollup's findings under
the same names, how many of each there are and how many only one of the two has, as JSON.
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

from agent.contract.reporting import SUMMARY_S

US = 1_000_000
TASK = "namespace, application_id, task_id"

_AT = "least(observed_at_us, coalesce(occurred_at_us, observed_at_us))"
_RELEASE = r"CAST(string_split(nullif(regexp_extract(%s, '^(\d+(\.\d+)*)', 1), ''), '.') AS INTEGER[])"
_OPENED = "strftime(make_timestamp(%s), '%%Y-%%m-%%dT%%H:%%M:%%S.%%fZ') AS opened_at"
SILENT_US = 90 * US

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

MARKS = f"""
CREATE TABLE marks AS
SELECT {TASK}, pod, {_AT} AS at_us, change, store, identity, offset_after, puts, entries_low, shape
FROM events WHERE kind = 'transition' AND task_id IS NOT NULL
"""

HELD = f"""
CREATE TABLE held AS
WITH cleaned AS (
  SELECT {TASK}, pod, list(at_us) AS ends FROM marks
  WHERE shape = 'cleaner-walk' AND change = 'task-deleted' GROUP BY ALL)
SELECT h.* EXCLUDE (lasting), lasting FROM ({HOLDERS}) h LEFT JOIN cleaned USING ({TASK}, pod)
WHERE lasting OR ends IS NULL
  OR len([x FOR x IN ends IF x >= from_us AND abs(x - to_us) <= {2 * US}]) = 0
"""

SAID = """
CREATE TABLE said AS
SELECT * FROM events WHERE kind = 'finding'
QUALIFY row_number() OVER (PARTITION BY namespace, pod, finding_id ORDER BY observed_at_us DESC, sequence DESC) = 1
"""

GAPS = f"""
CREATE TABLE unwatched AS
WITH blind AS (
  SELECT namespace, pod, pod_uid, boot_id, unnest(blind) AS part FROM events WHERE kind = 'heartbeat'),
ends AS (
  SELECT namespace, pod, max(observed_at_us) AS last_us,
    coalesce(max(observed_at_us) FILTER (phase = 'stopping') >= max(observed_at_us), false) AS stopped
  FROM events GROUP BY ALL)
SELECT namespace, pod, NULL AS in_application, NULL AS in_task, from_us, to_us + {(SUMMARY_S + 1) * US} AS until_us
FROM ({HOLES})
UNION ALL SELECT namespace, pod, NULL, NULL, from_us, to_us FROM ({PAUSES})
UNION ALL SELECT namespace, pod, part.application_id, part.task_id, part.from_us, coalesce(max(part.to_us), $as_of)
  FROM blind GROUP BY namespace, pod, pod_uid, boot_id, part.from_us, part.cause, part.application_id, part.task_id
UNION ALL SELECT namespace, pod, NULL, NULL, last_us, $as_of FROM ends
  WHERE $as_of - last_us > {SILENT_US} AND NOT stopped
"""

SETTINGS = f"""
CREATE TABLE settings AS
WITH told AS (
  SELECT namespace, application_id, pod, observed_at_us, sequence, release_low, release_high, unnest(settings) AS part
  FROM events WHERE kind = 'configuration'),
newest AS (
  SELECT namespace, application_id, part.key AS key, part.value AS value FROM told
  WHERE part.value IS NOT NULL AND part.origin <> 'default'
  QUALIFY row_number() OVER (
    PARTITION BY namespace, application_id, part.key ORDER BY observed_at_us DESC, pod, sequence DESC) = 1),
latest AS (
  SELECT namespace, application_id, {_RELEASE % "release_high"} AS high FROM events WHERE kind = 'configuration'
  QUALIFY row_number() OVER (
    PARTITION BY namespace, application_id, pod ORDER BY observed_at_us DESC, sequence DESC) = 1),
ranges AS (SELECT namespace, application_id, max(high) AS high FROM latest GROUP BY ALL),
named AS (
  SELECT DISTINCT namespace, application_id FROM events WHERE application_id IS NOT NULL
  UNION SELECT DISTINCT namespace, unnest(applications) FROM events WHERE kind = 'heartbeat'),
known AS (
  SELECT namespace, application_id,
    max(value) FILTER (key = 'kafka_streams_version') AS version,
    max(value) FILTER (key = 'processing_guarantee') AS guarantee,
    try_cast(max(value) FILTER (key = 'num_standby_replicas') AS BIGINT) AS standbys,
    try_cast(max(value) FILTER (key = 'session_timeout_ms') AS BIGINT) AS session_ms
  FROM newest GROUP BY ALL)
SELECT namespace, application_id, guarantee, standbys, coalesce({_RELEASE % "version"}, high) AS high,
  1000 * coalesce(session_ms, CASE WHEN coalesce({_RELEASE % "version"}, high) < [3, 0] THEN 10000 ELSE 45000 END)
    AS session_us
FROM named LEFT JOIN known USING (namespace, application_id) LEFT JOIN ranges USING (namespace, application_id)
"""

PAIRS = f"""
CREATE TABLE pairs AS
WITH crossed AS (
  SELECT DISTINCT ON ({TASK}, a.pod, other_pod, from_us)
    {", ".join(f"a.{name}" for name in TASK.split(", "))}, a.pod, b.pod AS other_pod,
    greatest(a.from_us, b.from_us) AS from_us, least(a.to_us, b.to_us) AS to_us, a.lasting AND b.lasting AS lasting
  FROM held a JOIN held b USING ({TASK}) WHERE a.pod <> b.pod)
SELECT p.*, session_us, standbys, high, guarantee FROM crossed p JOIN settings s USING (namespace, application_id)
WHERE to_us - from_us > session_us AND 1 + coalesce(standbys, 0) < (
  SELECT count(DISTINCT h.pod) FROM held h WHERE h.namespace = p.namespace AND h.application_id = p.application_id
    AND h.task_id = p.task_id AND h.from_us <= p.from_us AND h.to_us >= p.to_us)
"""

READINGS = f"""
CREATE TABLE readings AS
WITH asked AS (
  SELECT DISTINCT {TASK} FROM pairs
  UNION SELECT DISTINCT {TASK} FROM said WHERE detector = 'unrestored-store' AND task_id IS NOT NULL),
mine AS (SELECT e.* FROM events e SEMI JOIN asked USING ({TASK}) WHERE kind = 'summary'),
parts AS (
  SELECT id, {TASK}, pod, observed_at_us AS at_us, part.*,
    CASE WHEN len(offsets) = 1 THEN offsets[1]."offset" END AS one
  FROM (SELECT * EXCLUDE (store, segment, identity, puts, bytes, entries_low, entries_high), unnest(stores) AS part
        FROM mine)),
named AS (
  SELECT DISTINCT {TASK}, store FROM parts
  UNION SELECT DISTINCT {TASK}, store FROM marks SEMI JOIN asked USING ({TASK}) WHERE store IS NOT NULL),
single AS (SELECT {TASK}, min(store) AS store FROM named GROUP BY {TASK} HAVING count(*) = 1)
SELECT {TASK}, store, pod, at_us, identity, coalesce("offset", one) AS "offset", puts, entries_low
FROM parts WHERE segment IS NULL
UNION ALL
SELECT {TASK}, store, pod, at_us, CASE WHEN count(*) = 1 THEN max(identity) END, max(coalesce("offset", one)),
  sum(puts), CASE WHEN count(entries_low) = count(*) THEN sum(entries_low) END
FROM parts WHERE segment IS NOT NULL GROUP BY id, {TASK}, store, pod, at_us
UNION ALL
SELECT {TASK}, store, pod, at_us, identity, offset_after, puts, entries_low
FROM marks SEMI JOIN asked USING ({TASK}) WHERE change = 'store-closed' AND store IS NOT NULL
UNION ALL
SELECT {TASK}, s.store, pod, at_us, identity, offset_after, puts, NULL
FROM marks JOIN single s USING ({TASK}) WHERE change = 'checkpoint-written' AND puts IS NOT NULL
"""


def _unseen(pod: str, from_us: str, to_us: str) -> str:
    """Say whether a pod was unwatched at any time of a closed interval of the row `x`."""
    return f"""EXISTS (FROM unwatched g WHERE g.namespace = x.namespace AND g.pod = {pod}
      AND coalesce(g.in_application = x.application_id, true) AND coalesce(g.in_task = x.task_id, true)
      AND g.from_us <= {to_us} AND g.until_us >= {from_us})"""


_SAME = "r.namespace = x.namespace AND r.application_id = x.application_id AND r.task_id = x.task_id"
_SAME_STORE = f"{_SAME} AND coalesce(r.store = x.store, true)"

UNRESTORED = f"""
WITH x AS (
  SELECT s.* FROM said s WHERE detector = 'unrestored-store' AND NOT EXISTS (
    FROM said o WHERE o.detector = 'resurrected-checkpoint' AND o.identity = s.identity AND o.pod = s.pod
      AND o.namespace = s.namespace AND o.application_id = s.application_id AND o.task_id = s.task_id)),
flagged AS (
  SELECT x.*, {_unseen("x.pod", "x.opened_at_us", f"least(x.observed_at_us, x.opened_at_us + {3600 * US})")}
    AS unwatched
  FROM x),
own AS (
  SELECT x.namespace, x.pod, x.finding_id, r."offset" AS own_offset, r.puts AS own_puts
  FROM x JOIN readings r ON {_SAME_STORE} AND r.pod = x.pod AND r."offset" IS NOT NULL AND r.puts IS NOT NULL
    AND coalesce(r.identity = x.identity, r.at_us >= x.opened_at_us)
  QUALIFY row_number() OVER (
    PARTITION BY x.namespace, x.pod, x.finding_id ORDER BY r."offset" DESC, r.puts DESC, r.at_us) = 1),
owner AS (
  SELECT x.namespace, x.pod, x.finding_id, r.pod AS owner_pod, r.from_us AS owner_from_us
  FROM x JOIN held r ON {_SAME} AND r.pod <> x.pod AND r.from_us < x.opened_at_us
  QUALIFY row_number() OVER (
    PARTITION BY x.namespace, x.pod, x.finding_id ORDER BY r.to_us DESC, r.from_us DESC, r.pod DESC) = 1),
richest AS (
  SELECT x.namespace, x.pod, x.finding_id, r.entries_low AS held_entries, r."offset" AS held_offset
  FROM x JOIN owner o USING (namespace, pod, finding_id) JOIN readings r ON {_SAME_STORE} AND r.pod = o.owner_pod
    AND r.puts IS NOT NULL AND r.entries_low IS NOT NULL AND r.at_us BETWEEN o.owner_from_us AND x.opened_at_us
  QUALIFY row_number() OVER (
    PARTITION BY x.namespace, x.pod, x.finding_id
    ORDER BY r.entries_low DESC, r.at_us DESC, r."offset" DESC NULLS LAST) = 1),
story AS (
  SELECT *, NOT unwatched AND coalesce(held_entries > 2 * own_puts AND held_entries - own_puts > 10
    AND own_offset * 1.05 >= held_offset, false) AS proved
  FROM flagged LEFT JOIN own USING (namespace, pod, finding_id) LEFT JOIN owner USING (namespace, pod, finding_id)
    LEFT JOIN richest USING (namespace, pod, finding_id))
SELECT 'unrestored-task' AS id_of, namespace, application_id, task_id, store, pod, {_OPENED % "opened_at_us"},
  CASE WHEN proved THEN 'critical' ELSE severity END AS severity,
  CASE WHEN proved THEN 'confirmed' ELSE confidence END AS confidence, status,
  [p FOR p IN [pod, owner_pod] IF p IS NOT NULL] AS pods
FROM story
"""

SPLIT = f"""
WITH far AS (
  SELECT {TASK}, pod, at_us, "offset", puts FROM readings
  UNION ALL SELECT {TASK}, pod, at_us, NULL, puts FROM marks WHERE change = 'store-flushed'),
moves AS (
  SELECT {TASK}, pod, at_us FROM marks WHERE change IN
    ('store-flushed', 'checkpoint-written', 'store-opened', 'store-created', 'store-deleted')),
still AS (
  SELECT x.*, coalesce((SELECT min(r.at_us) FROM moves r WHERE {_SAME} AND r.pod = x.pod
    AND r.at_us > x.from_us + {2 * US} AND r.at_us < x.to_us), x.to_us) AS still_us
  FROM pairs x),
own AS (
  SELECT {", ".join(f"x.{name}" for name in TASK.split(", "))}, x.pod, x.other_pod, x.from_us,
    max(r."offset") AS own_offset, max(r.puts) AS own_puts
  FROM still x LEFT JOIN far r ON {_SAME} AND r.pod = x.pod AND r.at_us <= x.still_us
  WHERE x.still_us - x.from_us > x.session_us GROUP BY ALL),
other AS (
  SELECT {", ".join(f"x.{name}" for name in TASK.split(", "))}, x.pod, x.other_pod, x.from_us,
    max(r."offset") AS other_offset, max(r.puts) - min(r.puts) AS grown,
    count(DISTINCT CASE WHEN r."offset" IS NOT NULL THEN (r."offset", coalesce(r.puts, -1)) END)
      + count(DISTINCT r.puts) AS steps
  FROM still x JOIN far r ON {_SAME} AND r.pod = x.other_pod AND r.at_us BETWEEN x.from_us AND x.still_us GROUP BY ALL),
x AS (
  SELECT s.*, CASE WHEN coalesce(high >= [2, 6], true) THEN 10000 ELSE 0 END AS slack, o.* EXCLUDE ({TASK}, pod,
    other_pod, from_us), t.* EXCLUDE ({TASK}, pod, other_pod, from_us)
  FROM still s JOIN own o USING ({TASK}, pod, other_pod, from_us) JOIN other t USING ({TASK}, pod, other_pod, from_us)),
story AS (
  SELECT x.*, {_unseen("x.pod", "x.from_us", "x.still_us")} OR {_unseen("x.other_pod", "x.from_us", "x.still_us")}
    AS unseen
  FROM x WHERE steps > 2 AND coalesce(other_offset > own_offset + slack, grown > own_puts + slack, false))
SELECT 'split-owner' AS id_of, namespace, application_id, task_id, NULL::VARCHAR AS store, pod, {_OPENED % "from_us"},
  CASE WHEN unseen OR (NOT lasting AND coalesce(starts_with(guarantee, 'exactly_once'), false)) THEN 'info'
    ELSE 'warning' END AS severity,
  CASE WHEN unseen THEN 'unknown' WHEN standbys IS NULL OR still_us - from_us <= session_us + {10 * US}
      OR (slack > 0 AND coalesce(starts_with(guarantee, 'exactly_once'), true)) THEN 'suspected'
    ELSE 'confirmed' END AS confidence,
  CASE WHEN lasting THEN 'open' ELSE 'resolved' END AS status, [pod, other_pod] AS pods
FROM story
"""

FACTS = (MARKS, HELD, SAID, GAPS, SETTINGS, PAIRS, READINGS)
RULES = {"unrestored-task": UNRESTORED, "split-owner": SPLIT}


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
    """Answer questions (name -> SQL) into files, compare them with another's answers, and print what it cost.

    `seconds`: what was done before, by name.
    """
    for name, question in questions.items():
        seconds[name] = timed(partial(base.execute, f"COPY ({question}) TO '{out}/{name}.parquet'"))
    found = {name: different(base, out, other, name) for name in questions} if other else {}
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{json.dumps({'seconds': seconds, 'peak_mib': peak_mib, 'different': found})}\n")


def main() -> int:
    """Find what both rules find."""
    bronze, out, threads, memory, as_of_us = (
        Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]),
    )  # fmt: skip
    out.mkdir(parents=True)
    base = duckdb.connect()
    base.execute(
        f"SET threads = {threads}; SET memory_limit = '{memory}'; SET temp_directory = '{out}/spill';"
        " SET TimeZone = 'UTC'"
    )
    scope = "CASE WHEN coalesce(cluster, '') <> '' THEN cluster || '/' || namespace ELSE namespace END AS namespace"
    base.execute(
        f"CREATE VIEW events AS SELECT * REPLACE ({scope})"
        f" FROM read_parquet('{bronze}/events/**/*.parquet', union_by_name = true) WHERE observed_at_us <= {as_of_us}"
    )
    facts = timed(lambda: [base.execute(fact.replace("$as_of", str(as_of_us))) for fact in FACTS])
    tell(base, RULES, {"facts": facts}, out, Path(sys.argv[6]) if len(sys.argv) > 6 else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
