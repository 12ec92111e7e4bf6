#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of system calls: the library's are those of the kernel's headers."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests", "lib"))
import tap

FIRST_SHARED = 424


def listed(name):
    with open(os.path.join(ROOT, "user/lib/format/call_names.c"), encoding="utf-8") as file:
        text = re.search(r"\b" + name + r"\[\] = {\n(.*?)\n};", file.read(), re.S).group(1)
    return re.findall(r'"(\w+)"|NULL', text)


def of_headers(compiler):
    """The names by numbers, as far as this machine's headers know them."""
    macros = subprocess.run([compiler, "-dM", "-E", "-include", "asm/unistd.h", "-x", "c", "/dev/null"],
                            check=True, capture_output=True, text=True).stdout
    values = dict(re.findall(r"#define (__NR\w+) (\w+)", macros))
    names = {}
    for macro, value in values.items():
        value = values.get(value, value)	# __NR_mmap is __NR3264_mmap
        if macro.startswith("__NR_") and value.isdigit() and macro not in ("__NR_syscalls", "__NR_arch_specific_syscall"):
            names[int(value)] = macro.removeprefix("__NR_")
    return names


def compare(compiler, name):
    names = of_headers(compiler)
    assert len(names) > 250, len(names)
    for number, call in sorted(names.items()):
        at, known = (number, listed(name)) if number < FIRST_SHARED else \
            (number - FIRST_SHARED, listed("shared"))
        assert known[at] == call, (number, call, known[at])


def names_of_amd64_are_those_of_the_headers(tmp):  # pylint: disable=unused-argument
    compare("x86_64-linux-gnu-gcc", "amd64")


def names_of_arm64_are_those_of_the_headers(tmp):  # pylint: disable=unused-argument
    compare("aarch64-linux-gnu-gcc", "generic")


if __name__ == "__main__":
    tap.main(globals())
