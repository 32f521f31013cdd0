"""Settings of earlier versions: not read any more, and refused with what replaces them, never ignored.

Of the environment only these are refused: Kubernetes itself sets variables that begin like ours, for services of our
name.
"""

from __future__ import annotations

from collections.abc import Mapping

RETIRED: Mapping[str, str] = {
    "ship.cap_files": "the spool is one database now, and `ship.cap_mib` alone limits it: remove the setting",
}
"""`group.setting` -> what to do instead."""


def refusals(
    document: Mapping[str, object], where: str, environment: Mapping[str, str], prefix: str
) -> list[str]:
    """List the settings of earlier versions that are given, one sentence each.

    Args:
        document: The settings file, parsed.
        where: Its name.
        environment: Environment variables.
        prefix: What the names of our variables begin with.
    """
    found = []
    for full, instead in RETIRED.items():
        group, _, name = full.partition(".")
        table, variable = document.get(group), f"{prefix}{full.upper().replace('.', '_')}"
        if isinstance(table, Mapping) and name in table:
            found.append(f"{where}: [{group}]: {name} is gone: {instead}")
        if variable in environment:
            found.append(f"{variable} is gone: {instead}")
    return found
