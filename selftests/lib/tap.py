# SPDX-License-Identifier: MIT
"""TAP for black-box tests of the tool.

A test is a function named after the promise it checks. It gets a fresh directory,
fails by an exception (assert), and skips by Skip. The tool is $KBARMAN.

    def output_is_not_half_written(tmp): ...

    if __name__ == "__main__":
        tap.main(globals())
"""
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

KBARMAN = os.path.abspath(os.environ.get("KBARMAN", "build/kbarman"))


# After so many seconds what a test waits for never comes. It decides nothing else: a machine may be busy.
HANG = 300


class Skip(Exception):
    """This test can't be made here; the text says why."""


def run(*args, **kwargs):
    """Run the tool; text in and out unless told otherwise."""
    kwargs.setdefault("capture_output", True)
    kwargs.setdefault("timeout", HANG)
    kwargs.setdefault("text", True)
    kwargs.setdefault("stdin", subprocess.DEVNULL if "input" not in kwargs else None)
    return subprocess.run([KBARMAN, *map(str, args)], **kwargs)


# A child's peak (ru_maxrss) begins with that of the process that it was forked from, also behind exec:
# so this process, which may have built large captures, starts a small one that starts the tool.
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def wait_for_handler(pid, number):
    """Until the process takes this signal in some way; before, it would be ended."""
    def has_one():
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            sets = [int(line.split()[1], 16) for line in file if line.startswith(("SigCgt:", "SigBlk:"))]
        return not sets or any(bits >> (number - 1) & 1 for bits in sets)

    until(has_one, f"a handler of signal {number}")


def peak_kib(*args):
    """Run the tool, which must succeed; the most memory that it had."""
    done = subprocess.run([sys.executable, "-ISc", MEASURE, KBARMAN, *map(str, args)], check=True,
                          stdout=subprocess.PIPE, text=True, timeout=600)
    status, peak = map(int, done.stdout.split()[-2:])
    assert status == 0, (args, status)
    return peak


def until(condition, what="it"):
    """What the condition returns as soon as that is true."""
    end = time.monotonic() + HANG
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} does not come"
        time.sleep(0.02)
    return found


def read_all(fd):
    """Everything up to the end of a pipe or a terminal, which is closed then."""
    said = b""
    try:
        while piece := os.read(fd, 4096):
            said += piece
    except OSError:         # how a terminal ends
        pass
    os.close(fd)
    return said


ENDINGS = []    # called behind each test: they end what one that failed has left running


def main(namespace):
    """Run every function of the namespace that takes one argument, `tmp`; if the command names some, those."""
    tests = [(name, f) for name, f in namespace.items()
             if inspect.isfunction(f) and list(inspect.signature(f).parameters) == ["tmp"]]
    tests = [(name, f) for name, f in tests if name in sys.argv[1:]] or tests
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        tmp = tempfile.mkdtemp(prefix="kbarman-test-")
        result, suffix = "ok", ""
        try:
            assert test(tmp) is None, "it returns something: it is no test, but makes what tests take"
        except Skip as why:
            suffix = f" # SKIP {why}"
        except Exception:  # pylint: disable=broad-except
            result = "not ok"
            failed += 1
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
        finally:
            while ENDINGS:
                ENDINGS.pop()()
            shutil.rmtree(tmp, ignore_errors=True)
        print(f"{result} {number} - {name}{suffix}", flush=True)
    print(f"1..{len(tests)}")
    sys.exit(1 if failed else 0)
