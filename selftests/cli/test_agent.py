#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarmand from its configuration to its files, on a device that is not there: fake_device.c,
preloaded. What only a kernel can tell, such as what is kept over a restart, is tested in a VM."""
import array
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import preload
import tap
import test_record
from test_record import check, fake

AGENT = os.path.join(os.path.dirname(tap.KBARMAN), "kbarmand")


def configure(tmp, text="", session="", name="all"):
    with open(os.path.join(tmp, "conf"), "w", encoding="utf-8") as file:
        file.write(f"[agent]\nfolder = {tmp}/caps\nstate = {tmp}/state\n"
                   f"{'' if 'labels' in text else 'labels = no'}\n"
                   f"{'' if 'keep_free' in text else 'keep_free = 0'}\n{text}\n"
                   f"[session {name}]\n{session}\n")


def agent(tmp, *args, env=None):
    return subprocess.run([AGENT, "-c", os.path.join(tmp, "conf"), *args], capture_output=True, text=True,
                          timeout=tap.HANG, check=False, env=env)


until = tap.until


def captures(tmp, suffix=".cap"):
    folder = os.path.join(tmp, "caps")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if name.endswith(suffix)) if os.path.isdir(folder) else []


class Running:
    """The agent, until the end of the block; then `said` is what it said, and `status` how it ended."""

    def __init__(self, tmp, *args, env=None, before=None):
        self.tmp, self.said, self.status = tmp, "", None
        with open(os.path.join(tmp, "said"), "a", encoding="utf-8") as file:
            self.child = subprocess.Popen([AGENT, "-c", os.path.join(tmp, "conf"), *args], stderr=file,
                                          env=env or fake(), preexec_fn=before)
        until(lambda: os.path.exists(os.path.join(tmp, "state")) or self.child.poll() is not None,
              "the agent has no state")

    def text(self):
        with open(os.path.join(self.tmp, "said"), encoding="utf-8") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.terminate()
        self.status = self.child.wait(tap.HANG)
        self.said = self.text()


def facts(path):
    with open(path, "rb") as file:
        return dict(re.findall(r"kbarman\.([^=\0]+)=([^\0]*)\0",
                               file.read(1 << 20).decode(errors="replace")))


def options_are_as_in_the_help(tmp):
    said = subprocess.run([AGENT, "--help"], capture_output=True, text=True, check=True).stdout
    for option in ("--config FILE", "--keep", "--check", "--status", "--json"):
        assert option in said, said
    assert subprocess.run([AGENT, "-V"], capture_output=True, text=True,
                          check=True).stdout.startswith("kbarmand ")
    for args in ["--no-such"], ["word"]:
        done = subprocess.run([AGENT, *args], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "--help" in done.stderr, done
    with open(os.path.join(HERE, "..", "..", "user", "man", "kbarmand.8"), encoding="utf-8") as page:
        manual = page.read().replace("\\-", "-")
    for option in re.findall(r"--\w+", said):
        assert option in manual, option


def each_key_is_in_the_manual(tmp):
    with open(os.path.join(HERE, "..", "..", "user", "man", "kbarmand.conf.5"), encoding="utf-8") as page:
        described = set(re.findall(r"^\.TP\n\.B (\w+)$", page.read(), re.M))
    configure(tmp, "nokey = 1", "nokey = 1")
    said = agent(tmp, "--check").stderr
    there = {key for keys in re.findall(r"there are ([\w, ]+)", said) for key in keys.split(", ")}
    assert there == described and len(there) > 10, there ^ described


def what_is_wrong_is_told_with_its_line(tmp):
    configure(tmp, "folder_max = big", "buffer = 1\ncpus = x")
    done = agent(tmp, "--check")
    assert done.returncode == 2, done
    for line, text in (6, "not a size"), (8, "give a size"), (9, "cpus = x"):
        assert re.search(rf"conf:{line}: .*{text}", done.stderr), done.stderr
    assert agent(tmp, env=fake()).returncode == 2 and not os.path.exists(os.path.join(tmp, "caps"))
    configure(tmp)
    done = agent(tmp, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    os.remove(os.path.join(tmp, "conf"))
    done = agent(tmp, "--check")
    assert done.returncode == 2 and "kbarmand.conf(5)" in done.stderr, done


def well(tmp):
    """What the agent says of itself once it has written three captures and is well."""
    status = agent(tmp, "--status", "--json")
    state = json.loads(status.stdout) if status.returncode == 0 else None
    return state if state and state["health"] == "well" and state["written.files"] >= 3 else None


def records_are_in_captures_one_behind_the_other(tmp):
    configure(tmp, session="file_time = 1s")
    with Running(tmp, env=fake(FAKE_RATE=20)) as running:
        # An agent that has no CPU for long loses records, and says so for a while.
        state = until(lambda: well(tmp), "not well")
        assert state["runs"] is True and state["session.all.records"] > 0, state
    assert running.status == 0 and not captures(tmp, ".part"), running.said
    assert not os.path.exists(os.path.join(tmp, "state"))
    where, number, total = {}, 0, 0
    for path in captures(tmp):
        number += 1
        assert re.fullmatch(rf"all-{number:08}-\d{{8}}T\d{{6}}Z\.cap", os.path.basename(path)), path
        records, said = check(path)[1], facts(path)
        total += len(records)
        assert said["part"].split(",")[0] == str(number), said
        for cpu in range(2):
            first, last = map(int, said[f"part_ring.{cpu}"].split(","))
            assert first == where.get(cpu, 0) and last >= first, (path, cpu, first, where)
            where[cpu] = last
            assert int(said[f"written.{cpu}"]) == sum(1 for r in records if r[1] == cpu), said
        assert tap.run("check", path).returncode == 0 and tap.run("report", path).returncode == 0
    assert number >= 4 and total == sum(int(said[f"part_written.{cpu}"]) for cpu in range(2)), total


def processes_have_the_notes_that_are_asked_for(tmp):
    with subprocess.Popen(["sh", "-c", "read x", "word"], stdin=subprocess.PIPE) as process:
        with open(f"/proc/{process.pid}/cgroup", encoding="utf-8") as file:
            has_cgroup = bool(file.read())
        until(lambda: open(f"/proc/{process.pid}/cmdline", "rb").read().startswith(b"sh\0"), "no shell")
        for text, cgroup, command in (("", False, False), ("labels = yes", True, False),
                                      ("commands = yes", False, True)):
            configure(tmp, text, session="file_time = 1s")
            before = set(captures(tmp))
            with Running(tmp, env=fake(FAKE_PROCESSES=process.pid, FAKE_NAMESPACE=0)):
                until(lambda: len(set(captures(tmp)) - before) >= 2, "no captures")
            for path in set(captures(tmp)) - before:
                said = facts(path)
                assert ("cgroup_of.2" in said) == (cgroup and has_cgroup), (text, said)
                assert said.get("command.2") == ("sh -c read x word" if command else None), (text, said)
        process.stdin.close()


def a_capture_ends_when_it_is_large(tmp):
    configure(tmp, session="file_max = 1M\nbuffer = 1M")
    with Running(tmp, env=fake(FAKE_RATE=200)):
        until(lambda: len(captures(tmp)) >= 3, "no captures")
    sizes = [os.path.getsize(path) for path in captures(tmp)[:-1]]
    # what the buffers had beyond it is in it, too
    assert all(1 << 20 <= size < 8 << 20 for size in sizes), sizes


def a_file_that_can_not_grow_ends_and_the_next_one_goes_on(tmp):
    configure(tmp, session="buffer = 1M")  # the fake device has its buffers in a file
    limit = 3 << 20
    with Running(tmp, env=fake(FAKE_RATE=100),
                 before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) as running:
        until(lambda: len(captures(tmp)) >= 2, "no captures")
    assert "can't be written" in running.said and "there is room again" in running.said, running.said
    lost = 0
    for path in captures(tmp):
        assert tap.run("check", "-q", path).returncode == 0, path
        lost += sum(int(n) for key, n in facts(path).items() if key.startswith("lost."))
    total = sum(len(check(path)[1]) for path in captures(tmp))
    last = facts(captures(tmp)[-1])
    assert total == sum(int(last[f"part_written.{cpu}"]) for cpu in range(2)), (total, last)
    assert lost == sum(int(n) for key, n in last.items() if key.startswith("part_lost.")), (lost, last)


def a_file_that_was_left_gets_its_name(tmp):
    configure(tmp, session="file_time = 1h")
    running = Running(tmp)
    part = until(lambda: captures(tmp, ".part"), "no file")[0]
    begun = os.path.getsize(part)
    until(lambda: os.path.getsize(part) > begun + 100_000, "no records")
    running.child.kill()
    running.child.wait()
    with open(os.path.join(tmp, "caps", "all-00000007-20260101T000000Z.part"), "wb") as file:
        file.write(b"nothing of a capture")
    os.remove(os.path.join(tmp, "state"))
    with Running(tmp) as running:
        until(lambda: captures(tmp, ".part"), "no file")
    left = part.replace(".part", ".cap")
    assert captures(tmp)[0] == left and check(left)[1] and tap.run("check", left).returncode == 0
    assert "all-00000007-20260101T000000Z.part had no records yet, and is removed" in running.said
    assert "was not ended by the agent that wrote it" in running.said, running.said
    # the numbers go on behind all that were there, and the gap is told
    assert os.path.basename(captures(tmp)[-1]).startswith("all-00000008-"), captures(tmp)
    first, last = map(int, facts(captures(tmp)[-1])["agent_gap"].split(","))
    assert "nothing was recorded in the last" in running.said and 0 < first < last, running.said


def captures_may_be_taken_away(tmp):
    """Numbers go on, and so does the time of what was recorded."""
    configure(tmp, session="file_time = 1h")
    numbers, ends = [], []
    for _ in range(3):
        with Running(tmp):
            until(lambda: captures(tmp, ".part"), "no file")
        path, = captures(tmp)
        numbers.append(int(os.path.basename(path).split("-")[1]))
        said = facts(path)
        ends.append((int(said.get("agent_gap", "0,0").split(",")[0]), int(said["part_end"].split(",")[1])))
        os.remove(path)
        os.remove(os.path.join(tmp, "said"))
    assert numbers == [1, 2, 3], numbers
    assert [gap for gap, _ in ends[1:]] == [end for _, end in ends[:-1]], ends


def a_folder_that_is_made_anew_is_gone_on_in(tmp):
    configure(tmp, session="file_time = 1s")
    caps = os.path.join(tmp, "caps")
    with Running(tmp) as running:
        until(lambda: captures(tmp), "no capture")
        os.rename(caps, caps + ".old")
        until(lambda: captures(tmp), "no capture in the new folder")
        assert min(captures(tmp)) > caps + "/all-00000001", captures(tmp)
        done = agent(tmp, env=fake())
        assert done.returncode == 1 and "another kbarmand" in done.stderr, done
    assert "is another folder now" in running.said, running.said
    for path in captures(tmp):
        assert tap.run("check", "-q", path).returncode == 0, path


def a_folder_has_one_agent(tmp):
    configure(tmp)
    with Running(tmp):
        done = agent(tmp, env=fake())
        assert done.returncode == 1 and "another kbarmand writes into" in done.stderr, done


def the_oldest_captures_go(tmp):
    configure(tmp, "folder_max = 6M", "file_max = 2M\nfile_time = 1s\nbuffer = 1M")
    with Running(tmp, env=fake(FAKE_RATE=200)) as running:
        until(lambda: any("-00000001-" not in name for name in captures(tmp)[:1]), "nothing is removed")
    assert sum(os.stat(path).st_blocks * 512 for path in captures(tmp)) <= 6 << 20
    assert "oldest captures" in running.said, running.said


def the_newest_capture_stays_however_large_it_is(tmp):
    """What the rings have around a moment is more than the folder leaves."""
    configure(tmp, "folder_max = 2M", "trigger = offcpu:*>1ns\nevery = 1s\nbuffer = 1M\nfile_max = 1M\nbefore = 1d")
    with Running(tmp, env=fake(FAKE_RATE=100)):
        until(lambda: json.loads(agent(tmp, "--status", "--json").stdout)["removed.files"] > 0, "nothing is removed")
        large = captures(tmp)
        assert large and os.stat(large[-1]).st_blocks * 512 > 1 << 20, large
    assert len(captures(tmp)) == 1 and tap.run("check", captures(tmp)[0]).returncode == 0, captures(tmp)


def a_session_that_writes_much_does_not_cost_another_its_captures(tmp):
    configure(tmp, "folder_max = 8M", "file_max = 1M\nfile_time = 1s\nbuffer = 1M")
    os.mkdir(os.path.join(tmp, "caps"))
    rare = [os.path.join(tmp, "caps", f"rare-0000000{number}-20260101T000000Z.cap") for number in (1, 2)]
    for path in rare:
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))
    with Running(tmp, env=fake(FAKE_RATE=100)):
        until(lambda: json.loads(agent(tmp, "--status", "--json").stdout)["removed.files"] > 0, "nothing is removed")
    assert set(rare) < set(captures(tmp)), captures(tmp)


def what_only_looks_like_a_capture_changes_nothing(tmp):
    """Neither numbers nor bounds come from such names, and nothing of them goes."""
    configure(tmp, "folder_max = 6M", "file_max = 1M\nfile_time = 1s\nbuffer = 1M")
    folder = os.path.join(tmp, "caps")
    os.mkdir(folder)
    names = [name + suffix for suffix in (".cap", ".part") for name in (
        "all-18446744073709551615-20260101T000000Z", "all-99999999999999999999999-20260101T000000Z",
        "all-1-20260101T000000Z", "all-00000500-20260101T000000Z-notes", "all-00000500-", "all-00000500-copy",
        "all--0000500-20260101T000000Z")]
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(1 << 20))
    if os.geteuid() == 0:
        names.append("other-00000600-20260101T000000Z.cap")
        with open(os.path.join(folder, names[-1]), "wb") as file:
            file.write(bytes(1 << 20))
        os.chown(file.name, 1, 1)
    with Running(tmp, env=fake(FAKE_RATE=200)):
        until(lambda: json.loads(agent(tmp, "--status", "--json").stdout)["removed.files"] > 0, "nothing is removed")
    there = set(os.listdir(folder))
    assert set(names) <= there, set(names) - there
    made = {int(name.split("-")[1]) for name in there - set(names) if name.endswith(".cap")}
    assert made and max(made) < 500, made


def what_others_need_of_the_disk_is_kept_free(tmp):
    """More than it has: all captures but the newest go."""
    configure(tmp, "keep_free = 1000000G", "file_time = 1s")
    with Running(tmp) as running:
        until(lambda: json.loads(agent(tmp, "--status", "--json").stdout)["removed.files"] > 0, "nothing is removed")
    assert running.status == 0 and len(captures(tmp)) == 1, captures(tmp)
    assert tap.run("check", captures(tmp)[0]).returncode == 0


def a_disk_that_others_fill_costs_the_oldest_captures(tmp):
    caps = os.path.join(tmp, "caps")
    os.mkdir(caps)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", caps], capture_output=True,
                      check=False).returncode:
        raise tap.Skip("only root can mount a small disk")
    try:
        configure(tmp, "keep_free = 4M", "file_max = 1M\nfile_time = 1s\nbuffer = 1M")
        with Running(tmp, env=fake(FAKE_RATE=20)) as running:
            until(lambda: len(captures(tmp)) >= 4, "no captures")
            first = captures(tmp)[0]
            try:
                with open(os.path.join(caps, "rest"), "wb", buffering=0) as file:
                    while True:
                        file.write(bytes(65536))
            except OSError:
                pass
            until(lambda: not os.path.exists(first), "nothing is removed")
            newest = captures(tmp)[-1]
            until(lambda: captures(tmp)[-1] > newest, "it does not go on")
            until(lambda: agent(tmp, "--status").returncode == 0, "it stays in trouble")
        assert running.status == 0, running.said
        for path in captures(tmp):
            assert tap.run("check", "-q", path).returncode == 0, path
    finally:
        subprocess.run(["umount", caps], check=True)


def a_full_disk_costs_moments_that_are_counted(tmp):
    """A file of this process can't grow: health is trouble until one does again."""
    configure(tmp, session="trigger = offcpu:*>1ns\nevery = 1s\nbuffer = 256K")

    def state():
        return json.loads(agent(tmp, "--status", "--json").stdout)

    with Running(tmp, env=fake()) as running:
        until(lambda: captures(tmp), "no moment")
        resource.prlimit(running.child.pid, resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
        until(lambda: state()["session.all.moments_lost"] > 0 and state()["failed.files"] > 1, "it is not counted")
        status = agent(tmp, "--status")
        assert status.returncode == 1 and re.search(r"health +trouble", status.stdout), status
        resource.prlimit(running.child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, ) * 2)
        until(lambda: state()["health"] == "well", "it stays in trouble")
    assert running.said.count("this moment has no capture") == 1, running.said
    assert re.search("there is room again; [1-9][0-9]* moments have no capture", running.said), running.said


def state_of(tmp, *more):
    return json.loads(agent(tmp, "--status", "--json", *more).stdout)


def each_moment_that_is_not_kept_is_counted_until_one_is(tmp):
    """In a folder that is read-only, and in one that is no folder any more."""
    caps, lost = os.path.join(tmp, "caps"), "session.all.moments_lost"
    configure(tmp, session="trigger = offcpu:*>1ns\nevery = 1s\nbuffer = 256K")
    mounted = False
    try:
        with Running(tmp, env=fake()) as running:
            until(lambda: captures(tmp), "no moment")
            os.rename(caps, caps + ".old")
            with open(caps, "wb"):
                pass
            until(lambda: state_of(tmp)[lost] > 0, "it is not counted")
            assert state_of(tmp)["health"] == "trouble"
            os.remove(caps)
            until(lambda: captures(tmp) and state_of(tmp)["health"] == "well", "it stays in trouble")
            mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", caps], capture_output=True,
                                         check=False).returncode
            if mounted:
                before = state_of(tmp)[lost]
                until(lambda: state_of(tmp)[lost] > before, "it is not counted")
                assert state_of(tmp)["health"] == "trouble" and "Read-only" in running.text(), running.text()
                subprocess.run(["mount", "-o", "remount,rw", caps], check=True)
                until(lambda: captures(tmp) and state_of(tmp)["health"] == "well", "it stays in trouble")
        assert running.status == 0, running.said
    finally:
        if mounted:
            subprocess.run(["umount", caps], check=True)


def what_is_overwritten_before_the_triggers_see_it_is_trouble(tmp):
    configure(tmp, session="trigger = offcpu:*>3600s\nbuffer = 64K")
    with Running(tmp, env=fake(FAKE_RATE=2000)) as running:
        state = until(lambda: [s for s in [state_of(tmp)] if s["session.all.unseen_bytes"]], "all is seen")[0]
        assert state["health"] == "trouble" and "overwritten" in state["session.all.trouble"], state
        until(lambda: "before its triggers saw them" in running.text(), "it is not told")


def a_file_that_is_taken_away_while_it_is_written_is_trouble(tmp):
    configure(tmp, session="file_time = 1h")
    with Running(tmp) as running:
        part, = until(lambda: captures(tmp, ".part"), "no file")
        os.remove(part)
        running.child.send_signal(signal.SIGUSR1)
        until(lambda: state_of(tmp)["failed.files"] == 1, "it is not counted")
        state = state_of(tmp)
        assert state["health"] == "trouble" and os.path.basename(part) in state["folder.trouble"], state
        until(lambda: captures(tmp, ".part"), "no file")
        running.child.send_signal(signal.SIGUSR1)
        until(lambda: captures(tmp) and state_of(tmp)["health"] == "well", "it stays in trouble")


def records_that_are_lost_are_trouble_until_none_are(tmp):
    configure(tmp, session="buffer = 64K\nfile_time = 1s")
    with Running(tmp, env=fake(FAKE_RATE=100)) as running:
        until(lambda: captures(tmp), "no file")
        resource.prlimit(running.child.pid, resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
        until(lambda: state_of(tmp)["session.all.lost"] > 0, "nothing is lost")
        resource.prlimit(running.child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, ) * 2)
        until(lambda: "there is room again" in running.text(), "it does not go on")
        state = until(lambda: [s for s in [state_of(tmp)] if "records were lost" in s["session.all.trouble"]],
                      "the loss is no trouble")[0]
        assert state["health"] == "trouble", state
        running.child.send_signal(signal.SIGTERM)


# A disk that does not answer while there is a file, of files with a name.
STUCK = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int fsync(int fd)
{
	char link[32], path[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, getenv("STUCK_NAME")))
		while (!access(getenv("STUCK"), F_OK))
			usleep(10000);
	return fdatasync(fd);
}
"""


def a_disk_that_does_not_answer_is_trouble_until_it_does(tmp):
    hold = os.path.join(tmp, "hold")
    with open(hold, "wb"):
        pass
    stuck = preload.build(tmp, "stuck", STUCK)
    configure(tmp, session="file_time = 1s\nbuffer = 1M")
    with Running(tmp, env=fake(LD_PRELOAD=f"{test_record.FAKE}:{stuck}", STUCK=hold, STUCK_NAME="")):
        until(lambda: "does not answer" in state_of(tmp)["folder.trouble"], "it is not seen")
        assert state_of(tmp)["health"] == "trouble" and not captures(tmp)
        os.remove(hold)
        until(lambda: captures(tmp) and state_of(tmp)["health"] == "well", "it stays in trouble")


def an_agent_that_hangs_is_told(tmp):
    """Its state says that all was well, long ago."""
    configure(tmp)
    with open(os.path.join(tmp, "state"), "w", encoding="ascii") as file:
        file.write(f"pid={os.getpid()}\nstarted_ns=1\nwritten_ns=2\nhealth=well\ntrouble=\nversion=1\n")
    status = agent(tmp, "--status", "--json")
    state = json.loads(status.stdout)
    assert status.returncode == 1 and state["health"] == "trouble" and "it hangs, or" in state["trouble"], status
    assert re.search("health +trouble", agent(tmp, "--status").stdout)


def bounds_that_can_not_hold_together_are_noted(tmp):
    moment = "trigger = latency>5ms\nbuffer = {}\nfile_max = 1M"
    for text, session, told in (
            ("folder_max = 8M", moment.format("64M"), "only the newest one stays"),
            ("folder_max = 8G", moment.format("64K"), None),
            (f"keep_free = 1000000G\nfolder = {tmp}", "", "keep_free is more than the disk"),
            ("", "cpus = 0-4095", "it can't start on this machine")):
        configure(tmp, text, session)
        if "folder =" in text:
            with open(os.path.join(tmp, "conf"), encoding="ascii") as file:
                conf = file.read().replace(f"folder = {tmp}/caps\n", "")
            with open(os.path.join(tmp, "conf"), "w", encoding="ascii") as file:
                file.write(conf)
        done = agent(tmp, "--check")
        assert done.returncode == 0 and (told in done.stderr if told else not done.stderr), (text, session, done)


def pressure_that_the_unit_may_not_have_is_told(tmp):
    for trigger, told in ("latency>5ms", False), ("psi:memory.full>10%", True), ("psi:memory.full>10%/2s", False):
        configure(tmp, session=f"trigger = {trigger}")
        done = agent(tmp, "--check")
        assert done.returncode == 0 and ("CAP_SYS_RESOURCE" in done.stderr) == ("psi" in trigger), done
        assert ("multiple of 2s" in done.stderr) == told, done


def pressure_that_the_kernel_refuses_takes_no_other_trigger_away(tmp):
    configure(tmp, session="trigger = psi:memory.full>10% offcpu:*>1ns\nevery = 1s\nbuffer = 256K")
    for right in "-sys_resource", "-all":
        command = ["setpriv", "--bounding-set", right, "--inh-caps", right]
        if not subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
            break
    else:
        raise tap.Skip("only root can give up a right")
    with Running(tmp, before=lambda: os.execvpe(command[0], [*command, AGENT, "-c", os.path.join(tmp, "conf")],
                                                fake())) as running:
        until(lambda: captures(tmp), "no moment")
        until(lambda: "psi:memory.full" in state_of(tmp)["session.all.trouble"], "it is no trouble")
        assert state_of(tmp)["health"] == "trouble" and "only its other triggers" in running.text(), running.text()
    assert running.status == 0, running.said


def files_that_are_none_are_told(tmp):
    """A FIFO that nobody writes to is not waited for."""
    os.mkfifo(os.path.join(tmp, "conf"))
    done = agent(tmp, "--check")
    assert done.returncode == 2 and "no regular file" in done.stderr, done
    os.remove(os.path.join(tmp, "conf"))
    # one line without an end
    with open(os.path.join(tmp, "conf"), "wb") as file:
        file.truncate(1 << 40)
    done = agent(tmp, "--check")
    assert done.returncode == 2 and "File too large" in done.stderr, done
    configure(tmp)
    os.mkdir(os.path.join(tmp, "state"))
    done = agent(tmp, "--check")
    assert done.returncode == 2 and f"state = {tmp}/state: this is a folder" in done.stderr, done


def sessions_that_fail_say_so_once_each(tmp):
    """Each for another reason, however often it is tried again."""
    configure(tmp, session="cpus = 200\n[session b]\ncpus = 201\n[session c]\ncpus = 202")
    with Running(tmp) as running:
        until(lambda: running.text().count("can't start") == 3, "they start")
        # two more tries, with ten seconds between them: the state is written by who tries them
        first = json.loads(agent(tmp, "--status", "--json").stdout)["written_ns"]
        until(lambda: json.loads(agent(tmp, "--status", "--json").stdout)["written_ns"] - first > 21 * 10**9,
              "no state")
    assert running.said.count("can't start") == 3, running.said


def a_configuration_that_is_wrong_changes_nothing(tmp):
    configure(tmp, session="file_time = 1h")
    with Running(tmp) as running:
        until(lambda: captures(tmp, ".part"), "no file")
        configure(tmp, session="bufer = 1M")
        running.child.send_signal(signal.SIGHUP)
        until(lambda: "the configuration stays as it was" in running.text(), "it is not read")
        # it is seen by who does not read the log: the next agent would not start
        until(lambda: agent(tmp, "--status").returncode == 1, "all is well")
        state = json.loads(agent(tmp, "--status", "--json").stdout)
        assert "has no 'bufer'" in state["config.trouble"] and state["health"] == "trouble", state
        configure(tmp, session="file_time = 1s")
        running.child.send_signal(signal.SIGHUP)
        until(lambda: captures(tmp), "the new one is not taken")
        until(lambda: agent(tmp, "--status").returncode == 0, "all is not well")
        later = json.loads(agent(tmp, "--status", "--json").stdout)
        assert later["config.trouble"] == "" and later["config.read_ns"] > state["config.read_ns"], later
        assert later["config.hash"] != state["config.hash"] and later["version"], later
    assert facts(captures(tmp)[-1])["part"].split(",")[0] == str(len(captures(tmp)))


def sigusr1_begins_a_new_capture(tmp):
    configure(tmp, session="file_time = 1h")
    with Running(tmp) as running:
        until(lambda: captures(tmp, ".part"), "no file")
        running.child.send_signal(signal.SIGUSR1)
        until(lambda: captures(tmp), "no capture")


def the_service_manager_hears_of_it(tmp):
    configure(tmp)
    path = os.path.join(tmp, "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    manager.settimeout(tap.HANG)
    heard, stored = [], []

    def listen(what):
        while what not in "\n".join(heard):
            text, control, _, _ = manager.recvmsg(4096, socket.CMSG_SPACE(16))
            heard.append(text.decode())
            for level, kind, data in control:
                assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
                stored.extend(array.array("i", data[:len(data) - len(data) % 4]))

    with Running(tmp, "--keep", env={**fake(), "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}) as running:
        listen("WATCHDOG=1")
        assert len(stored) == 1 and re.search(r"FDSTORE=1\nFDNAME=all\.[0-9a-f]{16}", heard[0]), heard
        assert [text for text in heard if text != "WATCHDOG=1"][1] == "READY=1", heard
        running.child.send_signal(signal.SIGHUP)
        listen("RELOADING=1")
        del heard[:]
        listen("READY=1")
    listen("STOPPING=1")
    os.close(stored[0])
    manager.close()


def a_module_that_is_too_old_is_told(tmp):
    configure(tmp)
    with Running(tmp, env=fake(FAKE_REUSE=0)) as running:
        status = agent(tmp, "--status")
        assert status.returncode == 1 and "too old to record all the time" in status.stdout, status
    assert "session all can't start: the module that is loaded is too old" in running.said, running.said


def what_may_heal_is_tried_again_and_a_wrong_configuration_is_not(tmp):
    """The unit starts an agent again but for exit status 2."""
    configure(tmp)
    with open(os.path.join(tmp, "caps"), "wb"):
        pass        # no folder
    done = agent(tmp, env=fake())
    assert done.returncode == 1 and "folder" in done.stderr, done
    configure(tmp, session="bufer = 1M")
    assert agent(tmp, env=fake()).returncode == 2


def unit(name):
    """{key: [value]} of a file in packaging/."""
    keys = {}
    with open(os.path.join(HERE, "..", "..", "packaging", name), encoding="utf-8") as file:
        for key, value in re.findall(r"^(\w+)=(.*)$", file.read(), re.M):
            keys.setdefault(key, []).append(value)
    return keys


def the_units_heal(tmp):
    keys = unit("kbarmand.service")
    assert keys["StartLimitIntervalSec"] == ["0"] and keys["Restart"] == ["always"]
    assert keys["RestartPreventExitStatus"] == ["2"]
    flight = unit("kbarman-flight.service")
    assert flight["Restart"] == ["on-abnormal"] and flight["StartLimitIntervalSec"] == ["0"]
    push = unit("kbarman-push.service")
    assert push["StartLimitIntervalSec"] == ["0"] and push["Restart"] == ["always"] and push["RestartPreventExitStatus"] == ["2"]
    assert push["KillMode"] == ["mixed"]   # its processes tell each other
    # a module that is loaded later starts them
    assert keys["WantedBy"] == flight["WantedBy"] == ["multi-user.target dev-kbarman.device"]
    with open(os.path.join(HERE, "..", "..", "packaging", "70-kbarman.rules"), encoding="utf-8") as file:
        assert 'TAG+="systemd"' in file.read()


def who_may_write_marks_may_not_read_captures(tmp):
    """The group of the device is another one than that of the captures."""
    with open(os.path.join(HERE, "..", "..", "packaging", "kbarman.sysusers"), encoding="utf-8") as file:
        assert re.search(r"^g kbarman-read -$", file.read(), re.M)
    for name in "kbarmand.service", "kbarman-flight.service":
        keys = unit(name)
        assert keys["Group"] == ["kbarman-read"] and keys["SupplementaryGroups"] == ["kbarman"], keys
        assert keys["UMask"] == ["0027"], keys
    assert unit("kbarman-flight.service")["StateDirectoryMode"] == ["0750"]
    push = unit("kbarman-push.service")
    assert push["DynamicUser"] == ["yes"] and push["SupplementaryGroups"] == ["kbarman-read"], push


def the_pages_probe_of_kubernetes_kills_no_agent_that_is_in_trouble(tmp):
    with open(os.path.join(HERE, "..", "..", "docs", "fleet.md"), encoding="utf-8") as file:
        probe = re.search(r"livenessProbe:.*?exec: { command: (\[.*?\]) }\n", file.read(), re.S)[1]
    command = [word.replace("/usr/sbin/kbarmand", f"{AGENT} -c {tmp}/conf") for word in json.loads(probe)]
    configure(tmp)
    with Running(tmp, env=fake(FAKE_REUSE=0)):
        assert agent(tmp, "--status").returncode == 1
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0, command
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1, command


def status_of_no_agent_is_told(tmp):
    configure(tmp)
    done = agent(tmp, "--status")
    assert done.returncode == 2 and "no agent runs" in done.stderr, done
    running = Running(tmp)
    running.child.kill()
    running.child.wait()
    done = agent(tmp, "--status", "--json")
    assert done.returncode == 2 and "the last one wrote" in done.stderr, done
    assert json.loads(done.stdout)["runs"] is False


if __name__ == "__main__":
    test_record.main(globals())
