"""What an agent counts as open in a heartbeat, against the findings that are known: an event can be lost. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Counted(NamedTuple):
    """What one heartbeat says; `ids`: of open criticals, then of warnings, perhaps not of all."""

    boot: str
    sequence: int
    at_us: int
    criticals: int
    warnings: int
    ids: Sequence[str]

    def ends(self, finding_id: str | None, boot: str, sequence: int) -> bool:
        """Return whether what was open earlier in this boot is over by now: the event of its end is lost.

        An agent that was restarted may have forgotten it: of an earlier boot nothing is said.
        """
        names_all = len(self.ids) == self.criticals + self.warnings
        return names_all and boot == self.boot and sequence < self.sequence and finding_id not in self.ids

    def is_before(self, boot: str, sequence: int, at_us: int) -> bool:
        """Return whether something was said later: of what is resolved by then it is known that it was open."""
        return sequence > self.sequence if boot == self.boot else at_us >= self.at_us

    def missed(self, criticals: Collection[str], known: Collection[str]) -> tuple[int, int]:
        """Count open criticals and open warnings that are not known.

        Where fewer ids are named than are counted, the counts decide. `known`: ids of both.
        """
        more = _missing(self.criticals, self.ids[: max(self.criticals, 0)], criticals)
        both = _missing(self.criticals + self.warnings, self.ids, known)
        return more, max(both - more, 0)


def _missing(number: int, ids: Iterable[str], known: Collection[str]) -> int:
    return max(number - len(known), len(set(ids) - set(known)), 0)
