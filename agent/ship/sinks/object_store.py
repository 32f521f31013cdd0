"""The object store sink: S3, Google Cloud Storage, Azure, and what speaks their language. Sole importer of obstore."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.delivery import ShipSettings, Target
from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.sinks.base import FIX_DELAY_S, SUFFIX, packed, read_secrets, read_text, require_same

_NOT_IMPLEMENTED = "501 Not Implemented"
_QUERY = re.compile(r"\?\S*")


class ObjectStoreSink:
    """Writes `<prefix>/<pod uid>/<boot>-<first>-<last>.jsonl.gz`, and never over another content.

    The name says the content, so that trying again is harmless: an object that is there already with the same lines
    is an acknowledgement.
    """

    def __init__(self, target: Target, settings: ShipSettings) -> None:
        """Load the library; nothing is asked of the network.

        Raises `ConfigError`: the library is not installed, or an option is unknown to it.
        """
        try:
            import obstore
            from obstore import exceptions, store
        except ImportError as error:
            raise ConfigError(
                f"ship_to {target.url} needs obstore: pip install 'statewarden[{target.kind.extra}]' ({error})"
            ) from error
        self._obstore, self._errors = obstore, exceptions
        self._from_url: Callable[..., Any] = store.from_url
        self._target, self._settings = target, settings
        self._can_create = True
        self._store: Any = self._connect()

    def put(self, name: str, payload: bytes) -> None:
        """Store a segment under its name unless it is there; see `Sink.put`.

        Raises `RetryableShipError`: the store refuses or cannot be reached. Raises `PermanentShipError`: another
        content has this name already.
        """
        path = f"{name}{SUFFIX}"
        errors = self._errors
        try:
            self._create(path, packed(payload))
        except errors.AlreadyExistsError:
            self._require_same(path, payload)
        except errors.InvalidPathError as error:
            raise PermanentShipError(f"{path}: {_brief(error)}") from error
        except (errors.PermissionDeniedError, errors.UnauthenticatedError, OSError) as error:
            # a missing bucket comes as the built-in FileNotFoundError
            with suppress(ConfigError):  # in the middle of a rotation: the next attempt reads it
                self._store = self._connect()
            raise RetryableShipError(f"{path}: {_brief(error)}", FIX_DELAY_S) from error
        except errors.BaseError as error:
            raise RetryableShipError(f"{path}: {_brief(error)}") from error

    def segments(self) -> Iterator[tuple[str, bytes]]:
        """Give (name, content) of every segment below the prefix, in the order of their names.

        Raises `RetryableShipError`: the store refuses or cannot be reached.
        """
        try:
            listed = [x["path"] for page in self._obstore.list(self._store) for x in page]
            for path in sorted(x for x in listed if ".jsonl" in x):
                yield path, bytes(self._obstore.get(self._store, path).bytes())
        except (self._errors.BaseError, OSError) as error:
            raise RetryableShipError(f"{self._target.url}: {_brief(error)}") from error

    def _create(self, path: str, content: bytes) -> None:
        if self._can_create:
            try:
                self._obstore.put(self._store, path, content, mode="create", use_multipart=False)
            except (self._errors.NotSupportedError, NotImplementedError):
                pass
            except self._errors.GenericError as error:
                if _NOT_IMPLEMENTED not in str(error):
                    raise
            else:
                return
            self._can_create = False  # a server that cannot: the same name always gets the same lines
        self._obstore.put(self._store, path, content, use_multipart=False)

    def _require_same(self, path: str, payload: bytes) -> None:
        try:
            there = bytes(self._obstore.get(self._store, path).bytes())
        except self._errors.BaseError as error:
            raise RetryableShipError(f"{path}: {_brief(error)}") from error
        require_same(there, payload, path)

    def _connect(self) -> Any:
        settings = self._settings
        options: dict[str, Any] = {
            "allow_http": settings.allow_http,
            "timeout": f"{settings.timeout_seconds}s",
        }
        if settings.ca_file:
            options["root_certificate"] = read_text(settings.ca_file)
        try:
            return self._from_url(
                self._target.url,
                config=_config(self._target, settings),
                client_options=options,
                # the shipper waits between attempts, and a last flush must not wait for minutes
                retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=settings.timeout_seconds)},
            )
        except (self._errors.BaseError, ValueError, TypeError) as error:
            raise ConfigError(f"ship_to {self._target.url}: {_brief(error)}") from error


def make(target: Target, settings: ShipSettings, state_directory: Path | None) -> ObjectStoreSink:
    """Make the sink of a target; see `Make`."""
    return ObjectStoreSink(target, settings)


def _config(target: Target, settings: ShipSettings) -> Mapping[str, str]:
    config = read_secrets(settings.credentials_dir)
    if settings.region:
        config["region"] = settings.region
    if settings.endpoint:
        config["endpoint"] = settings.endpoint
        if target.url.startswith("s3"):
            config["virtual_hosted_style_request"] = "false"  # bucket.host seldom resolves outside AWS
    return config


def _brief(error: Exception) -> str:
    """Return the first line, without the query of any address: that is where signatures travel."""
    return _QUERY.sub("?...", str(error).partition("\n")[0])
