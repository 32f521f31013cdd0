"""A backup is put back, a file at a time, under the eyes of an agent that saw the directory before and its end."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Status
from tests.support.scenario import Scenario
from tests.support.scenario_benign import EOS, again, fresh, quiet, scenario, stop, works


def put_back(run: Scenario, *, renamed: bool, until: str = "", pause_s: float = 0) -> None:
    """Everything goes, and is copied to its place in order of names, `.checkpoint` before the stores, without times.

    `until`: the copy is held up before the first file of this name. `pause_s`: how long each file takes.
    `renamed`: as rsync does it, each file is written under a name of its own.
    """
    world = run.world
    names = ["app", *sorted(run.everything("app"))]
    files = {x: world.disk.read_at(x, 0, 1 << 20) for x in names}
    run.app.delete_tree("app")
    run.wait(70)
    for path, content in files.items():
        if until and path.endswith(f"/{until}"):
            return
        run.wait(pause_s)
        if not isinstance(content, bytes):
            world.mkdir(path)
        elif renamed:
            world.replace(path, content, f"{path.rpartition('/')[0]}/.{path.rpartition('/')[2]}.Ab12Cd")
        else:
            world.write(path, content)


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2", "4.1.2", "4.3.1"])
def test_backup_is_put_back(release, guarantee, renamed):
    """What the earlier directory held, and when it went, says nothing of the copy."""
    run = scenario(release, guarantee)
    stop(fresh(run), 1000)
    put_back(run, renamed=renamed)
    run.wait(90)
    stop(again(run, 1000), 1000)
    run.wait(90)
    works(again(run, 1000), 500, total=1500)
    said = [x.body for x in run.world.records if x.kind.value == "finding"]
    exposed = {
        "severity": "warning",
        "detector": "stale-eos-checkpoint",
    }  # a true one, of the runs before and after
    assert [x["summary"] for x in said if x["severity"] != "info" and not exposed.items() <= x.items()] == []
    quiet(run, but=("stale-eos-checkpoint",) if guarantee == EOS else ())


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("release", ["2.3.1", "3.9.2", "4.3.1"])
def test_backup_is_put_back_slowly(release, renamed):
    """As long as a file comes now and then, nothing is sure or urgent, though a store lacks files for minutes."""
    run = scenario(release)
    stop(fresh(run, 1000), 1000)
    put_back(run, renamed=renamed, pause_s=20)
    run.wait(400)
    said = [
        x.body for x in run.world.records if x.kind.value == "finding" and x.body["detector"] == "torn-store"
    ]
    sure = [x for x in said if x["severity"] == "warning" and x["confidence"] == "confirmed"]
    assert [x["summary"] for x in said if x["severity"] == "critical"] == [x["summary"] for x in sure] == []
    assert {x.status for x in run.loud()} <= {Status.RESOLVED}


@pytest.mark.parametrize("release", ["2.3.1", "3.9.2"])
def test_backup_of_which_a_part_is_there(release):
    """Data without CURRENT may be a copy that goes on: suspected, as of a directory that nobody saw before."""
    run = scenario(release)
    stop(fresh(run), 1000)
    put_back(run, renamed=True, until="CURRENT")
    run.wait(90)
    finding = run.only("torn-store")
    assert finding.confidence is Confidence.SUSPECTED
    assert "if a copy is being made, look again" in finding.summary
