"""rhea, a library of JavaScript, from npm into the build folder."""

from __future__ import annotations

import fcntl
import json
import subprocess
from pathlib import Path

VERSION = "3.0.5"
DEADLINE_S = 120.0


def is_there(modules: Path) -> bool:
    """In this version."""
    try:
        described = (modules / "rhea" / "package.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return bool(json.loads(described)["version"] == VERSION)


def install(folder: Path) -> Path:
    """Makes sure that it is there; files of tests that run beside each other wait for one of them
    to fetch it. Returns where Node finds modules."""
    modules = folder / "node_modules"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_there(modules):
            words = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--no-package-lock"]
            words += ["--prefix", str(folder), f"rhea@{VERSION}"]
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
            )
            assert done.returncode == 0, f"{' '.join(words)}:\n{done.stderr}"
    return modules
