"""Certificates for `--tls`: made with openssl for one experiment, in its results directory.

One certificate, signed by itself, for the addresses at which receivers listen; senders trust it and
no other. Nothing is asked of a network, and it is of no use to anybody else.
"""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .failure import Exit, Failure

TIMEOUT_S = 30.0
DAYS = 3650  # so that a directory can be gone on with


def make(folder: Path, addresses: Iterable[str]) -> None:
    """cert.pem and key.pem in FOLDER, unless it is there; raises Failure if that cannot be done."""
    if folder.exists():
        return
    names = ",".join(f"{_kind(address)}:{address}" for address in addresses)
    draft = folder.with_name(f".{folder.name}")
    draft.mkdir(mode=0o700, exist_ok=True)
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-keyout", str(draft / "key.pem"), "-out", str(draft / "cert.pem")]
    words += ["-days", str(DAYS), "-subj", "/CN=ppair", "-addext", f"subjectAltName={names}"]
    try:
        ended = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            encoding="ascii",
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "does not end"
        raise Failure(Exit.INTERNAL, f"openssl, which --tls needs: {why}") from None
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Failure(Exit.INTERNAL, f"openssl made no certificate: {said}")
    draft.rename(folder)


def _kind(address: str) -> str:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return "DNS"
    return "IP"
