"""Upstream issues: affected releases and where the fix shipped. Data; the only release numbers of the detectors.

Where an issue is a property of releases, the releases are those of the fact in `agent/layout/facts.py`.

Source: docs/state-format.md#bugs and docs/state-format.md#hazards-without-an-issue; releases are those of Kafka's tags.
"""

from __future__ import annotations

from agent.judging.base import Upstream
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import ReleaseRange

_between, _since, _until = ReleaseRange.between, ReleaseRange.since, ReleaseRange.until
KAFKA_5998 = Upstream("KAFKA-5998", FACTS[Fact.FOREIGN_ENTRIES].holds, "2.2.2 and 2.3.1")
KAFKA_6647 = Upstream("KAFKA-6647", (_until("2.4.x"),), "2.5.0")
KAFKA_7192 = Upstream("KAFKA-7192", (_until("2.0.0"),), "2.0.1 and 2.1.0")
KAFKA_7672 = Upstream("KAFKA-7672", (_between("2.0.1", "2.1.1"),), "2.2.0")
KAFKA_8187 = Upstream("KAFKA-8187", FACTS[Fact.UNINITIALIZED_STANDBY_RUNS].holds, "2.2.2 and 2.3.0")
KAFKA_8574 = Upstream("KAFKA-8574", (_between("2.0.1", "2.1.1"),), "2.6.0 reads under the lock")
KAFKA_9891 = Upstream("KAFKA-9891", (_until("2.5.0"),), "2.5.1 and 2.6.0")
KAFKA_10362 = Upstream("KAFKA-10362", FACTS[Fact.CHECKPOINT_KEPT_AT_RESUME].holds, "2.6.2 and 2.7.0")
KAFKA_16017 = Upstream(
    "KAFKA-16017",
    (
        # 2.7: only where a processor's close throws, so that postCommit is passed over
        _between("2.6.0", "2.7.x"),
        _between("2.8.2", "2.8.x"),
        _between("3.0.1", "3.5.2"),
        _between("3.6.0", "3.6.1"),
    ),
    "3.6.2 and 3.7.0",
)
KAFKA_19943 = Upstream(
    "KAFKA-19943", (ReleaseRange(),), "not fixed; 4.3 can purge old directories at start (KIP-1259)"
)
KAFKA_20416 = Upstream(
    "KAFKA-20416", (_since("2.6.0"),), "not fixed in 4.2.2; proposed on 2026-09-02 (pull request 23339)"
)
KAFKA_20663 = Upstream("KAFKA-20663", FACTS[Fact.OLDEST_SEGMENT_OFFSET].holds, "4.3.1")
KAFKA_20685 = Upstream(
    "KAFKA-20685",
    (_between("3.8.0", "4.1.2"), _between("4.2.0", "4.2.1")),
    "4.2.2; on the 4.1 branch since 2026-08-21; 4.3 keeps offsets in the store",
)
KAFKA_20805 = Upstream(
    "KAFKA-20805", FACTS[Fact.CLEANER_SEES_CREATION_TIME].holds, "4.4.0, and on the 4.3 branch"
)
KAFKA_21034 = Upstream(
    "KAFKA-21034", (_since("4.3.0"),), "not fixed; a fix was proposed on 2026-09-07 (pull request 23390)"
)
KIP_1035 = Upstream("KIP-1035", FACTS[Fact.OFFSETS_IN_STORE].holds, "by design since 4.3.0")
TORN_DELETION = Upstream(
    "torn deletion (no upstream issue)",
    (_until("4.2.x"),),
    "not fixed; from 4.3 on stores of one database are restored in full",
)
TORN_FILES = Upstream("torn deletion (no upstream issue)", (ReleaseRange(),), "not fixed")
INTERRUPTED_WIPE = Upstream(
    "interrupted wipe (no upstream issue)",
    (_between("3.8.0", "4.3.x"),),
    "4.4.0 takes the offset away first (KAFKA-20489); not fixed in 4.2.2 and 4.3.1",
)
INTERRUPTED_STOP = Upstream("interrupted stop (no upstream issue)", (_since("3.4.0"),), "not fixed in 4.4.0")
FALSE_CLEAN = Upstream("false clean status (no upstream issue)", (_since("4.3.0"),), "not fixed")
UNWIPED = Upstream(
    "wipe skipped with transactional stores (no upstream issue)",
    FACTS[Fact.TRANSACTIONAL_STORES].holds,
    "not fixed in 4.4.0",
)
REFUSED_OPEN = Upstream(
    "open status refused with transactional stores (no upstream issue)",
    FACTS[Fact.TRANSACTIONAL_STORES].holds,
    "not fixed in 4.4.0",
)
LEAKED_SEGMENT = Upstream(
    "leaked segment (no upstream issue)",
    (_between("4.3.0", "4.3.1"), _between("4.4.0", "4.4.0")),
    "not fixed in 4.4.0; later releases were not checked",
)
LOST_SEGMENT = Upstream(
    "lost segments (no upstream issue)",
    FACTS[Fact.SEGMENT_ANSWERS_FOR_STORE].holds,
    "not fixed in 4.3.1 and 4.4.0; later releases were not checked",
)
REVIVED_TASK = Upstream(
    "offset of a revived task (no upstream issue)",
    (_between("2.8.2", "2.8.x"), _between("3.0.1", "4.3.x")),
    "4.4.0; not fixed in 4.2.2 and 4.3.1",
)
OFFSET_MEANING = Upstream(
    "meaning of the offset in a checkpoint (no upstream issue)", FACTS[Fact.OFFSET_IS_LAST].holds, "not fixed"
)
OVERLAY = Upstream("restore over old files (no upstream issue)", (_since("2.6.0"),), "not fixed")
