"""Certificates for tests, made with the openssl command: a CA of our own, and what it and others
have signed. Keys are of elliptic curves, which are quick to make."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOST_NAME = "localhost"
LONG_AGO = ("20000101000000Z", "20010101000000Z")
FAR_AHEAD = ("20900101000000Z", "20910101000000Z")
NOW = ("20200101000000Z", "20991231000000Z")
ADDRESSES = "DNS:localhost,IP:127.0.0.1,IP:::1"

CONFIGURATION = """
[ca]
default_ca = ours
[ours]
database = {folder}/index
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
"""


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in PEM files."""

    certificate: Path
    key: Path

    @property
    def options(self) -> list[str]:
        """For psend and precv."""
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A CA in a folder of its own."""

    def __init__(self, folder: Path, name: str, valid: tuple[str, str] = NOW) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.configuration = self.folder / "openssl.cnf"
        self.configuration.write_text(CONFIGURATION.format(folder=self.folder), encoding="ascii")
        (self.folder / "index").touch()
        (self.folder / "serial").write_text("1000\n", encoding="ascii")
        extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"]
        key, request = self._request("ca", name, extensions)
        self.identity = self._sign("ca", key, request, valid, ["-selfsign", "-keyfile", key])

    @property
    def file(self) -> str:
        """For --tls-ca."""
        return str(self.identity.certificate)

    def issue(
        self,
        name: str,
        alternatives: str = "",
        valid: tuple[str, str] = NOW,
    ) -> Identity:
        """A certificate for NAME, valid between two times, with these subjectAltNames."""
        extensions = [f"subjectAltName={alternatives}"] if alternatives else []
        key, request = self._request(name, name, extensions)
        signer = ["-keyfile", self.identity.key, "-cert", self.identity.certificate]
        return self._sign(name, key, request, valid, signer)

    def _request(self, file: str, name: str, extensions: Sequence[str]) -> tuple[Path, Path]:
        key, request = self.folder / f"{file}.key", self.folder / f"{file}.request"
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        added = [word for extension in extensions for word in ("-addext", extension)]
        where = ["-config", self.configuration, "-keyout", key, "-out", request]
        _openssl("req", "-new", *curve, *where, "-subj", f"/CN={name}", *added)
        return key, request

    def _sign(
        self,
        file: str,
        key: Path,
        request: Path,
        valid: tuple[str, str],
        signer: Sequence[object],
    ) -> Identity:
        certificate = self.folder / f"{file}.pem"
        start, end = valid
        dates = ["-startdate", start, "-enddate", end]
        where = ["-config", self.configuration, "-in", request, "-out", certificate]
        _openssl("ca", "-batch", "-notext", *dates, *where, *signer)
        return Identity(certificate, key)


class Certificates:
    """All that the tests need."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder, "authority")
        self.other = Authority(folder, "other")
        self.old = Authority(folder, "old", LONG_AGO)
        issue = self.authority.issue
        self.server = issue("server", ADDRESSES)
        self.named = issue("named", "DNS:localhost")
        self.wrong = issue("wrong", "DNS:elsewhere.example.org,IP:127.0.0.2")
        self.expired = issue("expired", ADDRESSES, LONG_AGO)
        self.early = issue("early", ADDRESSES, FAR_AHEAD)
        self.stranger = self.other.issue("stranger", ADDRESSES)
        self.of_old = self.old.issue("of-old", ADDRESSES)
        self.client = issue("alice")
        self.impostor = self.other.issue("alice")
        self.old_client = issue("old-alice", valid=LONG_AGO)
