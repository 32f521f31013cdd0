"""Where something is, in words, and where on the page it is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.caps import NAMES_OF_ONE
from spark_rollup.report.page.data import PageData, PodKey, Row, TaskKey, level
from spark_rollup.report.page.text import clip, escape, name, named, parse_us

_PLAIN = re.compile(r"i-[A-Za-z0-9._-]{1,78}")
"""Any other text may break the page, or be the address of something else on it."""


def first_seen_us(data: PageData) -> int:
    """Find when the covered time begins, microseconds since the epoch."""
    times = (parse_us(row["first_seen"]) or data.as_of_us for row in data.coverage)
    return min(times, default=data.as_of_us)


def task_key(row: Row) -> TaskKey:
    """Name the task of a row."""
    return str(row["namespace"] or ""), str(row["application_id"]), str(row["task_id"])


def pod_key(row: Row) -> PodKey:
    """Name the pod of a row."""
    return str(row["namespace"] or ""), str(row["pod"])


def natural(key: Sequence[str]) -> list[tuple[int, int, str]]:
    """Order names as people count: `0_2` before `0_10`."""
    parts = re.split(r"([0-9]{1,18})", "/".join(key))
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts]


Cards = Mapping[tuple[str, str], str]
"""Namespace and id of every incident that has a card -> its address on the page."""


def cards_of(incidents: Iterable[FleetIncident]) -> Cards:
    """Give incidents their addresses: the id, unless it could break one or another namespace has it already."""
    found: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for one in incidents:
        address = local_id(one.id)
        if address in taken:
            address = f"i-{_hash((one.namespace, one.id))}"
        taken.add(address)
        found[one.namespace, one.id] = address
    return found


def card_of(incident: FleetIncident, cards: Cards) -> str:
    """Find an incident's address; empty: it has no card."""
    return cards.get((incident.namespace, incident.id), "")


def local_id(id_: str) -> str:
    """Turn an incident's id into an address."""
    return escape(id_) if _PLAIN.fullmatch(id_) else f"i-{_hash(id_)}"


def timeline_id(key: TaskKey) -> str:
    """Give a task's drawing an address that no name from disk can break."""
    return f"t-{_hash(key)}"


def restart_id(key: PodKey) -> str:
    """Give a pod's answer an address."""
    return f"r-{_hash(key)}"


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def has_namespaces(data: PageData) -> bool:
    """Return whether pods and tasks must be named with their namespace."""
    incidents = {x.namespace for x in data.incidents}
    return len(incidents | {str(row["namespace"] or "") for row in data.pods}) > 1


def pod_name(key: PodKey, several: bool) -> str:
    """Name a pod, with its namespace where there are several."""
    return name(f"{key[0] or '-'}/{key[1]}" if several else key[1])


def place(row: Row) -> str:
    """Name the task, store and pod that a row is about."""
    if row["task_id"]:
        what = name(row["task_id"])
    else:
        what = name(row["application_id"]) if row["application_id"] else ""
    store = f" / {name(row['store'])}" if row.get("store") else ""
    pod = name(row["pod"]) if row["pod"] else ""
    return f"{what}{store}{' on ' if what and pod else ''}{pod}" or "fleet"


def whole(incident: FleetIncident) -> str:
    """Write the full address: namespace (its cluster before it), application, tasks, stores, pods."""
    service = (incident.namespace, incident.application_id)
    parts = ["/".join(name(part) for part in service if part) or "the whole fleet"]
    if incident.tasks:
        parts.append(f"{'task' if len(incident.tasks) == 1 else 'tasks'} {named(_sorted(incident.tasks))}")
    if incident.stores:
        parts.append(
            f"{'store' if len(incident.stores) == 1 else 'stores'} {named(_sorted(incident.stores), 4)}"
        )
    if incident.pods:
        parts.append(f"{'pod' if len(incident.pods) == 1 else 'pods'} {named(_sorted(incident.pods))}")
    return " &middot; ".join(parts)


def short(incident: FleetIncident) -> str:
    """Write the address for a list or a headline."""
    what = "/".join(name(part) for part in (incident.namespace, incident.application_id) if part)
    tasks = f" {named(_sorted(incident.tasks), 3)}" if incident.tasks else ""
    pods = f" on {named(_sorted(incident.pods), 3)}" if incident.pods else ""
    return f"{what}{tasks}{pods}" or "the whole fleet"


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda x: natural((x,)))


def marks(
    namespaces: Iterable[object],
    applications: Iterable[object],
    pods: Iterable[object],
    severity: object | None = None,
) -> str:
    """Write what the filter of the page knows about a block, as attributes.

    Names are separated by line ends, which `escape` leaves in no name. Where there are more pods than it names, the
    filter must not hide the block from any: `data-more` says so.
    """
    known = [pod for pod in dict.fromkeys(pods) if pod]
    lists = (("n", namespaces), ("a", applications), ("p", known[:NAMES_OF_ONE]))
    words = "".join(f' data-{key}="{_lines(values)}"' for key, values in lists)
    words += " data-more" if len(known) > NAMES_OF_ONE else ""
    return f'{words} data-s="{level(severity)}"' if severity is not None else words


def _lines(values: Iterable[object]) -> str:
    return "\n".join(clip(value, 300) for value in dict.fromkeys(values) if value)
