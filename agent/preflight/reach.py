"""Can an address be reached? Name, connection, and for a collector by TLS the handshake; in bounded time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from urllib.parse import urlsplit

from agent.delivery import HTTP, ShipSettings, Target

REACH_S = 3.0  # for all addresses together, names included: a resolver alone may take half a minute to say no

_OWN_SHARE = 0.4
"""Of it that connection and handshake may take each: then they notice themselves that time is up, and clean up."""

Address = tuple[str, int]
_PROVIDERS = {"s3": "s3.{region}.amazonaws.com", "gs": "storage.googleapis.com"}
_DEFAULT_REGION = "us-east-1"


def addresses(target: Target, ship: ShipSettings) -> tuple[Address, ...]:
    """List what a sink that is no directory would connect to; empty where only its library knows."""
    scheme = urlsplit(target.url).scheme
    if scheme in target.kind.ports:
        port = target.kind.ports[scheme]
        return tuple(_host_and_port(server, port) for server in target.place.split(",") if server)
    if ship.endpoint:
        endpoint = urlsplit(ship.endpoint)
        return (_host_and_port(endpoint.netloc, HTTP.ports[endpoint.scheme]),)
    if scheme in _PROVIDERS:
        return ((_PROVIDERS[scheme].format(region=ship.region or _DEFAULT_REGION), 443),)
    _, at, host = target.place.rpartition("@")  # abfss://CONTAINER@ACCOUNT.HOST/PREFIX
    return ((host, 443),) if at else ()


def _host_and_port(text: str, default: int) -> Address:
    split = urlsplit(f"//{text}")
    return split.hostname or "", split.port or default


def refusals(
    tried: Sequence[Address], ca_file: str = "", *, by_tls: bool, limit_s: float = REACH_S
) -> list[str]:
    """Try all addresses at once; return one sentence for each that cannot be reached."""
    said: dict[Address, str] = dict.fromkeys(tried, f"no answer within {limit_s:g} s")

    def ask(address: Address) -> None:
        said[address] = _try(address, ca_file, by_tls=by_tls, limit_s=limit_s)

    threads = [threading.Thread(target=ask, args=(x,), name="preflight-reach", daemon=True) for x in tried]
    for thread in threads:
        thread.start()
    for number, thread in enumerate(threads):
        thread.join(limit_s if number == 0 else limit_s / 10)
    return [f"{host}:{port}: {reason}" for (host, port), reason in list(said.items()) if reason]


def _try(address: Address, ca_file: str, *, by_tls: bool, limit_s: float) -> str:
    try:
        with socket.create_connection(address, timeout=limit_s * _OWN_SHARE) as connection:
            if by_tls:
                import ssl  # 3 MiB that only this question needs

                context = ssl.create_default_context(cafile=ca_file or None)
                with context.wrap_socket(
                    connection, server_hostname=address[0], do_handshake_on_connect=False
                ) as secure:
                    secure.do_handshake()
    except socket.gaierror:
        return "the name is not known"
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    except OSError as error:  # ssl.SSLError is one
        return error.strerror or str(error)
    return ""
