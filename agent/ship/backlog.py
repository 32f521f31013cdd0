"""The sealed segments of a spool that wait to be shipped, and the files that were set aside.

Order of shipping: oldest first. Order of giving up room: files that were set aside (their loss is announced
already), drop records (if many can be folded into one), summaries, transitions and heartbeats, then everything else,
findings among it; oldest first each time. A record never displaces what ranks above it. The segment that is on its
way to the sink stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.contract.events import Kind
from agent.ship import drops, priority
from agent.ship.drops import Account
from agent.ship.segments import CorruptSegmentError, Segment, thin

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Victim:
    """What could be given up.

    Args of the dataclass:
        segment: The segment concerned; None = a file that was set aside.
        rank: Rank of the records that go; None = the whole file.
        lost: What must be announced.
        freed_bytes: How much room it makes, estimated.
    """

    segment: Segment | None
    rank: int | None
    lost: Account
    freed_bytes: int


class Backlog:
    """The queue of a spool; its owner serialises the calls."""

    def __init__(self, segments: list[Segment], aside: list[tuple[Path, int]]) -> None:
        """Start from what recovery found.

        Args:
            segments: Sealed segments, oldest first.
            aside: Files that were set aside, with their sizes, oldest first.
        """
        self._segments, self._aside = segments, aside
        self._in_flight: Segment | None = None
        self._bytes = sum(segment.size_bytes for segment in segments) + sum(size for _, size in aside)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments that wait, oldest first."""
        return tuple(self._segments)

    @property
    def waiting(self) -> int:
        """Number of segments that wait."""
        return len(self._segments)

    @property
    def bytes(self) -> int:
        """Size of everything in it."""
        return self._bytes

    @property
    def files(self) -> int:
        """Number of files in it."""
        return len(self._segments) + len(self._aside)

    @property
    def aside(self) -> int:
        """Number of files that were set aside and are still there."""
        return len(self._aside)

    def add(self, segment: Segment) -> None:
        """Queue a segment that was just sealed."""
        self._segments.append(segment)
        self._bytes += segment.size_bytes

    def hold(self, segment: Segment | None) -> None:
        """Say which segment is on its way to the sink; None = none."""
        self._in_flight = segment

    def remove(self, segment: Segment) -> None:
        """Delete a segment.

        Raises:
            OSError: the disk refuses; the segment stays.
        """
        segment.path.unlink(missing_ok=True)
        self._segments.remove(segment)
        self._bytes -= segment.size_bytes

    def set_aside(self, segment: Segment, state: str) -> None:
        """Take a segment out of the queue; its file stays for whoever wants to look, until room is needed."""
        self._segments.remove(segment)
        aside = segment.path.with_suffix(f".{state}")
        try:
            segment.path.replace(aside)
        except OSError as error:
            _LOG.error(
                "spool: cannot rename a segment", extra={"segment": segment.name, "reason": str(error)}
            )
            aside = segment.path
        self._aside.append((aside, segment.size_bytes))

    def victims(
        self, need_bytes: int, need_files: int, at_most: int, *, whole_files: bool = False
    ) -> list[Victim]:
        """Choose what is missed least; nothing is changed.

        Args:
            need_bytes: Room that is wanted.
            need_files: Number of files that must go.
            at_most: Highest rank that may be given up.
            whole_files: Whether only whole files may go, as on a disk without room to write a shorter one.

        Returns:
            Victims that are all files set aside, or all of one rank; maybe not enough of them, so ask again.
        """
        whole = whole_files or need_files > 0
        for group in self._groups(at_most, whole=whole):
            chosen: list[Victim] = []
            for victim in group:
                if need_bytes <= 0 and need_files <= 0:
                    break
                chosen.append(victim)
                need_bytes -= victim.freed_bytes
                need_files -= victim.rank is None
            if chosen:
                return chosen
        return []

    def carry_out(self, victim: Victim) -> Account:
        """Give a victim up.

        Returns:
            What was lost beyond `victim.lost`: normally nothing.

        Raises:
            OSError: the disk refuses; the victim stays.
        """
        segment = victim.segment
        if segment is None:
            path, size_bytes = self._aside[0]
            path.unlink(missing_ok=True)
            del self._aside[0]
            self._bytes -= size_bytes
            return {}
        if victim.rank is None:
            self.remove(segment)
            return {}
        try:
            shorter = thin(segment, victim.rank)
        except CorruptSegmentError as error:
            _LOG.error(
                "spool: gave up a corrupt segment", extra={"segment": segment.name, "reason": str(error)}
            )
            self.remove(segment)
            return {key: span for key, span in segment.account.items() if key not in victim.lost}
        self._segments[self._segments.index(segment)] = shorter
        self._bytes += shorter.size_bytes - segment.size_bytes
        segment.path.unlink(missing_ok=True)
        return {}

    def _groups(self, at_most: int, *, whole: bool) -> Iterator[list[Victim]]:
        yield [Victim(None, None, {}, size) for _, size in self._aside]
        free = [segment for segment in self._segments if segment is not self._in_flight]
        for rank in range(at_most + 1):
            if whole:
                yield [_all_of(x) for x in free if max(priority.ranks_of(x.account)) == rank]
            elif rank != priority.FOLDED or _is_worth_folding(free):
                yield [_part_of(x, rank) for x in free if rank in priority.ranks_of(x.account)]


def _all_of(segment: Segment) -> Victim:
    return Victim(segment, None, segment.account, segment.size_bytes)


def _part_of(segment: Segment, rank: int) -> Victim:
    if priority.ranks_of(segment.account) == {rank}:
        return _all_of(segment)
    own = {
        key: x for key, x in segment.account.items() if not key.cause and priority.rank_of(key.kind) == rank
    }
    told = {key: x for key, x in segment.account.items() if key.cause and rank == priority.FOLDED}
    share = sum(drops.own_counts(own).values()) / segment.records
    return Victim(segment, rank, {**own, **told}, int(segment.size_bytes * share))


def _is_worth_folding(segments: list[Segment]) -> bool:
    """Tell whether one announcement for all would be much shorter than those that wait."""
    waiting = sum(drops.own_counts(x.account).get(Kind.DROP.value, 0) for x in segments)
    lines = {key for x in segments for key in x.account if key.cause or key.kind == Kind.DROP.value}
    return waiting > 2 * (len(lines) + 1)
