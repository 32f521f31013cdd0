"""`safe-to-restart`: what one pod can tell, and never more."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.commands import PLAIN, plant
from tests.agent.cli.test_repaired import ASKED, good

SNAPSHOTS = Path(__file__).parents[2] / "data" / "snapshots"
EOS = ("--set", "processing_guarantee=exactly_once_v2", "--set", "num_standby_replicas=0")


def test_one_pod_never_says_safe(statewarden: Callable, tmp_path: Path) -> None:
    """Nothing is wrong here, and nothing is known of the other pods: safe only where there are none."""
    said = statewarden("safe-to-restart", good(tmp_path), *PLAIN)
    assert said.code == 3
    assert said.out.startswith("unknown: whether other pods have a copy was not checked")
    alone = statewarden("safe-to-restart", "--one-instance", tmp_path, *PLAIN)
    assert (alone.code, alone.out.partition(",")[0]) == (0, "safe")


def test_what_was_not_looked_for_is_named(statewarden: Callable, damaged: Path) -> None:
    """An answer of fewer detectors is none that proves a repair, where the incident's own may be missing."""
    off = ("--disable-detector", "resurrected-checkpoint=a backup")
    said = statewarden("safe-to-restart", "--one-instance", damaged, *PLAIN, *off)
    assert said.out.endswith("\ndisabled detectors, not checked: resurrected-checkpoint\n")
    said = statewarden(*ASKED, damaged, *off)
    assert (said.code, "resurrected-checkpoint is disabled" in said.out) == (3, True)


def test_nothing_there_is_not_safe(statewarden: Callable, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "kafka-streams-process-metadata").write_text("{}")
    said = statewarden("safe-to-restart", "--one-instance", tmp_path, *PLAIN)
    assert said.code == 3
    assert "no task is there" in said.out


def test_damage_counts_whatever_others_have(statewarden: Callable, tmp_path: Path) -> None:
    """The answer names the task, and the incident with its step follows."""
    plant(tmp_path)
    for more in ((), ("--one-instance",)):
        said = statewarden("safe-to-restart", *more, tmp_path, *PLAIN)
        assert said.code == 1
        assert said.out.startswith("damaged: app/0_0. Follow the step below")
        assert "\n    next: " in said.out


def test_what_the_disk_keeps_no_time_of_was_seen_now(statewarden: Callable, tmp_path: Path) -> None:
    """As `scan` says it: it is not known since when."""
    with tarfile.open(SNAPSHOTS / "torn-clean-3.9.2.tar.gz") as packed:
        packed.extractall(tmp_path, filter="fully_trusted")
    said = statewarden("safe-to-restart", tmp_path)
    assert "\n    seen at 20" in said.out


@pytest.mark.parametrize(
    ("settings", "code", "expected"),
    [
        # at-least-once keeps what a crash left
        ((), 3, "unknown: 1 incident open, see below.\n\nUNDECIDED"),
        (("--disable-detector", "undecided=noise"), 3, "unknown: undecided: processing_guarantee not given."),
        # the fleet says `damaged`, too: the step comes before a restart
        ((*EOS, "--set", "kafka_streams_version=4.1.2"), 1, "damaged, suspected: kafka-20685-4-1-2"),
    ],
)
def test_a_doubt_is_not_safe(
    statewarden: Callable, tmp_path: Path, settings: tuple[str, ...], code: int, expected: str
) -> None:
    with tarfile.open(SNAPSHOTS / "kafka-20685-4.1.2.tar.gz") as packed:
        packed.extractall(tmp_path, filter="fully_trusted")
    said = statewarden("safe-to-restart", "--one-instance", tmp_path, *settings)
    assert said.code == code
    assert said.out.startswith(expected)
    read = statewarden("scan", tmp_path, *settings)
    assert read.code == code
    assert "no incidents found" not in read.out
