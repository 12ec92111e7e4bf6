#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is recovered of a machine that crashed, by its crash kernel: kdump.sh records, crashes, and recovers.

    selftests/vm/kdump.py ARCH FLAVOUR GUEST-DIRECTORY TOOL

GUEST-DIRECTORY is what `make guest` made. One machine has a crash kernel with an initramfs, and in there the tool that
`make static` made. The other one is a Debian on a disk, with kdump-tools and what the manual adds to it. A makedumpfile may
refuse Linux of a later version than its own: then uncompressed memory has the capture.
"""
# pylint: disable=unused-argument
import filecmp
import functools
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import examples  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

# where ordinary users have no programs for disks
os.environ["PATH"] += ":/usr/sbin:/sbin"
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ARCH, FLAVOUR, GUEST = sys.argv[1:4]
tap.KBARMAN = os.path.abspath(sys.argv[4])
PLACE = os.path.abspath(os.path.join(GUEST, "kdump"))
ENV = "export KB_ARCH={} KB_ROOT=debian KB_SHARE=1 KB_TIMEOUT=600 KB_TTY='' TERM=dumb\n"
CONSOLE = {"amd64": "ttyS0", "arm64": "ttyAMA0"}
APPEND = f"console={CONSOLE[ARCH]} loglevel=5 panic=-1 nr_cpus=1 irqpoll reset_devices no_timer_check nokaslr"


def script(name, *args):
    return subprocess.check_output([os.path.join(TOP, "scripts", name), *args], text=True)


def write(path, text):
    with open(os.path.join(PLACE, path), "w", encoding="utf-8") as file:
        file.write(text)


def put_initrd():
    """scripts/vm's own initramfs, with the command."""
    root = os.path.join(PLACE, "initrd.root")
    os.makedirs(os.path.join(root, "kb"))
    write("initrd.root/kb/env", ENV.format(ARCH))
    write("initrd.root/kb/cmd", "exec sh kdump/kdump.sh dump\n")
    with open(os.path.join(PLACE, "initrd"), "wb") as file:
        subprocess.run("find . | cpio -o -H newc -R 0:0 --quiet", shell=True, check=True, cwd=root, stdout=file)
        with open(script("initramfs", ARCH, FLAVOUR).strip(), "rb") as base:
            shutil.copyfileobj(base, file)


def drop_ins():
    """The files that the manual has for kdump-tools: the path of each, and what is in it."""
    with open(os.path.join(TOP, "user/man/kbarman-recover.1"), encoding="utf-8") as page:
        return re.findall(r" file (/etc/\S+)[^\n]*:\n\.PP\n\.EX\n(.*?)\.EE", examples.unroffed(page.read()), re.S)


def put_disk():
    """A disk of that Debian, which records and crashes at the end of its boot."""
    tree = os.path.join(PLACE, "tree")
    subprocess.check_call(["cp", "-a", "--reflink=auto", script("kdump-root", ARCH, FLAVOUR).strip(), tree])
    os.makedirs(os.path.join(tree, "host/kdump"))
    for path, to in (os.path.join(GUEST, "kbarman"), "usr/bin"), (os.path.join(GUEST, "kbarman.ko"), "host"), \
            (os.path.join(GUEST, "truth-static"), "host"), (os.path.join(PLACE, "kdump.sh"), "host/kdump"):
        shutil.copy(path, os.path.join(tree, to))
    for path, text in *drop_ins(), ("/etc/rc.local", "#!/bin/sh\nexec sh /host/kdump/kdump.sh work\n"):
        os.makedirs(os.path.dirname(tree + path), exist_ok=True)
        write("tree" + path, text)
    os.chmod(tree + "/etc/rc.local", 0o755)
    with open(os.path.join(PLACE, "disk"), "wb") as file:
        file.truncate(1 << 30)
    # whoever runs this: the files are root's
    subprocess.check_call(["unshare", "--map-root-user", "mkfs.ext4", "-q", "-d", tree, file.name])


def vm(append, *args):
    return subprocess.run([os.path.join(TOP, "scripts", "vm"), "--arch", ARCH, "--flavour", FLAVOUR, "--append",
                           "crashkernel=256M " + append, "--timeout", "900", *args],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def told(name):
    with open(os.path.join(PLACE, name + ".err"), encoding="utf-8") as file:
        return file.read()


def refused():
    """Whether makedumpfile has written nothing because it does not know this Linux. It knows the oldest one."""
    text = told("makedumpfile")
    return FLAVOUR != "6.1" and "not supported" in text and "Exit status: 0" not in text


@functools.cache
def crashed():
    """The machine has crashed, and its crash kernel has written into PLACE."""
    shutil.rmtree(PLACE, ignore_errors=True)
    os.mkdir(PLACE)
    put_initrd()
    write("append", APPEND)
    shutil.copy(re.search(r"VMLINUZ='?([^'\n]+)", script("kernel", ARCH, FLAVOUR))[1], os.path.join(PLACE, "vmlinuz"))
    for file in "selftests/vm/kdump.sh", f"build/static/{ARCH}/kbarman":
        shutil.copy(os.path.join(TOP, file), PLACE)
    done = vm("", "--share", GUEST, "--root", script("rootfs", ARCH, "kdump").strip(), "--log",
              os.path.join(PLACE, "console"), "--", "sh", "kdump/kdump.sh", "crash")
    assert done.returncode == 0, done
    for name in "direct", "makedumpfile", "dump":
        text = told(name)
        assert "Exit status: 0" in text or name != "direct" and refused(), (name, text)
        # busybox takes the KiB that Linux tells for pages
        peak = int(re.search("Maximum resident.*: (.*)", text)[1]) // 4
        print(f"# {name}: {re.search('Elapsed.*: (.*)', text)[1]}, {peak} KiB")
    return PLACE


@functools.cache
def debian():
    """It has crashed, too, and started again. The folder that kdump-tools made on its disk."""
    crashed()
    put_disk()
    disk = os.path.join(PLACE, "disk")
    done = vm("root=/dev/vda", "--log", os.path.join(PLACE, "debian"), "--qemu-arg", "-initrd", "--qemu-arg",
              os.path.join(PLACE, "tree/boot/initrd.img"), "--qemu-arg", "-drive", "--qemu-arg",
              f"if=virtio,format=raw,file={disk}", "--", "true")
    # what scripts/vm has of this console is the first panic
    assert done.returncode == 125 and "sysrq triggered crash" in done.stderr, done
    subprocess.run(["e2fsck", "-fp", disk], stdout=subprocess.DEVNULL, check=False)
    subprocess.run(["debugfs", "-R", f"rdump /var/crash {PLACE}", disk], capture_output=True, check=True)
    return os.path.join(PLACE, "crash")


def left(pattern):
    path, = glob.glob(os.path.join(debian(), pattern))
    return path


def expect_capture_of(memory, capture, tmp):
    """The head says how much room for strings a file has, which not each file system makes smaller."""
    here = os.path.join(tmp, "cap")
    done = tap.run("recover", "-o", here, memory)
    assert done.returncode == 0, done
    one, other = (re.sub(r'"(header_length|max_string_table_length)":\d+', "", tap.run("dump", "--json", path).stdout)
                  for path in (here, capture))
    assert one == other and '"kind":"record"' in one, (len(one), len(other))


def makedumpfile_knows_this_linux():
    """Where it does not, kdump-tools leave an empty dump, beside the capture of the memory itself."""
    crashed()
    if refused():
        raise tap.Skip(f"makedumpfile refuses Linux {FLAVOUR}, of which uncompressed memory is tested: " +
                       told("makedumpfile").splitlines()[0])


def said(verb, tmp):
    """Of the captures, with the names that the machine's files have. What was in /dev/shm had its path from there."""
    shutil.copy(os.path.join(GUEST, "truth-static"), os.path.join(tmp, "last_work"))
    for capture in os.path.join(crashed(), "direct.cap"), left("*/vmcore.*.cap"):
        done = tap.run(verb, "--symfs", tmp, capture)
        assert done.returncode == 0, done
        yield done.stdout


def the_crash_kernel_recovers_tasks_and_the_names_of_what_they_ran(tmp):
    for text in said("report", tmp):
        for thread in "burner-0", "burner-1":
            assert re.search(rf" {thread} +last_work +\[\.\] truth_", text), text
        assert "waits" in text and "sleeper" in text, text


def functions_of_linux_have_the_names_that_were_kept_in_memory(tmp):
    name = r"^\t *ffff[0-9a-f]+ [a-z_]\w+\+0x[0-9a-f]+ \(\[kernel\.kallsyms\]\)$"
    for text in said("script", tmp):
        assert re.search(name, text, re.M), text[-3000:]


def the_last_stacks_are_recovered(tmp):
    for text in said("script", tmp):
        assert re.search(r"^\t +[0-9a-f]+ truth_\w+\+0x[0-9a-f]+ \(/last_work\)$", text, re.M), text[-3000:]


def the_task_that_crashed_is_the_last_one_of_its_cpu(tmp):
    for text in said("script", tmp):
        last = dict(re.findall(r"\[(\d+)\].* ==> next_comm=(\S+)", text))
        assert "sh" in last.values(), last


def uncompressed_memory_has_the_same_capture(tmp):
    expect_capture_of(os.path.join(crashed(), "memory"), os.path.join(crashed(), "direct.cap"), tmp)


def what_makedumpfile_writes_has_the_same_capture(tmp):
    makedumpfile_knows_this_linux()
    assert filecmp.cmp(os.path.join(crashed(), "direct.cap"), os.path.join(crashed(), "dump.cap"), shallow=False)


def what_kdump_tools_leave_has_the_same_capture(tmp):
    makedumpfile_knows_this_linux()
    expect_capture_of(left("2*/dump.*"), left("*/vmcore.*.cap"), tmp)


if __name__ == "__main__":
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
