"""`plan`: the script, run for real on recorded directories; on this machine, and through a kubectl of the test."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent.contract.codec import Encoder
from agent.contract.events import Affected, Confidence, Kind, Level, Origin, Record, Severity, Status
from agent.contract.finding import Finding
from agent.contract.units import Remedy

SET = ["--set", "kafka_streams_version=4.1.2", "--set", "processing_guarantee=exactly_once_v2",
       "--set", "num_standby_replicas=0"]  # fmt: skip
APPLICATION = "kafka-20685-4-1-2-014328"
DAMAGE = Finding(
    "a" * 16, "resurrected-checkpoint", Level.DAMAGE, Severity.CRITICAL, Confidence.CONFIRMED, Status.OPEN, APPLICATION,
    "0_0", "s", None, 1, None, (), Affected.YES, (), "Task 0_0: bad.", (),
    "Stop this instance, keep a copy of the task directory, remove that task directory only, start again.",
    "offset-without-data", remedy=Remedy.RESTORE,
)  # fmt: skip


ONE_LOOK = {"WATCH_FOR_S": "0"}
REALLY = f'exec {shlex.quote(sys.executable)} -m agent "$@"'
HOLD = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"


@pytest.fixture
def state(tmp_path: Path, repository: Path) -> Path:
    """Give a recorded state.dir with KAFKA-20685 in two of three tasks."""
    place = tmp_path / "the state"
    place.mkdir()
    with tarfile.open(repository / "tests/data/snapshots/kafka-20685-4.1.2.tar.gz") as packed:
        packed.extractall(place, filter="data")
    damaged, another = place / APPLICATION / "0_0", place / APPLICATION / "0_2"
    subprocess.run(["cp", "-a", damaged, another], check=True)
    checkpoint = another / ".checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("changelog 0 ", "changelog 2 "))
    for path in (checkpoint, another):
        subprocess.run(["touch", "-r", damaged / path.relative_to(another), path], check=True)
    return place


@dataclass
class Printed:
    """A script, its place, and what it runs with."""

    file: Path
    tmp_path: Path
    state: Path
    given: dict[str, str]

    def run(self, **given: str) -> subprocess.CompletedProcess[str]:
        """Fill in what is not known, as a person does, and run it; what is none of its variables is environment."""
        text, environment = self.file.read_text(), {**os.environ}
        for name, value in {**self.given, **given}.items():
            line = f"{name}={shlex.quote(value)}".replace("\\", r"\\")
            text, known = re.subn(rf"(?m)^{name}=.*$", line, text)
            if not known:
                environment[name] = value
        return subprocess.run(
            ["bash", "-c", text], env=environment, capture_output=True, text=True, check=False, timeout=400
        )

    @property
    def tasks(self) -> list[str]:
        return sorted(x.name for x in (self.state / APPLICATION).iterdir() if x.is_dir())

    def refuses(self, words: str, **given: str) -> None:
        """Run it and insist that it stops for this reason, with every task as it was and no copy."""
        ran = self.run(**given)
        assert ran.returncode == 1
        assert words in ran.stderr
        assert (self.tasks, self.copies) == (["0_0", "0_1", "0_2"], [])

    @property
    def copies(self) -> list[str]:
        return sorted(x.name for x in self.tmp_path.glob(f"copies/i-*/{APPLICATION}/*"))


def program(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/usr/bin/env bash\nset -eu\n{text}")
    file.chmod(0o755)


def answers(tmp_path: Path, repaired: str, scan: str = """echo '{"in_use": []}'; exit""") -> None:
    """Put a `statewarden` on the PATH that says of a scan that nobody works, and answers this to everything else."""
    program(tmp_path, "statewarden", f'if [ "$1" = scan ]; then {scan}; fi\n{repaired}\n')


def printed(said: str, tmp_path: Path, state: Path, **environment: str) -> Printed:
    script = tmp_path / "repair.sh"
    script.write_text(said)
    subprocess.run(["bash", "-n", script], check=True)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return Printed(
        script,
        tmp_path,
        state,
        {"PATH": path, "COPY_TO": str(tmp_path / "copies"), **ONE_LOOK, **environment},
    )


@pytest.fixture
def here(statewarden: Callable, tmp_path: Path, state: Path) -> Printed:
    """Give the script for this machine; `statewarden repaired` of its end says yes."""
    (one,) = (
        x for x in statewarden("scan", state, "--json", *SET).rows
        if x["line"] == "incident" and x["severity"] == "critical"
    )  # fmt: skip
    hint = statewarden("scan", state, *SET).out.partition("as a script: statewarden ")[2]
    words = shlex.split(hint.partition("\n    what an agent saw")[0].replace(" \\\n", ""))
    assert words == ["plan", one["id"], "--state-dir", str(state), *SET]
    said = statewarden(*words)
    assert (said.code, said.err) == (0, "")
    answers(tmp_path, "")
    return printed(said.out, tmp_path, state, STOP="true", START=f"touch '{tmp_path}/started'")


def test_it_removes_exactly_the_directories_of_all_its_tasks(here: Printed) -> None:
    """Both damaged tasks are copied, removed, and only then the instance is started; the third task is as it was."""
    whole = {x: x.read_bytes() for x in here.state.rglob("*") if x.is_file()}
    answers(here.tmp_path, f'printf "%s\\n" "$@" >"{here.tmp_path}/asked"', REALLY)
    ran = here.run()
    assert ran.returncode == 0, ran.stderr
    assert here.tasks == ["0_1"]
    assert here.copies == ["0_0", "0_2"]
    (kept,) = (here.tmp_path / "copies").iterdir()
    for file, content in whole.items():
        below = file.relative_to(here.state)
        there = kept if below.parts[1] in ("0_0", "0_2") else here.state
        assert (there / below).read_bytes() == content
    assert (here.tmp_path / "started").exists()
    asked = (here.tmp_path / "asked").read_text().split("\n")
    assert asked[:6] == [
        "repaired",
        kept.name,
        "--task",
        f"{APPLICATION}/0_0",
        "--task",
        f"{APPLICATION}/0_2",
    ]


@pytest.mark.parametrize("name", ["COPY_TO", "STOP", "START"])
def test_it_does_not_guess_what_is_not_known(here: Printed, name: str) -> None:
    """Without a variable that has no value nothing is stopped, copied or removed; none is taken from elsewhere."""
    os.environ[name] = "true"
    try:
        here.refuses(f"{name} is empty", **{name: ""})
    finally:
        del os.environ[name]


def test_it_stops_where_a_process_holds_a_lock(here: Printed) -> None:
    """Of any task of the application: then its process is there; what else is below the state hides none."""
    (here.state / "a]b" / "0_0").mkdir(parents=True)
    held = next(here.state.rglob("0_1/**/LOCK"))
    answers(here.tmp_path, "", REALLY)
    with subprocess.Popen([sys.executable, "-c", HOLD, held], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        here.refuses(f"a process works on {APPLICATION}, or may")
        holder.communicate("\n")


def test_it_stops_where_somebody_started_meanwhile(here: Printed) -> None:
    """A directory that is younger than the plan is not what the plan is about."""
    place = here.state / APPLICATION / "0_2" / "rocksdb"
    here.refuses("Nothing was removed.", STOP=f"touch -d '+1 hour' '{place}'")
    here.refuses("changed since", COPY_TO=str(here.tmp_path / "other"))


@pytest.mark.parametrize(
    ("change", "words"),
    [("echo 1 >>", "is not equal to it"), ("touch", "a directory changed while it was copied")],
)
def test_it_stops_where_a_directory_changes_while_it_is_copied(
    here: Printed, change: str, words: str
) -> None:
    """What is removed is what was copied, and nobody was at work meanwhile."""
    file = here.state / APPLICATION / "0_0" / ".checkpoint"
    program(here.tmp_path, "cp", f"{shutil.which('cp')} \"$@\"; {change} '{file}'\n")
    ran = here.run()
    assert ran.returncode == 1
    assert words in ran.stderr
    assert here.tasks == ["0_0", "0_1", "0_2"]


@pytest.mark.parametrize(("name", "words"), [("stat", "cannot be listed"), ("cksum", "is not equal to it")])
def test_what_cannot_be_compared_is_not_equal(here: Printed, name: str, words: str) -> None:
    """Two lists that are empty because they could not be made say nothing."""
    program(here.tmp_path, name, "exit 1\n")
    ran = here.run()
    assert (ran.returncode, words in ran.stderr, here.tasks) == (1, True, ["0_0", "0_1", "0_2"])


def test_half_a_directory_is_never_left(here: Printed) -> None:
    """A removal that fails half way leaves nothing that a start would take for the task."""
    half = """find "${@: -1}/rocksdb" -type f -delete; echo 'Input/output error' >&2; exit 1\n"""
    program(here.tmp_path, "rm", half)
    ran = here.run()
    assert ran.returncode == 1
    assert "the directories are out of its way" in ran.stderr
    assert here.tasks == ["0_0.removed", "0_1", "0_2.removed"]
    assert here.copies == ["0_0", "0_2"]


def test_nothing_is_started_before_all_are_gone(here: Printed) -> None:
    """Where only some could be taken away, the last words say which must go before the start."""
    program(here.tmp_path, "mv", f"""[[ $* != *0_2* ]] || exit 1; exec {shutil.which("mv")} "$@"\n""")
    ran = here.run()
    assert ran.returncode == 1
    assert f"Do not start before all of these are gone: {APPLICATION}/0_0 {APPLICATION}/0_2." in ran.stderr
    assert not (here.tmp_path / "started").exists()


def test_it_says_how_to_ask_again(here: Printed) -> None:
    """As a command that can be run as it is, where nothing is proved in time."""
    answers(here.tmp_path, "exit 3")
    said = here.run().stderr.partition("ask again: ")[2].splitlines()[0]
    assert shlex.split(said)[-2:] == ["--state-dir", str(here.state)]


def test_it_never_overwrites_a_copy(here: Printed) -> None:
    """A second run ends before it stops anything."""
    assert here.run().returncode == 0
    again = here.run(STOP="touch stopped")
    assert again.returncode == 1
    assert "no copy is overwritten" in again.stderr
    assert here.tasks == ["0_1"]


KUBECTL = r"""
shift 2  # -n shop
echo "$*" >>"$LOG"
case "$*" in
  "get statefulset pod "*readyReplicas*) echo "$READY" ;;
  "get statefulset pod "*spec.replicas*) echo 3 ;;
  "get statefulset pod "*securityContext*) echo '{"runAsUser":1000}' ;;
  "get statefulset pod -o yaml") printf 'kind: StatefulSet\nmetadata:\n  resourceVersion: "7"\n  name: pod\n' ;;
  "get pods "*) printf '%b' "$PODS" ;;
  "get pod pod-7 "*) echo "tmp data-pod-7" ;;
  "get pod pod-7") ;;
  "apply -f -") cat >"$LOG.pod" ;;
  "exec pod-7 -c statewarden -- "*) ;;
  "exec statewarden-i-"*)
    shift 3
    args=()
    for x in "$@"; do args+=("${x/#\/volume/$VOLUME}"); done
    "${args[@]}" ;;
  "delete "* | "wait "* | "create -f "*) ;;
  *) echo "unknown: $*" >&2; exit 9 ;;
esac
"""


def records(*findings: Finding, namespace: str = "shop") -> str:
    encoder = Encoder(Origin("uid", "boot", "pod-7", namespace=namespace))
    lines = (encoder.encode(Record(Kind.FINDING, 2_000 + n, x.body()), n) for n, x in enumerate(findings, 1))
    return "\n".join(lines) + "\n"


@pytest.fixture
def there(statewarden: Callable, tmp_path: Path, state: Path) -> Printed:
    """Give the script for a pod, from what its agent shipped, and a kubectl whose volume is the recorded directory."""
    both = [
        replace(DAMAGE, id=f"{task[2]:a<16}", task_id=task, incident_id="i-0000000000aa")
        for task in ("0_0", "0_2")
    ]
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "all.jsonl").write_text(records(*both))
    said = statewarden("plan", "i-0000000000aa", tmp_path / "events")
    assert (said.code, said.err) == (0, "")
    program(tmp_path, "kubectl", KUBECTL)
    return printed(
        said.out, tmp_path, state, LOG=str(tmp_path / "log"), VOLUME=str(tmp_path), READY="2",
        PODS="pod-6 data-pod-6\n", CLAIM="data-pod-7", STATE_IN_CLAIM="the state", PAUSED="yes",
    )  # fmt: skip


def test_it_works_on_the_claim_of_a_stopped_pod(there: Printed) -> None:
    """The controller goes without its pods, the pod in order; the copy is taken out before anything is removed."""
    ran = there.run()
    assert ran.returncode == 0, ran.stderr
    assert (there.tasks, there.copies) == (["0_1"], ["0_0", "0_2"])
    did = (there.tmp_path / "log").read_text()
    order = ["delete statefulset pod --cascade=orphan", "delete pod pod-7 ", "apply -f -", " tar -C ", " rm -r -- ",
             "delete pod statewarden-", "create -f ", "exec pod-7 -c statewarden -- statewarden repaired"]  # fmt: skip
    places = [did.index(words) for words in order]
    assert places == sorted(places)
    assert ("--force" in did, did.endswith(" --record\n")) == (False, True)
    assert did.rindex(" tar -C ") < did.index(" rm -r -- ")
    assert "resourceVersion" not in next((there.tmp_path / "copies").glob("*/set.yaml")).read_text()
    pod = (there.tmp_path / "log.pod").read_text()
    assert 'claimName: "data-pod-7"' in pod
    assert 'securityContext: {"runAsUser":1000}\n' in pod


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"READY": "1"}, "repair the others first"),
        ({"CLAIM": "data-pod-6"}, "pod-7 does not mount data-pod-6"),
        ({"PAUSED": ""}, "PAUSED is empty"),
        ({"PODS": "pod-9 x data-pod-7\n"}, "pod-9 mounts data-pod-7"),
    ],
)
def test_it_stops_where_the_cluster_is_not_as_it_must_be(
    there: Printed, given: dict[str, str], words: str
) -> None:
    """Other copies come first, the claim is the pod's, and nobody else works on it."""
    there.refuses(words, **given)


def test_it_needs_what_it_asks_at_its_end(here: Printed) -> None:
    """Before anything is stopped."""
    (here.tmp_path / "bin" / "statewarden").unlink()
    bare = here.tmp_path / "bare"
    bare.mkdir()
    for name in ("bash", "sh", "ls", "cat"):
        (bare / name).symlink_to(shutil.which(name) or "")
    here.refuses("statewarden is not on the PATH", PATH=f"{bare}")


@pytest.mark.parametrize(
    ("others", "left"), [("", ["0_0", "0_1", "0_2"]), ("perhaps", ["0_0", "0_1", "0_2"]), ("left", ["0_1", "0_2"]),
                         ("together", ["0_2"])]
)  # fmt: skip
def test_what_else_the_start_would_take_is_asked_for(
    statewarden: Callable, here: Printed, others: str, left: list[str]
) -> None:
    """Another open incident of the instance: its task goes in the same stop, or stays because a person said so."""
    events = here.tmp_path / "events"
    events.mkdir()
    first = replace(DAMAGE, identity=None)
    other = replace(first, id="b" * 16, task_id="0_1", detector="torn-store", mechanism="damaged-files")
    (events / "all.jsonl").write_text(records(first, other, namespace=""))
    here.file.write_text(statewarden("plan", DAMAGE.id, events, "--state-dir", here.state).out)
    assert f"# Also open here: i-{'b' * 12}, torn-store (critical) of 0_1." in here.file.read_text()
    ran = here.run(OTHERS=others, **ONE_LOOK)
    assert here.tasks == left, ran.stderr
    assert ("OTHERS is empty" in ran.stderr) is (others in ("", "perhaps"))


def test_an_undecided_task_is_asked_for_before_the_start(statewarden: Callable, tmp_path: Path) -> None:
    """It may be damaged: the start would take its directory as it is."""
    other = replace(
        DAMAGE, id="b" * 16, task_id=None, store=None, detector="undecided", severity=Severity.WARNING,
        level=Level.EXPOSURE, remedy=Remedy.OTHER, incident_id="i-0000000000bb", mechanism="not-told",
    )  # fmt: skip
    (tmp_path / "all.jsonl").write_text(records(DAMAGE, other, namespace=""))
    said = statewarden("plan", DAMAGE.id, tmp_path).out
    assert f"# Also open here: i-0000000000bb, undecided (warning) of {DAMAGE.application_id}." in said
    assert "OTHERS=''" in said


def test_another_pods_part_of_an_incident_is_named_and_not_removed(
    statewarden: Callable, tmp_path: Path
) -> None:
    """Here its task may be a sound copy."""
    other = replace(DAMAGE, id="b" * 16, task_id="0_1", detector="torn-store", mechanism="damaged-files",
                    incident_id="i-0000000000bb")  # fmt: skip
    elsewhere = records(replace(other, id="c" * 16)).replace('"pod-7"', '"pod-8"')
    (tmp_path / "all.jsonl").write_text(records(DAMAGE, other) + elsewhere)
    said = statewarden("plan", DAMAGE.id, tmp_path).out
    assert "# Also open here: i-0000000000bb" in said
    assert "OTHERS=''" in said
    assert "TASKS+=" not in said


@pytest.mark.parametrize("checked", ["", "yes"])
def test_a_check_of_a_person_comes_first(statewarden: Callable, tmp_path: Path, checked: str) -> None:
    """Where the step names one, the script does not run without its answer."""
    (tmp_path / "all.jsonl").write_text(records(replace(DAMAGE, remedy=Remedy.CHECK_FIRST), namespace=""))
    script = printed(statewarden("plan", DAMAGE.id, tmp_path).out, tmp_path, tmp_path, CHECKED=checked)
    assert ("CHECKED is empty" in script.run().stderr) is (checked == "")
    assert json.loads(records(DAMAGE))["data"]["remedy"] == "restore"


def test_the_damaged_store_must_still_be_there(there: Printed) -> None:
    """A store of another life is not the one that was found: it may be the restored one."""
    life = next((there.state / APPLICATION / "0_0").rglob("IDENTITY")).read_text().strip()
    there.refuses("the damaged store of task 0_0 is gone", STORES=f"0_0 {life[:-1]}x")
    assert there.run(STORES=f"0_0 {life}", COPY_TO=str(there.tmp_path / "copies" / "again")).returncode == 0
    assert there.tasks == ["0_1"]
