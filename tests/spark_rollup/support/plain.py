"""Events as they were told -> what an audit says of them, in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.contract.events import Kind
from spark_rollup.correlate import RULES
from spark_rollup.fleet import reduce, thin
from spark_rollup.fleet.application import Rule
from spark_rollup.fleet.beats import Beat
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import Question


class Part:
    """A row inside an event, such as one of its stores; what it does not say is None."""

    def __init__(self, values: Mapping[str, object]) -> None:
        """Take its values."""
        vars(self).update(values)

    def __getattr__(self, name: str) -> None:
        """Answer for what it does not say."""
        return


def event_of(event_id: str, data: Mapping[str, Any]) -> Event:
    """Read what one line says, which was checked before."""
    cluster, blind = data.get("cluster"), data.get("blind") or ()
    values: dict[str, Any] = {name: data.get(name) for name in Event._fields}
    for name in ("stores", "offsets", "blind", "settings", "evidence"):
        if values[name] is not None:
            values[name] = [Part(one) for one in values[name]]
    kind = data["kind"]
    values |= {
        "id": event_id,
        "namespace": f"{cluster}/{data['namespace']}" if cluster else data["namespace"],
        "routine": kind == Kind.SUMMARY.value or (kind == Kind.HEARTBEAT.value and not blind),
    }
    return Event(**values)


def events_of(lines: Iterable[str]) -> list[Event]:
    """Read lines, each event once."""
    found: dict[str, Event] = {}
    for line in lines:
        envelope = json.loads(line)
        found.setdefault(envelope["id"], event_of(envelope["id"], envelope["data"]))
    return list(found.values())


def events_of_data(told: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Read what lines were decoded to."""
    return [event_of(str(number), data) for number, data in enumerate(told)]


def texts(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Write each row as text, its columns by name."""
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def tables(
    events: Sequence[Event],
    as_of_us: int,
    rules: Sequence[Rule] = RULES,
    kept: Sequence[Event] = (),
    heard: Sequence[Beat] = (),
) -> Mapping[str, list[Row]]:
    """Audit events, and what is kept of other days: rows by table."""
    asked = Question(as_of_us, rules=rules)
    known = [x for x in events if x.observed_at_us <= as_of_us]
    pods = thin.of_pods(known, kept, heard)
    stories = [one for where, given in pods.items() if (one := reduce.story(where, given, asked))]
    return reduce.tables(stories, thin.of_applications([*known, *kept]), asked)
