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


def addresses(target: Target, ship: ShipSettings) -> list[Address]:
    """List what a sink that is no directory would connect to; empty where only its library knows."""
    scheme, ports, places = urlsplit(target.url).scheme, target.kind.ports, target.place.split(",")
    if scheme not in ports:
        _, at, host = target.place.rpartition("@")  # abfss://CONTAINER@ACCOUNT.HOST/PREFIX
        of_provider = {"s3": f"s3.{ship.region or 'us-east-1'}.amazonaws.com", "gs": "storage.googleapis.com"}
        places = [of_provider.get(scheme, host if at else "")]
        if ship.endpoint:
            endpoint = urlsplit(ship.endpoint)
            scheme, ports, places = endpoint.scheme, HTTP.ports, [endpoint.netloc]
    servers = [urlsplit(f"//{server}") for server in places if server]
    return [(x.hostname or "", x.port or ports.get(scheme, 443)) for x in servers]


def refusals(
    tried: Sequence[Address], ca_file: str = "", *, by_tls: bool, limit_s: float = REACH_S
) -> list[str]:
    """Try all addresses at once; return one sentence for each that cannot be reached."""
    said: dict[Address, str] = dict.fromkeys(tried, f"no answer within {limit_s:g} s")

    def ask(address: Address) -> None:
        try:
            with socket.create_connection(address, timeout=limit_s * _OWN_SHARE) as connection:
                if by_tls:
                    import ssl  # 3 MiB that only this question needs

                    context = ssl.create_default_context(cafile=ca_file or None)
                    context.wrap_socket(connection, server_hostname=address[0]).close()
            said[address] = ""
        except socket.gaierror:
            said[address] = "the name is not known"
        except TimeoutError:
            pass
        except OSError as error:  # ssl.SSLError is one
            said[address] = error.strerror or str(error)

    threads = [threading.Thread(target=ask, args=(x,), name="preflight-reach", daemon=True) for x in tried]
    for thread in threads:
        thread.start()
    for number, thread in enumerate(threads):
        thread.join(limit_s if number == 0 else limit_s / 10)
    return [f"{host}:{port}: {reason}" for (host, port), reason in list(said.items()) if reason]
