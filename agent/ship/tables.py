"""The tables of a spool and the statements on them.

Each rank has its own table: what is given up first is then together, at the beginning of one table, and giving
it up frees whole pages. In one table, taking a third of the rows would free none.
"""

from __future__ import annotations

from agent.ship import priority

FORMAT = 3
"""Written as `user_version`; a database of another format is set aside."""

_RANKS = range(priority.HIGHEST + 1)
TABLES = tuple(f"rank_{rank}" for rank in _RANKS)
SCHEMA = (
    "CREATE TABLE batches (start INTEGER PRIMARY KEY, pod_uid TEXT, boot_id TEXT, first INTEGER, last INTEGER,"
    " is_rejected INTEGER)",  # last: null while it is open
    *(
        f"CREATE TABLE {table} (n INTEGER PRIMARY KEY, kind TEXT, at_us INTEGER, crc INTEGER, line BLOB)"
        for table in TABLES
    ),
    f"PRAGMA user_version={FORMAT}",
)
INSERT = tuple(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)" for table in TABLES)  # noqa: S608 - constants
DELETE = tuple(f"DELETE FROM {table} WHERE n BETWEEN ? AND ?" for table in TABLES)  # noqa: S608
OLDEST = tuple(
    f"SELECT n, kind, length(line), CASE kind WHEN 'drop' THEN line END FROM {table}"  # noqa: S608
    " WHERE n NOT BETWEEN ? AND ? ORDER BY n"
    for table in TABLES
)
GIVE_UP = tuple(f"DELETE FROM {table} WHERE n <= ? AND n NOT BETWEEN ? AND ?" for table in TABLES)  # noqa: S608
LINES = (
    " UNION ALL ".join(f"SELECT n, crc, line FROM {table} WHERE n BETWEEN ? AND ?" for table in TABLES)  # noqa: S608
    + " ORDER BY n"
)
SUMS = " UNION ALL ".join(
    f"SELECT count(*), sum(length(line)), min(at_us), max(n) FROM {table} WHERE n BETWEEN ? AND ?"  # noqa: S608
    for table in TABLES
)
LAST_PLACE = (1 << 63) - 1
