"""What Alertmanager sends of alerts that fire over time: groups, intervals and repeats. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Alert = Mapping[str, str]
_Labels = tuple[tuple[str, str], ...]
_Key = tuple[int, tuple[str, ...]]
"""Number of the route, values of the labels by which it groups."""


@dataclass(frozen=True, slots=True)
class Route:
    receiver: str  # who is told
    matches: Mapping[str, str]  # label -> value that an alert must have
    group_by: tuple[str, ...]  # labels whose values make a group
    repeat_m: int  # minutes after which a group that goes on is sent again
    interval_m: int  # least minutes between two notifications of a group


@dataclass(slots=True)
class _Group:
    sent_m: int
    known: frozenset[_Labels]


def notified(routes: Sequence[Route], fired: Sequence[Sequence[Alert]], step_m: int) -> list[tuple[int, str]]:
    """List notifications as (step, receiver), by what fires, step by step of so many minutes.

    A group is sent when it appears, when an alert joins it, and when it goes on for the repeat interval; that an alert
    ended is not counted. The first route that matches takes an alert.
    """
    groups: dict[_Key, _Group] = {}
    sent: list[tuple[int, str]] = []
    for step, alerts in enumerate(fired):
        now_m = step * step_m
        here: dict[_Key, set[_Labels]] = {}
        for alert in alerts:
            place = next((n for n, x in enumerate(routes) if x.matches.items() <= alert.items()), None)
            if place is not None:
                key = (place, tuple(alert.get(label, "") for label in routes[place].group_by))
                here.setdefault(key, set()).add(tuple(sorted(alert.items())))
        for gone in groups.keys() - here.keys():
            del groups[gone]
        for key, members in here.items():
            route, group = routes[key[0]], groups.get(key)
            waited_m = now_m - group.sent_m if group else 0
            joined = group is not None and not members <= group.known and waited_m >= route.interval_m
            if group is None or joined or waited_m >= route.repeat_m:
                sent.append((step, route.receiver))
                groups[key] = _Group(now_m, frozenset(members))
    return sent
