#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman record --off-cpu-min`: only long waits keep their call chains. The device is
fake_device.c: in each millisecond task 1 leaves its CPU five times, four of them for a moment."""
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap
from test_record import check, fake, files, main, record, whole
from capture import ORDER

LEAST = 0.0005
SHOT = re.compile(r"kbarman-\d{8}T\d{6}\.cap")


def device():
    return fake(FAKE_CPUS=1, FAKE_RATE=9)


def waits(records):
    """(ns, whether it has a chain) of each wait of task 1 that ends in these records."""
    since, found = None, []
    for kind, _, when, data in records:
        if kind != "task_switch":
            continue
        task = struct.unpack_from(ORDER + "I", data, 16)[0]
        if task and since:
            found.append((when - since[0], since[1]))
            since = None
        elif not task and not since:
            chain = len(data) >= 32 and struct.unpack_from(ORDER + "I", data, 24)[0]
            since = when, bool(chain)
    return found


def only_long_waits_have_chains(found):
    """But the first one: who runs when the records begin is not known."""
    assert all(chain == (ns >= LEAST * 1e9) for ns, chain in found[1:]), \
        [(ns, chain) for ns, chain in found[1:] if chain != (ns >= LEAST * 1e9)]
    assert any(chain for _, chain in found) and not all(chain for _, chain in found)


def chains_of_short_waits_are_left_out(tmp):
    result = record(tmp, "--off-cpu", "--off-cpu-min", LEAST, "sleep", "0.3", env=device())
    assert result.returncode == 0 and "nothing lost" in result.stderr, result
    capture, records = whole(tmp)
    found = waits(records)
    only_long_waits_have_chains(found)
    short = sum(not chain for _, chain in found)
    assert capture.facts()["off_cpu_min"] == "500000", capture.facts()
    assert abs(int(capture.facts()["off_cpu_short"]) - short) <= 1, (capture.facts(), short)
    assert f"{capture.facts()['off_cpu_short']} call chains of waits shorter than " \
        "--off-cpu-min were left out" in result.stderr, result


def each_wait_has_its_chain_otherwise(tmp):
    result = record(tmp, "--off-cpu", "sleep", "0.1", env=device())
    assert result.returncode == 0 and "left out" not in result.stderr, result
    capture, records = whole(tmp)
    assert all(chain for _, chain in waits(records)[1:])
    assert "off_cpu_min" not in capture.facts() and "off_cpu_short" not in capture.facts()


def what_overwrites_and_its_snapshots_leave_them_out_as_well(tmp):
    result = record(tmp, "--mode", "overwrite", "--off-cpu", "--off-cpu-min", LEAST,
                    "sh", "-c", "sleep 0.3; kill -USR1 $PPID; until ls kbarman-*.cap; do sleep 0.05; done",
                    env=device())
    assert result.returncode == 0, result
    shots = [name for name in files(tmp) if SHOT.fullmatch(name)]
    assert len(shots) == 1, files(tmp)
    for name in shots[0], "kbarman.cap":
        capture, records = check(os.path.join(tmp, name))
        only_long_waits_have_chains(waits(records))
        assert capture.facts()["off_cpu_min"] == "500000", (name, capture.facts())


def wrong_values_and_uses_are_refused(tmp):
    for value in "", "0", "-1", "x", "1x", "3601", "2h", "nan", "1e-10":
        result = record(tmp, "--off-cpu", "--off-cpu-min", value, "true", env=device())
        assert result.returncode == 2 and f"--off-cpu-min {value}: give a time from 1ns to 1h" in result.stderr, \
            (value, result)
    for args in [], ["-g"]:
        result = record(tmp, *args, "--off-cpu-min", "0.001", "true", env=device())
        assert result.returncode == 2 and "give --off-cpu as well" in result.stderr, result
    assert not files(tmp)


if __name__ == "__main__":
    main(globals())
