"""`safe-to-restart --from`: answers from what an audit left, without Spark and Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_rollup import __version__
from spark_rollup.cli import main
from spark_rollup.report import last_audit, restart_answer
from spark_rollup.report.restart_answer import Known, Question
from spark_rollup.spark.outputs import MARKER, NEXT
from tests.spark_rollup.conftest import LATER_US
from tests.spark_rollup.report.page.page_rows import answer

ROW = answer(restore_bytes=5000)
PODS = [{"namespace": "shop", "pod": name, "doubt": None, "gone": False} for name in ("pod-a", "pod-b")]
MINUTE_US = 60_000_000
WRITTEN, LATER = "2027-12-23T11:06:41.000000Z", "2027-12-24T00:00:00.000000Z"


def audited(place: Path, age_us: int = MINUTE_US) -> Path:
    """Leave what an audit leaves, as far as it is read here."""
    place.mkdir(parents=True)
    disabled = [{"namespace": "shop", "pod": "pod-b", "detector": "torn-store"}]
    last_audit.write(Known([ROW], PODS, disabled, LATER_US - age_us), WRITTEN, place)
    (place / MARKER).write_text(json.dumps({"written": WRITTEN, "version": __version__}))
    return place


@pytest.mark.parametrize(
    ("pod", "code", "said"),
    [
        ("pod-a", 1, "pod-a: restore: no other copy: the task will be rebuilt from the changelog"),
        ("pod-b", 0, "disabled detectors, not checked: torn-store"),
    ],
)
def test_a_pod_is_answered_for(tmp_path, capsys, pod, code, said):
    """The first line has the age and the directory; then come the same lines and exit codes as from the events."""
    out = audited(tmp_path / "out")
    assert main(["safe-to-restart", "--from", str(out), "--pod", pod]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("as of ")
    assert lines[0].endswith(f" UTC, 60 s old, by the audit in {out}")
    assert lines[1].startswith(said)


def test_what_is_not_asked_where_the_other_copy_is_held_is_named():
    """A damaged copy there counts as healthy."""
    row = answer(kinds=["safe"], healthy_elsewhere=["pod-b"])
    disabled = [{"namespace": "shop", "pod": "pod-b", "detector": "torn-store"}]
    lines, _ = restart_answer.answer(Known([row], PODS, disabled, LATER_US), Question(LATER_US, "pod-a"))
    assert "disabled detectors, not checked: torn-store" in lines


def test_all_pods_are_answered_for(tmp_path, capsys):
    """Without `--pod`, one table."""
    assert main(["safe-to-restart", "--from", str(audited(tmp_path / "out"))]) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["pod", "answer"], ["pod-a", "restore"], ["pod-b", "safe"]]


def test_an_old_audit_answers_nothing(tmp_path, capsys):
    """What is older than `--max-age` is said, and every answer is `unknown`."""
    out = audited(tmp_path / "out", age_us=31 * MINUTE_US)
    assert main(["safe-to-restart", "--from", str(out), "--pod", "pod-b"]) == 3
    told = capsys.readouterr().out
    assert f"31 min old, by the audit in {out}: too old to answer (limit 15 min: --max-age)" in told
    assert "pod-b: unknown: too old; it was safe" in told
    assert main(["safe-to-restart", "--from", str(out), "--pod", "pod-b", "--max-age", "45m"]) == 0


def broken(out: Path, what: str) -> None:
    """Damage an output in one way."""
    path = out / last_audit.FILE
    if what == "being written":
        (out / NEXT).mkdir()
        (out / MARKER).rename(out / NEXT / MARKER)
    elif what == "never finished":
        (out / MARKER).unlink()
    elif what == "older":
        path.unlink()
    elif what == "other version":
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "0.0.9"}))
    elif what == "older beside it":
        (out / MARKER).write_text('{"version": "0.0.9", "watermark": "2027-12-24T00:00:00.000000Z"}')
    elif what == "another beside it":
        (out / MARKER).write_text(
            json.dumps({"version": __version__, "written": "later", "watermark": LATER})
        )
    elif what == "marker is damaged":
        (out / MARKER).write_text("{")
    elif what == "damaged":
        path.write_text("[")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("being written", "an audit is writing its report there; retry"),
        ("never finished", "holds no finished audit (_SUCCESS.json is missing)"),
        ("older", f"no audit of this version ({__version__}) wrote there; run one"),
        (
            "other version",
            f"was written by version 0.0.9, this is {__version__}: run an audit with this version",
        ),
        (
            "older beside it",
            "restarts.json and the tables beside it are not of one audit (2027-12-23T11:06:41Z, and one of version "
            "0.0.9 up to 2027-12-24T00:00:00Z)",
        ),
        ("another beside it", "and another one up to 2027-12-24T00:00:00Z): run an audit with this version"),
        ("marker is damaged", "is damaged; run an audit again"),
        ("damaged", "restarts.json or _SUCCESS.json is damaged; run an audit again"),
    ],
)
def test_what_is_no_whole_audit_is_no_answer(tmp_path, capsys, what, message):
    """No answer is given from half a report, or from one of another version."""
    broken(audited(tmp_path / "out"), what)
    unread = ("being written", "damaged", "marker is damaged")
    code = 3 if what in unread else 2
    assert main(["safe-to-restart", "--from", str(tmp_path / "out")]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("absent", "absent does not exist; give the --output of an audit"),
        ("file", "file is not a directory; give the --output of an audit"),
        ("s3a://bucket/out", "--from must be a directory, not s3a://"),
    ],
)
def test_a_wrong_place_is_code_2(tmp_path, monkeypatch, capsys, place, message):
    """A place that no audit wrote to is named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["safe-to-restart", "--from", place]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        ["--as-of", "2026-11-18"],
        ["--look-back", "3"],
        ["--set", "num_standby_replicas=1"],
        ["--verified", "out"],
    ],
)
def test_what_only_an_audit_can_follow_is_refused(tmp_path, capsys, given):
    """An option that would change the answer is not passed over in silence."""
    assert main(["safe-to-restart", "--from", str(audited(tmp_path / "out")), *given]) == 2
    assert f"{given[0]} with --from: the audit is over" in capsys.readouterr().err


def test_an_unknown_pod_is_code_2(tmp_path, capsys):
    """A pod that the audit did not know is no safe pod."""
    assert main(["safe-to-restart", "--from", str(audited(tmp_path / "out")), "--pod", "pod-c"]) == 2
    assert "no event of pod pod-c; known: pod-a, pod-b" in capsys.readouterr().err


def test_neither_spark_nor_java_is_needed(tmp_path):
    """In a process where pyspark cannot be imported and no Java is to be found, the answer is the same."""
    out = audited(tmp_path / "out")
    code = "import sys; sys.modules['pyspark'] = None; from spark_rollup.cli import main; sys.exit(main(sys.argv[1:]))"
    environment: Mapping[str, str] = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "", "JAVA_HOME": ""}
    command = [sys.executable, "-c", code, "safe-to-restart", "--from", str(out), "--max-age", "any"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert (done.returncode, done.stderr) == (1, "")
    assert "pod-a  restore" in done.stdout
