"""The help of each command; `arguments` has the options."""

from __future__ import annotations

from agent.contract.exit_codes import Exit, codes_text
from agent.contract.help_page import HelpPage

ABOUT = """\
Reads the events of all statewarden agents and says which state of the fleet can
no longer be trusted, what only several pods together show, and what to do next.
Reads the agents' segments, or bronze: the Delta tables that `ingest` makes of
them. Runs on PySpark (pip install 'statewarden[rollup]') and Java 17 or later."""

AFTER = f"""\
{codes_text({code: code.meaning for code in Exit})}
examples:
  statewarden-rollup audit --input EVENTS --output OUT
  statewarden-rollup ingest --input s3://bucket/prefix --bronze BRONZE
  statewarden-rollup safe-to-restart --from OUT --pod orders-7

more: docs/rollup.md, docs/journeys.md (may this pod be restarted?)"""

_INPUT = "an input can't be read: one line says which"
_DONE = {Exit.CLEAR: "done", Exit.UNREAD: _INPUT}
_FOUND = {
    Exit.CLEAR: "no open finding at or above --fail-on",
    Exit.FOUND: "at least one open finding at or above it",
    Exit.UNREAD: _INPUT,
}

PAGES = {
    "audit": HelpPage(
        "correlate all events; write tables, JSON lines and a report",
        "[OPTION ...] --input WHERE --output DIR",
        """\
Reads the events of all pods, from bronze or from the agents' segments, prints
the incidents of the fleet, the worst first, and writes tables, JSON lines,
metrics and report.html into --output. The last good output stays there until
the new one is complete; the first lines say what has changed since then.""",
        _FOUND | {Exit.UNREAD: "undecided, what --expect names is missing, or an input can't be read"},
        """\
examples:
  statewarden-rollup audit --input EVENTS --output OUT
  statewarden-rollup audit --input BRONZE --output OUT --look-back 14 --top 3
  statewarden-rollup audit --input BRONZE --output OUT --verified PROVED --json
  statewarden-rollup audit --input BRONZE --output OUT --expect PODS

more: docs/rollup.md, docs/tables.md, docs/incidents.md""",
    ),
    "safe-to-restart": HelpPage(
        "may this pod be restarted?",
        "[OPTION ...]\n       (--input WHERE | --from OUT)",
        """\
Answers whether a pod may be restarted: whether a healthy copy of each of its
tasks is held elsewhere, and whether a stop or a kill would do harm. With --pod
it lists task by task; without, it answers for every pod. --from takes the
answer from the last audit at once, without Java.""",
        {
            Exit.CLEAR: "yes: every requested pod is `safe` or `not-running`",
            Exit.FOUND: "not without care: the answers say why",
            Exit.UNREAD: "not known: `unknown`, too old, or an input that cannot be read",
        },
        """\
examples:
  statewarden-rollup safe-to-restart --from OUT --pod orders-7
  statewarden-rollup safe-to-restart --input BRONZE --namespace shop

more: docs/rollup.md, docs/journeys.md""",
    ),
    "why": HelpPage(
        "one task across pods: what is wrong, what to do, its story",
        "[OPTION ...] --input WHERE TASK",
        """\
Says what is wrong with one task and what to do next; then its story across all
pods: which one held it when, its checkpoints, wipes and restorations.""",
        _DONE,
        """\
examples:
  statewarden-rollup why 0_3 --input BRONZE
  statewarden-rollup why 0_3 --input BRONZE --application orders

more: docs/rollup.md, docs/journeys.md""",
    ),
    "coverage": HelpPage(
        "which pods and times were watched",
        "[OPTION ...] --input WHERE",
        """\
Lists which pods were watched when, and where an agent was silent, blind or lost
events: an audit can say nothing about those times.""",
        _DONE,
        """\
examples:
  statewarden-rollup coverage --input BRONZE --namespace shop

more: docs/rollup.md, docs/limits.md""",
    ),
    "ingest": HelpPage(
        "add agents' events to bronze (Delta tables, by day)",
        "[OPTION ...] --input WHERE --bronze WHERE",
        """\
Adds new events to bronze, each exactly once; lines that cannot be used go into
its quarantine. Run it every few minutes, or once and for all with --trigger. A
run may be killed at any point and repeated.""",
        _DONE,
        """\
examples:
  statewarden-rollup ingest --input EVENTS --bronze BRONZE
  statewarden-rollup ingest --input s3://bucket/a --bronze s3://bucket/bronze
  statewarden-rollup ingest --input kafka://kafka:9092/streams-audit \\
      --bronze BRONZE --trigger 'processing 60 seconds'

more: docs/rollup.md, docs/delivery.md""",
    ),
    "compact": HelpPage(
        "once a day: join small files, make snapshots, remove old days",
        "[OPTION ...] --bronze WHERE",
        """\
Once a day: joins the small files of finished days in bronze. With --snapshots
it also keeps what audits need of each finished day; they read that instead of
the day. With --retain it removes the events of old days that have a snapshot.""",
        _DONE,
        """\
examples:
  statewarden-rollup compact --bronze BRONZE --snapshots --retain 90

more: docs/rollup.md""",
    ),
    "verify": HelpPage(
        "compare digests of stores with their changelogs",
        "[OPTION ...] --digests WHERE --output DIR",
        """\
Compares digests of stores with their changelogs, or without --kafka with each
other. This proves or refutes what agents suspect. `statewarden digest` makes
digests, and agents may ship them.""",
        _FOUND,
        """\
examples:
  statewarden-rollup verify --digests DIGESTS --kafka kafka:9092 --output PROVED
  statewarden-rollup verify --digests BRONZE --output PROVED

more: docs/digests.md""",
    ),
    "forget": HelpPage(
        "remove events from bronze, into its quarantine",
        "[OPTION ...] --bronze WHERE\n       (--pod POD | --id ID | --file PATH)",
        """\
Removes events from bronze: those of a pod, single ones, or a damaged file that
an error has named. Events go into the quarantine; `ingest --again` brings back
those of a file.""",
        _DONE,
        """\
examples:
  statewarden-rollup forget --bronze BRONZE --pod orders-7 \\
      --until 2026-11-01T00:00:00Z
  statewarden-rollup forget --bronze BRONZE --file BRONZE/events/part-0.parquet

more: docs/rollup.md""",
    ),
    "jars": HelpPage(
        "fetch the jars that Spark needs for bronze or a source",
        "[OPTION ...] KIND",
        """\
Fetches jars through Maven, checks each against its pinned hash, keeps them in
the user's cache directory and prints their paths. Those of s3a and kafka are
fetched by this command only; those of delta also when bronze is first used.""",
        _DONE,
        """\
examples:
  statewarden-rollup jars delta
  statewarden-rollup jars s3a --names

more: docs/rollup.md""",
    ),
    "warm-up": HelpPage(
        "let Java start faster from now on",
        "",
        """\
Writes an archive of Spark's classes (170 MB) into the user's cache
directory. Later commands use it; one of another Java is ignored. The image has
one.""",
        _DONE,
        """\
examples:
  statewarden-rollup warm-up

more: docs/rollup.md""",
    ),
}
"""By the name of the command, in the order of the list. Lines of `examples:` are commands."""
