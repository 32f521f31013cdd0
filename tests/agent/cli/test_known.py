"""The last word about a finding is told by its time and its pod, not by the name of the file that it is in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record, Severity, Status
from agent.contract.finding import Finding
from tests.agent.cli.commands import PLAIN
from tests.agent.cli.test_plan import DAMAGE
from tests.agent.cli.test_repaired import good

OVER = replace(DAMAGE, status=Status.RESOLVED, resolved_at_us=3_000)
INCIDENT_ID = f"i-{'a' * 12}"


def say(place: Path, file: str, found: Finding, at_us: int, *, number: str = "1", **origin: str) -> None:
    """Ship what one agent says of a finding."""
    whose = Origin("uid", "boot", **{"pod": "pod-7", "namespace": "shop", **origin})
    (place / file).write_text(
        Encoder(whose).encode(Record(Kind.FINDING, at_us, found.body()), int(number)) + "\n"
    )


@pytest.mark.parametrize("files", [("a", "b"), ("b", "a")])
def test_what_was_said_last_counts(statewarden: Callable, tmp_path: Path, files: tuple[str, str]) -> None:
    """A pod that was made again has another uid, and segments below another name."""
    say(tmp_path, f"{files[0]}.jsonl", DAMAGE, 2_000)
    say(tmp_path, f"{files[1]}.jsonl", OVER, 4_000)
    assert "the incident is over" in statewarden("plan", INCIDENT_ID, tmp_path).err
    say(tmp_path, f"{files[0]}.jsonl", DAMAGE, 5_000)
    assert statewarden("plan", INCIDENT_ID, tmp_path).code == 0


def test_of_one_agent_the_sequence_says_what_was_last(statewarden: Callable, tmp_path: Path) -> None:
    """Its clock was set back."""
    say(tmp_path, "a.jsonl", OVER, 4_000, number="7")
    say(tmp_path, "b.jsonl", DAMAGE, 2_000, number="8")
    assert "(confirmed, open)" in statewarden("explain", INCIDENT_ID, "--events", tmp_path).out


@pytest.mark.parametrize("origin", [{"pod": "pod-8"}, {"namespace": "test"}, {"cluster": "eu-1"}])
def test_another_pods_end_ends_nothing(statewarden: Callable, tmp_path: Path, origin: dict[str, str]) -> None:
    """A volume that was cloned has the same findings, of the same ids."""
    say(tmp_path, "a.jsonl", DAMAGE, 2_000)
    say(tmp_path, "b.jsonl", OVER, 4_000, **origin)
    said = statewarden("explain", INCIDENT_ID, "--events", tmp_path)
    assert "(confirmed, open)" in said.out
    assert statewarden("plan", INCIDENT_ID, tmp_path).code == 0


def test_another_namespace_adds_nothing_to_a_script(statewarden: Callable, tmp_path: Path) -> None:
    """A StatefulSet has the same names in each: what is damaged in a test is sound here, perhaps the only copy."""
    say(tmp_path, "a.jsonl", DAMAGE, 2_000)
    elsewhere = replace(DAMAGE, id="b" * 16, task_id="0_5", opened_at_us=9)
    say(tmp_path, "b.jsonl", elsewhere, 2_000, namespace="test")
    said = statewarden("plan", INCIDENT_ID, tmp_path)
    assert (said.code, "0_5" in said.out) == (0, False)
    # the same incident: one step is for one namespace
    say(tmp_path, "b.jsonl", replace(elsewhere, incident_id=INCIDENT_ID), 2_000, namespace="test")
    said = statewarden("plan", INCIDENT_ID, tmp_path)
    assert "0_5" not in said.out
    assert "NAMESPACE=shop\n" in said.out
    assert f"{INCIDENT_ID}: this is of namespace shop; also in test" in " ".join(said.err.split())


def test_what_was_not_read_may_say_otherwise(statewarden: Callable, tmp_path: Path) -> None:
    """Another incident may come first, or the store be needed as it is; and what is over may have come again."""
    say(tmp_path, "a.jsonl", DAMAGE, 2_000)
    (tmp_path / "b.jsonl").write_text("{")
    said = statewarden("plan", INCIDENT_ID, tmp_path)
    assert (said.code, said.out) == (3, "")
    assert "1 event not read, the first" in said.err
    assert "no script: what was not read may say" in said.err
    state = good(tmp_path / "state")
    say(tmp_path, "a.jsonl", replace(OVER, application_id="app"), 4_000)
    said = statewarden("repaired", INCIDENT_ID, tmp_path, *PLAIN, "--state-dir", state)
    assert (said.code, "1 event not read, the first" in said.out) == (3, True)
    (tmp_path / "b.jsonl").unlink()
    assert statewarden("repaired", INCIDENT_ID, tmp_path, *PLAIN, "--state-dir", state).code == 0


def test_what_another_pod_is_to_remove_is_not_removed_here(statewarden: Callable, tmp_path: Path) -> None:
    """Two incidents of the same two pods: the tasks of the second one's step may be those of the other pod."""

    def told(id_: str, incident: str, task: str, severity: Severity) -> Finding:
        return replace(DAMAGE, id=id_ * 16, incident_id=incident, task_id=task, severity=severity)

    loud, quiet = Severity.CRITICAL, Severity.WARNING
    say(tmp_path, "1.jsonl", told("a", "i-0000000000aa", "0_1", loud), 2_000)
    say(tmp_path, "2.jsonl", told("b", "i-0000000000aa", "0_2", quiet), 2_000, pod="pod-8")
    say(tmp_path, "3.jsonl", told("c", "i-0000000000cc", "0_3", loud), 2_000, pod="pod-8")
    say(tmp_path, "4.jsonl", told("d", "i-0000000000cc", "0_4", quiet), 2_000)
    here = statewarden("plan", "i-0000000000aa", tmp_path).out
    assert ("POD=pod-7\n" in here, "TASKS=(0_1)" in here, "Also open here: i-0000000000cc" in here) == (
        True,
    ) * 3
    assert "together" not in here
    say(tmp_path, "4.jsonl", told("d", "i-0000000000cc", "0_4", loud), 1_000)
    say(tmp_path, "3.jsonl", told("c", "i-0000000000cc", "0_3", quiet), 2_000, pod="pod-8")
    assert "together: also copy and remove 0_4 in" in statewarden("plan", "i-0000000000aa", tmp_path).out


def count(place: Path, at_us: int, number: int, *ids: str, boot: str = "boot", pod: str = "pod-7") -> None:
    """Ship what an agent counts as open and critical."""
    body = {"open_criticals": len(ids), "open_warnings": 0, "open_ids": list(ids)}
    beat = Record(Kind.HEARTBEAT, at_us, {**body, "blind": [], "applications": [], "tasks": 1})
    line = Encoder(Origin(pod, boot, pod, "shop")).encode(beat, number)
    (place / f"beat-{pod}-{boot}-{number}.jsonl").write_text(f"{line}\n")


def test_what_a_later_heartbeat_no_longer_names_is_over(statewarden: Callable, tmp_path: Path) -> None:
    """The event of its end is lost; a heartbeat of another boot may have forgotten it."""
    say(tmp_path, "a.jsonl", DAMAGE, 2_000, number="5")
    count(tmp_path, 1_000, 4)
    count(tmp_path, 9_000, 1, boot="other")
    assert "(confirmed, open)" in statewarden("explain", INCIDENT_ID, "--events", tmp_path).out
    count(tmp_path, 3_000, 6)
    assert "(confirmed, resolved" in statewarden("explain", INCIDENT_ID, "--events", tmp_path).out


def test_a_heartbeat_that_is_spelled_otherwise_counts_as_much(statewarden: Callable, tmp_path: Path) -> None:
    """Something on the way wrote its keys in another order; the newest counts, whatever comes last."""
    say(tmp_path, "a.jsonl", DAMAGE, 2_000, number="5")
    for number, ids in ((6, ()), (4, (DAMAGE.id,))):
        count(tmp_path, number * 500, number, *ids)
        beat = tmp_path / f"beat-pod-7-boot-{number}.jsonl"
        told = json.loads(beat.read_text())
        told["data"] = dict(reversed(told["data"].items()))
        beat.rename(beat.with_stem(f"{9 - number}")).write_text(f"{json.dumps(told)}\n")
    assert "(confirmed, resolved" in statewarden("explain", INCIDENT_ID, "--events", tmp_path).out


def test_what_is_counted_and_not_there_is_said(statewarden: Callable, tmp_path: Path) -> None:
    """Its event is lost: it may come first, or be of the task that is asked about."""
    say(tmp_path, "a.jsonl", DAMAGE, 2_000, number="5")
    count(tmp_path, 3_000, 6, DAMAGE.id, "f" * 16)
    said = statewarden("explain", DAMAGE.application_id, "--events", tmp_path)
    assert (said.code, "pod-7: its agent counts 1 open finding that is not in" in said.err) == (3, True)
    assert statewarden("plan", INCIDENT_ID, tmp_path).code == 3
    say(tmp_path, "b.jsonl", replace(OVER, id="f" * 16, application_id="other"), 4_000, number="7")
    assert statewarden("explain", DAMAGE.application_id, "--events", tmp_path).code == 0


@pytest.mark.parametrize(("gone", "others"), [(True, False), (True, True), (False, False)])
def test_a_volume_that_moved_takes_its_findings_with_it(
    statewarden: Callable, tmp_path: Path, *, gone: bool, others: bool
) -> None:
    """The pod that is gone had the incident open for good; two that show a store at one time have copies."""
    second = 1_000_000
    say(tmp_path, "a.jsonl", replace(DAMAGE, identity="\udcffone"), 100 * second, number="5")
    count(tmp_path, 120 * second, 6, DAMAGE.id)
    count(tmp_path, 900 * second, 9, pod="pod-z")
    if others:
        say(tmp_path, "b.jsonl", replace(OVER, identity="\udcffone"), 500 * second, pod="pod-z", number="3")
    body = {"task_id": DAMAGE.task_id, "source": "timer", "stores": [{"store": "s", "identity": "\udcffone"}]}
    shown = Record(Kind.SUMMARY, (400 if gone else 100) * second, body)
    line = Encoder(Origin("uid", "boot", "pod-z", "shop")).encode(shown, 2)
    (tmp_path / "c.jsonl").write_text(f"{line}\n")
    said = statewarden("explain", DAMAGE.application_id, "--events", tmp_path)
    (row,) = [x for x in said.out.splitlines() if x.startswith(INCIDENT_ID)]
    assert ("resolved" if others else "open", "pod-z" if gone else "pod-7") == (
        row.split()[1],
        row.split()[7],
    )
    assert said.code == 0


@pytest.mark.parametrize("left", ["_audit.json", "incidents.jsonl"])
def test_an_output_that_is_not_whole_is_no_directory_of_segments(
    statewarden: Callable, tmp_path: Path, left: str
) -> None:
    """Its audit was killed while it put the files in place."""
    (tmp_path / left).touch()
    said = statewarden("explain", INCIDENT_ID, "--events", tmp_path)
    assert (said.code, "run an audit again" in said.err) == (3, True)
