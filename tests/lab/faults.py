"""Kafka Streams with a fault put in: single classes of a release, changed in one place, compiled, and found first.

A fault is what a wrong line in Kafka Streams would do, in the release's own source, which Maven has beside its jars.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.lab.toolbox import CACHE, jars, maven, run, tool

_STREAMS = "org/apache/kafka/streams"
_TASKS = f"{_STREAMS}/processor/internals"
_OFFSETS = f"{_STREAMS}/state/internals/AbstractColumnFamilyAccessor"


@dataclass(frozen=True, slots=True)
class Change:
    """One place of one class."""

    path: str  # of the class, in the source
    before: str  # text that is there once
    after: str  # what takes its place


_RESTORED = "Task.TaskType.ACTIVE && hasRestoredToEnd(changelogMetadata)"
_HIGHEST = """Long offset = null;
                for (final StateStoreMetadata other : stores.values()) {
                    if (other.changelogPartition != null && other.stateStore.persistent()) {
                        final Long its = other.stateStore.committedOffset(other.changelogPartition);
                        offset = offset == null || its != null && its > offset ? its : offset;
                    }
                }"""

FAULTS: dict[str, tuple[Change, ...]] = {
    "skip-wipe": (
        Change(f"{_TASKS}/ProcessorStateManager.java", "if (eosEnabled && !storeDirIsEmpty) {", "if (false) {"),
        Change(f"{_OFFSETS}.java", "if (ignoreInvalidState ||", "if (true ||"),
    ),
    "drop-segment": (
        Change(
            f"{_STREAMS}/state/internals/AbstractSegments.java",
            "segments.headMap(minLiveSegment, false).entrySet()",
            "(segments.size() < 3 ? segments.headMap(minLiveSegment, false)"
            " : segments.subMap(segments.firstKey(), false, segments.lastKey(), false)).entrySet()",
        ),
        Change(  # a tree's entry is another one once it was removed from the middle
            f"{_STREAMS}/state/internals/AbstractSegments.java",
            "toRemove.remove();\n            final S segment = next.getValue();",
            "final S segment = next.getValue();\n            toRemove.remove();",
        ),
    ),
    "other-offset": (
        Change(
            f"{_TASKS}/ProcessorStateManager.java",
            "changelogOffsetFromCheckpointedOffset(loadedCheckpoints.remove(store.changelogPartition))",
            "changelogOffsetFromCheckpointedOffset(java.util.Collections.max(loadedCheckpoints.values()))",
        ),
        Change(
            f"{_TASKS}/ProcessorStateManager.java",
            "final Long offset = store.stateStore.committedOffset(store.changelogPartition);",
            _HIGHEST,
        ),
    ),
    "delete-held": (
        Change(
            f"{_TASKS}/StateDirectory.java",
            "            if (!lockedTasksToOwner.containsKey(id)) {\n                try {\n"
            "                    if (lock(id)) {",
            "            {\n                try {\n                    {",
        ),
    ),
    "replay-twice": (
        Change(f"{_TASKS}/StoreChangelogReader.java", f"{_RESTORED})", f"{_RESTORED} && !again(partition))"),
        Change(
            f"{_TASKS}/StoreChangelogReader.java",
            "    private int restoreChangelog(",
            """    private final Set<TopicPartition> again = new HashSet<>();

    private boolean again(final TopicPartition partition) {
        final boolean isFirst = again.add(partition);
        if (isFirst) {
            restoreConsumer.seekToBeginning(Collections.singleton(partition));
        }
        return isFirst;
    }

    private int restoreChangelog(""",
        ),
    ),
}  # fmt: skip
"""Fault -> the changes that make it; of two for one class, only those that the release has the place for are made."""

CONDITIONS: dict[str, tuple[Change, ...]] = {
    # which thread gets an instance's standbys, and how long a callback takes, are chance: here files say it
    "steered-standbys": (
        Change(
            f"{_TASKS}/StreamsPartitionAssignor.java",
            "assignedStandbyList = interleavedStandby.get(consumerTaskIndex);",
            """assignedStandbyList = consumers.size() == 1 ? interleavedStandby.get(0)
                        : new java.io.File(System.getProperty("java.io.tmpdir"), "standbys-on-"
                            + consumer.replaceAll(".*-StreamThread-([0-9]+)-.*", "$1")).exists()
                            ? new ArrayList<>(state.standbyTasks()) : Collections.<TaskId>emptyList();""",
        ),
        Change(
            f"{_TASKS}/TaskManager.java",
            "void createTasks(final Collection<TopicPartition> assignment) {",
            """void createTasks(final Collection<TopicPartition> assignment) {
        while (Thread.currentThread().getName().endsWith("-StreamThread-1")
            && new java.io.File(System.getProperty("java.io.tmpdir"), "callback-waits").exists()) {
            java.util.concurrent.locks.LockSupport.parkNanos(10_000_000L);
        }""",
        ),
    ),
}
"""What no line of Kafka Streams does wrong: a course of events that it allows, made to happen."""


def planted_classes(fault: str, release: str) -> str:
    """Give the directory with the classes of a fault; fetches the source and compiles the first time.

    Raises:
        MissingToolError: there is no such source.
        ValueError: the release has no place for the fault.
    """
    changes = (FAULTS | CONDITIONS)[fault]
    digest = sha256(repr(changes).encode()).hexdigest()[:12]
    classes = CACHE / "classes" / f"planted-{fault}-{release}-{digest}"
    if (classes / "complete").is_file():
        return str(classes)
    classes.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(_source(release)) as source:
        texts = {x.path: source.read(x.path).decode() for x in changes if x.path in source.namelist()}
    made = 0
    for change in changes:
        if texts.get(change.path, "").count(change.before) == 1:
            texts[change.path] = texts[change.path].replace(change.before, change.after)
            made += 1
    if not made:
        raise ValueError(f"{release} has no place for {fault}")
    for path, text in texts.items():
        file = classes / "source" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    files = [str(classes / "source" / path) for path in texts]
    found = jars("kafka-streams", release)
    command = [tool("javac"), "-nowarn", "-Xlint:none", "-proc:none", "-cp", f"{found}/*", "-d", str(classes)]
    run([*command, *files], timeout_s=120)
    (classes / "complete").touch()
    return str(classes)


def _source(release: str) -> Path:
    home = CACHE / "sources"
    file = home / f"kafka-streams-{release}-sources.jar"
    if not file.is_file():
        artifact = f"-Dartifact=org.apache.kafka:kafka-streams:{release}:jar:sources"
        maven("copy", f"source of kafka-streams {release}", artifact, f"-DoutputDirectory={home}")
    return file
