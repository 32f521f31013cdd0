"""A name that is not known -> what may have been meant. Used by agent and rollup."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

LISTED = 5
"""So many names are listed where one is not known."""


def nearest(asked: str, known: Iterable[str]) -> list[str]:
    """Give up to three known names that are spelt much like it, the nearest first; case does not matter."""
    spelt: dict[str, list[str]] = {}
    for name in sorted(known):
        spelt.setdefault(name.lower(), []).append(name)
    close = get_close_matches(asked.lower(), list(spelt), n=3, cutoff=0.6)
    return [name for one in close for name in spelt[one]][:3]


def not_here(option: str, named: Iterable[str], there: Collection[str]) -> str | None:
    """Say which applications an option names that are not there, and what may have been meant.

    `option`: as it is given, such as `--set`. `named`: ids of the applications that it names. `there`: ids of those
    that are there. Gives a sentence; None = all are there, or nothing is yet.
    """
    unknown = sorted(set(named) - set(there))
    if not unknown or not there:
        return None
    listed = sorted(there)
    known = ", ".join(listed[:LISTED]) + (", ..." if len(listed) > LISTED else "")
    near = list(dict.fromkeys(name for one in unknown for name in nearest(one, there)[:1]))
    meant = f" did you mean {' and '.join(near)}?" if near else ""
    return f"{option}: no application {', '.join(unknown)} here;{meant} there is: {known}"
