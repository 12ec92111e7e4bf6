#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command of docs/fleet.md works as it stands there, but for its paths and addresses.

The device is fake_device.c's. What installs packages and starts the unit is done in selftests/package;
queries of SQL are asked by test_parquet.py, those of Prometheus by test_openmetrics.py."""
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_merge_machines
import test_record
from test_push import capture
from test_record import fake

ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
ELSEWHERE = {       # the beginning of a command: where it is done
    "apt-get install ": "selftests/package/test.sh", "modprobe kbarman": "selftests/package/boot.sh",
    "systemctl enable --now kbarmand": "selftests/package/inside.sh", "kbarmand --status": "selftests/package/inside.sh",
    "systemctl enable --now kbarman-push": "selftests/package/inside.sh",
    "for c in": "selftests/cli/test_push.py", "kbarman push --otlp": "selftests/cli/test_push.py",
    "case $? in": "selftests/cli/test_push.py", "done": "selftests/cli/test_push.py",
    "kbarman merge: ": "selftests/cli/test_merge_machines.py",      # what it says
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def commands():
    """The lines of the page that a shell takes, without their comments."""
    page = re.sub(r"```.*?```", "", read("docs/fleet.md"), flags=re.S)
    lines = [re.sub(r"\s+#.*", "", line).strip() for line in re.findall(r"^    (\S.*|    \S.*)$", page, re.M)]
    return [line for line in lines if not re.match(r"\S+/|samples/|runs/", line)]


class Place:
    """A folder in which a command runs, with paths of its own for those of the page."""

    def __init__(self, tmp):
        self.tmp, self.done = tmp, []
        os.symlink(tap.KBARMAN, os.path.join(tmp, "kbarman"))

    def words(self, begin, **instead):
        """The only command of the page that begins so."""
        command, = [line for line in commands() if line.startswith(begin)]
        self.done.append(command)
        for path in "/var/lib/kbarmand", "/srv/fleet", "/var/lib/rare", "/var/lib/prometheus/node-exporter":
            command = command.replace(path, os.path.join(self.tmp, os.path.basename(path)))
        for old, new in instead.items():
            command = command.replace(old.replace("_", " "), new)
        return command

    def start(self, command):
        env = {**fake(), "PATH": f"{self.tmp}:{os.environ['PATH']}", "KBARMAN_RUNTIME_DIR": self.tmp}
        with open(os.path.join(self.tmp, "said"), "w", encoding="utf-8") as said:
            return subprocess.Popen(["sh", "-c", "exec " + command], cwd=self.tmp, env=env,
                                    stdout=subprocess.DEVNULL, stderr=said)

    def said(self):
        with open(os.path.join(self.tmp, "said"), encoding="utf-8") as file:
            return file.read()

    def runs(self, command):
        with self.start(command) as child:
            assert child.wait(tap.HANG) == 0, (command, self.said())

    def goes_on(self, command, condition):
        """It does what it shall, and a signal ends it."""
        with self.start(command) as child:
            try:
                tap.until(lambda: condition() or child.poll() is not None, command)
                assert child.poll() is None, (command, self.said())
            finally:
                child.send_signal(signal.SIGTERM)
            assert child.wait(tap.HANG) == 0, (command, self.said())


def every_command_of_the_page_works(tmp):
    place = Place(tmp)
    place.runs(place.words("kbarman record", sleep_60="sleep 0.3"))
    place.runs(place.words("kbarman convert kbarman.cap"))
    assert os.path.isdir(os.path.join(tmp, "fleet", "switches"))
    os.mkdir(os.path.join(tmp, "kbarmand"))
    capture(os.path.join(tmp, "kbarmand"), 1, "all-00000042-20260101T000000Z.cap")
    place.runs(place.words("kbarman convert /var"))
    rare = place.words("kbarman flight", flight_start="flight run")
    if not os.access("/proc/pressure/memory", os.W_OK):
        rare = rare.replace("--trigger 'psi:memory.full>10%/2s'", "")
    place.goes_on(rare, lambda: "watching for" in place.said())
    for name, path in zip(("web", "cache", "database"), test_merge_machines.World(1, machines=3).save(tmp)):
        os.rename(path, os.path.join(tmp, name + ".cap"))
    place.runs(place.words("kbarman bundle"))
    place.runs(place.words("kbarman merge --machines"))
    assert os.path.getsize(os.path.join(tmp, "all.perfetto"))
    assert "the order of events on different machines is right if" in place.said()
    place.goes_on(place.words("kbarman push --openmetrics 192", **{"192.0.2.7:9955": "127.0.0.1:0"}),
                  lambda: "127.0.0.1" in place.said())
    os.mkdir(os.path.join(tmp, "node-exporter"))
    place.goes_on(place.words("kbarman push --openmetrics /"),
                  lambda: os.path.exists(os.path.join(tmp, "node-exporter", "kbarman.prom")))
    left = [line for line in commands() if line not in place.done and
            not any(line.startswith(begin) for begin in ELSEWHERE)]
    assert not left and len(place.done) == 8, left
    for begin, where in ELSEWHERE.items():
        assert any(line.startswith(begin) for line in commands()), begin
        assert os.path.exists(os.path.join(ROOT, where)), where


if __name__ == "__main__":
    test_record.main(globals())
