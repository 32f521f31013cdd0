"""Places and stores that cannot be read: each is a blind interval, until it can be read or is gone."""

from __future__ import annotations

from collections.abc import Mapping

from agent.engine.listing import LINK, Unlisted
from agent.inventory.blindness import close_blind
from agent.inventory.disk import Entry, EntryKind, Unseen
from agent.inventory.model import BlindInterval, Database, Inventory
from agent.inventory.observations import DAMAGE, KNOWN_GAPS, problem_kind
from agent.layout.paths import PathRole, StatePath, classify, join

LASTS_US = 5_000_000  # what cannot be read for so long, at two readings at least, is no writer at work

_REFUSALS = frozenset({Unseen.DENIED, Unseen.UNREADABLE, Unseen.TOO_LARGE})
_LISTED = frozenset({PathRole.APPLICATION, PathRole.TASK, PathRole.TOPOLOGY})


class UnreadablePaths:
    """Begins and ends the blind intervals of places that may not be read."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.open: dict[str, BlindInterval] = {}  # to read only
        self._inside: dict[str, set[str]] = {}  # directory -> what is open of its entries

    def note(
        self, place: StatePath, unseen: Unseen | None, at_us: int, what: str = "", *, listed: bool = False
    ) -> None:
        """Take what a reading of a place came to, or (`listed`) a listing of it; None = it was seen."""
        key = f"{place.path}/." if listed else place.path
        known = self.open.get(key)
        if unseen in _REFUSALS and not {place.path, f"{place.path}/."} & self.open.keys():
            detail = f"at {place.path or 'the state directory'!r}{what}"
            interval = BlindInterval(
                at_us, f"{unseen}", None, place.application, place.task, detail, place=place.path
            )
            self._inventory.blind.append(interval)
            self.open[key] = interval
        elif unseen not in _REFUSALS and known is not None:
            close_blind(self._inventory, known, at_us)
            del self.open[key]

    def note_listing(self, place: StatePath, entries: tuple[Entry, ...] | Unseen, at_us: int) -> None:
        """Take what was found in a directory of applications or tasks: a link is not followed, nothing is known of it.

        Whether the directory itself is seen is another question: it may be there and not be listed.
        """
        self.note(place, entries if isinstance(entries, Unseen) else None, at_us, listed=True)
        if not isinstance(entries, Unseen):
            links = (join(place.path, x.name) for x in entries if x.kind is EntryKind.SYMLINK)
            self.note_inside(place.path, {x: LINK for x in links if classify(x).role in _LISTED}, at_us)

    def note_inside(self, directory: str, unread: Mapping[str, Unlisted], at_us: int) -> None:
        """Take which entries of a directory that was listed cannot be listed."""
        for path in sorted(self._inside.pop(directory, set()) - unread.keys()):
            self.note(classify(path), None, at_us, listed=True)
        for path, (unseen, what) in unread.items():
            self.note(classify(path), unseen, at_us, what, listed=True)
        if unread:
            self._inside[directory] = set(unread)

    def note_content(self, place: StatePath, database: Database | None, at_us: int) -> None:
        """Take what a reading of a database could not read; None = it is not there."""
        key = f"{place.path}/"
        known = self.open.get(key)
        lasting = () if database is None else database.lasting_problems(at_us, for_us=LASTS_US)
        problems = [x for x in lasting if problem_kind(x) not in KNOWN_GAPS]
        cause = _cause(problems)
        if database is not None and database.goes_on:
            cause = "store-being-read"
        if known is not None and not (problems and known.cause == cause):
            close_blind(self._inventory, known, at_us)
            del self.open[key]
            known = None
        if not problems or database is None:
            return
        if known is None:
            since_us = max(min(database.problem_since_us[x] for x in problems), self._inventory.started_us)
            known = BlindInterval(
                since_us, cause, None, place.application, place.task, "", place.store, place=place.path
            )
            self._inventory.blind.append(known)
            self.open[key] = known
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        segment = f", segment {place.segment}" if place.segment else ""
        known.detail = f"store {place.store}{segment}: {problems[0]}{more}"

    def forget_below(self, path: str, at_us: int) -> None:
        """End what is open for a place that is gone, and for all below it."""
        for known in [x for x in self.open if x == path or x.startswith(f"{path}/")]:
            close_blind(self._inventory, self.open.pop(known), at_us)


def _cause(problems: list[str]) -> str:
    return "store-damaged" if any(problem_kind(x) in DAMAGE for x in problems) else "store-unread"
