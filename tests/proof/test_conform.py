"""Every recorded task is a run of the model of its era, and of no other era's where they differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.evaluate.run import TRACES
from tests.proof.conform import accepts, sketched
from tests.proof.eras import (
    ALOS_2_1,
    ALOS_2_3,
    ALOS_3_8,
    ALOS_4_3,
    ALOS_4_3_0,
    EOS_2_1,
    EOS_2_3,
    EOS_3_6_2,
    EOS_3_8,
    EOS_4_2_2,
    EOS_4_3,
    Era,
)
from tests.proof.recorded import histories
from tests.proof.recorded_segments import words_of

NOT_A_RUN = {
    ("benign-window-expiry-3.9.2", "0_0"): "a windowed store is opened with its first segment only",
    ("benign-window-expiry-3.9.2", "0_1"): "a windowed store is opened with its first segment only",
    **{
        (f"changelog-truncated-{release}", task): "its changelog was cut: the model has no offset out of range"
        for release in ("3.9.2", "4.3.1")
        for task in ("0_0", "0_1")
    },
    **{
        (recording, "0_0"): "several stores, of which one has two segments, each with an offset of its own"
        for recording in (
            "lost-segment-close-join-4.3.1", "lost-segment-join-4.3.0", "lost-segment-session-4.3.1",
        )
    },
    ("startup-leaked-segment-4.4.0", "0_0"): "threads are replaced, and wipe it again and again",
    **{
        ("kafka-8187-stage2-2.0.1", f"0_{task}"): "the cleaner deletes it while it is made again (KAFKA-8187)"
        for task in range(4)
    },
    ("benign-close-while-restoring-4.3.1", "0_1"): "one of two stores is refused, the other is opened",
    ("benign-corrupt-kill-4.4.0", "0_0"): "killed between the closes of two stores",
    ("revived-table-4.3.1", "1_0"): "a table that reads its source topic again stores no offset",
    ("control-torn-clean-4.3.1", "0_1"): "files of a torn store are left: RocksDB does not open it at once",
    ("torn-clean-wal-4.3.1", "0_0"): "files of a torn store are left: RocksDB does not open it at once",
    ("torn-clean-wal-4.3.1", "0_1"): "the start-up pass fails at the torn store of another task",
}  # fmt: skip
"""(recording, task) -> why the model has no such life."""


@cache
def recorded() -> dict[tuple[str, str, str], tuple[Era, tuple]]:
    """(recording, pod, task) -> its era and its words, of every recording of one release.

    Up to 2.5 stores of a task are wiped and restored one after another: only tasks with one store. From 4.3 on a
    windowed store with two segments has words for each.
    """
    found = {}
    for path in sorted(TRACES.glob("*/scenario.json")):
        scenario = json.loads(path.read_text("utf-8"))
        releases = {
            scenario["kafka_streams_version"],
            *(x for pod in scenario["pods"] for x in pod.get("versions", [])),
        }
        release = min(releases)
        if len(releases) > 1:
            continue
        transactional = scenario["properties"].get("enable.transactional.statestores") == "true"
        era = Era(release, release, eos=scenario["guarantee"] != "at_least_once", transactional=transactional)
        for pod in scenario["pods"]:
            for task, history in histories(Path(path.parent, pod["trace"]), era).items():
                if not history.stores or (era.old and len(history.stores) > 1):
                    continue
                of_task, words = era, tuple(word for _, word in history.words)
                if era.in_store and is_of_two_segments(history.stores):
                    of_task, words = two_segments(era), words_of(Path(path.parent, pod["trace"]))
                found[scenario["id"], pod["name"], task.rpartition("/")[2]] = of_task, words
    return found


def is_of_two_segments(folders: set[str]) -> bool:
    """Two databases of one windowed store."""
    parents = {folder.rpartition("/")[0] for folder in folders}
    return len(folders) == 2 and len(parents) == 1 and parents != {"rocksdb"}


def two_segments(era: Era) -> Era:
    return replace(era, windowed=True, segments=2)


@cache
def understood(era: Era, text: tuple) -> int | None:
    """The same words of the same release are followed once."""
    return accepts(era, text)


@pytest.mark.slow
def test_recorded_tasks_are_runs_of_the_model():
    """Each is accepted, or listed with its reason."""
    rejected = {
        (recording, task)
        for (recording, _, task), (era, words) in recorded().items()
        if understood(era, tuple(sketched(words))) is not None
    }
    assert rejected == set(NOT_A_RUN)
    assert len(recorded()) >= 411


def runs_of(other: Era, which: Callable[[Era], bool]) -> tuple[int, int]:
    """Count recorded tasks of some releases, and how many of them another era would accept."""
    chosen = [tuple(sketched(words)) for era, words in recorded().values() if which(era)]
    return sum(understood(other, text) is None for text in chosen), len(chosen)


@pytest.mark.slow
def test_the_oldest_segment_answers_on_4_3_0_only():
    """KAFKA-20663: the pass after the kill gives an offset of before; 4.3.1 asks the newest segment."""
    ((_, words),) = (x for (name, _, _), x in recorded().items() if name == "kafka-20663-segments-4.3.0")
    up_to_the_pass = tuple(sketched(words[: words.index(("kill",)) + 3]))
    assert up_to_the_pass[-1] == ("pass", "back")
    assert accepts(two_segments(ALOS_4_3_0), up_to_the_pass) is None
    assert accepts(two_segments(ALOS_4_3), up_to_the_pass) == len(up_to_the_pass) - 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "which", "most", "of"),
    [
        (EOS_3_6_2, lambda x: x.eos and x.kept and not x.in_store, 1, 140),
        (ALOS_3_8, lambda x: x.eos and x.kept and not x.in_store, 10, 140),
        (EOS_3_8, lambda x: not x.eos and x.updater and not x.in_store, 20, 56),
        (EOS_3_8, lambda x: x.stale_recorder, 9, 15),
        (EOS_3_6_2, lambda x: x.stale_recorder, 10, 15),
        (EOS_4_2_2, lambda x: x.eos and x.kept and not x.in_store, 144, 146),
        (EOS_3_8, lambda x: x.in_store, 0, 116),
        (EOS_4_3, lambda x: x.in_store and not x.eos, 38, 55),
        (EOS_4_3, lambda x: x.transactional, 4, 10),
        (ALOS_4_3, lambda x: x.in_store and x.eos and not x.transactional, 33, 51),
        (EOS_2_3, lambda x: x.old and x.eos and x.closes_first, 0, 9),
        (EOS_2_1, lambda x: x.old and x.eos and not x.closes_first, 0, 12),
        (ALOS_2_3, lambda x: x.old and not x.eos and x.closes_first, 0, 11),
        (ALOS_2_1, lambda x: x.old and not x.eos and not x.closes_first, 0, 28),
    ],
)
def test_another_era_rejects_it(other, which, most, of):
    """What tells eras apart is in the recordings; the row of 4.2.2 is weak: most runs could be a standby's."""
    accepted, count = runs_of(other, which)
    assert accepted <= most
    assert count >= of
