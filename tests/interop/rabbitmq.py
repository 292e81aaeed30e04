"""RabbitMQ with its AMQP 1.0 plugin, as Debian packages it: one node on its own in a folder.

It takes nothing from the machine: configuration, cookie, data, node name and all ports are its own,
and so is the epmd in which Erlang's nodes register.

Addresses begin with a slash: /queue/NAME is declared by whoever attaches to it, /amq/queue/NAME
must be there, /exchange/NAME/KEY routes by a key. In a URL they follow the slash that ends its
authority.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import certificates
import server
from server import HOST, Server

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
EPMD = "/usr/bin/epmd"
ATTEMPTS = 3  # at finding ports that nobody else takes
USER = "guest:guest"  # whom RabbitMQ creates, and lets in from this host only

CONFIGURATION = """\
listeners.tcp.1 = {host}:{port}
listeners.ssl.1 = {host}:{tls_port}
ssl_options.cacertfile = {authority}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
log.console = true
log.console.level = info
log.file = false
"""


@dataclass(frozen=True)
class RabbitMQ:
    """A node that is ready."""

    port: int
    tls_port: int
    ca: str  # file: whose certificate the TLS port has
    node: Server
    epmd: Server

    @property
    def authority(self) -> str:
        """HOST:PORT."""
        return f"{HOST}:{self.port}"

    @staticmethod
    def queue(name: str) -> str:
        """Address of a queue that is declared by whoever attaches to it."""
        return f"/queue/{name}"

    def url(self, address: str, user: str = "") -> str:
        """For psend, precv and ppair; USER may have a password."""
        return f"amqp://{user and user + '@'}{self.authority}/{address}"

    def tls_url(self, address: str, user: str = "") -> str:
        """The same with TLS."""
        return f"amqps://{user and user + '@'}{HOST}:{self.tls_port}/{address}"

    def stop(self) -> None:
        """Both processes; the folder stays."""
        server.stop(self.node)
        server.stop(self.epmd)


def start(folder: Path) -> RabbitMQ:
    """A node in FOLDER. Raises NotReady."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _start(folder / f"rabbitmq-{attempt}")
        except server.NotReady as failure:
            if attempt == ATTEMPTS or "eaddrinuse" not in str(failure):
                raise
    raise AssertionError("not reached")


def _start(folder: Path) -> RabbitMQ:
    amqp, tls, distribution, names = server.free_ports(4)
    folder.mkdir(parents=True)
    authority = certificates.Authority(folder, "ca")
    _write_settings(folder, authority, amqp, tls)
    epmd = server.start("epmd", [EPMD, "-d", "-port", str(names), "-address", HOST], folder, {})
    # else RabbitMQ would start one, which stays
    server.wait_for(epmd, lambda line: "epmd running" in line or None)
    environment = {
        "HOME": str(folder),  # of Erlang's cookie
        "ERL_EPMD_ADDRESS": HOST,
        "ERL_EPMD_PORT": str(names),
        "NOTIFY_SOCKET": str(folder / "none"),  # as under systemd: no shell stays around it
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_NODENAME": f"ppair-{amqp}@localhost",
    }
    node = server.start("rabbitmq", [str(PROGRAM)], folder, environment)
    rabbitmq = RabbitMQ(amqp, tls, authority.file, node, epmd)
    try:
        server.wait_for(rabbitmq.node, lambda line: "startup complete" in line or None)
    except BaseException:
        rabbitmq.stop()
        raise
    return rabbitmq


def _write_settings(
    folder: Path, authority: certificates.Authority, port: int, tls_port: int
) -> None:
    own = authority.issue("localhost", certificates.ADDRESSES)
    configuration = CONFIGURATION.format(
        host=HOST,
        port=port,
        tls_port=tls_port,
        authority=authority.file,
        certificate=own.certificate,
        key=own.key,
    )
    settings = {
        ".erlang.cookie": "ppair",
        "enabled_plugins": "[rabbitmq_amqp1_0].\n",
        "rabbitmq.conf": configuration,
    }
    for name, text in settings.items():
        (folder / name).write_text(text, encoding="ascii")
    (folder / ".erlang.cookie").chmod(0o400)
