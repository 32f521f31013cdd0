"""When SST files were announced: kept as long as a look may need it, and no longer."""

from __future__ import annotations

from agent.layout.paths import classify
from agent.observe.observer import ANNOUNCED_FOR_US, WRITTEN_KEPT, Observer
from agent.replay.memory_disk import MemoryDisk
from tests.agent.observe.test_observer import AT_US, NOW, STORE, disk_with, recorded, recorded_store

__all__ = ["recorded"]  # the fixture


def test_an_announcement_dates_a_file_that_is_gone(recorded: MemoryDisk) -> None:
    """A flush that was compacted away before the look keeps the time at which it was announced."""
    place = classify(recorded_store(recorded))
    plain = Observer(recorded).database(place, AT_US, NOW)
    undated = [flush for flush in plain.flushes if flush.written_at_us is None]
    dated = [flush for flush in plain.flushes if flush.written_at_us is not None]
    assert dated
    observer = Observer(recorded)
    for flush in plain.flushes:
        observer.note_written(classify(f"{place.path}/{flush.number:06d}.sst"), 123)
    again = observer.database(place, AT_US, NOW)
    by_number = {flush.number: flush.written_at_us for flush in again.flushes}
    assert [by_number[flush.number] for flush in undated] == [123] * len(undated)
    assert [by_number[flush.number] for flush in dated] == [flush.written_at_us for flush in dated]


def test_what_was_announced_before_a_checkpoint_was_written_before_it(recorded: MemoryDisk) -> None:
    """An agent that is short of CPU reads announcements late, but in their order; what comes later keeps its time."""
    place = classify(recorded_store(recorded))
    flushes = Observer(recorded).database(place, AT_US, NOW).flushes
    gone = [flush.number for flush in flushes if flush.written_at_us is None]
    assert len(gone) > 1
    observer = Observer(recorded)
    for number in gone[:-1]:
        observer.note_written(classify(f"{place.path}/{number:06d}.sst"), 200)
    observer.note_checkpoint([place.path, "app/0_9/rocksdb/nobody"], 150)
    observer.note_checkpoint([place.path], 149 - ANNOUNCED_FOR_US)  # an old file that somebody put back
    observer.note_written(classify(f"{place.path}/{gone[-1]:06d}.sst"), 300)
    again = {flush.number: flush.written_at_us for flush in observer.database(place, AT_US, NOW).flushes}
    assert [again[number] for number in gone] == [150] * (len(gone) - 1) + [300]


def test_announcements_that_no_one_asks_for_are_forgotten() -> None:
    """A store that is open for weeks writes tens of thousands of files; only the newest are remembered."""
    observer = Observer(disk_with(identity=b"id-1"))
    for number in range(10 * WRITTEN_KEPT):
        observer.note_written(classify(f"{STORE.path}/{number:06d}.sst"), number)
    kept = observer._known[STORE.path].announced_us
    assert kept is not None
    assert sorted(kept) == list(range(9 * WRITTEN_KEPT, 10 * WRITTEN_KEPT))


def test_what_a_reading_has_had_its_chance_to_find_is_forgotten(recorded: MemoryDisk) -> None:
    """A minute after its announcement a file is in the manifest, or it is nobody's."""
    place = classify(recorded_store(recorded))
    observer = Observer(recorded)
    observer.note_written(classify(f"{place.path}/999998.sst"), AT_US)
    observer.note_written(classify(f"{place.path}/999999.sst"), AT_US + 1)
    observer.database(place, AT_US + ANNOUNCED_FOR_US, NOW)
    assert observer._known[place.path].announced_us == {999999: AT_US + 1}
    observer.database(place, AT_US + ANNOUNCED_FOR_US + 1, NOW)
    assert observer._known[place.path].announced_us is None
