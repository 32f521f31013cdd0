"""Settings -> sink. A sink's module and library are loaded only when the sink is configured."""

from __future__ import annotations

import importlib
from pathlib import Path

from agent.delivery import ShipSettings, parse_target
from agent.ship.sinks.base import Make, Sink


def make_sink(ship_to: str, settings: ShipSettings, state_directory: Path | None) -> Sink:
    """Make the sink that the settings name.

    `ship_to`: a directory or a URL, checked by the settings. `state_directory`: what is audited; a directory sink
    must not lie in it.

    Raises:
        ConfigError: a library is missing (the message names the extra to install), or a file or option is wrong.
    """
    target = parse_target(ship_to)
    make: Make = importlib.import_module(f"agent.ship.sinks.{target.kind.module}").make
    return make(target, settings, state_directory)
