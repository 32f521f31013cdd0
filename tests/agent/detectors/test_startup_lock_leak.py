"""Detector `startup-lock-leak`: a store of the start-up pass not closed by an orderly exit (KAFKA-20663 b)."""

from __future__ import annotations

from typing import Any

from agent.contract.events import Affected, Level, Status
from agent.inventory.model import Application, ProcessLife
from agent.judging.base import TaskCase
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, session, store, task
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, heard, said, table

ID = "startup-lock-leak"
CLOSED, KILLED = "closed in order", "a kill: another store was not closed either"
ALONE = "no other store shows how the process ended"


def ended(release: str = "4.3.0", how: str = "leaks", *, others: bool = True, **more) -> Scenario:
    """Tasks work; then the process leaks the store of the first one at an orderly end, stops, or is killed."""
    run = Scenario(release, **more)
    run.start()
    for task_id in ("0_0", "0_1") if others else ("0_0",):
        play(run, f"opens {task_id}, 0.5 s, puts {task_id} 1000, flushes {task_id}")
    run.wait(5)
    if how == "is killed":
        run.app.crash()
    elif how == "stops":
        run.app.stops({"0_0": 999, "0_1": 999})
    else:
        if others:
            run.app.closes("0_1", 999)
        for each in run.task("0_0").databases.values():
            run.world.play("unlock", f"{each.path}/LOCK")
            each.crash()
        run.app.held.clear()
        run.app.ends()
    run.wait(10)
    return run


@table(ID, "more, expected", {
    "the other store was closed, this one was not, and it had flushed": ({}, SUSPECTED),
    "an orderly stop": ({"how": "stops"}, CLOSED),
    "a kill closes no store": ({"how": "is killed"}, KILLED),
    "a single store has nothing to compare with": ({"others": False}, ALONE),
    "4.3.1 lets go of the lock": ({"release": "4.3.1"}, QUIET),
    "4.2 has no start-up pass": ({"release": "4.2.1"}, QUIET),
    "the release is not known": ({"hidden": ("kafka_streams_version",)}, QUIET),
})  # fmt: skip
def test_ends(more, expected):
    run = ended(**more)
    assert heard(ID, run) == expected
    for x in run.findings(ID):
        assert (x.level, x.status, x.affected) == (Level.EXPOSURE, Status.RESOLVED, Affected.YES)
        assert (x.task_id, x.store, x.upstream) == ("0_0", "s", ("KAFKA-20663",))
        assert [step.at_us for step in x.evidence] == sorted(step.at_us for step in x.evidence)


def dossier(
    *,
    released: float | None = 50,
    closed: bool | None = False,
    puts: int = 101,
    other: tuple[float | None, bool | None] = (49.9, True),
    third: tuple[float | None, bool | None] = (50, True),
    release: str | None = "4.3.0",
    task_id: str = "0_0",
    life: float | None = 50,
    more: bool = False,
) -> TaskCase:
    """The process ended at `life`; 0_0 (opened with 100 puts) was let go without a close, others were closed.

    `more`: a good session before, and one that lasts, surround it.
    """
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(-100), at(-50)), ProcessLife(at(0), None if life is None else at(life)))
    sessions = [session(-90, -50, puts=100), session(1, released, puts=puts, puts_at_open=100), session(60)]
    sessions[0].closed, sessions[1].closed = True, closed
    siblings = []
    for number, (at_s, is_closed) in enumerate((other, third), 1):
        ends = session(1, at_s, puts=100)
        ends.closed = is_closed
        siblings.append(task(store([database()], [ends]), task_id=f"0_{number}"))
    judged = task(store([database()], sessions if more else sessions[1:2]), task_id=task_id)
    return case(judged, *siblings, application=app, release=release)


OTHERS: dict[str, Any] = {"third": (None, True)}


@table(ID, "more, expected", {
    "let go with its process": ({}, SUSPECTED),
    "more than a second before": ({"released": 48.9}, QUIET),
    "a second before": ({"released": 49}, SUSPECTED),
    "a second after": ({"released": 51}, SUSPECTED),
    "more than a second after": ({"released": 51.1}, QUIET),
    "others went earlier": ({**OTHERS, "other": (48.9, True)}, ALONE),
    "others went a second before": ({**OTHERS, "other": (49, True)}, SUSPECTED),
    "others went a second after": ({**OTHERS, "other": (51, True)}, SUSPECTED),
    "others went later": ({**OTHERS, "other": (51.1, True)}, ALONE),
    "others are held": ({**OTHERS, "other": (None, True)}, ALONE),
    "one of two others was not closed": ({"third": (50, False)}, KILLED),
    "it was let go at another time": ({"third": (30, False)}, SUSPECTED),
    "it is held": ({"third": (None, False)}, SUSPECTED),
    "of another one it is not known": ({"third": (50, None)}, ALONE),
    "closed": ({"closed": True}, CLOSED),
    "held too briefly": ({"closed": None}, "held too briefly to tell how it ended"),
    "nothing was flushed": ({"puts": 100}, "nothing was flushed in it"),
    "the global state is let go of last": ({"task_id": "global"}, QUIET),
    "the process lives on": ({"life": None}, QUIET),
    "an earlier good session hides no leak": ({"more": True}, SUSPECTED),
    "4.3 may be 4.3.1": ({"release": "4.3"}, QUIET),
    "nobody reproduced it": ({"release": None}, QUIET),
})  # fmt: skip
def test_limits(more, expected):
    assert said(ID, dossier(**more)) == expected
