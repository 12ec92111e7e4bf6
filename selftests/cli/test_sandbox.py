#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A decoder that was taken over: a library that does, in the middle of reading a file, what
an attacker would. With --no-sandbox it gets through, so each deed is a true one."""
import ctypes
import glob
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

DEEDS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *path;

static long more(const char *name);

static long deed(const char *name)
{
	char byte = 0, *arguments[] = { "touch", (char *)path, NULL };
	struct iovec here = { &byte, 1 }, there = { (void *)&path, 1 };
	int fd;

	if (!strcmp(name, "execve"))
		return execv("/bin/touch", arguments);
	if (!strcmp(name, "execveat"))
		return syscall(SYS_execveat, AT_FDCWD, "/bin/touch", arguments, NULL, 0);
	if (!strcmp(name, "fork")) {
		long child = fork();

		if (!child)
			_exit(0);
		return child;
	}
	if (!strcmp(name, "system"))
		return system("true") ? -1 : 0;
	if (!strcmp(name, "popen"))
		return popen("true", "r") ? 0 : -1;
	if (!strcmp(name, "vfork"))
		return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) ?: (_exit(0), 0);
	if (!strcmp(name, "unix-socket"))
		return socket(AF_UNIX, SOCK_STREAM, 0);
	if (!strcmp(name, "inet-socket"))
		return socket(AF_INET, SOCK_STREAM, 0);
	if (!strcmp(name, "kill"))
		return kill(getppid(), 0);
	if (!strcmp(name, "tgkill"))
		return syscall(SYS_tgkill, getppid(), getppid(), 0);
	if (!strcmp(name, "ptrace"))
		return ptrace(PTRACE_TRACEME, 0, 0, 0);
	if (!strcmp(name, "process_vm_readv"))
		return process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	if (!strcmp(name, "int80")) {
#ifdef __x86_64__
		/* the number of i386: getpid */
		long result;

		asm volatile("int $0x80" : "=a" (result) : "a" (20L) : "r8", "r9", "r10", "r11",
			     "memory");
		return result;
#endif
	}
	if (!strcmp(name, "x32")) {
#ifdef __x86_64__
		return syscall(0x40000000 | SYS_getpid);
#endif
	}
	if (!strcmp(name, "create")) {
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		return fd < 0 ? -1 : write(fd, "x", 1);
	}
	if (!strcmp(name, "overwrite")) {
		fd = open(path, O_WRONLY);
		return fd < 0 ? -1 : write(fd, "x", 1);
	}
	if (!strcmp(name, "truncate"))
		return open(path, O_RDONLY | O_TRUNC);
	if (!strcmp(name, "truncate-path"))
		return truncate(path, 0);
	if (!strcmp(name, "unlink"))
		return unlink(path);
	if (!strcmp(name, "rename")) {
		char to[4096];

		snprintf(to, sizeof(to), "%s.moved", path);
		return rename(path, to);
	}
	if (!strcmp(name, "symlink"))
		return symlink("/etc/passwd", path);
	if (!strcmp(name, "link"))
		return link("/proc/self/exe", path);
	if (!strcmp(name, "mkdir"))
		return mkdir(path, 0700);
	if (!strcmp(name, "chmod"))
		return chmod(path, 0777);
	if (!strcmp(name, "chdir"))
		return chdir("/");
	if (!strcmp(name, "unshare"))
		return unshare(CLONE_NEWUSER);
	if (!strcmp(name, "push-input"))
		return ioctl(0, TIOCSTI, "x") && errno != ENOTTY ? 0 : -1;
	return more(name);
}
"""
SOURCE = DEEDS + r"""
static long more(const char *name)
{
	fprintf(stderr, "no such deed: %s\n", name);
	abort();
}

static void once(void)
{
	const char *name = getenv("DEED");

	path = getenv("DEED_PATH");
	if (!name)
		return;
	unsetenv("DEED");
	unsetenv("LD_PRELOAD");
	fprintf(stderr, "deed: %s\n", deed(name) < 0 ? strerror(errno) : "done");
}

/* What decoders call for their file's bytes, whichever way they were built. */
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0)
		once();
	return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

void *mmap64(void *, size_t, int, int, int, off64_t) __attribute__((alias("mmap")));
"""

READING = [("info",), ("report",), ("script",), ("dump",), ("check",),
           ("query", "SELECT * FROM samples", "-i")]


def is_here():
    told = [json.loads(line) for line in tap.run("version", "--json").stdout.splitlines()]
    return next(line for line in told if line["kind"] == "sandbox")


def of_the_kernel():
    """What a sandbox can be made of here: not by the tool's word, which may be wrong."""
    actions = "/proc/sys/kernel/seccomp/actions_avail"
    seccomp = ""
    if os.path.exists(actions):
        with open(actions, encoding="ascii") as file:
            seccomp = file.read()
    # landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION), of all machines
    version = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return {"seccomp": "trap" in seccomp.split(), "landlock": max(version, 0)}


def want_a_build_with_one():
    if platform.machine() not in ("x86_64", "aarch64", "riscv64", "s390x"):
        raise tap.Skip("the library here makes calls of 64-bit machines")
    with open(tap.KBARMAN, "rb") as file:
        program = file.read()
    for sanitizer in ("asan", "msan", "tsan"):
        if b"__%s_init" % sanitizer.encode() in program:
            raise tap.Skip(f"a build with a sanitizer ({sanitizer}) has no sandbox")


def want(what="seccomp"):
    want_a_build_with_one()
    if not of_the_kernel()[what]:
        raise tap.Skip(f"this kernel has no {what}")


def villain(directory, text=SOURCE):
    path = os.path.join(directory, "villain.so")
    source = os.path.join(directory, "villain.c")
    if not os.path.exists(path):
        with open(source, "w", encoding="ascii") as file:
            file.write(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", path, source], check=True)
    return path


def capture(directory):
    maker = Maker(counters=[17], facts={"counter.0.0": "cycles"})
    maker.task(7, "task")
    maker.switch(0, 100, 7)
    for at in range(100):
        maker.sample(0, 200 + at, 7, 0x1000 + at, [1])
    return maker.save(os.path.join(directory, "in.cap"))


def commit(tmp, deed, *args, at=None):
    """The tool's end with the deed done in the middle."""
    environment = dict(os.environ, LD_PRELOAD=villain(tmp), DEED=deed,
                       DEED_PATH=at or os.path.join(tmp, "victim"))
    environment.pop("DEBUGINFOD_URLS", None)
    return tap.run(*args, env=environment, cwd=tmp)


def deadly(tmp, *deeds):
    """Each of them ends every verb with a message, and would have gone through without."""
    want()
    path = capture(tmp)
    for deed in deeds:
        for verb in READING[:1] if deed != deeds[0] else READING:
            done = commit(tmp, deed, *verb, path)
            assert done.returncode == 2, (deed, verb, done)
            assert "stopped by the sandbox" in done.stderr and "deed" not in done.stderr, done
            assert not os.path.exists(os.path.join(tmp, "victim")), deed
        done = commit(tmp, deed, "info", "--no-sandbox", path)
        assert "stopped" not in done.stderr, (deed, done)


def program_is_not_started(tmp):
    for deed in ("execve", "execveat"):
        remove(os.path.join(tmp, "victim"))
        deadly(tmp, deed)
        assert os.path.exists(os.path.join(tmp, "victim"))



def connection_is_not_made(tmp):
    deadly(tmp, "inet-socket", "unix-socket")


def what_push_reads_can_not_connect(tmp):
    """Only the process that sends can, which reads no capture."""
    want()
    path = capture(tmp)
    for deed in ("inet-socket", "execve"):
        done = commit(tmp, deed, "push", "--otlp", "http://127.0.0.1:1", "--retry", "0", path)
        if "libcurl is needed" in done.stderr:
            raise tap.Skip("libcurl, which sends, is not installed")
        assert done.returncode == 2, (deed, done)
        assert "stopped by the sandbox" in done.stderr and "deed" not in done.stderr, done
        assert "what follows was not sent" in done.stderr, done


def others_are_not_touched(tmp):
    deadly(tmp, "kill", "tgkill", "ptrace", "process_vm_readv", "unshare")


def calls_by_another_numbering_are_stopped(tmp):
    if platform.machine() != "x86_64":
        raise tap.Skip("only x86 has more than one")
    want()
    path = capture(tmp)
    done = commit(tmp, "int80", "info", path)
    if commit(tmp, "int80", "info", "--no-sandbox", path).returncode == -signal.SIGSEGV:
        assert done.returncode == -signal.SIGSEGV, done     # this machine has no such calls at all
    else:
        assert "stopped by the sandbox" in done.stderr, done
    done = commit(tmp, "x32", "info", path)
    assert "Function not implemented" in done.stderr, done


def refused(tmp, deeds, *args, at, prepare):
    """The deed is not done, what was asked for is; without a sandbox both are."""
    for deed in deeds:
        prepare()
        done = commit(tmp, deed, *args, at=at)
        assert done.returncode == 0 and "deed: " in done.stderr and \
            "deed: done" not in done.stderr, (deed, done)
        prepare()
        done = commit(tmp, deed, *args, "--no-sandbox", at=at)
        assert done.returncode == 0 and "deed: done" in done.stderr, (deed, done)


def process_is_not_started(tmp):
    want()
    refused(tmp, ("fork", "vfork", "system", "popen"), "info", capture(tmp), at=None,
            prepare=lambda: None)


def remove(path):
    for name in (path, path + ".moved"):
        if os.path.isdir(name):
            os.rmdir(name)
        elif os.path.lexists(name):
            os.unlink(name)


def filled(path):
    remove(path)
    with open(path, "w", encoding="ascii") as file:
        file.write("precious")
    os.chmod(path, 0o600)


MAKING = ("create", "symlink", "mkdir")
CHANGING = ("overwrite", "truncate", "truncate-path", "unlink", "rename", "chmod")


def no_file_is_changed_by_reading(tmp):
    want()
    path, victim = capture(tmp), os.path.join(tmp, "victim")
    refused(tmp, MAKING, "report", path, at=victim, prepare=lambda: remove(victim))
    refused(tmp, CHANGING, "report", path, at=victim, prepare=lambda: filled(victim))


def no_file_is_made_but_where_the_output_is(tmp):
    want("landlock")
    path = capture(tmp)
    os.mkdir(os.path.join(tmp, "elsewhere"))
    os.mkdir(os.path.join(tmp, "out"))
    victim = os.path.join(tmp, "elsewhere", "victim")
    for args in [("convert", path, "--to", "heph", "-o", "out/out.heph"),
                 ("merge", path, "-o", "out/out.cap"),
                 ("recover", path, "-o", "out/recovered.cap")]:
        refused(tmp, MAKING, *args, at=victim, prepare=lambda: remove(victim))
        # permissions are not Landlock's business, and truncating is since its third version
        changing = [deed for deed in CHANGING if deed != "chmod" and
                    (of_the_kernel()["landlock"] >= 3 or deed != "truncate")]
        refused(tmp, changing, *args, at=victim, prepare=lambda: filled(victim))


def nothing_is_left_of_an_output_that_was_stopped(tmp):
    want()
    path = capture(tmp)
    with open(os.path.join(tmp, "out.heph"), "w", encoding="ascii") as file:
        file.write("old")
    before = set(os.listdir(tmp)) | {"villain.so", "villain.c"}
    done = commit(tmp, "execve", "convert", path, "--to", "heph", "-o", "out.heph")
    assert done.returncode == 2 and "stopped by the sandbox" in done.stderr, done
    assert set(os.listdir(tmp)) == before, os.listdir(tmp)
    with open(os.path.join(tmp, "out.heph"), encoding="ascii") as file:
        assert file.read() == "old"


def outputs_are_made_in_it(tmp):
    """Files, folders, links that are followed, pipes; and input that comes from one."""
    path = capture(tmp)
    os.mkdir(os.path.join(tmp, "there"))
    os.symlink("there/linked.heph", os.path.join(tmp, "link.heph"))
    with open(os.path.join(tmp, "there/linked.heph"), "w", encoding="ascii"):
        pass
    for out in ("plain.heph", "there/deep.heph", "./here.heph", os.path.join(tmp, "whole.heph"),
                "link.heph", "/dev/null", "/dev/stdout"):
        done = tap.run("convert", path, "--to", "heph", "-o", out, cwd=tmp, text=False)
        assert done.returncode == 0, (out, done)
    for out in ("folder", "there/folder", "there/folder2/"):
        assert tap.run("convert", path, "--to", "ctf", "-o", out, cwd=tmp).returncode == 0, out
        assert os.path.isdir(os.path.join(tmp, out))
    assert tap.run("convert", path, "--to", "heph", cwd=tmp).returncode == 0
    assert os.path.exists(os.path.join(tmp, "in.heph"))
    assert tap.run("merge", path, "-o", "merged.cap", cwd=tmp).returncode == 0
    with open(path, "rb") as file:
        whole = file.read()
    for args in [*READING, ("convert", "--to", "heph", "-o", "piped.heph"),
                 ("merge", "-o", "piped.cap")]:
        done = tap.run(*args, "-", input=whole, cwd=tmp, text=False)
        assert done.returncode == 0, (args, done)
    done = tap.run("check", path, "-", path, input=whole, cwd=tmp, text=False)
    assert done.returncode == 0 and done.stdout.count(b"valid") == 3, done


def the_folder_of_the_output_stays_open(tmp):
    """File systems that forget a folder nobody has open would forget what is permitted in it."""
    want()
    want("landlock")
    folder = os.path.join(os.path.realpath(tmp), "there")
    os.mkdir(folder)
    with subprocess.Popen([tap.KBARMAN, "convert", "-", "--to", "heph", "-o", os.path.join(folder, "a.heph")],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        def is_in_it():
            with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
                return "\nSeccomp:\t2\n" in status.read()
        while not is_in_it():
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.02)
        links = [os.path.realpath(link) for link in glob.glob(f"/proc/{child.pid}/fd/*")]
        with open(capture(tmp), "rb") as file:
            child.communicate(file.read())
    assert child.returncode == 0 and folder in links, (child, links)


def connection_that_was_asked_for_is_made(tmp):
    path = capture(tmp)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with subprocess.Popen([tap.KBARMAN, "convert", path, "--to", "heph",
                               f"--connect=tcp:127.0.0.1:{port}"]) as tool:
            connection, _ = server.accept()
            with connection:
                got = b""
                while piece := connection.recv(65536):
                    got += piece
            assert tool.wait(timeout=300) == 0
    want()
    assert got
    done = commit(tmp, "execve", "convert", path, "--to", "heph",
                  f"--connect=tcp:127.0.0.1:{port}")
    assert done.returncode == 2 and "stopped by the sandbox" in done.stderr, done


def a_signal_still_ends_it_as_signals_do(tmp):
    path = capture(tmp)
    os.mkfifo(os.path.join(tmp, "pipe"))
    with subprocess.Popen([tap.KBARMAN, "convert", path, "--to", "heph", "-o", "pipe"],
                          cwd=tmp) as tool:
        try:
            tool.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            pass
        tool.send_signal(signal.SIGTERM)
        assert tool.wait(timeout=300) == -signal.SIGTERM


def version_says_what_the_kernel_has(tmp):  # pylint: disable=unused-argument
    want_a_build_with_one()
    told = is_here()
    assert {what: told[what] for what in ("seccomp", "landlock")} == of_the_kernel(), told


def doctor_says_whether_it_is_on(tmp):
    told = [json.loads(line) for line in tap.run("doctor", "--json", cwd=tmp).stdout.splitlines()]
    check = next(line for line in told if line.get("name") == "sandbox")
    assert check["verdict"] == ("ok" if is_here()["seccomp"] and is_here()["landlock"] else "warn")


if __name__ == "__main__":
    tap.main(globals())
