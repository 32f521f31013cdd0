"""The help of each command; `arguments` has the options."""

from __future__ import annotations

from agent.contract.exit_codes import Exit, codes_text
from agent.contract.help_page import HelpPage

ABOUT = """\
Finds out whether the on-disk state of Kafka Streams applications can still be
trusted, and if not: which task, which known bug, and what is safe to do next.
Reads a state directory, also beside a running application, and never writes
below it."""

AFTER = f"""\
{codes_text({code: code.meaning for code in Exit})}
examples:
  statewarden scan /var/lib/kafka-streams
  statewarden scan --help
  statewarden explain skipped-eos-wipe

more: statewarden explain journeys (an alert at 3 a.m.), exit-codes"""

_FOUND = {
    Exit.CLEAR: "no open finding at or above --fail-on, and everything was read",
    Exit.FOUND: "at least one open finding at or above it",
    Exit.UNREAD: "undecided: a setting is missing, or something could not be read",
}
_PRINTS = {Exit.CLEAR: "printed"}
_READS = {**_PRINTS, Exit.UNREAD: "not all of SOURCE or a directory can be read"}

PAGES = {
    "scan": HelpPage(
        "read a state directory (or a copy of one) once",
        "[OPTION ...] STATE_DIR",
        """\
Reads a state.dir of Kafka Streams once, judges it and prints the incidents,
the worst first, each with one next step. Safe beside a running application:
it writes nothing and takes no lock. A scan can't see past restarts; only a
running agent (statewarden run) can.""",
        _FOUND,
        """\
examples:
  statewarden scan /var/lib/kafka-streams
  statewarden scan /var/lib/kafka-streams --properties streams.properties \\
      --set kafka_streams_version=4.1.2
  statewarden scan copied-state --set orders:num_standby_replicas=1 --json

more: statewarden explain journeys, limits, configuration""",
    ),
    "explain": HelpPage(
        "print a runbook, or what led to a finding",
        "[OPTION ...] ID",
        """\
Prints the runbook of a detector, of a rule of the fleet audit or of an alert;
the meaning of an exception or a line of the application's log; the detectors of
an upstream issue; or a page, such as journeys, limits or stopped-volume. With
--events it prints what agents recorded: verdict and next step of a finding or
an incident, or the incidents of an application or a task. With --why-not it
reads a state directory, or replays a trace, and shows why the rules report
nothing for a task.""",
        _READS,
        """\
examples:
  statewarden explain skipped-eos-wipe
  statewarden explain rules/unaudited
  statewarden explain StatewardenAgentDown
  statewarden explain TaskCorruptedException
  statewarden explain stopped-volume
  statewarden explain KAFKA-20685
  statewarden explain i-8e2475e90569 --events http://localhost:9464
  statewarden explain i-8e2475e90569 --events s3://events/prod --evidence
  statewarden explain orders/0_0 --events /mnt/events
  statewarden explain --why-not orders/0_0 /var/lib/kafka-streams

more: statewarden detectors, statewarden explain incidents""",
    ),
    "plan": HelpPage(
        "print the script that repairs one incident",
        "[OPTION ...] INCIDENT [SOURCE]",
        """\
Prints one bash script for exactly this incident, and runs nothing: stop the
instance without losing its volume, check, copy the directories of its tasks,
remove these and no others, start, watch the restoration, prove it. Values that
are not known are variables at the top; the script refuses to run while one is
empty. Where no script is safe (undecided, the only complete copy, another
incident first) it prints none and says what to find out.""",
        {Exit.CLEAR: "printed", Exit.UNREAD: "there is no safe script: standard error says what to find out"},
        """\
examples:
  statewarden plan i-8e2475e90569 http://localhost:9464 > repair.sh
  statewarden plan i-8e2475e90569 s3://events/prod > repair.sh
  statewarden plan i-8e2475e90569 audit-output > repair.sh
  statewarden plan i-8e2475e90569 --state-dir /var/lib/kafka-streams \\
      --set processing_guarantee=exactly_once_v2 > repair.sh

more: statewarden explain journeys, stopped-volume""",
    ),
    "repaired": HelpPage(
        "prove that an incident is over",
        "[OPTION ...] INCIDENT [SOURCE]",
        """\
Says `repaired` only with proof: the incident is resolved in SOURCE, a new
reading of the state directory finds nothing wrong with its tasks, each of their
stores says up to which offset it is restored, and with --bootstrap-servers each
equals its changelog. The script of `plan` ends with this command.""",
        {
            Exit.CLEAR: "repaired",
            Exit.FOUND: "not repaired",
            Exit.UNREAD: "not known yet: not restored, undecided, or unreadable",
        },
        """\
examples:
  statewarden repaired i-8e2475e90569 http://localhost:9464
  statewarden repaired i-8e2475e90569 --state-dir /var/lib/kafka-streams \\
      --task orders/0_1 --bootstrap-servers kafka:9092

more: statewarden explain journeys, verify""",
    ),
    "safe-to-restart": HelpPage(
        "can this instance be restarted? It sees this pod only",
        "[OPTION ...] [STATE_DIR]",
        """\
Reads a state directory once and answers in one line: `damaged` with the step to
follow, or `unknown`, because one pod does not see the copies of others. It says
`safe` only with --one-instance. `statewarden-rollup safe-to-restart` checks
all pods.""",
        {
            Exit.CLEAR: "safe, if stopped cleanly",
            Exit.FOUND: "a critical incident is open: damaged, or suspected to be",
            Exit.UNREAD: "unknown: other pods not checked, a warning, undecided, or unreadable",
        },
        """\
examples:
  statewarden safe-to-restart /var/lib/kafka-streams
  statewarden safe-to-restart /var/lib/kafka-streams --one-instance \\
      --set processing_guarantee=exactly_once_v2 \\
      --set kafka_streams_version=3.9.1

more: statewarden explain journeys""",
    ),
    "detectors": HelpPage(
        "list the detectors",
        "[OPTION ...]",
        """\
Lists the detectors: id, severity, level and title of each, and which ones the
settings disable. Level `exposure`: the precondition of a bug is on disk;
`damage`: the bug has fired; `event`: something happened; `self`: about the
agent.""",
        _PRINTS,
        """\
examples:
  statewarden detectors
  statewarden detectors --json

more: statewarden explain affected, statewarden explain ID""",
    ),
    "run": HelpPage(
        "watch a state directory until SIGTERM (the sidecar)",
        "[OPTION ...] [STATE_DIR]",
        """\
Watches a state.dir until SIGTERM: the sidecar of an application. Serves metrics
for Prometheus and a page with what is open, logs each finding in one line, and
ships events to --ship-to. Other settings, and STATE_DIR, come from the
environment and from --config; `statewarden check-config` shows them.""",
        {
            Exit.CLEAR: "stopped cleanly, by SIGTERM or Ctrl-C",
            Exit.WRONG_USE: "it cannot start: a bad setting, or an address that is in use",
        },
        """\
examples:
  statewarden run /var/lib/kafka-streams
  statewarden run /var/lib/kafka-streams --spool /var/lib/statewarden \\
      --ship-to s3://bucket/prefix --config statewarden.toml

more: statewarden explain kubernetes, configuration, delivery,
watching""",
    ),
    "preflight": HelpPage(
        "check rights, mounts, limits, clock, spool and sink",
        "[OPTION ...] [STATE_DIR]",
        """\
Checks whether an agent can do its work here: rights, mounts, limits of inotify,
clock, spool and sink. Says what was found, and which line of which manifest to
change; the worst is last. Run it in the agent's container: it takes what is not
given from the environment, as the agent does.""",
        {Exit.CLEAR: "no check failed; a warning is no failure", Exit.FOUND: "a check failed"},
        """\
examples:
  statewarden preflight
  statewarden preflight /state --spool /var/lib/statewarden \\
      --ship-to s3://bucket/prefix

more: statewarden explain preflight, kubernetes""",
    ),
    "check-config": HelpPage(
        "print the effective settings, each with its origin",
        "[OPTION ...]",
        """\
Prints each setting with its value and where the value is from: flag,
environment, file or default. Every mistake is reported, all in one message.""",
        _PRINTS,
        """\
examples:
  statewarden check-config
  statewarden check-config --config statewarden.toml \\
      --properties streams.properties

more: statewarden explain configuration""",
    ),
    "verify": HelpPage(
        "compare stores with their changelogs, key by key",
        "[OPTION ...] --bootstrap-servers HOST:PORT,...\n       STATE_DIR",
        """\
Compares each RocksDB store with its changelog, key by key: the proof behind a
finding that is only suspected. Works beside a running application and on a
stopped one, and writes nothing into the state directory. No other command reads
an application's topics. Needs: pip install 'statewarden[verify]'""",
        {
            Exit.CLEAR: "no store has a word of --fail-on, and all were judged",
            Exit.FOUND: "at least one store has such a word",
            Exit.UNREAD: "a store is undecidable, or no broker answers",
        },
        """\
examples:
  statewarden verify /var/lib/kafka-streams --bootstrap-servers kafka:9092
  statewarden verify /var/lib/kafka-streams --bootstrap-servers kafka:9092 \\
      --application orders --task 0_1 --store counts --explain 5

more: statewarden explain verify""",
    ),
    "digest": HelpPage(
        "write fingerprints of stores for `statewarden-rollup verify`",
        "[OPTION ...] --output FILE STATE_DIR",
        """\
Writes one line per RocksDB store: the number of its entries, and fingerprints
of them. Another machine can then compare copies with each other and with their
changelogs. No content leaves the pod, no broker is asked, and nothing is
written into the state directory. Needs: pip install 'statewarden[verify]'""",
        {Exit.CLEAR: "every store has a digest", Exit.UNREAD: "a store has none: standard error says why"},
        """\
examples:
  statewarden digest /var/lib/kafka-streams --output pod-0.jsonl.gz

more: statewarden explain digests, statewarden-rollup verify --help""",
    ),
    "diff": HelpPage(
        "compare two state directories, store by store",
        "[OPTION ...] DIR_A DIR_B",
        """\
Compares two state directories, or two copies of one from different times, store
by store: which one is ahead, which one lacks data, and whether a store was
wiped in between.""",
        {
            Exit.CLEAR: "all stores are equal, and everything was read",
            Exit.FOUND: "they differ",
            Exit.UNREAD: "no difference, but not everything was read: see standard error",
        },
        """\
examples:
  statewarden diff before-restart after-restart
  statewarden diff /mnt/pod-0 /mnt/pod-1 --json

more: statewarden explain journeys""",
    ),
    "replay": HelpPage(
        "run a recorded trace through the same rules",
        "[OPTION ...] TRACE.jsonl.gz",
        """\
Plays recorded file operations through the rules of the live agent, by the
recording's own clock, and prints what an agent would have found. With --events
it also writes what the agent would have shipped, for `statewarden-rollup`.""",
        _FOUND,
        """\
examples:
  statewarden replay trace-pod-0.jsonl.gz --set kafka_streams_version=4.1.2
  statewarden replay trace-pod-0.jsonl.gz --pod pod-0 --events recorded-events

more: docs/evidence.md""",
    ),
}
"""By the name of the command, in the order of the list. Lines of `examples:` are commands."""
