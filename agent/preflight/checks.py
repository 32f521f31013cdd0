"""The table of checks: facts in, results out. Pure.

A check that fails means that the agent cannot do its work there; a warning, that it does less or will stop to do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.contract.exit_codes import Exit, answer
from agent.inventory.file_times import SERVED_VOLUMES
from agent.observe.volume import Mount
from agent.preflight import manifest
from agent.preflight.access import judge_access
from agent.preflight.facts import Facts, Level, Result
from agent.preflight.places import judge_endpoint, judge_spool
from agent.preflight.state import judge_applications, judge_file_system, judge_state_dir
from agent.watch.limits import budget, enough_instances, enough_watches

_FUTURE_US = 5_000_000
"""How far ahead of the clock a file's time may lie: file systems of other machines are never quite in step."""

_OLDEST_US = 1_735_689_600_000_000
"""2025-01-01: no clock that is right is before the first release."""


def judge_identity(facts: Facts) -> Result:
    """Judge as whom the agent runs: it needs no privileges, and should have none."""
    if facts.identity.uid == 0:
        what = "the agent runs as root; it needs no privileges, and Pod Security `restricted` refuses it"
        return Result("identity", Level.WARNING, what, change=manifest.NOT_ROOT)
    return Result("identity", Level.OK, str(facts.identity))


def judge_inotify(facts: Facts) -> Result:
    """Judge the inotify budget: queues and watches against the need."""
    found, need = facts.inotify, facts.state.directories
    allowed = budget(found.watches)
    if found.queue_refusal:
        line = manifest.sysctl_line(found.instances.name, enough_instances(found.instances))
        what = f"cannot create an inotify instance ({found.queue_refusal}); everything will be polled"
        return Result("inotify", Level.FAILED, what, str(found.instances), line)
    line = manifest.sysctl_line(found.watches.name, enough_watches(need))
    if found.watches_used_up:
        what = f"all watches of this user on the node are taken; {need} are needed, everything will be polled"
        return Result("inotify", Level.FAILED, what, str(found.watches), line)
    if found.watch_refusal and facts.state.outcome is None:
        what = f"the state directory cannot be watched: {found.watch_refusal}"
        return Result("inotify", Level.FAILED, what, facts.state_dir, manifest.STATE_MOUNT)
    if allowed is not None and need > allowed:
        what = f"{need} directories need a watch, {allowed} are available; the rest will be polled"
        return Result("inotify", Level.WARNING, what, str(found.watches), line)
    given = (
        "an inotify instance is available"
        if found.watch_refusal
        else "an inotify instance and a watch are available"
    )
    what = f"{need} of {'?' if allowed is None else allowed} watches needed; {given}"
    return Result("inotify", Level.OK, what, str(found.watches))


def judge_clock(facts: Facts) -> Result:
    """Judge the wall clock: against files, against the calendar, and by the kernel's word."""
    clock = facts.clock
    checked = tuple(x for x in (facts.state.root, *facts.state.below) if x is not None)
    newest = max(checked, key=lambda x: x.mtime_us, default=None)
    if clock.now_us < _OLDEST_US:
        what = "the clock is set before 2025; every reported age would be wrong"
        return Result("clock", Level.FAILED, what, change=manifest.NODE_CLOCK)
    if newest is not None and newest.mtime_us > clock.now_us + _FUTURE_US:
        ahead_s = (newest.mtime_us - clock.now_us) / 1_000_000
        what = (
            f"a directory was changed {ahead_s:.0f} s in the future: this clock is slow, or another was fast"
        )
        return Result("clock", Level.WARNING, what, newest.path, manifest.NODE_CLOCK)
    if clock.is_synchronised is False:
        what = "the kernel reports an unsynchronised clock; times of two pods cannot be compared"
        return Result("clock", Level.WARNING, what, change=manifest.NODE_CLOCK)
    kept = (
        "synchronised by a time service"
        if clock.is_synchronised
        else "the kernel does not say whether it is synchronised"
    )
    mount = facts.state.mount
    if isinstance(mount, Mount) and mount.kind in SERVED_VOLUMES:
        kept += (
            f"; file times on {mount.mount_point} ({mount.filesystem}) are the file server's: keep its clock in step,"
            " too. The agent measures the difference while it runs"
        )
    return Result("clock", Level.OK, kept)


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Args of the dataclass:
        id: As in results, log lines and the metric.
        judge: Facts -> result.
        takes_time: It may come right by itself in the first minute of a pod, so its first complaint is kept back.
    """

    id: str
    judge: Callable[[Facts], Result]
    takes_time: bool = False


CHECKS: tuple[Check, ...] = (
    Check("identity", judge_identity),
    Check("state-dir", judge_state_dir, takes_time=True),
    Check("access", judge_access, takes_time=True),
    Check("file-system", judge_file_system),
    Check("inotify", judge_inotify),
    Check("clock", judge_clock),
    Check("spool", judge_spool),
    Check("endpoint", judge_endpoint, takes_time=True),
    Check("applications", judge_applications, takes_time=True),
)
PATIENT = frozenset(check.id for check in CHECKS if check.takes_time)


def judge(facts: Facts) -> tuple[Result, ...]:
    """Judge everything, in the order of the table."""
    return tuple(check.judge(facts) for check in CHECKS)


def exit_code(results: tuple[Result, ...]) -> Exit:
    """Go by the checks that failed; warnings are no failure."""
    return answer(found=any(result.level is Level.FAILED for result in results), unread=False)
