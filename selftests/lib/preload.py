# SPDX-License-Identifier: MIT
"""Libraries for $LD_PRELOAD: what a test puts between a program and the C library."""
import os
import subprocess


def build(directory, name, source):
    """Compiles the C of `source`. Returns the path of the library."""
    path = os.path.join(directory, name + ".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-o", path, "-"], input=source,
                   check=True, text=True)
    return path
