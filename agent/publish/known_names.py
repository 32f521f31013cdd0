"""Which store and topic names the inventory of an application holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.config import Config
from agent.errors import ConfigError
from agent.inventory.model import CheckpointFact, Inventory, Task
from agent.layout import names
from agent.publish.pseudonyms import Pseudonyms, names_in


def make_pseudonyms(config: Config, inventory: Inventory) -> Pseudonyms | None:
    """Make what hides names, if the operator asked for it.

    Raises:
        ConfigError: the key cannot be read, or is too short to hide anything.
    """
    if not config.privacy.hash_names:
        return None
    key = b""
    if config.privacy.hash_key_file:
        try:
            key = Path(config.privacy.hash_key_file).read_bytes().strip()
        except OSError as error:
            raise ConfigError(f"cannot read {config.privacy.hash_key_file}: {error.strerror}") from error
        if len(key) < 16:
            raise ConfigError(f"{config.privacy.hash_key_file}: a key has at least 16 bytes")
    return Pseudonyms(key, lambda application: names_of(inventory, application))


def names_of(inventory: Inventory, application_id: str) -> Iterator[str]:
    """List the names of an application's stores and topics."""
    application = inventory.applications.get(application_id)
    for task in application.tasks.values() if application is not None else ():
        yield from _names_of_task(task, application_id)


def _names_of_task(task: Task, application_id: str) -> Iterator[str]:
    yield from task.stores
    for past in task.past:
        yield from past.offsets
    for fact in task.checkpoints:
        yield from _names_of_checkpoint(fact, application_id)
    if task.walk is not None:
        yield from task.walk.stores


def _names_of_checkpoint(fact: CheckpointFact, application_id: str) -> Iterator[str]:
    for name in fact.offsets:
        yield name
        yield f"{application_id}-{name}{names.CHANGELOG_SUFFIX}"
    for entry in fact.foreign:
        yield from names_in(entry.topic, application_id)
