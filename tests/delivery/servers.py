"""Real servers for the delivery tests, on loopback, each ended by its own context manager."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.demo.agents import free_port
from spark_rollup.spark.java import find_java, packaged_home
from tests.conftest import wait_until

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(sys.prefix)
JARS = VENV / "kafka-broker"
READY_S = 240.0
BUCKET = "statewarden-events"
KEY, SECRET = "statewarden-key", "statewarden-secret"


def accepts(port: int) -> bool:
    """Tell whether somebody listens on a port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(command: Sequence[str], log: Path, port: int, **environment: str) -> Iterator[None]:
    """Run a server until the block ends; it is ready when its port answers."""
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **environment}, cwd=log.parent
        )
    try:

        def is_ready() -> bool:
            if server.poll() is not None:
                raise RuntimeError(f"{command[0]} ended: {log.read_text(errors='replace')[-2000:]}")
            return accepts(port)

        wait_until(is_ready, READY_S)
        yield
    finally:
        server.terminate()
        try:
            server.wait(120)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(120)


@dataclass(frozen=True)
class S3:
    """An S3 service: address and the settings with which an agent reaches it."""

    endpoint: str
    credentials: Path

    @property
    def ship(self) -> dict[str, Any]:
        """Settings of group `[ship]`."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "allow_http": True,
            "credentials_dir": str(self.credentials),
        }

    def store(self) -> Any:
        """Open the bucket with a client of its own."""
        from obstore.store import S3Store

        return S3Store(
            BUCKET,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=KEY,
            secret_access_key=SECRET,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )


def secrets(folder: Path, **values: str) -> Path:
    """Make a folder as Kubernetes mounts a Secret: links into a hidden folder."""
    hidden = folder / "..data"
    hidden.mkdir(parents=True)
    for name, value in values.items():
        (hidden / name).write_text(value + "\n")
        (folder / name).symlink_to(Path("..data") / name)
    return folder


@contextmanager
def moto(work: Path) -> Iterator[S3]:
    """Run moto's S3, with an empty bucket."""
    import urllib.request

    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, work / "moto.log", port):
        service = S3(
            f"http://127.0.0.1:{port}",
            secrets(work / "moto-secret", access_key_id=KEY, secret_access_key=SECRET),
        )
        request = urllib.request.Request(f"{service.endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
        yield service


def versitygw_binary() -> str | None:
    """Find versitygw, which `make prove` builds through the Go module proxy."""
    return shutil.which("versitygw", path=f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")


@contextmanager
def versitygw(work: Path) -> Iterator[S3]:
    """Run versitygw over a directory, with an empty bucket."""
    binary, port, data = versitygw_binary(), free_port(), work / "versitygw"
    assert binary is not None
    (data / BUCKET).mkdir(parents=True)
    command = [binary, "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "posix", str(data)]
    with running(command, work / "versitygw.log", port):
        yield S3(
            f"http://127.0.0.1:{port}",
            secrets(work / "gw-secret", access_key_id=KEY, secret_access_key=SECRET),
        )


def java() -> str:
    return str(find_java(os.environ, shutil.which, packaged_home))


@dataclass(frozen=True)
class Broker:
    address: str
    work: Path

    def tool(self, main: str, *arguments: str, timeout_s: float = 120) -> str:
        """Run a tool of the Kafka distribution and return what it printed."""
        command = [
            java(),
            "-Xmx256m",
            "-cp",
            f"{JARS}/*",
            main,
            "--bootstrap-server",
            self.address,
            *arguments,
        ]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=True, cwd=self.work
        ).stdout

    def make_topic(self, name: str = "", **config: str) -> str:
        """Make a topic, of a name of its own if none is given; gives the name."""
        from confluent_kafka.admin import AdminClient, NewTopic

        settings = {key.replace("_", "."): value for key, value in config.items()}
        name = name or f"topic-{uuid.uuid4().hex[:8]}"
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 2})
        for future in client.create_topics([NewTopic(name, 3, 1, config=settings)]).values():
            future.result(120)
        return name

    def values(self, topic: str) -> list[bytes]:
        """Read the values of all messages that a topic has now."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        found: list[bytes] = []
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "nobody", "log_level": 2})
        try:
            for number in consumer.list_topics(topic, timeout=60).topics[topic].partitions:
                place = TopicPartition(topic, number, OFFSET_BEGINNING)
                first, end = consumer.get_watermark_offsets(place, timeout=60)
                if first < end:
                    consumer.assign([place])
                while first < end:
                    message = consumer.poll(60)
                    assert message is not None, f"{topic}: nothing more comes at offset {first} of {end}"
                    assert not message.error(), message.error()
                    found.append(message.value())
                    first = message.offset() + 1
        finally:
            consumer.close()
        return found

    def consume(self, topic: str, *arguments: str, count: int) -> str:
        """Read so many messages of a topic from its beginning with the console consumer."""
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        end = ("--max-messages", str(count), "--timeout-ms", "60000")
        return self.tool(main, "--topic", topic, "--from-beginning", *end, *arguments)


@contextmanager
def kafka(work: Path, more: str = "") -> Iterator[Broker]:
    """Run one Kafka node in KRaft mode, broker and controller in one.

    `more` settings come beside or instead of ours; `{port}` and `{controller}` are filled in.
    """
    port, controller = free_port(), free_port()
    config = work / "kafka.properties"
    config.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={work / "kafka-logs"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""
        + more.format(port=port, controller=controller)
    )
    (work / "log4j.properties").write_text(
        "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.SimpleLayout\n"
    )
    # what lives for minutes never gets back what the second compiler takes
    quick = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options = [*quick, f"-Dlog4j.configuration=file:{work / 'log4j.properties'}", "-cp", f"{JARS}/*"]
    format_storage = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(config)]
    subprocess.run([java(), *options, *format_storage], check=True, capture_output=True, timeout=120)
    with running([java(), *options, "kafka.Kafka", str(config)], work / "kafka.log", port):
        yield Broker(f"127.0.0.1:{port}", work)


@dataclass(frozen=True)
class Certificates:
    """A certificate for 127.0.0.1 and its key, in files; it is its own authority."""

    certificate: Path
    key: Path


def make_certificates(folder: Path) -> Certificates:
    """Make a self-signed certificate that is valid for some days."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "statewarden test")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=5))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    made = Certificates(folder / "tls.crt", folder / "tls.key")
    made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made
