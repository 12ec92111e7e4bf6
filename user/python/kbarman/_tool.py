# SPDX-License-Identifier: MIT
"""Recording: by the tool, which needs rights that a program in Python had better not have."""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Sequence

from ._capture import Capture


class ToolError(Exception):
    """The tool failed: `status` is its exit status, and the text what it said."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said or f"kbarman ended with status {status}")
        self.status = status


def tool() -> str:
    """The path of the tool: $KBARMAN, or the one in $PATH."""
    found = os.environ.get("KBARMAN") or shutil.which("kbarman")
    if not found:
        raise FileNotFoundError("kbarman is not in the PATH: install it, or set KBARMAN to its path")
    return found


def _state(path: str) -> tuple[int, int] | None:
    """Tells a new file from an old one of that name."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _run(arguments: Sequence[str], output: str, good: Sequence[int]) -> Capture:
    before = _state(output)
    done = subprocess.run([tool(), *arguments], stderr=subprocess.PIPE, text=True, errors="replace",
                          check=False)
    if done.returncode not in good or _state(output) in (None, before):
        raise ToolError(done.returncode, done.stderr.strip())
    capture = Capture(output)
    capture.said = done.stderr
    return capture


def record(*command: str, output: str | os.PathLike[str] = "kbarman.cap",
           options: Sequence[str] = ()) -> Capture:
    """Record a command by `kbarman record`, and open the capture: record("make", "-j4").

    @options are those of kbarman-record(1): options=["-a", "--latency"]. The command keeps the
    standard input and output. What it and the tool say on the standard error is in `said` of the
    capture. Raises ToolError if nothing was recorded.
    """
    path = os.fspath(output)
    # The status is the command's own.
    return _run(["record", *options, "-o", path, "--", *command], path, range(256))


def snapshot(output: str | os.PathLike[str] = "kbarman.cap") -> Capture:
    """Write what the running flight recorder holds by `kbarman snapshot`, and open the capture."""
    path = os.fspath(output)
    return _run(["snapshot", "-o", path], path, (0, 1))
