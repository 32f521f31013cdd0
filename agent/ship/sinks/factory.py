"""Settings -> sink. A sink's library is loaded only when the sink is configured."""

from __future__ import annotations

from pathlib import Path

from agent.delivery import ShipSettings, SinkKind, parse_target
from agent.ship.sinks.base import Sink
from agent.ship.sinks.directory import DirectorySink
from agent.ship.sinks.kafka import KafkaSink
from agent.ship.sinks.object_store import ObjectStoreSink


def make_sink(ship_to: str, settings: ShipSettings, state_directory: Path | None) -> Sink:
    """Make the sink that the settings name.

    Args:
        ship_to: A directory or a URL, checked by the settings.
        settings: The rest.
        state_directory: What is audited; a directory sink must not lie in it.

    Raises:
        ConfigError: a library is missing (the message names the extra to install), or a file or option is wrong.
    """
    target = parse_target(ship_to)
    if target.kind is SinkKind.DIRECTORY:
        return DirectorySink(Path(target.url), state_directory)
    if target.kind is SinkKind.OBJECT_STORE:
        return ObjectStoreSink(target, settings)
    if target.kind is SinkKind.KAFKA:
        return KafkaSink(target, settings)
    from agent.ship.sinks.http import HttpSink  # an HTTP client and OpenSSL: 8 MiB, for those who need it

    return HttpSink(target, settings)
