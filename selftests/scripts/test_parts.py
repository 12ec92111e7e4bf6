#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A build may leave out parts (`make user WITHOUT="stat tptp"`): each of them by itself, and all at once."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "../lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from capture_writer import BASE, CaptureWriter  # noqa: E402  pylint: disable=wrong-import-position

VERBS = {"push", "query", "stat"}
FORMATS = {"heph", "tptp"}
PARTS = sorted(VERBS | FORMATS)


def make(*words):
    # what a make that runs this was told is not for this one
    other = ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "ARCH", "CROSS_COMPILE")
    env = {key: value for key, value in os.environ.items() if key not in other}
    return subprocess.run(["make", "-C", TREE, *words], env=env, capture_output=True, text=True, check=False,
                          timeout=tap.HANG * 4)


def build(*parts):
    """The tool without them. What is the same in all builds is compiled once."""
    tool = f"build/without-{'-'.join(sorted(parts))}/kbarman"
    shutil.rmtree(os.path.join(TREE, os.path.dirname(tool)), ignore_errors=True)
    done = make(tool, *([] if "push" in parts else [tool + "-push"]), f"WITHOUT={' '.join(parts)}")
    assert done.returncode == 0, done.stderr[-2000:]
    return os.path.join(TREE, tool)


def run(tool, *args):
    return subprocess.run([tool, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=tap.HANG)


def check(tool, parts):
    listed = set(re.findall(r"^  (\w+) +\S", run(tool, "help").stdout, re.M))
    everything = set(re.findall(r"^  (\w+) +\S", tap.run("help").stdout, re.M))
    assert everything - listed == VERBS & parts, listed
    for verb in VERBS & parts:
        for args in (verb, "x.cap"), ("help", verb), (verb, "--list-options"):
            done = run(tool, *args)
            assert (done.returncode, done.stdout) == (2, ""), done
            assert done.stderr.endswith(f": this kbarman was built without '{verb}': use another build\n"), done
    for verb in listed - {"help"}:
        assert run(tool, verb, "--help").stdout.startswith("usage: "), verb
    features = run(tool, "version", "-j").stdout
    for name in FORMATS:
        there = name not in parts
        assert (f'{{"kind":"export","name":"{name}"' in features) == there, features
        assert (f"{name.upper()} trace".lower() in features.lower()) == there, features
        help_of_formats = run(tool, "convert", "--help").stdout
        assert bool(re.search(rf"^  {name} ", help_of_formats, re.M)) == there, help_of_formats
    for name in FORMATS & parts:
        done = run(tool, "convert", "--to", name, os.devnull)
        assert done.returncode == 2 and name in done.stderr, done


def each_part_can_be_left_out(tmp):  # pylint: disable=unused-argument
    for part in PARTS:
        check(build(part), {part})


def all_parts_can_be_left_out(tmp):  # pylint: disable=unused-argument
    check(build(*PARTS), set(PARTS))


# of libc; `convert` connects and is connected to, `record` listens for Annotate clients
CONNECTIONS = {"accept", "accept4", "bind", "connect", "freeaddrinfo", "gai_strerror", "getaddrinfo", "getnameinfo",
               "getsockname", "getsockopt", "listen", "recv", "send", "setsockopt", "shutdown", "socket", "socketpair"}
OF_NETWORKS = re.compile(r"accept|bind(resv\w+)?$|connect$|curl|.*addrinfo|gai_|get(host|name|sock|peer|serv|proto|net)\w+|if_|"
                         r"inet_|listen$|recv|res_|send(?!file)|setsockopt|shutdown|sock")


def called(program):
    done = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def the_tool_has_no_more_of_networks_than_live_connections(tmp):  # pylint: disable=unused-argument
    used = {name for name in called(tap.KBARMAN) if OF_NETWORKS.match(name)}
    used -= {"inet_ntop"}  # it writes the address of a socket that a task waits for, and connects nothing
    assert {"socket", "getaddrinfo"} <= used <= CONNECTIONS, used - CONNECTIONS
    with open(tap.KBARMAN, "rb") as file:
        tool = file.read()
    with open(tap.KBARMAN + "-push", "rb") as file:
        assert b"/ingest" in file.read() and b"/ingest" not in tool and b"libcurl" not in tool


def a_program_that_is_not_there_is_named_with_its_package(tmp):
    alone = shutil.copy(tap.KBARMAN, tmp)
    done = subprocess.run([alone, "push", "--help"], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": tmp})
    assert (done.returncode, done.stdout) == (2, "") and "install the package 'kbarman-push'" in done.stderr, done
    shutil.copy(tap.KBARMAN + "-push", tmp)
    done = subprocess.run([alone, "push", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("usage: kbarman push "), done


def a_build_without_the_header_of_libcurl_says_so_and_shows_metrics(tmp):
    program = "build/without-heph-tptp/kbarman-push"
    shutil.rmtree(os.path.join(TREE, os.path.dirname(program)), ignore_errors=True)
    done = make(program, "WITHOUT=heph tptp", "CURL_H=")
    assert done.returncode == 0 and "curl/curl.h is missing (install libcurl4-openssl-dev)" in done.stderr, done
    program = os.path.join(TREE, program)
    capture = CaptureWriter(cores=1)
    capture.task(5, b"five")
    capture.sample(0, BASE, 5, 0x1000)
    path, page = capture.save(os.path.join(tmp, "a.cap")), os.path.join(tmp, "a.prom")
    done = run(program, "--otlp", "http://127.0.0.1:1", path)
    assert done.returncode == 2 and "can't send, because it was built without libcurl" in done.stderr, done
    done = run(program, "--openmetrics", page, path)
    assert done.returncode == 0, done
    with open(page, encoding="utf-8") as file:
        assert "kbarman_records_total" in file.read()


def a_part_that_there_is_not_ends_the_build(tmp):  # pylint: disable=unused-argument
    done = make("--dry-run", "user", "WITHOUT=stat none")
    assert done.returncode and "the parts that can be left out are" in done.stderr, done
    assert sorted(re.search(r"left out are ([\w ]+)", done.stderr)[1].split()) == PARTS, done.stderr


if __name__ == "__main__":
    tap.main(globals())
