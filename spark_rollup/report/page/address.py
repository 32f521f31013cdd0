"""Where something is, in words, where on the page it is, and what the filter knows about it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from agent.contract.audited import FleetIncident
from spark_rollup.report.page.data import PodKey, Row, TaskKey, natural
from spark_rollup.report.page.text import clip, escape, name, named

NAMES_OF_ONE = 200
"""Tasks, pods and agents' incidents that one incident names; of more it gives the number."""

_PLAIN = re.compile(r"i-[A-Za-z0-9._-]{1,78}")
"""Any other text may break the page, or be the address of something else on it."""


def cards_of(incidents: Iterable[FleetIncident]) -> Mapping[tuple[str, str], str]:
    """Give incidents their addresses: the id, unless it could break one or another namespace has it already."""
    found: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for one in incidents:
        address = local_id(one.id)
        if address in taken:
            address = anchor("i", (one.namespace, one.id))
        taken.add(address)
        found[one.namespace, one.id] = address
    return found


def local_id(id_: str) -> str:
    """Turn an incident's id into an address."""
    return escape(id_) if _PLAIN.fullmatch(id_) else anchor("i", id_)


def timeline_id(key: TaskKey) -> str:
    """Give a task's drawing an address."""
    return anchor("t", key)


def restart_id(key: PodKey) -> str:
    """Give a pod's answer an address."""
    return anchor("r", key)


def anchor(kind: str, value: object) -> str:
    """Make an address that no name from disk can break."""
    return f"{kind}-{hashlib.sha256(repr(value).encode()).hexdigest()[:16]}"


def pod_name(key: PodKey, several: bool) -> str:
    """Name a pod, with its namespace where there are several."""
    return name(f"{key[0] or '-'}/{key[1]}" if several else key[1])


def place(row: Row) -> str:
    """Name the task, store and pod that a row is about."""
    about = row["task_id"] or row["application_id"]
    what = name(about) if about else ""
    store = f" / {name(row['store'])}" if row.get("store") else ""
    pod = name(row["pod"]) if row["pod"] else ""
    return f"{what}{store}{' on ' if what and pod else ''}{pod}" or "fleet"


def whole(incident: FleetIncident) -> str:
    """Write the full address: namespace (its cluster before it), application, tasks, stores, pods."""
    parts = [_service(incident) or "the whole fleet"]
    for noun, names, limit in (
        ("task", incident.tasks, 12),
        ("store", incident.stores, 4),
        ("pod", incident.pods, 12),
    ):
        if names:
            parts.append(f"{noun}{'' if len(names) == 1 else 's'} {named(_sorted(names), limit)}")
    return " &middot; ".join(parts)


def short(incident: FleetIncident) -> str:
    """Write the address for a list or a headline."""
    tasks = f" {named(_sorted(incident.tasks), 3)}" if incident.tasks else ""
    pods = f" on {named(_sorted(incident.pods), 3)}" if incident.pods else ""
    return f"{_service(incident)}{tasks}{pods}" or "the whole fleet"


def _service(incident: FleetIncident) -> str:
    return "/".join(name(part) for part in (incident.namespace, incident.application_id) if part)


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda x: natural((x,)))


def marks(
    namespace: object, applications: Iterable[object], pods: Iterable[object], severity: object | None = None
) -> str:
    """Write what the filter of the page knows about a block, as attributes.

    Names are separated by line ends, which `escape` leaves in no name. Where there are more pods than it names, the
    filter must not hide the block from any: `data-more` says so.
    """
    known = [pod for pod in dict.fromkeys(pods) if pod]
    lists = (("n", [namespace]), ("a", applications), ("p", known[:NAMES_OF_ONE]))
    words = "".join(f' data-{key}="{_lines(values)}"' for key, values in lists)
    words += " data-more" if len(known) > NAMES_OF_ONE else ""
    return f'{words} data-s="{severity}"' if severity is not None else words


def _lines(values: Iterable[object]) -> str:
    return "\n".join(clip(value, 300) for value in dict.fromkeys(values) if value)
