"""Possible worlds: what is asked, what is said under each answer, and that an answer decides."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agent.cli.offline import one_pass
from agent.cli.output import Reading, exit_code
from agent.clock import SystemClock
from agent.config import Config, load_config
from agent.contract.events import Severity
from agent.contract.exit_codes import Exit
from agent.contract.finding import Finding
from agent.detectors import ACCEPTABLE, BY_ID
from agent.engine import worlds as module
from agent.engine.one_reading import judge_once
from agent.engine.pipeline import Pipeline
from agent.engine.worlds import World, Worlds, stretches, worlds
from agent.inventory.settings import ApplicationSettings, Setting
from agent.judging.decision import ASKED, GUARANTEE, RELEASE, STANDBYS, summary
from agent.layout.profile import Profile, Truth
from agent.layout.releases import LAST_PATCHES, LATEST, Release, ReleaseRange
from agent.observe.kernel_disk import KernelDisk
from tests.bench.bench_watch import TRACE
from tests.bench.tree_maker import make_tree, recorded_store
from tests.support.steps import steps_of

DATA = Path(__file__).parents[2] / "data"
SNAPSHOTS = sorted(x.name.removesuffix(".tar.gz") for x in (DATA / "snapshots").iterdir())
EOS, ALOS = "exactly_once_v2", "at_least_once"


def read(name: str, folder: Path, **told: str) -> Pipeline:
    """Read a snapshot once."""
    if not folder.exists():
        with tarfile.open(DATA / "snapshots" / f"{name}.tar.gz") as packed:
            packed.extractall(folder, filter="fully_trusted")
    config: Config = load_config(
        file=None, sets=[f"{key}={value}" for key, value in told.items()], flags={}, environment={},
        detectors=BY_ID, acceptable=ACCEPTABLE,
    )  # fmt: skip
    now_us = SystemClock().now_us()
    pipeline = one_pass(KernelDisk(folder), config, now_us)
    judge_once(pipeline, now_us)
    return pipeline


def loud(pipeline: Pipeline) -> set[tuple[str | None, str, str]]:
    """What is a warning or more, and no question."""
    found = pipeline.ledger.findings()
    return {
        (x.task_id, x.detector, x.severity.value)
        for x in found
        if x.severity is not Severity.INFO and x.detector != "undecided"
    }


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_answer_gives_what_everything_told_gives(name: str, tmp_path: Path) -> None:
    """What is loud with everything told is loud or undecided with nothing told; the answers decide."""
    told = json.loads((DATA / "traces" / name / "scenario.json").read_text())["settings"]
    known = {key: str(value) for key, value in told.items() if key in ASKED}
    nothing = read(name, tmp_path / name)
    decisions = nothing.worlds.decisions()
    everything = loud(read(name, tmp_path / name, **known))
    possible = {
        (task, one.lead.detector)
        for x in decisions
        for branch in x.branches
        for one in branch.incidents
        for task in one.tasks
    }
    assert {(task, detector) for task, detector, _ in everything} <= possible | {x[:2] for x in loud(nothing)}
    asked = {key: known[key] for x in decisions for key in x.question}
    answered = read(name, tmp_path / name, **asked)
    assert loud(answered) == everything


KNOWN: dict[str, dict[str, str]] = {
    "nothing told": {},
    "exactly-once": {GUARANTEE: EOS},
    "standbys": {GUARANTEE: EOS, STANDBYS: "1"},
    "no standbys": {GUARANTEE: EOS, STANDBYS: "0"},
}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_value_that_is_tried_gives_what_it_gives_told(
    name: str, known: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each world; and what every world says is said."""
    judged: dict[tuple[tuple[str, str], ...], tuple[set[str], list[Finding] | None]] = {}
    judge = Worlds._findings

    def noted(self: Worlds, application: Any, tasks: Any, world: World, *more: Any) -> list[Finding] | None:
        found = judge(self, application, tasks, world, *more)
        judged[tuple(world.items())] = {x.id for x in tasks}, found
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Worlds, "_findings", noted)
        pipeline = read(name, tmp_path / name, **known)
    outcomes = []
    for world, (tasks, found) in judged.items():
        if found is not None:
            tried = {(x.task_id, x.detector, x.severity.value) for x in found}
            told = loud(read(name, tmp_path / name, **known, **dict(world)))
            assert tried == {x for x in told if x[0] in tasks}, world
            outcomes.append(tried)
    said = {x for x in loud(pipeline) if x[0] in tasks}
    assert set.intersection(*outcomes) <= said
    assert pipeline.worlds.decisions() or said == outcomes[0]


def test_the_seed_bug_asks_one_question(tmp_path: Path) -> None:
    """Disk has all but the guarantee: whichever release comes, it trusts what one before it kept."""
    name = "kafka-20685-4.1.2"
    (decision,) = read(name, tmp_path / name).worlds.decisions()
    assert decision.question == (GUARANTEE,)
    assert (decision.severity, decision.least) == (Severity.CRITICAL, None)
    said = summary(decision)
    assert said.startswith(
        "If it runs exactly-once, this is critical (suspected, KAFKA-20685): Task 0_0: 1778 writes to store"
    )
    assert said.endswith(" With any other answer it is no incident.")


@pytest.mark.parametrize(
    ("name", "fail_on", "told", "code"),
    [
        ("kafka-20685-4.1.2", "critical", {}, Exit.UNREAD),
        ("kafka-20685-4.1.2", "critical", {GUARANTEE: EOS, RELEASE: "4.1.2"}, Exit.FOUND),
        ("kafka-20685-4.1.2", "critical", {GUARANTEE: EOS}, Exit.FOUND),
        ("kafka-20685-4.1.2", "critical", {GUARANTEE: ALOS}, Exit.CLEAR),
        # 4.3 and 4.4 have its RocksDB, too
        ("dirty-close-kill-4.2.1", "critical", {GUARANTEE: EOS}, Exit.FOUND),
        ("torn-clean-3.9.2", "critical", {}, Exit.FOUND),  # one task is damaged whatever it runs
        ("torn-clean-half-2.4.1", "critical", {}, Exit.UNREAD),
        ("torn-clean-half-2.4.1", "warning", {}, Exit.FOUND),
        ("benign-restart-eos-4.1.2", "warning", {}, Exit.CLEAR),
    ],
)
def test_exit_codes(name: str, fail_on: str, told: dict[str, str], code: Exit, tmp_path: Path) -> None:
    """0 in no possible world, 1 in every one, 3 in some."""
    pipeline = read(name, tmp_path / name, **told)
    reading = Reading.of(pipeline, "pod", "")
    assert exit_code(pipeline.ledger.findings(), fail_on, reading)[0] is code
    if code is Exit.UNREAD:
        may = exit_code(pipeline.ledger.findings(), fail_on, reading, may_be_undecided=True)
        assert may[0] is Exit.CLEAR


def test_worlds_are_those_that_disk_allows() -> None:
    """What was given has one value; releases are cut where a fact or a bug begins or ends."""
    bug = ReleaseRange.between("4.0.1", "4.1.2")
    profile = Profile(ReleaseRange.between("4.0.0", "4.1.x"), transactional=Truth.NO)
    given = ApplicationSettings({GUARANTEE: Setting(EOS, "flag")})
    found = worlds(given, profile, [bug])
    assert {x[STANDBYS] for x in found} == {"0", "1"}
    assert all(GUARANTEE not in x for x in found)
    starts = {x[RELEASE] for x in found}
    assert {"4.0.0", "4.0.1", "4.1.3"} <= starts  # the next patch may be out, and have the fix
    assert "4.1.4" not in starts


def test_stretches_cover_the_known_releases_once() -> None:
    """Every release that was released is in one stretch."""
    found = stretches(ReleaseRange(), frozenset())
    for line, last in LAST_PATCHES.items():
        for patch in range(last + 1):
            assert sum(x.contains(Release(*line, patch)) for x in found) == 1
    assert found[-1].high == LATEST._replace(patch=LATEST.patch + 1)
    assert stretches(ReleaseRange.since("4.5.0"), frozenset()) == ()


def test_what_was_not_judged_in_every_world_is_no_all_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory with too many tasks, the release not told: 3, and the head says what to give."""
    monkeypatch.setattr(module, "MOST_AT_ONCE", 1)
    pipeline = read("benign-restart-eos-4.1.2", tmp_path / "state")
    code, why = exit_code(pipeline.ledger.findings(), "critical", Reading.of(pipeline, "pod", ""))
    assert code is Exit.UNREAD
    assert "was not judged under every release: give kafka_streams_version" in why
    told = read("benign-restart-eos-4.1.2", tmp_path / "state", kafka_streams_version="4.1.2")
    assert exit_code(told.ledger.findings(), "critical", Reading.of(told, "pod", ""))[0] is Exit.CLEAR


def test_a_restart_leaves_the_question_open_until_every_task_was_tried(tmp_path: Path) -> None:
    """What an earlier run asked is not closed by an agent that has not looked yet."""
    pipeline = read("kafka-20685-4.1.2", tmp_path / "state")
    (application,) = pipeline.inventory.applications.values()

    def is_open() -> bool:
        return any(x.detector == "undecided" for x in pipeline.ledger.open_findings())

    now_us = SystemClock().now_us()
    assert pipeline.worlds.is_decided(application.id)
    pipeline.judges.judge_application(now_us, application, {}, None, is_decided=False)
    assert is_open()
    pipeline.judges.judge_application(now_us, application, {}, None)
    assert not is_open()


def test_every_task_costs_the_same(tmp_path: Path) -> None:
    """Ten more tasks take as many steps, whatever there is beside them, but for one in twenty."""
    _, *steps = (
        _steps_of_a_reading(tmp_path / str(tasks), tasks) for tasks in (1, 10, 20, 30)
    )  # caches first
    assert steps[2] - steps[1] <= 1.05 * (steps[1] - steps[0])


def _steps_of_a_reading(root: Path, tasks: int) -> int:
    make_tree(root, tasks, recorded_store(TRACE))
    config = load_config(file=None, sets=[], flags={}, environment={}, detectors=BY_ID, acceptable=ACCEPTABLE)
    now_us = SystemClock().now_us()
    pipeline = one_pass(KernelDisk(root), config, now_us)
    return steps_of(lambda: judge_once(pipeline, now_us))
