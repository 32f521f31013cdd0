"""What operators and platforms do to an application: kills, pauses, resets."""

from __future__ import annotations

from tests.live.processes import JavaProcess, LiveError, wait_until
from tests.live.stage import Stage

ROLLED = ("a", "b", "c")


def versioned_crash(stage: Stage) -> None:
    """Old and new versions of records, all committed, and killed: nothing uncommitted can be in any store. Twice."""
    stage.send(1500)
    stage.start()
    for later_ms in (10_000, 20_000):
        stage.send_again(0, 0, 1500, later_ms=later_ms)
    _kill_committed(stage, 20_000)
    stage.send(100)
    stage.settle()
    for later_ms in (30_000, 40_000, 50_000):
        stage.send_again(0, 0, 1600, later_ms=later_ms)
    _kill_committed(stage, 50_000)
    stage.stop()


def _kill_committed(stage: Stage, latest_ms: int) -> None:
    stage.settle()
    stage.wait_committed()
    stage.idle(2, "nothing is in flight")
    _prove_versions(stage, "before the kill", latest_ms)
    stage.kill()
    stage.start()
    stage.settle(within_s=90)
    stage.wait_committed()
    _prove_versions(stage, "after the kill", latest_ms)


def _prove_versions(stage: Stage, when: str, latest_ms: int) -> None:
    sent = stage.sent[0]
    answer = stage.pods["a"].ask(f"versions versioned p0- {sent}").split()
    expected = sent * (stage.begun_ms + latest_ms)
    right = int(answer[0]) == sent and int(answer[1]) == expected
    stage.proof.append(
        f"{when}: latest versions {answer[0]}/{sent}, their times {'right' if right else 'WRONG'}"
    )
    keys, total, highest = stage.prove(when)
    if (keys, total) != (sent, sent + stage.repeated[0]):
        raise LiveError(f"{when}: the counts are not right: {keys} keys, {total}, highest {highest}")


def paused_restoring(stage: Stage) -> None:
    """`pause()` in the middle of a slow restoration: once it goes on, once it is killed, once it is closed in order."""
    stage.send(6000)
    stage.start("b")
    stage.settle()
    stage.wait_committed()
    stage.stop("b")
    stage.watch("a")
    for ends in (stage.kill, stage.stop):
        _pause_in_restoration(stage)
        ends()
    java = _pause_in_restoration(stage)
    java.ask("resume")
    java.ask("restore-delay 0")
    stage.mark("a goes on after the pause")
    stage.settle(within_s=90)
    stage.prove("after the restoration")
    stage.send(1000)
    stage.settle()
    stage.wait_committed()
    stage.prove("at the end")
    stage.stop()


def _pause_in_restoration(stage: Stage) -> JavaProcess:
    java = stage.launch("a", extra={"restore.delay.ms": 1500, "restore.consumer.max.poll.records": 500})
    stage.mark("a starts and restores slowly")
    java.ask("start")
    java.wait_for("restored ")
    java.ask("pause")
    stage.idle(4, "a is paused")
    return java


def rolling_kills(stage: Stage) -> None:
    """Three pods, killed one after the other as soon as the one before is back and has tasks again from the others."""
    stage.send(1000)
    for pod in ROLLED:
        stage.start(pod)
    stage.settle(within_s=90)
    stage.wait_committed()
    for pod in (*ROLLED, "a", "b"):
        stage.send(100)
        stage.settle(within_s=90)
        stage.wait_committed()
        stage.kill(pod)
        stage.settle(within_s=120)
        stage.start(pod)
        java = stage.pods[pod]
        try:
            wait_until(lambda java=java: java.ask("active") != "active", f"{pod} has tasks", 15)  # type: ignore[misc]
        except LiveError:
            stage.mark(f"{pod} has no task, the others keep theirs")
        else:
            stage.mark(f"{pod} has tasks again")
    stage.settle(within_s=120)
    stage.wait_committed()
    stage.prove("after the kills")
    for pod in ROLLED:
        stage.stop(pod)


def reset_without_cleanup(stage: Stage) -> None:
    """The application is reset, offsets and changelogs are deleted, but `cleanUp()` is not called: state is kept."""
    stage.send(1500)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.prove("before the reset")
    stage.stop()
    stage.broker.do(f"drop {stage.id}-kv-changelog")
    stage.broker.do(f"drop {stage.id}-plain-changelog")
    wait_until(lambda: stage.broker.is_forgotten(stage.id), "members have left and offsets are deleted")
    stage.mark("changelogs and offsets are deleted")
    stage.send(200)
    stage.start()
    stage.wait_committed(within_s=90)
    stage.proof += [line for line in stage.pods["a"].lines if line.startswith("restore-start ")]
    for store in ("kv", "plain"):
        stage.prove("after the reset", store)
    stage.send(200)
    stage.wait_committed()
    stage.stop()
    stage.start()
    stage.settle()
    for store in ("kv", "plain"):
        stage.prove("after another restart", store)
    stage.stop()


def changelog_lost(stage: Stage) -> None:
    """Changelogs are recreated, offsets stay: what the state holds is in no changelog, and an empty disk shows it."""
    stage.send(1500)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()
    for store in ("kv", "plain"):
        stage.broker.do(f"drop {stage.id}-{store}-changelog")
    stage.mark("changelogs are deleted")
    stage.send(200)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.send(200)
    stage.settle()
    stage.wait_committed()
    stage.prove("with the state that was kept")
    stage.idle(12, "it goes on")
    stage.stop()
    stage.start("b")
    stage.settle_or_prove("on an empty disk", within_s=10)
    stage.stop("b")
