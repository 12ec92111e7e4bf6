#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every example of README.md, docs/ and the manual works as it is written.

What reads files runs here, each example in a folder of its own, on a capture that a VM test has
recorded ($KBARMAN_CAPTURES) or else on one that is made. What speaks to the module runs in a
VM: test_examples_device.sh."""
import http.server
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import viewers
from examples import BLACKBOX, COMMAND, FLEET, HOWTO, examples, mentions, needs_device
from latency_capture import SERIES
from make_capture import Maker
from test_annotate_socket import own_network

DEVICE_TEST = "examples_device"  # of selftests/vm/guest.sh
# Each kbarman of an example leaves its status: a pipe ends with that of another program.
WRAPPER = """#!/bin/sh
"$KBARMAN" "$@"
status=$?
echo "$status $1" >>"$STATUSES"
exit $status
"""
# Programs of others, where they are not installed: they read what they are given.
STAND_IN = """#!/bin/sh
echo "a stand-in of ${0##*/}"
cat >/dev/null
"""
# A loop over the agent's folder, which test_push.py runs; a crash kernel's line, which selftests/vm/kdump.py runs.
ELSEWHERE = ["/var/lib/kbarmand/", '"$c"', "/proc/vmcore"]
OTHERS = ["jq", "stackcollapse-perf.pl", "flamegraph.pl"]


def real_capture():
    """The smallest of those that were recorded in a VM; None: there is none."""
    return min(viewers.real_captures(), key=os.path.getsize, default=None)


def made_capture(path, other=0, chosen=False, calls=False, **facts):
    """Those with other numbers are recordings of other times, of one clock. @chosen: with the task and the
    times that examples choose. @calls: with system calls."""
    capture = Maker(cores=2, counters=[17], series=SERIES if calls else (), facts={"counter.0.0": "cycles", "tgid.1": "7",
                                                   "command": "./app", **facts})
    capture.task(0, "swapper")
    capture.task(7, "app")
    capture.map(7, 0x400000, 0x1000, 0, "/bin/true")
    for at in range(200):
        capture.switch(at % 2, 1000 * (other + 1) + 30 * at, 7 if at % 4 < 2 else 0, blocked=at % 4 > 1, state=1)
        if at % 4 < 2:
            capture.sample(at % 2, 1000 * (other + 1) + 10 + 30 * at, 7, 0x400010, [1000 + at])
    if chosen:
        capture.task(8, "xz")
        for at in 1_250_000_000, 12_750_000_000, 13_500_000_000:
            capture.switch(0, at, 8)
            capture.switch(0, at + 1000, 7, blocked=True, state=1)
    for at in range(2000, 6000, 1000) if calls else ():
        for number in 0, 1:     # read and write
            capture.syscall(0, at + 500 * number, 7, number, at + 400 * number, 1, (5, 0, 1),
                            counter=SERIES.index("System calls"))
    return capture.save(path)


def listeners():
    """Who takes what is sent: an Annotate daemon, and `collector`. A network of our own."""
    if not own_network():
        raise tap.Skip("a network of our own takes rights")
    daemon = socket.socket(socket.AF_UNIX)
    daemon.bind("\0streamline-annotate")
    daemon.listen(4)
    packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packets.bind(("127.0.0.1", 4000))
    got = {"daemon": 0, "collector": 0, "profiles": 0}

    class Profiles(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got["profiles"] += len(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def serve():
        while True:
            client, _ = daemon.accept()
            with client:
                while data := client.recv(65536):
                    got["daemon"] += len(data)

    def collect():
        while True:
            got["collector"] += len(packets.recv(65536))

    servers = [http.server.HTTPServer(("127.0.0.1", port), Profiles) for port in (4318, 4040)]
    for work in serve, collect, *(server.serve_forever for server in servers):
        threading.Thread(target=work, daemon=True).start()
    return got


def prepare(folder, example):
    """The files that an example speaks of, and programs in front of $PATH."""
    programs = os.path.join(folder, ".bin")
    os.makedirs(programs)
    scripts = {"kbarman": WRAPPER}
    scripts.update((name, STAND_IN) for name in OTHERS if not shutil.which(name))
    for name, text in scripts.items():
        with open(os.path.join(programs, name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(os.path.join(programs, name), 0o755)
    names = set(re.findall(r"(?<![\w./])[\w-]+\.cap(?:\.partial)?\b", example))
    names -= set(re.findall(r"-o (\S+)", example))
    if "kbarman recover" in example:
        names = {"kbarman.cap.partial"}
    elif not names:
        names = {"kbarman.cap"}
    source = real_capture()
    for number, name in enumerate(sorted(names)):
        path = os.path.join(folder, name)
        if "--machines" in example:
            made_capture(path, host=name.removesuffix(".cap"))
        elif "--request" in example:
            made_capture(path, calls=True, machine="x86_64", sources="wake,syscalls")
        elif re.search("--(time|task) ", example):
            made_capture(path, chosen=True)
        elif len(names) > 1:
            made_capture(path, number)
        elif source and "bundle" not in example:     # the names of a capture are on its machine
            shutil.copy(source, path)
        else:
            made_capture(path)
    return programs


def run_example(folder, where, example):
    """Run it; a failure says which, and what it said."""
    programs = prepare(folder, example)
    statuses = os.path.join(folder, ".statuses")
    # there are no such machines, and no folder of this one is written into
    script = re.sub(r"(?<=[:/])(?:collector|pyroscope)(?=:)", "127.0.0.1", example)
    for place in "/var/spool/kbarman", "/srv/fleet":
        script = script.replace(place, os.path.join(folder, os.path.basename(place)))
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
                               "KBARMAN": tap.KBARMAN, "STATUSES": statuses})
    assert done.returncode == 0, (where, example, done)
    with open(statuses, encoding="utf-8") as file:
        ended = [int(line.split()[0]) for line in file]
    assert len(ended) == len(COMMAND.findall(example)), (where, example, ended)
    # who is piped to `head` is told by a signal that it has seen enough
    good = {0, 141} if "| head" in example else {0}
    assert set(ended) <= good, (where, example, ended, done.stderr)
    return done


def all_examples():
    found = list(examples())
    # there are some in each of the places, or they are not found any more
    for part in "README.md", "fleet.md", "kbarman.1", "kbarman-record.1", "kbarman-convert.1", "kbarman-dump.1":
        assert any(f"{part}:" in place for place, _ in found), part
    return found


def examples_that_read_files_work_as_they_are_written(tmp):
    got = listeners()
    print(f"# on {real_capture() or 'a capture that is made: no VM test has left one'}")
    ran = 0
    for number, (place, example) in enumerate(all_examples()):
        if needs_device(example) or place.startswith((HOWTO, BLACKBOX)) or any(word in example for word in ELSEWHERE):
            continue
        folder = os.path.join(tmp, str(number))
        run_example(folder, place, example)
        # a question in quotes compares with >
        for output in re.findall(r"(?:-o|>) ([\w-]+\.\w+)", re.sub(r'"[^"]*"', "", example)):
            assert os.path.getsize(os.path.join(folder, output)), (place, example, output)
        ran += 1
    assert ran > 10, ran
    assert all(got.values()), got


def examples_that_record_are_run_in_a_vm(tmp):
    """By name; the list that goes into the VM is made by the same program."""
    wanted = [(place, example) for place, example in all_examples()
              if needs_device(example) and not place.startswith((FLEET, BLACKBOX))]
    for place, example in wanted:
        print(f"# in the VM: {place}: {example}")
    listed = subprocess.run([sys.executable, os.path.join(TREE, "selftests", "lib", "examples.py"),
                             "device"], cwd=tmp, capture_output=True, text=True, check=True).stdout
    assert listed.splitlines() == ["\t".join(pair) for pair in wanted]
    with open(os.path.join(TREE, "selftests", "vm", "guest.sh"), encoding="utf-8") as file:
        assert f"device_test {DEVICE_TEST} " in file.read()


def options_that_pages_name_are_those_of_their_verb(tmp):
    """Also of those that need the module or another machine, and in the middle of a sentence."""
    usage, checked = {}, 0
    for place, verb, options in mentions():
        if verb not in usage:
            done = tap.run(verb, "--help", cwd=tmp)
            # "kbarman records" is a sentence
            usage[verb] = done.stdout if done.returncode == 0 else ""
            if verb == "flight":
                usage[verb] += tap.run("record", "--help", cwd=tmp).stdout
        for option in options if usage[verb] else []:
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", usage[verb]), (place, verb, option)
            checked += 1
    assert checked > 100 and len([verb for verb, text in usage.items() if text]) > 15, (checked, usage.keys())


def an_example_that_fails_is_found(tmp):
    for number, wrong in enumerate(["kbarman report --no-such-option", "kbarman dump ./no.cap | sort",
                                    "kbarman convert --to nothing", "true"]):
        try:
            run_example(os.path.join(tmp, str(number)), "here:1", wrong)
        except (AssertionError, FileNotFoundError):
            continue
        raise AssertionError(wrong)


if __name__ == "__main__":
    tap.main(globals())
