"""Benign look-alikes N1 to N12: what Kafka Streams does in good order must not be called a fault.

Each test plays one sequence of docs/state-format.md#life-of-a-task-directory, with every setting that an operator can
give, and expects no finding of warning or above. An exposure that truly applies is named in the test. N13 to N25 are
next door.
"""

from __future__ import annotations

import pytest

from tests.support.scenario_benign import (
    ALL,
    DELAY_S,
    EOS,
    MIDDLE,
    NEW,
    OLD,
    TWO,
    again,
    fresh,
    last,
    quiet,
    restored,
    scenario,
    stop,
    works,
)

# -- starts and stops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ALL)
def test_n1_clean_start_at_least_once(release):
    """N1: lock, open, later a checkpoint."""
    run = scenario(release)
    stop(fresh(run), 1000)
    app = again(run, 1000)
    works(app, 500, total=1500)
    quiet(run)


@pytest.mark.parametrize("release", OLD)
def test_n2_clean_start_exactly_once_old(release):
    """N2: up to 2.5 the checkpoint goes before the lock is taken, and an active task runs without one."""
    run = scenario(release, EOS)
    stop(fresh(run), 1000)
    app = again(run, 1000)
    works(app, 500)
    quiet(run)


@pytest.mark.parametrize("release", MIDDLE + NEW)
def test_n3_clean_start_exactly_once(release):
    """N3: from 2.6 on the checkpoint goes after the open; from 3.8 on the end of restoration writes one."""
    run = scenario(release, EOS)
    stop(fresh(run), 1000)
    again(run, 1000)
    quiet(run)


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ALL)
def test_n4_n5_clean_close(release, guarantee):
    """N4: flush, checkpoint, release; N5, from 4.3: offset and status in the store instead; the directory stays."""
    run = scenario(release, guarantee)
    app = fresh(run)
    for task_id in TWO:
        app.puts(task_id, 500)
    stop(app, 1500)
    quiet(run)


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ALL)
def test_n6_rolling_restart(release, guarantee):
    """N6: the same tasks, inodes and identities, three times over."""
    run = scenario(release, guarantee, standbys=1)
    stop(fresh(run), 1000)
    for _ in range(3):
        stop(again(run, 1000), 1000)
    quiet(run)


# -- tasks that move, cleaners ------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ALL)
def test_n7_task_moved_away(release, guarantee):
    """N7: closed clean, then nothing, then the cleaner one to two delays later."""
    run = scenario(release, guarantee)
    app = fresh(run)
    app.closes("0_1", last(app, 1000))
    run.wait(DELAY_S * 1.5)
    app.cleaner.deletes("0_1")
    quiet(run)


@pytest.mark.parametrize("release", ALL)
def test_n8_cleaner_and_return(release):
    """N8: the cleaner probes, deletes after the delay, and the task comes back with a full restoration."""
    run = scenario(release)
    app = fresh(run)
    app.closes("0_1", last(app, 1000))
    run.wait(DELAY_S / 2)
    app.cleaner.probes("0_1")
    run.wait(DELAY_S)
    app.cleaner.deletes("0_1")
    run.wait(20)
    restored(app, 1200, ("0_1",))
    run.wait(1)
    works(app, 100, ("0_1",), total=1300)
    quiet(run)


@pytest.mark.parametrize("release", ["2.1.1", "2.3.1", "2.8.2", "3.9.2", "4.2.1"])
def test_n9_empty_directory_of_a_stateless_task(release):
    """N9: the cleaner deletes empty directories of stateless tasks while they run."""
    run = scenario(release, stores={})
    app = run.start()
    app.constructs("0_0")
    run.wait(DELAY_S * 2)
    app.cleaner.deletes("0_0")
    quiet(run)


@pytest.mark.parametrize("release", MIDDLE)
def test_n10_rebalance_sweep(release):
    """N10: from 2.6 to 2.8 a rebalance locks unowned directories and frees them again."""
    run = scenario(release)
    app = fresh(run)
    app.closes("0_1", last(app, 1000))
    run.wait(3)
    for _ in range(3):
        run.world.lock("app/0_1/.lock")
        run.wait(0.3)
        run.world.unlock("app/0_1/.lock")
        run.wait(5)
    run.wait(DELAY_S)
    app.cleaner.deletes("0_1")
    quiet(run)


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ["2.6.2", "2.8.2", "3.4.1", "3.9.2", "4.1.2", "4.2.1", "4.3.1"])
def test_n11_recycle(release, guarantee):
    """N11: active to standby and back: flush and checkpoint, no release, no open."""
    run = scenario(release, guarantee, standbys=1)
    app = fresh(run)
    for count in (1500, 2000, 2500):
        app.puts("0_0", 500)
        app.checkpoints("0_0", last(app, count))
        run.wait(5)
    quiet(run)


@pytest.mark.parametrize("release", ALL)
def test_n12_clean_up_call(release):
    """N12: all task directories go within seconds, nobody holds them, then everything is restored."""
    run = scenario(release)
    stop(fresh(run), 1000)
    app = run.start()
    run.wait(1)
    app.cleans_up()
    run.wait(2)
    restored(app, 1000)
    run.wait(1)
    works(app, 100, total=1100)
    quiet(run)
