"""Benign look-alikes N13 to N25: wipes, upgrades, standbys, volumes. See `test_look_alikes.py`."""

from __future__ import annotations

import pytest

from tests.support.scenario import IN_MEMORY, KEY_VALUE, WINDOWED, App
from tests.support.scenario_benign import (
    ALL,
    DELAY_S,
    EOS,
    MIDDLE,
    NEW,
    NEWEST,
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

# -- wipes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", MIDDLE + NEW + NEWEST)
def test_n13_wipe_of_a_corrupted_task(release):
    """N13: the whole directory goes and comes back within a second, then a full restoration."""
    run = scenario(release, EOS)
    app = fresh(run)
    app.wipes("0_0")
    app.restores("0_0", last(app, 1000), puts=1000)
    run.wait(2)
    quiet(run)


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.3.1", "2.5.1"])
def test_n13_wipe_of_single_stores(release):
    """N13 up to 2.5: after a crash each store is wiped under the task lock and restored."""
    run = scenario(release, EOS)
    app = fresh(run)
    for task_id in TWO:
        app.flushes(task_id)
    run.wait(1)
    app.crash()
    run.wait(5)
    app = run.start()
    for task_id in TWO:
        app.opens(task_id)
        app.wipes(task_id)
        app.restores(task_id, last(app, 900))
    run.wait(15)
    stop(app, 900)
    quiet(run)


@pytest.mark.parametrize("release", ["2.6.2", "2.8.2", "3.9.2", "4.1.2", "4.3.1"])
def test_n14_fencing(release):
    """N14: a lost membership wipes all running active tasks of a thread at once."""
    run = scenario(release, EOS)
    app = fresh(run, tasks=("0_0", "0_1", "0_2"))
    for task_id in ("0_0", "0_1", "0_2"):
        app.wipes(task_id, again=False)
    run.wait(4)
    restored(app, 1000)
    run.wait(2)
    quiet(run)


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ALL)
def test_n15_fresh_task_with_a_full_restoration(release, guarantee):
    """N15: a new directory, a store, growth with the offset."""
    run = scenario(release, guarantee)
    app = run.start()
    restored(app, 20_000, ("0_0",))
    run.wait(5)
    works(app, 100, ("0_0",), total=20_100)
    app.closes("0_0", last(app, 20_100))
    quiet(run, but=("stale-eos-checkpoint",))


# -- upgrades -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [("2.3.1", "3.4.1"), ("2.8.2", "3.9.2"), ("2.5.1", "4.1.2")])
def test_n16_upgrade_past_task_locks(old, new):
    """N16: from 3.0 on the old `.lock` files of task directories are deleted."""
    run = scenario(old, hidden=("kafka_streams_version",))
    app = fresh(run)
    app.stops(
        dict.fromkeys(TWO, 1000 if old.startswith(("2.3", "2.5")) else 999)
    )  # up to 2.5 the next one to read
    run.wait(5)
    app = run.start(new)
    for task_id in TWO:
        app.opens(task_id)
        app.restores(task_id, 999, puts=0)
    works(app, 100, total=1100)
    quiet(run)


@pytest.mark.parametrize(("old", "new"), [("3.9.2", "4.3.1"), ("4.2.1", "4.3.0"), ("4.2.1", "4.3.1")])
def test_n17_upgrade_to_offsets_in_the_store(old, new):
    """N17: the first open makes the families, the checkpoint goes for good, the position files stay."""
    run = scenario(old, hidden=("kafka_streams_version",))
    app = fresh(run)
    app.stops(dict.fromkeys(TWO, 999))
    run.wait(5)
    app = run.start(new)
    for task_id in TWO:
        app.opens(task_id)
        app.checkpoints(task_id, 999)
        run.world.play("unlink", f"app/{task_id}/.checkpoint")
        app.closes(task_id, 999)
    run.wait(3)
    for task_id in TWO:
        app.opens(task_id)
    works(app, 100, total=1100)
    stop(app, 1100)
    quiet(run)


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", NEWEST)
def test_n18_startup_pass(release, guarantee):
    """N18: every store is opened and closed once before any thread works; some are never assigned."""
    run = scenario(release, guarantee)
    stop(fresh(run), 1000)
    app = again(run, 1000, ("0_0",))
    works(app, 100, ("0_0",), total=1100)
    if release == "4.3.1":
        run.wait(DELAY_S * 1.2)
        app.cleaner.deletes("0_1")
    # on 4.3.0 the directory that was not assigned is never cleaned: a true exposure
    quiet(run, but=("orphaned-task",) if release == "4.3.0" else ())


@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2", "4.1.2"])
def test_n19_temp_cleaner_takes_what_does_not_matter(release):
    """N19: old info logs and options go while the store is held; no walk, no lost data (IDENTITY is another test)."""
    run = scenario(release)
    stop(fresh(run), 1000)
    app = again(run, 1000)
    for name, _ in run.world.children("app/0_0/rocksdb/s"):
        if name.startswith("LOG.old"):
            run.world.play("unlink", f"app/0_0/rocksdb/s/{name}")
            run.wait(5)
    works(app, 100, total=1100)
    quiet(run)


# -- standbys, volumes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ["2.6.2", "2.8.2", "3.9.2", "4.1.2", "4.2.1", "4.3.1"])
def test_n20_warm_up_standby(release, guarantee):
    """N20: a warm-up grows, is closed and cleaned on an instance that never owned the task."""
    run = scenario(release, guarantee, standbys=1)
    app = fresh(run, tasks=("0_0",))
    app.opens("0_1")
    for count in (4000, 4000, 4000):
        app.puts("0_1", count)
        app.flushes("0_1")
        run.wait(2)
    if not app.habits.offsets_in_store:
        app.checkpoints("0_1", last(app, 12_000))
    run.wait(1)
    app.closes("0_1", last(app, 12_000))
    run.wait(DELAY_S * 1.5)
    app.cleaner.deletes("0_1")
    # a standby under exactly-once looks like an active task until its next checkpoint: a true exposure for that time
    quiet(run, but=("stale-eos-checkpoint",) if guarantee == EOS else ())


@pytest.mark.parametrize("release", ["2.3.1", "3.9.2", "4.1.2", "4.3.1"])
def test_n21_volume_swapped(release):
    """N21: everything is new at once: a pod on a new node restores in full."""
    run = scenario(release)
    app = fresh(run)
    app.crash()
    run.wait(10)
    with run.unheard():
        App(run).delete_tree("app")
    run.tasks.clear()
    run.wait(65)
    app = run.start()
    restored(app, 1000)
    run.wait(1)
    works(app, 100, total=1100)
    quiet(run)


@pytest.mark.parametrize("release", MIDDLE + NEW)
def test_n22_out_of_range_under_at_least_once(release):
    """N22: the entry goes, the locks are freed and taken, the changelog is replayed over the old files."""
    run = scenario(release)
    app = fresh(run)
    app.flushes("0_0")
    run.wait(1)
    run.world.play("unlink", "app/0_0/.checkpoint")
    app.closes_dirty("0_0")
    app.opens("0_0")
    app.restores("0_0", last(app, 1000), puts=1000)
    run.wait(1)
    works(app, 100, ("0_0",), total=1100)
    quiet(run)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("release", NEWEST)
def test_n23_crash_without_a_flush(release, compacted):
    """N23: killed before the first flush since the open: the next start finds the last clean close and trusts it."""
    run = scenario(release, EOS)
    app = fresh(run)
    stop(app, 1000)
    app = again(run, 1000)
    if compacted:
        for task_id in TWO:
            app.compacts(task_id)
        run.wait(1)
    for task_id in TWO:
        app.puts(task_id, 500)
    run.wait(2)
    app.crash()
    run.wait(5)
    app = again(run, 1000)
    works(app, 500, total=1500)
    stop(app, 1500)
    quiet(run)


@pytest.mark.parametrize("guarantee", ["at_least_once", EOS])
@pytest.mark.parametrize("release", ["2.1.1", "2.3.1", "2.8.2", "3.4.1", "3.9.2", "4.1.2", "4.3.1"])
def test_n24_store_added_by_a_new_topology(release, guarantee):
    """N24: the new store has no entry in the old checkpoint; it is restored, or filled from now on."""
    run = scenario(release, guarantee, stores={"s": KEY_VALUE})
    stop(fresh(run), 1000)
    run.stores = {"s": KEY_VALUE, "added": KEY_VALUE, "cache": IN_MEMORY}
    app = run.start()
    for task_id in TWO:
        app.opens(task_id)
        app.restores(task_id, {"s": last(app, 1000), "added": last(app, 700)}, puts=700, store="added")
    run.wait(1)
    for task_id in TWO:
        app.puts(task_id, 10)
        app.closes(task_id, {"s": last(app, 1010), "added": last(app, 710)})
    quiet(run)


@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2", "4.1.2", "4.3.1"])
def test_n25_volume_restored_from_backup(release):
    """N25: all inodes are new and all times those of the copy; the old files are worth what they were."""
    run = scenario(release, watched=False)
    app = fresh(run)
    stop(app, 1000)
    run.wait(3600)
    for path in run.everything():
        run.world.play("utime", path)
    run.world.watch()
    run.wait(5)
    app = again(run, 1000)
    works(app, 100, total=1100)
    quiet(run)


@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2", "4.1.2", "4.3.1"])
def test_window_expiry(release):
    """Expired segments of a windowed store are closed and deleted in normal operation."""
    run = scenario(release, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    for number in range(6):
        app.puts("0_0", 500, segment=number * 60_000)
        if app.habits.offsets_in_store:
            app.commits("0_0", last(app, 500 * (number + 1)))
        else:
            app.checkpoints("0_0", last(app, 500 * (number + 1)))
        run.wait(10)
        if number >= 2:
            app.drops_segment("0_0", "w", (number - 2) * 60_000)
    stop(app, 3000, ("0_0",))
    # the oldest segment's old offset is normal on 4.3.0 while it runs, and no fault on 4.3.1
    quiet(run)
