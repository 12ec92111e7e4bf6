#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often `kbarman diff --fail-if` is wrong about real work.

    selftests/vm/unchanged.py GUEST-DIRECTORY TOOL [COUNT]

A VM with one CPU, whose time is the number of instructions that it executes, records the same work
COUNT (100) times, and COUNT / 2 times with a tenth more of it. Captures of these are drawn for 100
comparisons each. GUEST-DIRECTORY is what `make guest ARCH=amd64` made. Prints TAP.
"""
import os
import random
import shutil
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GUEST, TOOL = sys.argv[1:3]
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 100
CAPTURES = os.path.join(GUEST, "unchanged")
COMPARISONS = 100
CONDITION = "cpu:+2%"

# A program that computes, one that reads what it writes, and a pipe between two of them.
IN_GUEST = """
insmod kbarman.ko || exit 1
cp kbarman /tmp
cd /tmp
cat >work <<'END'
awk -v n=$1 'BEGIN { while (n--) s = s % 7919 n; print length(s) }'
seq $(($1 / 4)) | sort -R | md5sum
END
n=0
while [ $n -lt COUNT ]; do
	n=$((n + 1))
	./kbarman record -q -a -g -o same.cap -- sh work 20000 >/dev/null || exit 1
	mv same.cap /host/unchanged/same.$n.cap || exit 1
	[ $((n % 2)) = 0 ] || continue
	./kbarman record -q -a -g -o more.cap -- sh work 22000 >/dev/null || exit 1
	mv more.cap /host/unchanged/more.$n.cap || exit 1
done
"""


def record():
    shutil.rmtree(CAPTURES, ignore_errors=True)
    os.mkdir(CAPTURES)
    subprocess.run([os.path.join(TOP, "scripts", "vm"), "--arch", "amd64", "--root", "debian",
                    "--share", GUEST, "--cpus", "1", "--mem", "1024", "--timeout", "14400",
                    "--append", "tsc=reliable", "--qemu-arg", "-icount", "--qemu-arg", "shift=0",
                    "--", "sh", "-c", IN_GUEST.replace("COUNT", str(COUNT))], check=True)


def captures(kind):
    return [os.path.join(CAPTURES, name) for name in sorted(os.listdir(CAPTURES))
            if name.startswith(kind) and name.endswith(".cap")]


def fails(a, b):
    """Whether a comparison says that the condition holds."""
    done = subprocess.run([TOOL, "diff", "--fail-if", CONDITION, *a, "--", *b],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 2, 3), done
    assert done.returncode != 2 or "several captures" in done.stderr, done
    return done.returncode == 3


def failures(draw):
    return sum(fails(*draw()) for _ in range(COMPARISONS))


def main():
    chance = random.Random(1)
    record()
    same, more = captures("same"), captures("more")

    def sides(a, b, size):
        if a is b:
            drawn = chance.sample(a, 2 * size)
            return drawn[:size], drawn[size:]
        return chance.sample(a, size), chance.sample(b, size)

    tests = [("one_capture_a_side_fails_for_no_unchanged_work", same, 1, lambda n: n == 0),
             ("five_a_side_fail_for_unchanged_work_as_rarely_as_promised", same, 5,
              lambda n: n <= COMPARISONS * 5 // 100),
             ("five_a_side_find_a_tenth_more_work", more, 5, lambda n: n >= COMPARISONS * 95 // 100)]
    print(f"1..{len(tests)}")
    bad = 0
    for number, (name, other, size, right) in enumerate(tests, 1):
        failed = failures(lambda: sides(same, other, size))
        print(f"# {failed} of {COMPARISONS} comparisons fail")
        print(f"{'ok' if right(failed) else 'not ok'} {number} - {name}", flush=True)
        bad += not right(failed)
    sys.exit(bool(bad))


main()
