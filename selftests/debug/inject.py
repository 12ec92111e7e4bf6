#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""inject.py SOCKET SIGN: NMIs into a VM, through QEMU's monitor at SOCKET, for as long as
the file SIGN is there and as fast as the monitor takes them. Ends with the VM."""
import os
import socket
import sys
import time

BATCH = 20


def connect(path):
    while True:
        monitor = socket.socket(socket.AF_UNIX)
        try:
            monitor.connect(path)
            return monitor
        except OSError:
            monitor.close()
            time.sleep(0.1)


def prompts(monitor, count):
    """Wait until the monitor has asked for a command COUNT times."""
    seen = b""
    while seen.count(b"(qemu) ") < count:
        more = monitor.recv(65536)
        if not more:
            raise EOFError
        seen += more


def main():
    path, sign = sys.argv[1:]
    monitor = connect(path)
    try:
        prompts(monitor, 1)
        while True:
            if not os.path.exists(sign):
                time.sleep(0.1)
                continue
            monitor.sendall(b"nmi\n" * BATCH)
            prompts(monitor, BATCH)
    except (EOFError, OSError):
        pass


main()
