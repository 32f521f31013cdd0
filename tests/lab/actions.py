"""Every action by its name. Adding one is adding an entry to one of the registries."""

from __future__ import annotations

from tests.lab import acts_around, acts_disk, acts_fleet, acts_process, acts_records
from tests.lab.action import Action

ACTIONS: dict[str, Action] = {
    **acts_records.ACTIONS,
    **acts_process.ACTIONS,
    **acts_fleet.ACTIONS,
    **acts_disk.ACTIONS,
    **acts_around.ACTIONS,
}
