"""rhea, a library of JavaScript, from npm into the build folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

VERSION = "3.0.5"
DEADLINE_S = 120.0


def install(folder: Path) -> Path:
    """Makes sure that it is there, in this version. Returns where Node finds modules."""
    modules = folder / "node_modules"
    try:
        described = (modules / "rhea" / "package.json").read_text(encoding="utf-8")
        if json.loads(described)["version"] == VERSION:
            return modules
    except FileNotFoundError:
        pass
    folder.mkdir(parents=True, exist_ok=True)
    words = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--no-package-lock"]
    words += ["--prefix", str(folder), f"rhea@{VERSION}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stderr}"
    return modules
