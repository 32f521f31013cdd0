"""Judge a written play: what must and what may be said of it, and that a known bug is one incident to people.

One page, one action. Values in, values out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from agent.contract.audited import FleetIncident
from agent.contract.events import Severity
from tests.lab.judge import Judgement
from tests.lab.plan import EOS, Plan, is_exposed
from tests.lab.said import Said, is_exposure
from tests.lab.scenario import Scenario


def judge_written(
    scenario: Scenario, plan: Plan, saids: Sequence[Said], marks: Sequence[tuple[int, str]]
) -> Iterator[Judgement]:
    """Compare each finding at its loudest with what must and what may be found."""
    loud = [said for said in saids if said.is_loud]
    told = {
        said.detector
        for said in loud
        if said.agent.endswith("-told") and scenario.severity in ("", said.severity)
    }
    must = scenario.must(plan)
    if must and not told & set(must):
        yield Judgement("miss", "told", "-", " or ".join(must))
    allowed = {*scenario.always, *must, *(scenario.allow if scenario.affected(plan) else ())}
    exposed = plan.guarantee == EOS and any(map(is_exposed, filter(None, (plan.release, plan.before))))
    for said in loud:
        right = said.detector in allowed or (exposed and is_exposure(said, marks))
        what = f"{said.store} {said.confidence} {said.affected} after «{said.when}»: {said.summary}"
        kind = "excused" if right else "false_alarm"
        yield Judgement(kind, said.agent, said.task, what, said.detector, said.severity)


def wrong_incidents(saids: Iterable[Said], fleet: Sequence[FleetIncident]) -> tuple[str, ...]:
    """Tell where one bug, done once, is more or less than one incident of the told agents and of the fleet.

    An incident pages by its id, and the fleet's page is kept back by the agent's of the same id: an id that no agent
    gave is a second page.
    """
    of_agent: dict[str, dict[str, list[Said]]] = defaultdict(lambda: defaultdict(list))
    for said in saids:
        if said.is_loud and said.agent.endswith("-told"):
            of_agent[said.agent][said.incident].append(said)
    problems = [
        f"{agent} has {len(found)} incidents: {'; '.join(_words(id_, of) for id_, of in sorted(found.items()))}"
        for agent, found in sorted(of_agent.items())
        if len(found) > 1
    ]
    said_by = {id_: agent for agent, found in of_agent.items() for id_ in found}
    loud = [x for x in fleet if x.severity is not Severity.INFO and x.about_state]
    for one in loud:
        if one.id not in said_by:
            problems.append(f"the fleet pages again, {one.id} is of no agent: {one.sentence}")
        if not one.next_action:
            problems.append(f"the fleet's {one.id} has no next step")
    lasting = {
        x.incident for found in of_agent.values() for said in found.values() for x in said if x.is_open
    }
    for id_, agent in sorted(said_by.items()):
        count = sum(id_ in x.absorbed for x in loud)
        if count != (id_ in lasting) and count != 1:  # an audit has no need of what is over
            problems.append(f"{id_} of {agent} is in {count} incidents of the fleet")
    return tuple(problems)


def _words(incident: str, saids: Iterable[Said]) -> str:
    return f"{incident} ({', '.join(sorted({f'{x.detector} {x.task}' for x in saids}))})"
