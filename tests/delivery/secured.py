"""A broker with TLS, SASL/SCRAM and rights, beside an open door for the tests' own hands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deploy.demo.agents import free_port
from tests.delivery.servers import Broker, Certificates, kafka

PASSWORD = "statewarden-password"
_MORE = """listeners=PLAINTEXT://127.0.0.1:{{port}},SAFE://127.0.0.1:{safe},CONTROLLER://127.0.0.1:{{controller}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SAFE://127.0.0.1:{safe}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SAFE:SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.safe.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.safe.ssl.keystore.type=PEM
listener.name.safe.ssl.keystore.location={pem}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


@cache  # what it was asked for ends with the client
def hands(broker: Broker) -> Any:
    """Give a client that may do everything: the distribution's own tools take seconds for each step."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": broker.address, "log_level": 2})


def wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(120)


@dataclass(frozen=True)
class Secured:
    """The broker, and its door with a lock."""

    broker: Broker
    address: str
    authority: Path

    def add_user(self, name: str) -> None:
        """Make a user with the password of all."""
        from confluent_kafka import admin

        secret = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4096)
        change = admin.UserScramCredentialUpsertion(name, secret, PASSWORD.encode())
        wait(hands(self.broker).alter_user_scram_credentials([change]))

    def grant(self, name: str, topic: str, *operations: str) -> None:
        from confluent_kafka import admin

        place = (admin.ResourceType.TOPIC, topic, admin.ResourcePatternType.LITERAL, f"User:{name}", "*")
        rights = [
            admin.AclBinding(*place, getattr(admin.AclOperation, x.upper()), admin.AclPermissionType.ALLOW)
            for x in operations
        ]
        wait(hands(self.broker).create_acls(rights))

    def settings(self, name: str, folder: Path, password: str = PASSWORD) -> Path:
        path = folder / f"{name}.properties"
        path.write_text(
            "# how to get in\n"
            f"security.protocol=SASL_SSL\nssl.ca.location={self.authority}\n"
            f"sasl.mechanism=SCRAM-SHA-256\nsasl.username={name}\nsasl.password={password}\n"
        )
        return path


@contextmanager
def secured(work: Path, certificates: Certificates) -> Iterator[Secured]:
    """Run it until the block ends."""
    safe = free_port()
    pem = work / "server.pem"
    pem.write_bytes(certificates.key.read_bytes() + certificates.certificate.read_bytes())
    with kafka(work, _MORE.format(safe=safe, pem=pem)) as broker:
        yield Secured(broker, f"127.0.0.1:{safe}", certificates.certificate)
