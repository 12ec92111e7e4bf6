#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each question of kbarman-howto(7) has the answer that stands there.

The captures are those of howto_captures.py, whose times are known. A line of an answer is right if a line of
the output has its words in this order: how wide a column is, and what stands in others, is not asked."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap
from examples import unroffed
from howto_captures import Story

PAGE = os.path.join(HERE, "..", "..", "user", "man", "kbarman-howto.7")


def questions():
    """(title, command, lines of the answer)"""
    with open(PAGE, encoding="utf-8") as file:
        sections = re.split(r"^\.SS (.*)\n", file.read(), flags=re.M)[1:]
    for title, text in zip(sections[::2], sections[1::2]):
        blocks = re.findall(r"^\.EX\n(.*?)^\.EE$", text, re.M | re.S)
        assert len(blocks) == 2, (title, "a command and its answer")
        yield title, unroffed(blocks[0]), unroffed(blocks[1]).splitlines()


def made(folder):
    """A folder with all captures that the page names."""
    place = os.path.join(folder, "captures")
    os.mkdir(place)
    for name, slower, jit in (("kbarman.cap", 1, True), ("before.cap", 1, True), ("after.cap", 1.3, True),
                              ("node.cap", 1, False)):
        shutil.rmtree(os.path.join(place, "tmp"), ignore_errors=True)
        Story(slower).save(os.path.join(place, name), jit)
        done = tap.run("bundle", "--symfs", place, os.path.join(place, name))
        assert done.returncode == 0, done
    with open(os.path.join(place, "kbarman.cap"), "rb") as whole, \
            open(os.path.join(place, "kbarman.cap.partial"), "wb") as cut:
        cut.write(whole.read(60000))
    return place


def answer(folder, captures, command):
    """What the command says, in a folder that has the captures it names, or else kbarman.cap."""
    os.makedirs(os.path.join(folder, ".bin"))
    os.symlink(tap.KBARMAN, os.path.join(folder, ".bin", "kbarman"))
    named = set(re.findall(r"[\w-]+\.cap(?:\.partial)?(?![\w.*])", command)) & set(os.listdir(captures))
    for name in named or {"kbarman.cap"}:
        for end in "", ".symbols", ".kallsyms":
            if os.path.exists(os.path.join(captures, name + end)):
                shutil.copy(os.path.join(captures, name + end), folder)
    done = subprocess.run(["sh", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=tap.HANG, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "PATH": f"{folder}/.bin:{os.environ['PATH']}"})
    assert done.returncode == 0, (command, done)
    return done.stdout.splitlines()


def has_words(line, words):
    rest = iter(line.split())
    return all(word in rest for word in words if word != "...")


def missing(lines, said):
    """The first line of the answer that the output has not, behind those before it."""
    rest = iter(said)
    for line in lines:
        if line != "..." and not any(has_words(other, line.split()) for other in rest):
            return line
    return None


def each_question_has_its_answer(tmp):
    captures, asked = made(tmp), list(questions())
    assert len(asked) >= 20, len(asked)
    for number, (title, command, lines) in enumerate(asked):
        said = answer(os.path.join(tmp, str(number)), captures, command)
        lost = missing(lines, said)
        assert lost is None, (title, command, lost, said)


def a_wrong_answer_is_found(tmp):  # pylint: disable=unused-argument
    said = ["# Time  %  Name", "1.5  10.00%  web", "2.5  20.00%  db"]
    assert missing(["1.5 10.00% web", "...", "20.00% db"], said) is None
    for wrong in ["1.5 11.00% web"], ["20.00% db", "10.00% web"], ["web 10.00%"], ["1.5 10.00% web", "1.5 10.00% web"]:
        assert missing(wrong, said) is not None, wrong


if __name__ == "__main__":
    tap.main(globals())
