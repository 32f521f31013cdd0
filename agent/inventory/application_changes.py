"""Application level of the reducer: directory, application lock, process metadata, lives of the process."""

from __future__ import annotations

from agent.contract.events import Change, Source
from agent.inventory.disk import LockState, Unseen
from agent.inventory.model import LOCKS_KEPT, PROCESSES_KEPT, Application, Inventory, ProcessLife
from agent.inventory.observations import ApplicationReading, LockReading
from agent.inventory.recent import recent
from agent.inventory.transitions import Transition, change_of


def reduce_application(inventory: Inventory, reading: ApplicationReading) -> list[Transition]:
    """Take a reading of an application directory: it came, it went, and what its lock shows."""
    name = reading.place.application
    assert name is not None
    application = inventory.applications.get(name)
    if reading.unseen is Unseen.VANISHED:
        if application is None or not application.exists:
            return []
        application.exists = False
        return [change_of(Change.APPLICATION_GONE, reading)]
    if reading.unseen is not None:
        return []
    if application is None:
        application = inventory.applications[name] = Application(name, first_seen_us=reading.at_us)
    changes: list[Transition] = []
    if not application.exists:
        application.exists = True
        changes.append(change_of(Change.APPLICATION_SEEN, reading))
    application.inode, application.mtime_us = reading.inode, reading.mtime_us
    application.process_id = reading.process_id or application.process_id
    application.process_problem = reading.process_problem
    application.processes = reading.processes
    lock = LockReading(reading.place, reading.at_us, reading.source, None, reading.lock, reading.lock_inode)
    changes += reduce_application_lock(application, lock)
    # the list of processes may be some seconds old: one that is older than a life that ended is no longer there
    ended = [life.started_us for life in application.lives if life.ended_us is not None]
    present = [x for x in reading.processes if x.started_at_us > max(ended, default=0)]
    versions = [x.kafka_streams_version for x in present if x.kafka_streams_version]
    application.process_version = versions[-1] if versions else application.process_version
    return changes


def reduce_application_lock(application: Application, reading: LockReading) -> list[Transition]:
    """Take the state of the application's `.lock`: a process starts or ends.

    Source:
        StateDirectory.initializeProcessId: held from the constructor of KafkaStreams to close();
        2.6.2+, 2.7.1+, 2.8+ and only with persistent stores.
    """
    before = application.lock
    both = LockState.HELD in (before, reading.lock) and reading.lock is before
    if both and application.lock_inode and reading.inode not in (0, application.lock_inode):
        application.lock_replaced_us = recent(application.lock_replaced_us, reading.at_us, LOCKS_KEPT)
        application.lock_inode = reading.inode
    if reading.lock is LockState.UNKNOWN:
        application.lock = before or LockState.UNKNOWN  # what was known of it before may still be so
        return []
    if reading.lock is before:
        return []
    application.lock, application.lock_inode = reading.lock, reading.inode
    application.lock_since_us = reading.at_us
    if reading.lock is LockState.HELD:
        application.lock_ever_held = True
        application.process_version = None  # that of another process, which an upgrade may have ended
        application.lives = recent(application.lives, ProcessLife(reading.at_us), PROCESSES_KEPT)
        return [change_of(Change.PROCESS_STARTED, reading)]
    life = application.life
    if life is None:
        return []
    life.ended_us, life.announced = reading.at_us, reading.source is Source.INOTIFY
    return [change_of(Change.PROCESS_ENDED, reading)]
