"""Which kind a store is, by its databases and by what its changelog says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from agent.contract.changelog import Times
from agent.errors import LayoutError
from agent.verify.kinds import (
    DEFAULT,
    SESSION_WITH_HEADERS,
    TIMESTAMPED,
    WINDOW_WITH_HEADERS,
    WITH_HEADERS,
    Kind,
    could_be,
    record_key,
    time_of,
)
from agent.verify.versions import could_be_versioned

Entry = tuple[bytes, str, bytes]


def times_of_disk(segments: Iterable[int]) -> Times:
    """Return times that are true of the segments on disk (one at least), where the retention is not known.

    A segment may really be shorter: then there is none between two of these. All that is on disk is live: a put that
    moves stream time drops what has expired.
    """
    starts = sorted(segments)
    return Times(0, gcd(*starts) or 1 << 62, starts[0])


def kind_of_one(entries: Sequence[Entry]) -> Kind:
    """Return the kind of a store of one database, by some of its entries."""
    plain = [x for x in entries if x[1] == DEFAULT]
    is_versioned = plain and len(plain) == len(entries) and all(could_be_versioned(x[0], x[2]) for x in plain)
    return Kind.VERSIONED if is_versioned else Kind.KEY_VALUE


def kind_of_segments(entries: Sequence[tuple[int, Entry]], keys: Sequence[bytes], times: Times) -> Kind:
    """Return the kind of a store of segments, by some entries, each with its segment, and some keys of its changelog.

    Raises `LayoutError`: no kind, or more than one, fits.
    """
    fitting = [kind for kind in Kind if kind.is_segmented and _fits(kind, entries, keys, times)]
    if len(fitting) > 1 and Kind.WINDOW in fitting and not entries:
        fitting = [Kind.WINDOW] if all(could_be(Kind.WINDOW, x) for x in keys) else fitting
    if not fitting:
        raise LayoutError(
            f"its entries are of no known form, or its segments are not {times.interval_ms} ms long (half of the"
            " retention): give --retention"
        )
    if len(fitting) > 1:
        raise LayoutError(f"its entries could be of {' or '.join(fitting)}: give --kind")
    return fitting[0]


def _fits(kind: Kind, entries: Sequence[tuple[int, Entry]], keys: Sequence[bytes], times: Times) -> bool:
    is_session = kind in (Kind.SESSION, Kind.TIME_FIRST_SESSION)
    is_time_first = kind in (Kind.TIME_FIRST_WINDOW, Kind.TIME_FIRST_SESSION)
    if not all(could_be(Kind.SESSION if is_session else Kind.WINDOW, key) for key in keys):
        return False
    if is_time_first and not entries:
        return False
    for segment, (key, family, _) in entries:
        if (family in (TIMESTAMPED, WITH_HEADERS) and kind is not Kind.WINDOW) or (
            family == SESSION_WITH_HEADERS and not is_session
        ):
            return False
        if family == WINDOW_WITH_HEADERS and kind is not Kind.TIME_FIRST_WINDOW:
            return False
        try:
            if times.segment(time_of(kind, record_key(kind, key))) != segment:
                return False
        except LayoutError:
            return False
    return True
