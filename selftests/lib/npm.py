# SPDX-License-Identifier: MIT
"""Programs of npm's registry that the tests use as readers. They are kept in the cache, outside of the
tree, and a test is skipped where they can't be had."""
import fcntl
import os
import shutil
import subprocess

import tap

VERSIONS = {"hyparquet": "1.33.0", "hyparquet-compressors": "1.1.2", "@duckdb/node-api": "1.5.6-r.1",
            "parquet-wasm": "0.8.0", "apache-arrow": "21.2.0"}


def folder(*packages):
    """A folder from which node finds these packages."""
    for program in "node", "npm":
        if not shutil.which(program):
            raise tap.Skip(f"no {program} here (Debian: nodejs, npm)")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = "-".join(f"{package.replace('/', '_')}@{VERSIONS[package]}" for package in packages)
    path = os.path.join(cache, "kbarman", "npm", name)
    os.makedirs(path, exist_ok=True)
    with open(path + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(path, "complete")):
            try:
                result = subprocess.run(
                    ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", path,
                     *[f"{package}@{VERSIONS[package]}" for package in packages]],
                    capture_output=True, text=True, check=False, timeout=300)
            except subprocess.TimeoutExpired:
                raise tap.Skip("npm's registry does not answer") from None
            if result.returncode:
                raise tap.Skip(f"npm can't install {', '.join(packages)}: {result.stderr[-200:]!r}")
            with open(os.path.join(path, "complete"), "w", encoding="ascii"):
                pass
    return path


def run(script, packages, *arguments):
    """What a script says that uses these packages. It is a module; they are imported by name."""
    path = os.path.join(folder(*packages), os.path.basename(script))
    shutil.copyfile(script, path + f".{os.getpid()}.mjs")
    try:
        result = subprocess.run(["node", path + f".{os.getpid()}.mjs", *arguments], capture_output=True,
                                text=True, check=False, timeout=300)
    finally:
        os.unlink(path + f".{os.getpid()}.mjs")
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout
