#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completion for bash and zsh offers what the tool itself says that there is."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TREE, "selftests", "lib"))
import tap  # noqa: E402

BASH = os.path.join(TREE, "user", "completion", "kbarman.bash")
ZSH = os.path.join(TREE, "user", "completion", "_kbarman")


def environment():
    return {**os.environ, "PATH": os.path.dirname(os.path.abspath(tap.KBARMAN)) + ":" +
            os.environ["PATH"]}


def offers(*words):
    """What bash offers for the last of the words."""
    script = f'. {BASH}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _kbarman; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, "bash", "kbarman", *words], capture_output=True,
                          text=True, timeout=300, check=True, env=environment())
    return set(done.stdout.split())


def verbs():
    return set(re.findall(r"^  (\w+) +\S", tap.run("--help").stdout, re.M))


def verbs_are_offered(tmp):
    assert offers("") == verbs() | {"--help", "--version"}
    assert offers("rec") == {"record", "recover"}


def options_are_those_of_the_verb(tmp):
    for verb in verbs():
        options = set(tap.run(verb, "--list-options").stdout.split())
        assert offers(verb, "-") == options, verb
    assert offers("record", "--freq") == {"--freq="}


def formats_and_events_are_offered(tmp):
    assert {"annotate", "heph", "tptp"} <= offers("convert", "--to", "")
    assert offers("convert", "-t", "flam") == {"flamegraph"}
    events = offers("stat", "-e", "")
    if "cpu-clock" not in events:
        raise tap.Skip("this machine counts nothing")
    assert offers("record", "-e", "cpu-clock,page-f") == {"cpu-clock,page-faults"}
    assert offers("flight", "st") == {"start", "status", "stop"}
    for verb in "record", "top", "flight":
        assert offers(verb, "--sources", "wake,s") == {"wake,softirq", "wake,syscalls"}


def zsh_offers_the_same(tmp):
    zsh = shutil.which("zsh")
    if not zsh:
        raise tap.Skip("there is no zsh here")
    # what compadd and the like would have been given, printed
    script = "compadd() { while (( $# )); do case $1 in -a) shift; print -l -- ${(P)1} ;; " \
             "-S|-qS) shift ;; --) shift; print -l -- $@; return ;; *) print -- $1 ;; esac; " \
             "shift; done }\n" \
             "_describe() { print -l -- ${${(P)2}%%:*} }\ncompset() { : }\n_files() { : }\n" \
             "words=(\"$@\"); CURRENT=$#\n. " + ZSH
    for words in [("kbarman", ""), ("kbarman", "record", "-"), ("kbarman", "convert", "--to", ""),
                  ("kbarman", "flight", ""), ("kbarman", "record", "--sources", "")]:
        done = subprocess.run([zsh, "-f", "-c", script, "zsh", *words], capture_output=True,
                              text=True, timeout=300, check=True, env=environment())
        found = set(done.stdout.split())
        missing = offers(*words[1:]) - found - {"--help", "--version"}
        assert not missing and found, (words, missing, done)


if __name__ == "__main__":
    tap.main(globals())
