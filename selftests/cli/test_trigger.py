#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman record --trigger` on fake_device.c: files, options, and what is said. What triggers find is
tested in test_trigger.c, and on a real device in test_trigger_device.sh."""
import glob
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import preload
import tap
from test_bundle import SIGNAL
from test_record import check, fake, main, record

NAME = re.compile(r"\d{8}T\d{6}\.\d{3}-([a-z]+)(-\d+)?\.cap")


def captures(tmp, folder="kbarman.triggers"):
    """Their paths; nothing but captures and their symbols is in the folder."""
    names = sorted(os.listdir(os.path.join(tmp, folder)))
    for name in [name for name in names if not name.startswith("snapshot-")]:
        assert NAME.fullmatch(re.sub(r"\.(kallsyms|symbols)$", "", name)), names
    return [os.path.join(tmp, folder, name) for name in names if NAME.fullmatch(name)]


def moments(capture):
    done = tap.run("info", "--json", capture)
    assert done.returncode == 0, done
    return [line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "trigger"]


class Watcher:
    """A recording with triggers that goes on until it is ended."""

    def __init__(self, tmp, *args, env=None, verb="record"):
        self.said = os.path.join(tmp, "said")
        with open(self.said, "wb") as said:
            self.child = subprocess.Popen([tap.KBARMAN, verb, *args], cwd=tmp, env=env or fake(),
                                          stderr=said)
        tap.ENDINGS.append(self.child.kill)
        self.wait_for("watching for")

    def wait_for(self, text):
        def said():
            with open(self.said, encoding="utf-8") as file:
                said = file.read()
            assert text in said or self.child.poll() is None, said
            return said if text in said else None

        try:
            return tap.until(said, text)
        except AssertionError:
            self.child.kill()
            raise

    def end(self, status=(0,)):
        self.child.send_signal(signal.SIGTERM)
        ended = self.child.wait(tap.HANG)
        with open(self.said, encoding="utf-8") as file:
            said = file.read()
        assert ended in status, (ended, said)
        return said


def of_moments(tmp, folder="kbarman.triggers"):
    """The captures of a folder that has other files as well."""
    folder = os.path.join(tmp, folder)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if NAME.fullmatch(name))


def one_more(watcher, tmp):
    """Sends the signal, and waits for its capture, which is returned."""
    before = set(of_moments(tmp))
    watcher.child.send_signal(signal.SIGUSR2)
    tap.until(lambda: set(of_moments(tmp)) - before, "no capture")
    new, = set(of_moments(tmp)) - before
    return new


def the_oldest_captures_make_room(tmp):
    folder = os.path.join(tmp, "kbarman.triggers")
    os.mkdir(folder)
    others = [os.path.join(folder, name) for name in ("mine.cap", "00000000T000000.txt")]
    for path in others:
        with open(path, "w", encoding="ascii"):
            pass
    args = "--trigger", "signal:USR2", "--after", "10ms", "--every", "0s"
    watcher = Watcher(tmp, *args, "--folder-max", "1G,3")
    made = [one_more(watcher, tmp) for _ in range(6)]
    tap.until(lambda: of_moments(tmp) == made[-3:], "the oldest stay")
    assert "oldest capture" in watcher.end()
    # the newest stays, however large it is
    watcher = Watcher(tmp, *args, "--folder-max", "1")
    newest = one_more(watcher, tmp)
    tap.until(lambda: of_moments(tmp) == [newest], "the oldest stay")
    watcher.end()
    watcher = Watcher(tmp, *args, "--folder-max", "0")
    assert one_more(watcher, tmp) and one_more(watcher, tmp) and len(of_moments(tmp)) == 3
    watcher.end()
    assert all(os.path.exists(path) for path in others), os.listdir(folder)
    for wrong in "x", "1G,", "1G,0", "1G,-1", ",3":
        done = record(tmp, *args, "--folder-max", wrong)
        assert done.returncode == 2 and f"--folder-max {wrong}: give a size" in done.stderr, done
    done = record(tmp, "--folder-max", "1G", "true")
    assert done.returncode == 2 and "give --trigger as well" in done.stderr, done


def the_youngest_stay_where_the_clock_was_set_back(tmp):
    """Their names say nothing then, nor do the times of files that an earlier recording has left."""
    folder = os.path.join(tmp, "kbarman.triggers")
    os.mkdir(folder)
    for name, year in ("99991231T235959.000-signal.cap", 2400), ("99991231T235959.001-signal.cap", 2001):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii"):
            pass
        seconds = (year - 1970) * 31557600
        os.utime(path, (seconds, seconds))
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "10ms", "--every", "0s", "--folder-max", "1G,2")
    made = [one_more(watcher, tmp)]
    # it is as if the first were written an hour later than the second
    os.utime(made[0], (time.time() + 3600, time.time() + 3600))
    tap.until(lambda: len(of_moments(tmp)) == 2, "both stay")
    made += [one_more(watcher, tmp) for _ in range(2)]
    tap.until(lambda: of_moments(tmp) == made[-2:], "the youngest do not stay")
    watcher.end()


def what_is_no_capture_of_this_user_stays(tmp):
    """Names, kinds and owners of others neither go nor count."""
    folder = os.path.join(tmp, "kbarman.triggers")
    os.mkdir(folder)
    names = ["20010101T000000.000-My report.cap", "20010101T000000-signal.cap", "20010101T000000.000-.cap",
             "20010101T000000.000-signal.cap.cap", "20010101T000000.000-signal-1-2.cap", "mine.cap"]
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(1 << 20))
    link, inside = (f"20010101T000000.00{i}-signal.cap" for i in range(2))
    os.symlink(os.path.join(folder, names[0]), os.path.join(folder, link))
    os.mkdir(os.path.join(folder, inside))
    names += [link, inside]
    if os.geteuid() == 0:
        other = "20010101T000000.002-signal.cap"
        with open(os.path.join(folder, other), "wb") as file:
            file.write(bytes(1 << 20))
        os.chown(os.path.join(folder, other), 1, 1)
        names.append(other)
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "10ms", "--every", "0s", "--folder-max", "5M,2")
    for _ in range(3):
        one_more(watcher, tmp)
    watcher.wait_for("oldest capture")
    watcher.end()
    there = set(os.listdir(folder))
    assert set(names) <= there and len([name for name in there if name.endswith(".cap")]) == len(names) + 2, there


def a_disk_that_others_fill_costs_the_oldest_captures(tmp):
    folder = os.path.join(tmp, "kbarman.triggers")
    os.mkdir(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True,
                      check=False).returncode:
        raise tap.Skip("only root can mount a small disk")
    try:
        watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "10ms", "--every", "0s", "-m", "256K",
                          "--no-bundle")
        first = [one_more(watcher, tmp) for _ in range(4)][0]
        # less than a twentieth is left, and more than a capture takes
        disk = os.statvfs(folder)
        with open(os.path.join(folder, "rest"), "wb") as file:
            file.write(bytes(disk.f_bavail * disk.f_frsize - (2 << 20)))
        one_more(watcher, tmp)
        assert not os.path.exists(first), of_moments(tmp)
        watcher.end()
        for path in of_moments(tmp):
            check(path)
    finally:
        subprocess.run(["umount", folder], check=True)


def a_signal_writes_a_capture_with_its_reason(tmp):
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "100ms")
    watcher.child.send_signal(signal.SIGUSR2)
    watcher.wait_for("signal:USR2: the signal USR2 came")
    said = watcher.end()
    path, = captures(tmp)
    assert NAME.fullmatch(os.path.basename(path))[1] == "signal"
    moment, = moments(path)
    assert moment["expression"] == "signal:USR2" and moment["reason"] == "the signal USR2 came"
    facts = check(path)[0].facts()
    assert facts["name"] == os.path.basename(path) and facts["trigger"] == "1", facts
    assert "1 capture of 1 moment; 0 more" in said
    for verb in "report", "check", "dump", "script":
        assert tap.run(verb, path).returncode == 0, verb


def a_capture_ends_behind_its_moment(tmp):
    # the device writes nothing while it has no CPU: on a busy machine for some time in front of the end
    for after in 0.1, 1, 10:
        watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", f"{after}s")
        watcher.child.send_signal(signal.SIGUSR2)
        watcher.wait_for("the signal USR2 came")
        watcher.end()
        path, = captures(tmp)
        moment, = moments(path)
        behind = check(path)[1][-1][2] - moment["timestamp"]
        if behind > 0.9e9 * after:
            return
        shutil.rmtree(os.path.join(tmp, "kbarman.triggers"))
    raise AssertionError(behind)


def a_wait_for_something_is_a_moment(tmp):
    watcher = Watcher(tmp, "--trigger", "wait:pipe>1ns", "--after", "10ms", env=fake(FAKE_OBJECTS=1))
    watcher.wait_for("wait:pipe>1ns: ")
    watcher.end()
    reasons = {moment["reason"] for path in captures(tmp) for moment in moments(path)}
    assert reasons and all(re.search(r"blocked( in \w+)? for a pipe$", reason) for reason in reasons), reasons


def waits_that_are_not_recorded_are_no_moments(tmp):
    for args, text in ((), "does not tell what tasks wait for"), (("--no-objects",), "leave out --no-objects"):
        done = record(tmp, "--trigger", "wait:pipe>1s", *args, "true")
        assert done.returncode == 2 and text in done.stderr, done


def a_capture_begins_before_its_moment(tmp):
    # the recorder is to have overwritten records by then: on a busy machine that takes longer
    for pause in 0.6, 3, 15:
        watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "50ms", "--before", "200ms")
        time.sleep(pause)
        watcher.child.send_signal(signal.SIGUSR2)
        watcher.wait_for("the signal USR2 came")
        watcher.end()
        path, = captures(tmp)
        moment, = moments(path)
        capture, records = check(path)
        before = moment["timestamp"] - records[0][2]
        facts = capture.facts()
        if before and all(int(facts[f"overwritten.{cpu}"]) for cpu in "01"):
            break
        os.unlink(path)
    assert 0 < before <= 201e6, before
    ours = int(facts["inserted"])
    assert ours == 1
    for cpu in "0", "1":
        assert int(facts[f"written.{cpu}"]) > int(facts[f"overwritten.{cpu}"]) > 0
    assert sum(int(facts[f"written.{cpu}"]) - int(facts[f"overwritten.{cpu}"]) for cpu in "01") + \
        ours == len(records)


def buffers_that_are_too_small_are_said(tmp):
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "-m", "64K", "--before", "1h", "--after", "1h",
                      env=fake(FAKE_RATE=4))
    time.sleep(1.5)
    watcher.child.send_signal(signal.SIGUSR2)
    said = watcher.wait_for("the buffers do not reach back further")
    assert "use larger ones (-m)" in said
    watcher.end()
    path, = captures(tmp)
    moment, = moments(path)
    capture, records = check(path)
    assert records[0][2] < moment["timestamp"] < records[-1][2], (records[0], moment, records[-1], capture.facts(), said)


def moments_share_captures_or_are_counted(tmp):
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "--trigger", "signal:RTMIN+1", "--after", "500ms")
    watcher.child.send_signal(signal.SIGUSR2)
    watcher.child.send_signal(signal.SIGRTMIN + 1)
    watcher.wait_for("came; and 1 more")
    watcher.child.send_signal(signal.SIGUSR2)
    time.sleep(0.3)
    said = watcher.end()
    assert "1 capture of 2 moments; 1 more came too soon" in said, said
    path, = captures(tmp)
    assert sorted(m["expression"] for m in moments(path)) == ["signal:RTMIN+1", "signal:USR2"]


def the_end_writes_what_is_due_later(tmp):
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "1h")
    watcher.child.send_signal(signal.SIGUSR2)
    time.sleep(0.5)
    watcher.end()
    path, = captures(tmp)
    assert len(moments(path)) == 1


def names_outlive_the_program(tmp):
    """They are saved beside each capture, also of a snapshot, unless told otherwise."""
    program = shutil.copy(tap.KBARMAN, os.path.join(tmp, "program"))
    for args, saved in ([], True), (["--no-bundle"], False):
        watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "10ms", "-o", "there", *args,
                          env=fake(FAKE_IMAGES=program))
        watcher.child.send_signal(signal.SIGUSR2)
        watcher.wait_for("the signal USR2 came")
        watcher.child.send_signal(signal.SIGUSR1)
        watcher.wait_for("snapshot-")
        watcher.end()
        paths = captures(tmp, "there") + glob.glob(os.path.join(tmp, "there", "snapshot-*.cap"))
        assert len(paths) == 2, os.listdir(os.path.join(tmp, "there"))
        for path in paths:
            assert os.path.exists(path + ".symbols") == saved, (path, saved)
            if saved:
                with gzip.open(path + ".symbols") as file:
                    assert b"program" in file.read()
        shutil.rmtree(os.path.join(tmp, "there"))


def symbols_that_were_not_saved_are_said(tmp):
    """Who saves them is killed while it writes, as by the OOM killer."""
    libraries = f"{fake()['LD_PRELOAD']}:{preload.build(tmp, 'signal', SIGNAL)}"
    done = subprocess.run(
        [tap.KBARMAN, "record", "--trigger", "signal:USR2", "--after", "10ms", "-o", "there",
         "sh", "-c", "until ls there/*.cap; do kill -USR2 $PPID; sleep 0.1; done"],
        cwd=tmp, env=fake(LD_PRELOAD=libraries, SIGNAL="9"), capture_output=True, text=True, timeout=tap.HANG,
        check=False)
    path = captures(tmp, "there")[0]
    assert f"there/{os.path.basename(path)} has no symbols: signal 9 ended" in done.stderr, done
    assert not [name for name in os.listdir(os.path.join(tmp, "there")) if "symbols" in name], done


# Notes with which priority symbols are saved.
NOTE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
__attribute__((constructor)) static void note(void)
{
	FILE *file = fopen("/proc/self/cmdline", "r");
	char words[4096] = "";

	fread(words, 1, sizeof(words) - 2, file);
	fclose(file);
	if (strcmp(words + strlen(words) + 1, "bundle"))
		return;
	file = fopen(getenv("NOTES"), "a");
	fprintf(file, "%d\\n", getpriority(PRIO_PROCESS, 0));
	fclose(file);
}
"""


def symbols_are_saved_with_the_priority_that_the_recorder_was_given(tmp):
    notes = os.path.join(tmp, "notes")
    libraries = f"{fake()['LD_PRELOAD']}:{preload.build(tmp, 'note', NOTE)}"
    done = subprocess.run(
        ["nice", "-n", "5", tap.KBARMAN, "record", "--trigger", "signal:USR2", "--after", "10ms", "-o", "there",
         "sh", "-c", "until ls there/*.cap; do kill -USR2 $PPID; sleep 0.1; done"],
        cwd=tmp, env=fake(LD_PRELOAD=libraries, NOTES=notes), capture_output=True, text=True, timeout=tap.HANG,
        check=False)
    assert os.path.exists(notes), done
    with open(notes, encoding="ascii") as file:
        assert {int(line) for line in file} == {min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)}


def without_a_moment_there_is_no_file(tmp):
    done = record(tmp, "--trigger", "mark:never", "-o", "there", "sleep", "0.3")
    assert done.returncode == 0 and "there: 0 captures of 0 moments" in done.stderr, done
    assert os.listdir(os.path.join(tmp, "there")) == []
    done = record(tmp, "--trigger", "mark:never", "sh", "-c", "exit 7")
    assert done.returncode == 7, done


def what_is_overwritten_unseen_is_said(tmp):
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "-m", "64K", "--after", "10ms", "--every", "0s",
                      env=fake(FAKE_RATE=500))
    said = watcher.wait_for("overwritten before the triggers could look at them")
    assert "use larger buffers (-m)" in said
    watcher.child.send_signal(signal.SIGUSR2)
    watcher.wait_for("the signal USR2 came")
    said = watcher.end(status=(0, 1))  # the moment may be overwritten, too: then this is said
    assert "times buffers were overwritten" in said, said
    assert said.count("what happened there is not known") == 1, said
    done = tap.run("info", "--json", captures(tmp)[0])
    told = [json.loads(line) for line in done.stdout.splitlines() if '"kind":"triggers"' in line]
    assert told[0]["unwatched_bytes"] > 0


def a_full_disk_does_not_end_the_watching(tmp):
    watcher = Watcher(tmp, "--trigger", "signal:USR2", "--after", "10ms", "--every", "0s")
    resource.prlimit(watcher.child.pid, resource.RLIMIT_FSIZE, (2000, 2000))
    watcher.child.send_signal(signal.SIGUSR2)
    watcher.wait_for("nothing was written of this: signal:USR2")
    said = watcher.end(status=(1,))
    assert "1 moments have no capture" in said, said
    assert captures(tmp) == []


def flight_with_a_trigger_runs_in_the_foreground(tmp):
    for words in [], ["run"]:
        env = fake(KBARMAN_RUNTIME_DIR=tmp)
        watcher = Watcher(tmp, *words, "--trigger", "signal:USR2", "--after", "10ms", env=env,
                          verb="flight")
        watcher.child.send_signal(signal.SIGUSR2)
        watcher.wait_for("the signal USR2 came")
        watcher.end()
    assert len(captures(tmp, "flight.triggers")) == 2
    done = tap.run("flight", "--after", "1s", env=env, cwd=tmp)
    assert done.returncode == 2, done


def bad_wishes_are_refused(tmp):
    open(os.path.join(tmp, "file"), "wb").close()
    for args, says in (
            (["--trigger", "late>5ms"], "write one like latency>5ms"),
            (["--trigger", "latency>5"], "a number with ns, us, ms, s, m or h"),
            (["--trigger", "mark:x", "--mode", "stream"], "leave out --mode stream"),
            (["--trigger", "mark:x", "--poll", "a=/dev/null"], "leave them out"),
            (["--trigger", "mark:x", "--annotate-socket"], "leave them out"),
            (["--trigger", "mark:x", "--after", "5x"], "give a time from 0s to 1d"),
            (["--trigger", "mark:x", "--every", "-1s"], "give a time"),
            (["--trigger", "mark:x", "--before", "2d"], "give a time"),
            (["--trigger", "mark:x", "-o", "file"], "give a folder"),
            (["--trigger", "mark:x", "-o", "no/such"], "can't make the folder"),
            (["--trigger", "boot:crash"], "is for kbarmand(8)"),
            (["--every", "1s"], "give --trigger as well")):
        done = record(tmp, *args, "true")
        assert done.returncode == 2 and says in done.stderr, (args, done)
    assert not os.path.exists(os.path.join(tmp, "kbarman.cap"))


def a_module_that_is_too_old_is_told(tmp):
    done = record(tmp, "--trigger", "latency>5ms", "true", env=fake(FAKE_DETAILS=0))
    assert done.returncode == 2 and "too old to record" in done.stderr, done
    done = record(tmp, "--trigger", "latency>5ms", "true", env=fake(FAKE_ABSENT=1 << 5))
    assert done.returncode == 2 and "lacks what the triggers look at" in done.stderr, done


if __name__ == "__main__":
    main(globals())
