"""A broker with TLS, SASL/SCRAM and rights, beside an open door for the tests' own hands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.delivery.servers import Broker, Certificates, free_port, kafka

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


@dataclass(frozen=True)
class Secured:
    """The broker, and its door with a lock."""

    broker: Broker
    address: str
    authority: Path

    def add_user(self, name: str) -> None:
        """Make a user with the password of all."""
        self.broker.tool(
            "kafka.admin.ConfigCommand",
            *("--alter", "--entity-type", "users", "--entity-name", name),
            *("--add-config", f"SCRAM-SHA-256=[password={PASSWORD}]"),
        )

    def grant(self, name: str, topic: str, *operations: str) -> None:
        """Give a user rights on a topic."""
        rights = [word for operation in operations for word in ("--operation", operation)]
        main = "kafka.admin.AclCommand"
        self.broker.tool(main, "--add", "--allow-principal", f"User:{name}", "--topic", topic, *rights)

    def settings(self, name: str, folder: Path, password: str = PASSWORD) -> Path:
        """Write a client's settings."""
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
