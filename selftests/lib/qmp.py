# SPDX-License-Identifier: MIT
"""QEMU's monitor, which speaks a line of JSON at a time: -qmp unix:PATH,server=on,wait=off."""
import json
import socket


class Monitor:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.answers = self.socket.makefile("r", encoding="utf-8")
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for line in self.answers:
            answer = json.loads(line)
            assert "error" not in answer, answer
            if "return" in answer:
                return answer["return"]
        raise AssertionError("QEMU has ended")
