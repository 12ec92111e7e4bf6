#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Verbs that run with all rights have other people's ELF files decoded by processes without
any. Here a library of ours has taken over those decoders: what an attacker would do is done in
the middle of reading a file, the next thing in each next file. How it went is written into memory
that the library shares with the test, which no sandbox can keep it from."""
import glob
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap
from make_capture import Maker
from test_sandbox import DEEDS, villain, want

SLOT = 64
SOURCE = DEEDS + r"""
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/wait.h>

#define SLOTS 64

/* As much of the file as is needed here; slot 0 is the library's own. */
static struct {
	pid_t first;			/* who loaded the library */
	int next;
	int in_first;			/* files that it read itself */
	char fill[64 - 3 * sizeof(int)];
	char slots[SLOTS][64];
} *shared;

static int attacked = -1;		/* the file that is read */
static char scratch;

static long connected(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(getenv("DEED_PORT"))),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (void *)&to, sizeof(to));
}

static long descriptors(void)
{
	int nr = 0, fd;

	for (fd = 3; fd < 100; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	/* its file, and where its answer goes */
	return nr > 2 ? 0 : -1;
}

static long more(const char *name)
{
	char byte, text[64];
	int fd;

	if (!strcmp(name, "read-file")) {
		fd = open(path, O_RDONLY);
		return fd < 0 ? -1 : read(fd, &byte, 1) - 1;
	}
	if (!strcmp(name, "read-folder"))
		return opendir("/") ? 0 : -1;
	if (!strcmp(name, "read-parents-memory")) {
		snprintf(text, sizeof(text), "/proc/%d/mem", shared->first);
		return open(text, O_RDONLY);
	}
	if (!strcmp(name, "write-to-others")) {
		struct iovec here = { &byte, 1 }, there = { &scratch, 1 };

		return process_vm_writev(shared->first, &here, 1, &there, 1, 0);
	}
	if (!strcmp(name, "connect"))
		return connected();
	if (!strcmp(name, "descriptors"))
		return descriptors();
	if (!strcmp(name, "new-code"))
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			MAP_FAILED ? -1 : 0;
	if (!strcmp(name, "print"))
		return write(1, "printed by it\n", 14) == 14 && write(2, "printed by it\n", 14) == 14 ?
			0 : -1;
	if (!strcmp(name, "crash"))
		*(volatile char *)16 = 1;
	if (!strcmp(name, "hang"))
		for (;;)
			;
	if (!strcmp(name, "garbage")) {
		for (fd = 3; fd < 10; fd++)
			if (fd != attacked && write(fd, "I am an answer, am I not?", 25) < 0)
				continue;
		_exit(0);
	}
	if (!strcmp(name, "nothing"))
		return -1;
	return -2;
}

__attribute__((constructor)) static void prepare(void)
{
	int fd = open(getenv("DEED_RESULTS"), O_RDWR | O_CLOEXEC);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (!shared->first)
		shared->first = getpid();
}

/* The next deed. Where nothing keeps it from being done, in a process that may come to an end. */
static void go_on(void)
{
	const char *list = getenv("DEEDS");
	int i, at = __atomic_fetch_add(&shared->next, 1, __ATOMIC_SEQ_CST);
	char name[64], file[4096], *slot = shared->slots[at];
	long ret;

	for (i = 0; list && i < at; i++) {
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	if (!list || at >= SLOTS)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, ","), list);
	snprintf(file, sizeof(file), "%s/%s", getenv("DEED_FOLDER"), name);
	path = file;
	if (getenv("DEED_FORK") && fork()) {
		wait(NULL);
		return;
	}
	strcpy(slot, "tried");
	unsetenv("LD_PRELOAD");
	if (!strncmp(name, "exec", 4))
		strcpy(slot, "done");	/* it won't come back; and else: */
	ret = deed(name);
	snprintf(slot, 64, ret == -2 ? "no such deed" : ret < 0 ? "failed %d" : "done", errno);
	if (getenv("DEED_FORK"))
		_exit(0);
}

void *elf_begin(int fd, int command, void *reference)
{
	void *(*real)(int, int, void *) = dlsym(RTLD_NEXT, "elf_begin");

	attacked = fd;
	shared->in_first += getpid() == shared->first;
	go_on();
	return real(fd, command, reference);
}
"""
PROGRAM = """
__attribute__((noinline)) int its_own_function(int x) { return x * 6 + 1; }
__attribute__((noinline, aligned(64))) int _ZN5space4burnEi(int x)
{
	for (int i = 0; i < x; i++)
		x = (x + i) * 7 % (x | i | 1) + (x - i) * 5 % (x | 3) + i;
	return x;
}
int main(int c, char **v) { return its_own_function(c) + _ZN5space4burnEi(c); }
"""
CONNECTING = ["unix-socket", "inet-socket", "connect"]
STARTING = ["execve", "execveat", "fork", "vfork", "system", "popen"]
TOUCHING = ["kill", "tgkill", "ptrace", "process_vm_readv", "read-parents-memory",
            "write-to-others", "unshare"]
CHANGING = ["create", "symlink", "mkdir", "overwrite", "truncate", "truncate-path", "unlink",
            "rename", "chmod"]
READING = ["read-file", "read-folder", "chdir", "new-code"]
ALL = STARTING + CONNECTING + TOUCHING + CHANGING + READING

BUILT = tempfile.mkdtemp(prefix="kbarman-fake-")
FAKE = os.path.join(BUILT, "fake_device.so")


class Attack:
    """A folder with a program for each deed, and what became of the deeds."""

    def __init__(self, tmp, deeds, fork=False):
        self.tmp, self.deeds = tmp, deeds
        self.folder = os.path.join(tmp, "victims")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        for name in deeds:
            if name in CHANGING[3:] + ["read-file"]:
                with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                    file.write("precious")
                os.chmod(os.path.join(self.folder, name), 0o600)
        self.before = self.state()
        self.results = os.path.join(tmp, "results")
        with open(self.results, "wb") as file:
            file.truncate(SLOT * 65)
        self.images = self.programs(len(deeds))
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        self.env = dict(os.environ, DEEDS=",".join(deeds), DEED_FOLDER=self.folder,
                        DEED_RESULTS=self.results, DEED_PORT=str(self.server.getsockname()[1]),
                        KBARMAN_RUNTIME_DIR=tmp, FAKE_IMAGES=":".join(self.images))
        self.env.pop("DEBUGINFOD_URLS", None)
        self.preload = villain(tmp, SOURCE)
        if fork:
            self.env["DEED_FORK"] = "1"

    def programs(self, count):
        source, program = (os.path.join(self.tmp, name) for name in ("program.c", "program"))
        if not os.path.exists(program):
            with open(source, "w", encoding="ascii") as file:
                file.write(PROGRAM)
            subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        for number in range(count):
            shutil.copy(program, f"{program}{number}")
        return [f"{program}{number}" for number in range(count)]

    def state(self):
        """What is in the folder of the victims."""
        found = {}
        for name in sorted(os.listdir(self.folder)):
            path = os.path.join(self.folder, name)
            st = os.lstat(path)
            found[name] = st.st_mode, st.st_size
        return found

    def with_device(self, **more):
        if not os.path.exists(FAKE):
            raise tap.Skip("fake_device.c could not be built for this tool")
        return dict(self.env, LD_PRELOAD=f"{FAKE} {self.preload}", **more)

    def slots(self):
        """What was said of each deed; and how many files the verb itself read."""
        with open(self.results, "rb") as file:
            data = file.read()
        texts = [data[SLOT * i:SLOT * (i + 1)].split(b"\0")[0].decode()
                 for i in range(1, len(self.deeds) + 1)]
        return dict(zip(self.deeds, texts)), int.from_bytes(data[8:12], sys.byteorder)

    def connections(self):
        try:
            self.server.accept()
            return True
        except BlockingIOError:
            return False


def save_capture(attack, name="in.cap"):
    maker = Maker(counters=[17], facts={"counter.0.0": "cycles", "host": os.uname().nodename})
    maker.task(1, "task")
    maker.switch(0, 100, 1)
    for number, path in enumerate(attack.images):
        maker.map(1, 0x10000000 + 0x8000 * number, 0x4000, 0, path)
    for number in range(len(attack.images)):
        maker.sample(0, 200 + number, 1, 0x10001000 + 0x8000 * number, [1])
    return maker.save(os.path.join(attack.tmp, name))


def images_with_names(path):
    """The images of a bundle that have their function."""
    found, image = set(), None
    with gzip.open(path, "rt", encoding="ascii") as file:
        for line in file:
            if line.startswith("image "):
                image = line.split(" ", 2)[2].strip()
            elif line.endswith(" its_own_function\n"):
                found.add(image)
    return found


def run_bundle(attack, *options):
    path = save_capture(attack)
    done = tap.run("bundle", *options, path, cwd=attack.tmp,
                   env=dict(attack.env, LD_PRELOAD=attack.preload))
    return done, images_with_names(path + ".symbols") if done.returncode == 0 else None


def run_record(attack, *options):
    done = tap.run("record", *options, "-o", "out.cap", "sleep", "0.3", cwd=attack.tmp,
                   env=attack.with_device())
    return done, images_with_names(os.path.join(attack.tmp, "out.cap.symbols"))


def children_of(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += map(int, file.read().split())
    return found


def wait_for(folder, pattern):
    tap.until(lambda: glob.glob(os.path.join(folder, pattern)), pattern)


def run_flight(attack, *options):
    with subprocess.Popen([tap.KBARMAN, "flight", "run", *options], cwd=attack.tmp,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=attack.with_device()) as tool:
        # what is on disk before the end, in overwrite mode
        wait_for(attack.tmp, "flight.cap.partial")
        tool.send_signal(signal.SIGUSR1)
        wait_for(attack.tmp, "flight-2*.cap")
        tool.send_signal(signal.SIGTERM)
        out, err = tool.communicate(timeout=300)
    return (subprocess.CompletedProcess(tool.args, tool.returncode, out, err),
            images_with_names(os.path.join(attack.tmp, "flight.cap.symbols")))


def run_top(attack, *options, what="image"):
    done = tap.run("top", "-j", "-n", "1", "-d", "0.5", *options, cwd=attack.tmp,
                   env=attack.with_device(FAKE_RATE="1"))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done, {row[what] for row in rows
                  if row["kind"] == "symbol" and row["symbol"] is not None}


VERBS = {"bundle": run_bundle, "record": run_record, "flight": run_flight, "top": run_top}


def refused_in(tmp, deeds, verbs=None):
    """No deed is done, in any verb; each would be done with the rights of the verb."""
    want()
    free = Attack(tmp, deeds, fork=True)
    done, _ = run_bundle(free, "--no-sandbox")
    results, _ = free.slots()
    assert done.returncode == 0 and set(results.values()) == {"done"}, (results, done)
    for verb in verbs or VERBS:
        # `top` ends after a time, whatever was decoded by then
        for options in ([], ["-d", "4"], ["-d", "30"]) if verb == "top" else ([],):
            attack = Attack(tmp, deeds)
            done, _ = VERBS[verb](attack, *options)
            results, in_verb = attack.slots()
            if all(results.values()):
                break
        assert done.returncode == 0 and not in_verb, (verb, in_verb, done)
        # one that is gone with its deed had said "done" only if it was to be another program
        for deed, result in results.items():
            assert result.startswith("failed") or result == "tried" or \
                (result == "done" and deed.startswith("exec")), (verb, deed, results, done)
        assert attack.state() == attack.before, (verb, attack.before, attack.state())
        assert not attack.connections(), verb
        stopped = [deed for deed, result in results.items() if result in ("tried", "done")]
        if stopped:
            assert "the sandbox stopped" in done.stderr, (verb, results, done)
            # `flight` has decoders for a snapshot and for its own end, and each says what happened
            told = [re.search(r" to (\d+) more", line) for line in done.stderr.splitlines()
                    if "the sandbox stopped" in line]
            assert sum(1 + int(more[1] if more else 0) for more in told) >= len(stopped), \
                (verb, results, done)


def decoder_starts_no_program_or_process(tmp):
    refused_in(tmp, STARTING)


def decoder_makes_no_connection(tmp):
    refused_in(tmp, CONNECTING)


def decoder_touches_no_other_process(tmp):
    refused_in(tmp, TOUCHING)


def decoder_changes_no_file(tmp):
    refused_in(tmp, CHANGING)


def decoder_reads_no_file_that_it_was_not_given(tmp):
    refused_in(tmp, READING)


def decoder_prints_nothing_and_has_no_descriptor_of_the_verb(tmp):
    want()
    for verb, run in VERBS.items():
        attack = Attack(tmp, ["print", "descriptors", "nothing"])
        done, named = run(attack)
        results, _ = attack.slots()
        assert results["descriptors"].startswith("failed"), (verb, results)
        assert done.returncode == 0 and "printed by it" not in done.stdout + done.stderr, done
        # nothing happened that would cost a name
        assert verb == "top" or named == set(attack.images), (verb, named, done)


def decoder_that_ends_badly_costs_the_names_of_its_file_only(tmp):
    want()
    for verb in ("bundle", "record"):
        deeds = ["crash", "nothing", "garbage", "nothing", "execve", "nothing"]
        attack = Attack(tmp, deeds)
        done, named = VERBS[verb](attack)
        assert done.returncode == 0, done
        for says in ("its decoder crashed", "no valid answer", "the sandbox stopped"):
            assert says in done.stderr, (verb, says, done)
        lost = {line.split(" has no names")[0].split(": ", 1)[1]
                for line in done.stderr.splitlines() if " has no names" in line}
        assert len(lost) == 3 and named == set(attack.images) - lost, (verb, lost, named)


def decoder_that_ends_badly_while_it_unwinds_costs_callers(tmp):
    """And names only where somebody asks for them."""
    want()
    for options in ["--no-bundle"], []:
        attack = Attack(tmp, ["crash", "garbage"])
        attack.env["HOME"] = attack.env["XDG_CACHE_HOME"] = tmp
        done = tap.run("record", "-g", *options, "-o", "out.cap", "sleep", "0.3", cwd=tmp,
                       env=attack.with_device(FAKE_CHAINS="18", FAKE_STACKS="1"))
        assert done.returncode == 0 and "stacks of user code" in done.stderr, done
        first, second = attack.images
        for says in (f"call chains end in {first}: its decoder crashed",
                     f"call chains end in {second}: its decoder gave no valid answer"):
            assert says in done.stderr, (says, done)
        assert ("has no names" in done.stderr) == (not options), done


def decoder_that_hangs_is_waited_for_once(tmp):
    want()
    attack = Attack(tmp, ["hang", "nothing"])
    done, named = run_record(attack)
    assert done.returncode == 0 and "took too long" in done.stderr, done
    assert len(named) == 1, (named, done)


def snapshot_leaves_files_of_others_to_decoders(tmp):
    """For the symbols, which `bundle` saves beside it."""
    want()
    attack = Attack(tmp, ["nothing"])
    done = tap.run("snapshot", "-o", "out.cap", cwd=tmp,
                   env=attack.with_device(FAKE_RUNNING="1"))
    assert done.returncode == 0 and os.path.exists(os.path.join(tmp, "out.cap")), done
    results, in_verb = attack.slots()
    assert results == {"nothing": "failed 0"} and not in_verb, (results, in_verb)
    assert images_with_names(os.path.join(tmp, "out.cap.symbols")) == set(attack.images), done


def snapshot_has_stacks_unwound_by_decoders(tmp):
    want()
    attack = Attack(tmp, ["crash"])
    attack.env["HOME"] = attack.env["XDG_CACHE_HOME"] = tmp
    done = tap.run("snapshot", "-o", "out.cap", cwd=tmp,
                   env=attack.with_device(FAKE_RUNNING="1", FAKE_STACKS="1", FAKE_CHAINS="18"))
    results, in_verb = attack.slots()
    assert done.returncode == 0 and results == {"crash": "tried"} and not in_verb, \
        (done, results, in_verb)
    assert f"call chains end in {attack.images[0]}: its decoder crashed" in done.stderr, done


def signals_to_the_group_leave_the_names(tmp):
    """What a terminal or a service manager sends goes to all processes of it."""
    want()
    attack = Attack(tmp, ["nothing"])
    with subprocess.Popen([tap.KBARMAN, "record", "-a", "-o", "out.cap", "sleep", "300"], cwd=tmp,
                          env=attack.with_device(), start_new_session=True,
                          stderr=subprocess.PIPE, text=True) as tool:
        wait_for(tmp, "out.cap.partial")
        for pid in [tool.pid, *children_of(tool.pid)]:
            os.kill(pid, signal.SIGTERM)
        _, err = tool.communicate(timeout=300)
    assert images_with_names(os.path.join(tmp, "out.cap.symbols")) == set(attack.images), err


def keeper_that_was_killed_is_replaced(tmp):
    """As when memory was short."""
    want()
    attack = Attack(tmp, ["nothing"])
    with subprocess.Popen([tap.KBARMAN, "record", "-a", "-o", "out.cap", "sleep", "300"], cwd=tmp,
                          env=attack.with_device(), stderr=subprocess.PIPE, text=True) as tool:
        wait_for(tmp, "out.cap.partial")
        def keepers():
            return [pid for pid in children_of(tool.pid) if os.getsid(pid) == pid]
        tap.until(keepers, "a keeper")
        assert len(keepers()) == 1, keepers()
        os.kill(keepers()[0], signal.SIGKILL)
        tool.send_signal(signal.SIGTERM)
        _, err = tool.communicate(timeout=300)
    assert images_with_names(os.path.join(tmp, "out.cap.symbols")) == set(attack.images), err


def names_are_readable(tmp):
    """What people read in `top` has gone through a decoder, too."""
    attack = Attack(tmp, ["nothing"])
    for options in ((), ("--no-sandbox",)):
        _, names = run_top(attack, "-d", "1.5", *options, what="symbol")
        assert "space::burn(int)" in names, names


def without_a_sandbox_names_are_the_same(tmp):
    attack = Attack(tmp, ["nothing", "nothing"])
    for verb in ("bundle", "record"):
        for options in ((), ("--no-sandbox",)):
            done, named = VERBS[verb](attack, *options)
            assert done.returncode == 0 and named == set(attack.images), (verb, options, done)


if __name__ == "__main__":
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-fPIC",
                    "-shared", "-I" + os.path.join(HERE, "..", "..", "kmod"),
                    os.path.join(HERE, "fake_device.c"), "-o", FAKE, "-ldl", "-pthread"],
                   check=False)
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(BUILT, ignore_errors=True)
