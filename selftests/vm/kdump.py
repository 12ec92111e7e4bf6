#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is recovered of a machine that crashed, by its crash kernel: kdump.sh records, crashes, and recovers.

    selftests/vm/kdump.py amd64 GUEST-DIRECTORY TOOL

GUEST-DIRECTORY is what `make guest` made.
"""
# pylint: disable=unused-argument
import filecmp
import functools
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import examples  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ARCH, GUEST = sys.argv[1:3]
tap.KBARMAN = os.path.abspath(sys.argv[3])
PLACE = os.path.abspath(os.path.join(GUEST, "kdump"))
ENV = "export KB_ARCH={} KB_ROOT=busybox KB_SHARE=1 KB_TIMEOUT=600 KB_TTY='' TERM=dumb\n"
APPEND = "console=ttyS0 loglevel=5 panic=-1 nr_cpus=1 irqpoll reset_devices no_timer_check nokaslr"


def script(name, *args):
    return subprocess.check_output([os.path.join(TOP, "scripts", name), *args], text=True)


def write(path, text):
    with open(os.path.join(PLACE, path), "w", encoding="utf-8") as file:
        file.write(text)


def put_programs(root):
    """The programs, and what they are linked with."""
    for program in shutil.which("kexec"), shutil.which("makedumpfile"), tap.KBARMAN:
        listed = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True).stdout
        for path in re.findall(r"(?:=> |^\t)(/\S+) \(", listed, re.M):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
        os.makedirs(os.path.join(root, "bin"), exist_ok=True)
        shutil.copy(program, os.path.join(root, "bin"))


def put_initrd():
    """scripts/vm's own initramfs, with the programs and the command."""
    root = os.path.join(PLACE, "initrd.root")
    shutil.copytree(os.path.join(PLACE, "root"), root)
    os.mkdir(os.path.join(root, "kb"))
    write("initrd.root/kb/env", ENV.format(ARCH))
    write("initrd.root/kb/cmd", "exec sh kdump/kdump.sh dump\n")
    with open(os.path.join(PLACE, "initrd"), "wb") as file:
        subprocess.run("find . | cpio -o -H newc -R 0:0 --quiet", shell=True, check=True, cwd=root, stdout=file)
        with open(script("initramfs", ARCH).strip(), "rb") as base:
            shutil.copyfileobj(base, file)


def service():
    """What the manual has kdump-tools run, in a shell's words."""
    line, = (command for place, command in examples.examples() if place.startswith("user/man/kbarman-recover.1:") and
             command.startswith("ExecStartPre="))
    words = re.fullmatch(r"ExecStartPre=-/bin/sh -c '(.*)'", line)
    return words[1].replace("$$", "$").replace("%%", "%")


@functools.cache
def crashed():
    """The machine has crashed, and its crash kernel has written into PLACE."""
    for program in "kexec", "makedumpfile":
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed (scripts/setup)")
    if (ARCH, os.uname().machine) != ("amd64", "x86_64"):
        raise tap.Skip("the guest runs programs of this machine, which is no amd64")
    shutil.rmtree(PLACE, ignore_errors=True)
    os.mkdir(PLACE)
    put_programs(os.path.join(PLACE, "root"))
    put_initrd()
    write("append", APPEND)
    write("service.sh", service())
    shutil.copy(re.search(r"VMLINUZ='?([^'\n]+)", script("kernel", ARCH))[1], os.path.join(PLACE, "vmlinuz"))
    shutil.copy(os.path.join(TOP, "selftests/vm/kdump.sh"), PLACE)
    done = subprocess.run([os.path.join(TOP, "scripts", "vm"), "--arch", ARCH, "--share", GUEST, "--append",
                           "crashkernel=256M", "--timeout", "900", "--log", os.path.join(PLACE, "console"), "--",
                           "sh", "kdump/kdump.sh", "crash"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done
    for name in "direct", "makedumpfile", "dump", "service":
        with open(os.path.join(PLACE, name + ".err"), encoding="utf-8") as file:
            text = file.read()
        assert "Exit status: 0" in text, (name, text)
        # busybox takes the KiB that Linux tells for pages
        peak = int(re.search("Maximum resident.*: (.*)", text)[1]) // 4
        print(f"# {name}: {re.search('Elapsed.*: (.*)', text)[1]}, {peak} KiB")
    return PLACE


def said(verb, tmp):
    """Of the capture, with the names that the machine's files have. What was under /tmp had its path from there."""
    capture = os.path.join(crashed(), "direct.cap")
    shutil.copy(os.path.join(GUEST, "truth-static"), os.path.join(tmp, "last_work"))
    done = tap.run(verb, "--symfs", tmp, capture)
    assert done.returncode == 0, done
    return done.stdout


def the_crash_kernel_recovers_tasks_and_the_names_of_what_they_ran(tmp):
    text = said("report", tmp)
    for thread in "burner-0", "burner-1":
        assert re.search(rf" {thread} +last_work +\[\.\] truth_", text), text
    assert "waits" in text and "sleeper" in text, text


def functions_of_linux_have_the_names_that_were_kept_in_memory(tmp):
    text = said("script", tmp)
    assert re.search(r"^\t *ffff[0-9a-f]+ [a-z_]\w+\+0x[0-9a-f]+ \(\[kernel\.kallsyms\]\)$", text, re.M), text[-3000:]


def the_last_stacks_are_recovered(tmp):
    text = said("script", tmp)
    assert re.search(r"^\t +[0-9a-f]+ truth_\w+\+0x[0-9a-f]+ \(/last_work\)$", text, re.M), text[-3000:]


def the_task_that_crashed_is_the_last_one_of_its_cpu(tmp):
    last = dict(re.findall(r"\[(\d+)\].* ==> next_comm=(\S+)", said("script", tmp)))
    assert "sh" in last.values(), last


def what_makedumpfile_leaves_for_kdump_tools_has_the_same_capture(tmp):
    assert filecmp.cmp(os.path.join(crashed(), "direct.cap"), os.path.join(crashed(), "dump.cap"), shallow=False)


if __name__ == "__main__":
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
