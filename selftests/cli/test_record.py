#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman record` from its first to its last byte, on a device that is not there:
fake_device.c, preloaded. What only a kernel can tell is tested in a VM."""
import gzip
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import preload
import tap
from capture import Capture

BUILT = tempfile.mkdtemp(prefix="kbarman-fake-")
FAKE = os.path.join(BUILT, "fake_device.so")


def fake(**settings):
    if not os.path.exists(FAKE):
        raise tap.Skip("fake_device.c could not be built for this tool")
    return {**os.environ, "LD_PRELOAD": FAKE, **{k: str(v) for k, v in settings.items()}}


def record(tmp, *args, env=None, **kwargs):
    return tap.run("record", *args, cwd=tmp, env=env or fake(), **kwargs)


def start(tmp, *args, env=None, **kwargs):
    """A recording that runs, in a session of its own; waits for its first sync."""
    child = subprocess.Popen([tap.KBARMAN, "record", *args], cwd=tmp, env=env or fake(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             start_new_session=True, **kwargs)

    def began():
        try:
            with open(os.path.join(tmp, "kbarman.cap.partial"), "rb") as partial:
                return any(partial.read(8))
        except FileNotFoundError:
            assert child.poll() is None, child.communicate()
            return False

    tap.until(began, "the first sync")
    return child


def check(path):
    """Decode, and check what every capture promises; returns it with its records."""
    capture = Capture(path)
    records = capture.records()
    times = [r[2] for r in records]
    assert times == sorted(times), "not in the order of time"
    assert capture.target == "fake"
    return capture, records


def whole(tmp, name="kbarman.cap", least=1):
    """The capture, with every record that the device wrote, `least` of them."""
    capture, records = check(os.path.join(tmp, name))
    written = sum(int(v) for k, v in capture.facts().items() if k.startswith("written."))
    assert written == len(records) >= least, (written, len(records))
    return capture, records


def files(directory):
    return sorted(os.listdir(directory))


def everything_is_in_one_file_in_order(tmp):
    result = record(tmp, "sleep", "0.3")
    assert result.returncode == 0, result
    capture, records = whole(tmp)
    assert {r[1] for r in records} == {0, 1}
    assert files(tmp) == ["kbarman.cap", "kbarman.cap.kallsyms", "kbarman.cap.symbols"], \
        files(tmp)
    assert capture.task_names() == {0: "swapper", 1: "fake task"}
    assert [p[1] for p in capture.pmus[:3]] == [7, 7, 0]
    assert f"{len(records)} records of 2 CPUs" in result.stderr and \
        "nothing lost" in result.stderr, result.stderr


def facts_are_in_the_string_table(tmp):
    record(tmp, "-o", "x.cap", "--", "sleep", "0.1")
    facts = whole(tmp, "x.cap")[0].facts()
    assert facts["ext"] == "1" and facts["tgid.1"] == "7" and facts["exit.1"] == "12345"
    assert facts["command"] == "sleep 0.1" and facts["filter"] == "command", facts
    assert facts["name"] == "x.cap", facts
    # What a map has beside its rows is in no file, and so is where it stands.
    assert "tasks" not in facts
    assert "tgid.0" not in facts and "lost.0.full" not in facts and "unordered" not in facts


def noted(path):
    """What the capture says of the process of row 2: its cgroup and its command line."""
    facts = Capture(path).facts()
    assert not {key for key in facts if re.fullmatch(r"(cgroup_of|command)\.[013]", key)}, facts
    return facts.get(f"cgroup.{facts.get('cgroup_of.2')}"), facts.get("command.2")


def processes_have_their_cgroups_and_command_lines(tmp):
    """A process that runs, and a number that none has: in a whole file and in copies."""
    words = [b"sh", b"-c", b"read x", b"a \x1b[1m\xff", b"y" * 300]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        tap.until(lambda: open(f"/proc/{process.pid}/cmdline", "rb").read().startswith(b"sh\0"), "the shell")
        with open(f"/proc/{process.pid}/cgroup", encoding="utf-8") as file:
            groups = [line.split(":", 2)[2] for line in file.read().splitlines()]
        command = b" ".join(words).replace(b"\x1b", b"?").replace(b"\xff", b"?")[:253].decode() + "..."
        env = fake(FAKE_PROCESSES=f"{process.pid},{0x7ffffff0}", FAKE_NAMESPACE=0)
        for args, has_command in (([], True), (["--mode", "overwrite"], True), (["--no-commands"], False)):
            done = record(tmp, *args, "sleep", "0.1", env=env)
            assert done.returncode == 0, done
            cgroup, got = noted(os.path.join(tmp, "kbarman.cap"))
            assert cgroup in groups if groups else cgroup is None, (args, cgroup, groups)
            assert got == (command if has_command else None), (args, got)
        for args, has_command in (([], True), (["--no-commands"], False)):
            done = tap.run("snapshot", "-o", "s.cap", *args, cwd=tmp,
                           env={**env, "FAKE_RUNNING": "1"})
            assert done.returncode == 0, done
            assert noted(os.path.join(tmp, "s.cap"))[1] == (command if has_command else None)
        record(tmp, "sleep", "0.1", env={**env, "FAKE_NAMESPACE": "1"})
        assert noted(os.path.join(tmp, "kbarman.cap")) == (None, None)
        process.stdin.close()


def kernel_text_is_mapped(tmp):
    record(tmp, "sleep", "0.1", env=fake(FAKE_RATE=1))
    assert "[kernel.kallsyms]" in whole(tmp)[0].images()
    assert os.path.getsize(os.path.join(tmp, "kbarman.cap")) < 100000
    with open(os.path.join(tmp, "kbarman.cap.kallsyms"), encoding="utf-8") as side:
        assert " _stext\n" in side.read()


def symbols_are_kept_for_after_a_crash_if_that_is_asked_for(tmp):
    kept = os.path.join(tmp, "kept")
    for options in ["--keep-symbols"], ["--keep-symbols", "-F", "0", "--mode", "overwrite"], []:
        done = record(tmp, *options, "true", env=fake(FAKE_SYMBOLS=kept))
        assert done.returncode == 0 and os.path.exists(kept) == bool(options), (options, done)
        if options:
            with gzip.open(kept, "rt", encoding="ascii") as file:
                lines = file.read().splitlines()
            assert "_stext" in lines[0] or len(lines) > 1000, lines[:9]
            assert all(re.fullmatch(r"(?!0* )[0-9a-f]+ [tTwW] .*", line) for line in lines), lines[:9]
            os.remove(kept)
    for error, says in (28, "make these smaller"), (1, "CAP_SYSLOG"), (17, "already"), (25, "load the module"):
        done = record(tmp, "--keep-symbols", "true", env=fake(FAKE_FAIL=f"add_symbols:{error}"))
        assert done.returncode == 0 and re.search(f"missing after a crash: .*{says}", done.stderr), (error, done)


def spans_agree(tmp, *args, **settings):
    """From when to when, by record, info, report and an export; returns it in ns."""
    done = record(tmp, *args, "sleep", "0.5", env=fake(**settings))
    said = float(re.search(r" in ([0-9.]+) s", done.stderr).group(1))
    info = json.loads(tap.run("info", "-j", cwd=tmp).stdout.splitlines()[0])
    text = tap.run("info", cwd=tmp).stdout
    report = json.loads(tap.run("report", "-j", cwd=tmp).stdout.splitlines()[0])
    span = info["last_ns"] - info["first_ns"]
    assert span == report["duration_ns"] == info.get("duration_ns"), (info, report)
    assert f" {span / 1e9:.6f} s" in re.search("^recorded .*$", text, re.M).group(0), text
    assert f" {span / 1e9:.6f} s, " in tap.run("report", cwd=tmp).stdout
    assert abs(said * 1e9 - span) < 1e6, (said, span)
    return span


def recorded_is_from_the_first_to_the_last_moment_in_all_verbs(tmp):
    # a session in which nothing happens is as long as any
    assert spans_agree(tmp, FAKE_RATE=0) >= 5e8 and not whole(tmp, least=0)[1]
    assert spans_agree(tmp) >= 5e8


def recorded_is_from_the_first_record_where_older_ones_were_overwritten(tmp):
    span = spans_agree(tmp, "--mode", "overwrite", "-m", "64K", FAKE_RATE=100)
    capture, records = check(os.path.join(tmp, "kbarman.cap"))
    assert any(key.startswith("overwritten.") for key in capture.facts())
    end = int(capture.facts()["raw_end"].split(",")[0])
    assert span == end - records[0][2], (span, end, records[0][2])


def an_idle_cpu_holds_nothing_back(tmp):
    record(tmp, "sleep", "0.3", env=fake(FAKE_IDLE=0))
    assert {r[1] for r in whole(tmp)[1]} == {1}


def a_counter_that_turned_out_unstable_is_told_of(tmp):
    sound = record(tmp, "-o", "sound.cap", "sleep", "0.1")
    told = record(tmp, "-o", "told.cap", "sleep", "0.1", env=fake(FAKE_UNSTEADY=1))
    assert "unstable" in told.stderr and "unstable" not in sound.stderr, (told, sound)


def verbose_tells_of_each_cpu_and_quiet_of_none(tmp):
    loud, quiet = record(tmp, "-v", "sleep", "0.1"), record(tmp, "-q", "sleep", "0.1")
    told = [line for line in loud.stderr.splitlines() if "overwritten" in line]
    assert [line.split(":")[1].strip() for line in told] == ["CPU 0", "CPU 1"], loud.stderr
    assert "records of 2 CPUs" in loud.stderr and "records of" not in quiet.stderr, quiet.stderr


def two_hundred_cpus_are_merged(tmp):
    result = record(tmp, "-m", "64K", "sleep", "0.5", env=fake(FAKE_CPUS=200, FAKE_RATE=2))
    assert result.returncode == 0, result
    assert len({r[1] for r in whole(tmp)[1]}) == 200


def until_partial_has(size):
    """A command that ends as soon as the recording has that many bytes."""
    return "sh", "-c", f"while [ $(stat -c %s kbarman.cap.partial) -lt {size} ]; do sleep 0.05; done"


def a_small_buffer_goes_round_without_loss(tmp):
    """8192 records of room, more than 15000 written."""
    result = record(tmp, "-m", "256K", *until_partial_has(2 << 20), env=fake(FAKE_RATE=20, FAKE_PATIENT=1))
    assert "nothing lost" in result.stderr, result.stderr
    assert len(whole(tmp)[1]) > 30000


def a_disk_that_stalls_loses_nothing(tmp):
    """For thrice as long as the buffers last: 65536 records a CPU, of which 100 a millisecond are written."""
    result = record(tmp, "-m", "2M", *until_partial_has(16 << 20),
                    env=fake(FAKE_RATE=100, FAKE_STALL=2000, FAKE_PATIENT=1))
    assert result.returncode == 0 and "nothing lost" in result.stderr, result
    assert len(whole(tmp)[1]) > 400000


def losses_are_counted_and_said(tmp):
    """A burst that is larger than the buffer."""
    result = record(tmp, "-m", "64K", "sleep", "0.2", env=fake(FAKE_RATE=5000))
    assert result.returncode == 0, result
    capture, _ = whole(tmp)
    lost = int(capture.facts()["lost.0.full"]) + int(capture.facts()["lost.1.full"])
    assert f"lost {lost} records" in result.stderr and "-m" in result.stderr, result.stderr
    assert "nothing lost" not in result.stderr


def nothing_lost_is_said_only_where_nothing_is(tmp):
    """Neither records nor names nor what newer records took the place of."""
    whole_one = record(tmp, "sleep", "0.1")
    missed = record(tmp, "sleep", "0.1", env=fake(FAKE_MISSED=3))
    older = record(tmp, "--mode", "overwrite", "-m", "64K", "sleep", "0.5", env=fake(FAKE_RATE=2000))
    assert "nothing lost" in whole_one.stderr, whole_one
    assert "3 mappings are missing" in missed.stderr and "nothing lost" not in missed.stderr, missed
    assert "older records were overwritten" in older.stderr and "nothing lost" not in older.stderr, older


def counters_that_stood_still_are_said(tmp):
    result = record(tmp, "sleep", "0.1", env=fake(FAKE_STOPS=7))
    assert result.returncode == 0, result
    assert "counters stood still 7 times (7 on CPU 1): Linux throttled them" in result.stderr
    assert "nothing lost" not in result.stderr, result
    assert Capture(os.path.join(tmp, "kbarman.cap")).facts()["stopped.1.throttled"] == "7"
    result = record(tmp, "sleep", "0.1")
    assert "stood still" not in result.stderr and "nothing lost" in result.stderr, result


def overwrite_keeps_newest(tmp):
    result = record(tmp, "--mode", "overwrite", "-m", "64K", sys.executable, "-c",
                    "import time\ntime.sleep(0.5)\nprint(time.monotonic_ns())", env=fake(FAKE_RATE=50))
    assert result.returncode == 0, result
    capture, records = check(os.path.join(tmp, "kbarman.cap"))
    facts = capture.facts()
    assert len(records) == 2 * 2048
    for cpu in "0", "1":
        assert int(facts["written." + cpu]) - int(facts["overwritten." + cpu]) == 2048
    assert records[-1][2] > int(result.stdout) and records[0][2] - capture.base > 100e6


def the_exit_status_is_that_of_the_command(tmp):
    for script, status in ("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), \
            ("kill -KILL $$", 137):
        result = record(tmp, "sh", "-c", script)
        assert result.returncode == status, result
        whole(tmp, least=0)  # the command may end before the device's first record


def a_command_that_cannot_run_leaves_nothing(tmp):
    result = record(tmp, "./no-such-command")
    assert result.returncode == 127 and "no-such-command" in result.stderr, result
    result = record(tmp, "/dev/null")
    assert result.returncode == 126 and "/dev/null" in result.stderr, result
    assert not files(tmp), files(tmp)


def signals_end_a_recording_cleanly(tmp):
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        child = start(tmp)
        time.sleep(0.1)
        child.send_signal(number)
        output = child.communicate(timeout=tap.HANG)
        assert child.returncode == 0, (number, output)
        whole(tmp)
        assert "kbarman.cap.partial" not in files(tmp)
        os.unlink(os.path.join(tmp, "kbarman.cap"))


def wait_for_file(directory, name):
    tap.until(lambda: os.path.exists(os.path.join(directory, name)), name)


def a_signal_reaches_the_command(tmp):
    child = start(tmp, "sh", "-c",
                  "trap 'echo got it; exit 9' TERM; : >ready; while :; do sleep 0.05; done")
    wait_for_file(tmp, "ready")
    child.send_signal(signal.SIGTERM)
    output = child.communicate(timeout=tap.HANG)
    assert child.returncode == 9 and output[0] == "got it\n", (child.returncode, output)
    whole(tmp)


def a_second_signal_kills_a_stubborn_command(tmp):
    child = start(tmp, "sh", "-c", "trap '' INT TERM; : >ready; while :; do sleep 0.05; done")
    wait_for_file(tmp, "ready")
    child.send_signal(signal.SIGINT)
    wait_for_file(tmp, "kbarman.cap")
    assert child.poll() is None
    whole(tmp)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=tap.HANG)
    assert child.returncode == 137, child.returncode


def nohup_is_respected(tmp):
    child = start(tmp, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    child.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=tap.HANG)
    assert child.returncode == 0


def the_partial_file_can_be_read_at_any_time(tmp):
    child = start(tmp, env=fake(FAKE_RATE=2))       # a busy machine has to keep up with what is written
    most = times = 0
    while most <= 10000 or times < 5:
        times += 1
        copy = os.path.join(tmp, "copy")
        shutil.copy(os.path.join(tmp, "kbarman.cap.partial"), copy)
        capture, records = check(copy)
        assert len(records) >= most and capture.task_names()[1] == "fake task"
        most = len(records)
        time.sleep(0.08)
    child.kill()
    child.communicate()


def a_killed_recorder_leaves_a_capture(tmp):
    child = start(tmp)
    tap.until(lambda: len(check(os.path.join(tmp, "kbarman.cap.partial"))[1]) > 10000, "a sync")
    child.kill()
    child.communicate()
    assert files(tmp) == ["kbarman.cap.partial", "kbarman.cap.partial.kallsyms"], files(tmp)
    _, records = check(os.path.join(tmp, "kbarman.cap.partial"))
    assert len(records) > 10000, len(records)


def a_killed_recorder_leaves_no_command_behind(tmp):
    """Killed before the command was released, it never runs."""
    os.mkfifo(os.path.join(tmp, "fifo"))
    result = record(tmp, "touch", "ran", env=fake(FAKE_FAIL="start:16"))
    assert result.returncode == 2 and files(tmp) == ["fifo"], (result, files(tmp))


def a_full_disk_keeps_what_was_recorded(tmp):
    limit = 16 << 20

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    result = record(tmp, *until_partial_has(limit), env=fake(FAKE_RATE=100), preexec_fn=limited)
    assert result.returncode == 1, result
    assert "kbarman.cap.partial" in result.stderr and "File too large" in result.stderr, result
    assert "'kbarman recover kbarman.cap.partial'" in result.stderr, result
    assert "kbarman.cap" not in files(tmp)
    _, records = check(os.path.join(tmp, "kbarman.cap.partial"))
    assert len(records) > 50000, len(records)


def the_former_capture_stays_until_the_new_one_is_whole(tmp):
    path = os.path.join(tmp, "kbarman.cap")
    with open(path, "w", encoding="utf-8") as old:
        old.write("old")
    for env, command in (fake(FAKE_FAIL="start:22"), "true"), (fake(), "./no-such-command"):
        record(tmp, command, env=env)
        with open(path, encoding="utf-8") as old:
            assert old.read() == "old"
    record(tmp, "true")
    whole(tmp)


def a_link_is_followed(tmp):
    os.symlink("target.cap", os.path.join(tmp, "link.cap"))
    with open(os.path.join(tmp, "target.cap"), "w", encoding="utf-8"):
        pass
    assert record(tmp, "-o", "link.cap", "sleep", "0.1").returncode == 0
    assert os.path.islink(os.path.join(tmp, "link.cap"))
    whole(tmp, "target.cap")


def files_are_private_and_nobody_can_lead_them_elsewhere(tmp):
    """They say where the kernel is. Who may make files in the folder must not choose what is written."""
    mask = os.umask(0)
    try:
        assert record(tmp, "true").returncode == 0
    finally:
        os.umask(mask)
    made = [name for name in os.listdir(tmp) if name.startswith("kbarman.cap")]
    assert "kbarman.cap" in made
    for name in made:
        assert os.stat(os.path.join(tmp, name)).st_mode & 0o777 == 0o640, name
    victim = os.path.join(tmp, "victim")
    with open(victim, "w", encoding="ascii") as file:
        file.write("mine")
    os.chmod(victim, 0o666)
    others = (lambda _, to: shutil.copy(victim, to) and os.chown(to, 65534, 65534), ) if not os.getuid() else ()
    for link in (os.symlink, os.link, *others):
        link(victim, os.path.join(tmp, "a.cap.partial"))
        done = record(tmp, "-o", "a.cap", "true")
        assert done.returncode == 2 and "can't write a.cap.partial" in done.stderr, done
        os.remove(os.path.join(tmp, "a.cap.partial"))
    os.symlink(victim, os.path.join(tmp, "a.cap.partial.kallsyms"))
    assert record(tmp, "-o", "a.cap", "true").returncode == 0
    with open(victim, encoding="ascii") as file:
        assert file.read() == "mine"


def standard_output_gets_a_whole_capture(tmp):
    result = record(tmp, "-o", "-", "sh", "-c", "echo not in the capture; sleep 0.2", text=False)
    assert result.returncode == 0 and b"not in the capture" in result.stderr, result.stderr
    with open(os.path.join(tmp, "x"), "wb") as file:
        file.write(result.stdout)
    capture, _ = whole(tmp, "x")
    assert capture.task_names()[1] == "fake task"
    assert files(tmp) == ["x"]
    assert b"has the capture alone: its names are found on this machine only" in result.stderr, result


def outputs_that_cannot_be_written_are_named(tmp):
    os.mkdir(os.path.join(tmp, "dir"))
    for path in "nodir/x.cap", "dir":
        result = record(tmp, "-o", path, "true")
        assert result.returncode == 2 and path in result.stderr, result
    result = record(tmp, "-o", "/dev/full", "true")
    assert result.returncode == 2 and "/dev/full" in result.stderr and \
        "No space left" in result.stderr, result
    assert os.path.exists("/dev/full") and files(tmp) == ["dir"]


def a_pipe_that_closes_is_an_error(tmp):
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([tap.KBARMAN, "record", "-o", "-", "true"], env=fake(), cwd=tmp,
                            stdout=write, stderr=subprocess.PIPE, text=True, timeout=tap.HANG)
    os.close(write)
    assert result.returncode == 2 and "Broken pipe" in result.stderr, result


def failures_of_the_device_say_what_to_do(tmp):
    for call, error, says in (
            ("configure", 16, "as many programs record"), ("configure", 12, "-m"),
            ("configure", 122, "700 of 1000 MiB"),
            ("configure", 3, "processes"), ("start", 2, "event 'cycles' on CPU 1"),
            ("start", 28, "fewer events"), ("start", 22, "perf_event_max_sample_rate")):
        result = record(tmp, "true", env=fake(FAKE_FAIL=f"{call}:{error}"))
        assert result.returncode == 2 and says in result.stderr, result
        assert len(result.stderr.splitlines()) == 1 and not files(tmp), result


def a_configuration_that_the_module_refuses_is_told_by_its_field(tmp):
    for offset, says in (24, "its field watermark is out of range"), (0, "has a CPU that does not exist"), \
            (48, "no CPU 0"), (4096, "its field of a later version"):
        result = record(tmp, "true", env=fake(FAKE_FAIL="configure:22", FAKE_BAD=offset))
        assert result.returncode == 2 and says in result.stderr, result
        assert len(result.stderr.splitlines()) == 1 and not files(tmp), result


def an_element_that_the_module_refuses_is_told(tmp):
    for error, offset, options, says in (3, 56, ("-p", f"{os.getpid()}"), f"the process {os.getpid()}, which"), \
            (7, 72, ("-e", "cycles"), "event 'cycles': it has what this kernel does not know"), \
            (7, 144, ("-g",), "--max-stack"):
        result = record(tmp, *options, env=fake(FAKE_FAIL=f"configure:{error}", FAKE_BAD=offset))
        assert result.returncode == 2 and says in result.stderr, result
        assert len(result.stderr.splitlines()) == 1 and not files(tmp), result


def events_that_are_not_sampled_precisely_are_told(tmp):
    for event, says in ("cycles", "no such event"), ("cycles:p", "'cycles:p' on CPU 1: this CPU can't sample"):
        result = record(tmp, "-e", event, "true", env=fake(FAKE_FAIL="start:95"))
        assert result.returncode == 2 and says in result.stderr, result
        assert len(result.stderr.splitlines()) == 1 and not files(tmp), result


def who_records_is_listed(tmp):
    def listed(*args, **settings):
        done = tap.run("list", "--sessions", *args, env=fake(**settings), cwd=tmp)
        assert done.returncode == 0, done
        return done
    nobody = listed()
    assert nobody.stdout == "" and "nobody records" in nobody.stderr, nobody
    lines = listed(FAKE_RUNNING=1, FAKE_OTHERS=1).stdout.splitlines()
    assert len(lines) == 3 and len({len(line.rpartition("  ")[0]) for line in lines}) == 1, lines
    assert [line.split()[-1] for line in lines] == ["SOURCES", "sched", "sched,idle"], lines
    assert lines[0].split()[0] == "SESSION" and lines[1].split()[:3] == ["2", "recording", "stream"]
    # the name of another program does not steer the terminal
    assert lines[2].split()[:3] == ["1", "recording", "overwrite"] and "some?thing" in lines[2], lines
    assert str(os.getpid()) in lines[2] and str(os.getpid()) not in lines[1], lines
    objects = [json.loads(line) for line in listed("-j", FAKE_RUNNING=1, FAKE_OTHERS=1)
               .stdout.splitlines()]
    assert [o["session"] for o in objects] == [2, 1], objects
    assert objects[0]["command"] is None and "uid" not in objects[0], objects
    assert [o["sources"] for o in objects] == [["sched"], ["sched", "idle"]], objects
    assert objects[1]["pid"] == os.getpid() and objects[1]["bytes"] == 3 << 20, objects
    wrong = tap.run("list", "--sessions", "cpu", env=fake(), cwd=tmp)
    assert wrong.returncode == 2 and "'cpu'" in wrong.stderr, wrong


def a_snapshot_is_of_the_recording_that_overwrites(tmp):
    done = tap.run("snapshot", "-o", "s.cap", env=fake(FAKE_RUNNING=1, FAKE_OTHERS=1), cwd=tmp)
    assert done.returncode == 0, done
    check(os.path.join(tmp, "s.cap"))


def doctor_tells_who_records(tmp):
    def session(**settings):
        done = tap.run("doctor", "-j", env=fake(**settings), cwd=tmp)
        return next(check for check in map(json.loads, done.stdout.splitlines())
                    if check.get("name") == "session")
    assert "no other program" in session()["found"], session()
    found = session(FAKE_RUNNING=1, FAKE_OTHERS=1)
    assert found["verdict"] == "ok", found
    assert f"some?thing (process {os.getpid()})" in found["found"], found
    assert "another user" in found["found"], found
    full = session(FAKE_RUNNING=1, FAKE_OTHERS=1, FAKE_MOST=2)
    assert full["verdict"] == "fail" and "parameters/sessions" in full["fix"], full


def two_recorders_do_not_write_one_file(tmp):
    child = start(tmp, "sleep", str(2 * tap.HANG))
    second = record(tmp, "touch", "ran")
    os.killpg(child.pid, signal.SIGINT)
    child.communicate(timeout=tap.HANG)
    assert second.returncode == 2 and "another recorder writes kbarman.cap" in second.stderr, second
    assert not os.path.exists(os.path.join(tmp, "ran"))
    whole(tmp)
    assert record(tmp, "true").returncode == 0


def a_recorder_can_begin_while_a_child_of_the_last_one_still_ends(tmp):
    waits, there = (os.path.join(tmp, name) for name in ("waits", "there"))
    open(waits, "wb").close()
    # what saves the symbols of a snapshot is executed so
    late = preload.build(tmp, "late", preload.late("execl(const char *path, const char *arg, ...)"))
    env = fake(CHILD_WAITS=waits, CHILD_IS_THERE=there)
    with subprocess.Popen([tap.KBARMAN, "record", "-a", "--mode", "overwrite"], cwd=tmp,
                          env={**env, "LD_PRELOAD": f"{FAKE}:{late}"}) as first:
        tap.wait_for_handler(first.pid, signal.SIGUSR1)
        first.send_signal(signal.SIGUSR1)
        tap.until(lambda: os.path.exists(there), "the child")
        first.kill()
        first.wait()
        second = record(tmp, "true")
    os.unlink(waits)
    assert second.returncode == 0, second


def a_failure_under_way_keeps_what_was_recorded(tmp):
    result = record(tmp, "sh", "-c", "sleep 0.3; exit 7", env=fake(FAKE_FAIL="consume:5"))
    assert result.returncode == 1 and "Input/output error" in result.stderr, result
    check(os.path.join(tmp, "kbarman.cap.partial"))


def rings_are_given_back_by_one_call_where_the_module_knows_it(tmp):
    for each, status in (1, 1), (0, 0):
        result = record(tmp, "sleep", "0.3", env=fake(FAKE_FAIL="consume_each:5", FAKE_EACH=each))
        assert result.returncode == status, result
        assert ("Input/output error" in result.stderr) == bool(each), result


def missing_kernel_rows_are_no_failure(tmp):
    result = record(tmp, "sleep", "0.1", env=fake(FAKE_FAIL="add_maps:13"))
    assert result.returncode == 0 and "CAP_SYSLOG" in result.stderr, result
    whole(tmp)


def processes_are_followed_to_their_end(tmp):
    with subprocess.Popen("cat", stdin=subprocess.PIPE) as process, \
            subprocess.Popen("cat", stdin=subprocess.PIPE) as other:
        child = start(tmp, "-p", f"{process.pid},{other.pid}")
        other.stdin.close()
        other.wait()
        time.sleep(0.3)
        assert child.poll() is None
        process.stdin.close()
        _, said = child.communicate(timeout=tap.HANG)
        assert child.returncode == 0, said
    assert whole(tmp)[0].facts()["filter"] == f"pid:{process.pid},{other.pid}"


def numbers_of_a_pid_namespace_are_told_to_be_others(tmp):
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise tap.Skip("no PID namespace can be made here")
    result = subprocess.run([*inside, "sh", "-c", 'sleep 0.3 & exec "$0" record -p $!', tap.KBARMAN],
                            cwd=tmp, env=fake(), capture_output=True, text=True, check=False)
    assert result.returncode == 0 and "numbers of this PID namespace" in result.stderr, result
    facts = Capture(os.path.join(tmp, "kbarman.cap")).facts()
    assert facts["filter"].endswith(" in a PID namespace"), facts["filter"]


def without_a_bundle_there_is_none_and_no_former_one(tmp):
    for option, there in ("--bundle", True), ("--no-bundle", False):
        assert record(tmp, option, "sleep", "0.1").returncode == 0
        assert ("kbarman.cap.symbols" in files(tmp)) == there, (option, files(tmp))


def nothing_of_a_former_recording_stands_beside_a_capture(tmp):
    """A recording with Annotate clients left a file beside its capture, and one that was killed
    left one beside its partial file: the next recording of that name has neither."""
    former = "kbarman.cap.annotate-side", "kbarman.cap.partial.annotate-side"
    for name in former:
        with open(os.path.join(tmp, name), "wb") as file:
            file.write(b"ANNOTATE 3\n" + bytes(9) + b"\x0d\x06\0\0\0\x05view\0")
    child = start(tmp)
    assert former[0] in files(tmp) and former[1] not in files(tmp), files(tmp)
    child.send_signal(signal.SIGINT)
    assert child.wait(tap.HANG) == 0
    child.communicate()
    assert not set(former) & set(files(tmp)), files(tmp)


def call_chains_are_those_that_the_machine_can_give(tmp):
    for features, args, status, says in (
            (0, ["-g"], 2, "leave out -g"),
            (2, ["-guser"], 2, "-gkernel"),
            (2, ["-gboth"], 2, "-gkernel"),
            (2, ["-g"], 0, "no user part"),
            (2, ["--off-cpu"], 0, "no user part"),
            (2, ["-gkernel"], 0, "nothing lost"),
            (3, ["--call-graph", "fp"], 0, "nothing lost")):
        result = record(tmp, *args, "sleep", "0.1", env=fake(FAKE_CHAINS=features))
        assert result.returncode == status and says in result.stderr, (args, result)
        assert ("part" in result.stderr) == (says == "no user part"), (args, result)


def stacks_are_taken_where_user_frames_cannot_be_followed(tmp):
    """As on armhf and s390x."""
    for features, args, callchain in (
            (18, ["-g"], "both,stack"), (18, ["-guser"], "user,stack"), (18, ["-gboth"], "both,stack"),
            (18, ["-gkernel"], "kernel"), (18, ["--off-cpu"], "both,stack"),
            (18, ["--call-graph", "stack"], "both,stack"), (16, ["-guser"], "user,stack"),
            (19, ["-g"], "both,stack"), (19, ["-g", "-m", "128K"], "both")):
        result = record(tmp, *args, "sleep", "0.1", env=fake(FAKE_CHAINS=features))
        assert result.returncode == 0 and "part" not in result.stderr, (args, result)
        facts = Capture(os.path.join(tmp, "kbarman.cap")).facts()
        assert facts["callchain"] == callchain, (features, args, facts)
    for args, status, says in (
            (["-g", "-m", "128K"], 0, "no user part: this architecture finds it only in stacks; "
                                      "give -m 256K"),
            (["--call-graph", "fp"], 0, "no user part: this architecture finds it only in stacks; "
                                        "give --call-graph stack"),
            (["-guser", "-m", "128K"], 2, "give -m 256K, or -gkernel"),
            (["-guser", "--call-graph", "fp"], 2, "give --call-graph stack, or -gkernel")):
        result = record(tmp, *args, "sleep", "0.1", env=fake(FAKE_CHAINS=18))
        assert result.returncode == status and says in result.stderr, (args, result)


def doctor_says_how_callers_are_found(tmp):
    for features, verdict, says in (
            (19, "ok", "of user code by unwind tables or frame pointers, and of the kernel"),
            (18, "ok", "of user code by unwind tables, and of the kernel"),
            (16, "ok", "of user code by unwind tables"),
            (3, "ok", "of user code by frame pointers, and of the kernel"),
            (2, "warn", "of the kernel only"), (0, "warn", "none")):
        done = tap.run("doctor", "-j", env=fake(FAKE_CHAINS=features), cwd=tmp)
        found = next(check for check in map(json.loads, done.stdout.splitlines())
                     if check.get("name") == "call chains")
        assert (found["verdict"], found["found"]) == (verdict, says), found


def a_recording_that_began_with_the_module_is_taken_over(tmp):
    assert record(tmp, "--boot", "true", env=fake(FAKE_BOOT=1)).returncode == 0
    capture, records = whole(tmp, least=1000)   # of the time before, too: `true` is quicker
    assert capture.facts()["filter"] == "none", capture.facts()
    done = record(tmp, "--boot", "-o", "newest.cap", "true", env=fake(FAKE_BOOT=2))
    assert done.returncode == 0 and len(check(os.path.join(tmp, "newest.cap"))[1]) >= 1000, done


def without_one_it_says_how_to_have_one(tmp):
    done = record(tmp, "--boot")
    assert done.returncode == 2 and "boot=usual" in done.stderr, done
    assert not files(tmp)


def a_recording_that_has_begun_is_not_configured(tmp):
    for option, *words in (["--freq", "-F", "100"], ["--event", "-e", "cycles"], ["-g", "-g"],
                           ["--sources", "--sources", "irq"], ["--cpu", "-C", "0"], ["--mode", "--mode", "stream"]):
        done = record(tmp, "--boot", *words, env=fake(FAKE_BOOT=1))
        assert done.returncode == 2 and f"leave out {option}" in done.stderr, done
    assert not files(tmp)


def an_older_module_cannot_read_counters_in_between(tmp):
    for args in ["--read-counters", "switch"], ["--counters", "100"]:
        result = record(tmp, *args, "sleep", "0.1", env=fake(FAKE_COUNTS=0))
        assert result.returncode == 2 and "too old" in result.stderr, (args, result)
        assert not [name for name in files(tmp) if ".cap" in name], files(tmp)
        result = record(tmp, *args, "sleep", "0.1", env=fake())
        assert result.returncode == 0 and "nothing lost" in result.stderr, (args, result)
        for name in files(tmp):
            os.remove(os.path.join(tmp, name))


def groups_behind_the_first_one_take_turns(tmp):
    for events, turns in (
            ("cycles,instructions,branches", "-12"),
            ("cycles,{instructions,branches},{cache-misses,page-faults}", "-1122"),
            ("{cycles,instructions},branches,page-faults,branch-misses", "--1-2"),
            ("cycles,{page-faults,cs},{faults,migrations}", "-1122")):
        result = record(tmp, "--rotate", "20", "-e", events, "sleep", "0.1", env=fake())
        assert result.returncode == 0 and "nothing lost" in result.stderr, (events, result)
        facts = Capture(os.path.join(tmp, "kbarman.cap")).facts()
        assert facts["fake_turns"] == turns and int(facts["turned"].split(",")[0]) > 1, (events, facts)


def one_group_takes_no_turns(tmp):
    for events in "cycles,instructions", "{cycles,instructions},branches", "cycles,page-faults,cs":
        result = record(tmp, "--rotate", "20", "-e", events, "sleep", "0.1", env=fake())
        assert result.returncode == 0 and "nothing takes turns" in result.stderr, (events, result)
        assert "fake_turns" not in Capture(os.path.join(tmp, "kbarman.cap")).facts(), events


def an_older_module_has_no_turns(tmp):
    result = record(tmp, "--rotate", "20", "-e", "cycles,instructions,branches", "true",
                    env=fake(FAKE_TURNS=0))
    assert result.returncode == 2 and "--rotate" in result.stderr and "too old" in result.stderr, result


def a_rate_above_the_limit_is_lowered_in_words(tmp):
    """As perf does; -c of cycles is a rate that nobody knows before."""
    for args, env, sample, said in [
            ([], {}, "1000Hz", None),
            (["-F", "100000"], {}, "100000Hz", None),
            (["-F", "100001"], {}, "100000Hz", "sampling 100000 times per second"),
            ([], {"FAKE_LIMIT": 250}, "250Hz", "sampling 250 times per second"),
            (["-e", "cpu-clock", "-c", "10000"], {}, "10000", None),
            (["-e", "cpu-clock", "-c", "9999"], {}, "10000", "sampling every 10000 ns"),
            (["-e", "cpu-clock", "-c", "5"], {"FAKE_LIMIT": 300}, "3333334", "every 3333334 ns"),
            (["-e", "cycles", "-c", "10000"], {}, "10000", None),
            (["-e", "cycles", "-c", "10000"], {"FAKE_KHZ": 1000000}, "10000", None),
            (["-e", "cycles", "-c", "10000"], {"FAKE_KHZ": 2000000}, "10000",
             "can give 200000 samples per second, and Linux's limit is 100000"),
            (["-e", "page-faults", "-c", "1"], {"FAKE_KHZ": 2000000}, "1", None)]:
        result = record(tmp, *args, "true", env=fake(**env))
        assert result.returncode == 0, (args, result)
        assert Capture(os.path.join(tmp, "kbarman.cap")).facts()["sample"] == sample, args
        assert not said or said in result.stderr, (args, result.stderr)
        assert ("max_sample_rate" in result.stderr) == bool(said), (args, result.stderr)


def mappings_that_are_not_seen_are_said(tmp):
    for seen, recording, doctor in (
            (0, "no kprobes", "only those that exist when the recording starts"),
            (1, "mremap(2)", "except what mremap(2) moves"),
            (2, None, "new ones are recorded")):
        result = record(tmp, "sleep", "0.1", env=fake(FAKE_MAPS=seen))
        assert result.returncode == 0, result
        assert (recording is None) == ("has no image" not in result.stderr), result
        assert recording is None or recording in result.stderr, result
        result = tap.run("doctor", "-j", cwd=tmp, env=fake(FAKE_MAPS=seen))
        said = [json.loads(line) for line in result.stdout.splitlines()]
        mappings, = [check for check in said if check["name"] == "mappings"]
        assert doctor in mappings["found"] and "all" not in mappings["found"], mappings
        assert mappings["verdict"] == ("ok" if seen == 2 else "warn"), mappings


def what_this_kernel_cannot_give_is_said_and_left_out(tmp):
    switches, idling, tasks = 1, 2, 1 << 31
    for absent, args, status, says in (
            (switches, [], 0, ["task switches will be missing"]),
            (switches, ["-g", "--off-cpu"], 0, ["task switches will be missing"]),
            (switches, ["--read-counters", "100"], 0, ["task switches will be missing"]),
            (switches, ["--read-counters", "switch"], 2, ["--read-counters switch", "sched_switch"]),
            (idling, [], 0, ["idling will be missing"]),
            (switches | idling, [], 0, ["task switches will be missing", "idling will be"]),
            (tasks, [], 2, ["nothing can be recorded", "kbarman doctor"])):
        result = record(tmp, *args, "sleep", "0.1", env=fake(FAKE_ABSENT=absent))
        assert result.returncode == status, (absent, args, result)
        assert all(text in result.stderr for text in says), (absent, args, result)
    for absent, verdict, says in (
            (0, "ok", ["all of them"]),
            (switches, "warn", ["sched_switch"]),
            (switches | idling, "warn", ["sched_switch", "cpu_idle"]),
            (tasks, "fail", ["sched_process_fork", "nothing can be recorded"])):
        result = tap.run("doctor", "-j", cwd=tmp, env=fake(FAKE_ABSENT=absent))
        said = [json.loads(line) for line in result.stdout.splitlines()]
        tracepoints, = [check for check in said if check["name"] == "tracepoints"]
        assert tracepoints["verdict"] == verdict, tracepoints
        assert all(text in tracepoints["found"] for text in says), tracepoints


# What fake_device.c writes, by source: enum bm_kbarman_what.
KINDS = {"wake": {1, 2}, "migrate": {3}, "irq": {4, 5, 6, 7}, "softirq": {8, 9, 10}, "freq": {11, 12},
         "syscalls": {14}, "faults": {15}, "block": {16}}
ALL_SOURCES = "wake,migrate,irq,softirq,freq"


def details(records):
    """(series, what, id, cpu, context) of the values that say what they are about."""
    return [(struct.unpack_from("=I", data, 20)[0], *(struct.unpack_from("=IHBB", data, 32)[i]
                                                      for i in (2, 0, 1, 3)))
            for kind, _, _, data in records if kind == "custom_counter" and data[38]]


def sources_are_recorded_if_asked_for(tmp):
    for args, wanted in (
            ([], ""), (["--latency"], ALL_SOURCES), (["--sources", "wake"], "wake"),
            (["--sources", "freq,wake"], "wake,freq"), (["--sources", "sched,idle,softirq"], "softirq"),
            (["--sources", "irq", "--sources", "migrate"], "migrate,irq"),
            (["--sources", "syscalls"], "syscalls"),
            (["--sources", "faults"], "faults"),
            (["--sources", "block"], "block"),
            (["--latency", "--sources", "syscalls,faults,block"], ALL_SOURCES + ",syscalls,faults,block")):
        assert record(tmp, *args, "sleep", "0.1", env=fake(FAKE_RATE=2)).returncode == 0, args
        capture, records = whole(tmp)
        assert capture.facts().get("sources", "") == wanted, (args, capture.facts())
        kinds = {what for _, what, *_ in details(records)}
        assert kinds == set().union(*(KINDS[word] for word in wanted.split(",") if word)), (args, kinds)
        assert (4, 33, 0, 2) in {detail[1:] for detail in details(records)} or 4 not in kinds
        for series, *_ in details(records):
            assert capture.string(capture.series[series][1]), series
        info = tap.run("info", cwd=tmp).stdout
        assert (f"sources    {wanted}\n" in info) == bool(wanted), info
        assert tap.run("check", "kbarman.cap", cwd=tmp).returncode == 0
    for bad in "", "wakes", "wake,,irq", "marks":
        result = record(tmp, "--sources", bad, "true")
        assert result.returncode == 2 and "wake, migrate, irq, softirq, freq, syscalls, faults, block" in result.stderr, result


def what_takes_time_is_recorded_whole(tmp):
    """By record, and by what rewrites records."""
    assert record(tmp, "--sources", "syscalls,faults,block", "sleep", "0.1", env=fake(FAKE_RATE=2)).returncode == 0
    for args in ["merge", "kbarman.cap", "-o", "merged.cap"], ["recover", "merged.cap", "-o", "whole.cap"]:
        assert tap.run(*args, cwd=tmp).returncode == 0, args
    for name in "kbarman.cap", "merged.cap", "whole.cap":
        said = [json.loads(line) for line in tap.run("dump", "--json", name, cwd=tmp).stdout.splitlines()]
        for what, took, about, flags, result, arguments in (
                ("syscall", 700, 0, 0, 4096, [3, 0x7ffffffff000, 4096]),
                ("fault", 500, 0, 1, 1, [0x7ffff0000000, 0xffffffff81000010, 0]),
                ("block", 600, 1, 0x101, -5, [1 << 33, 8 << 20 | 1, 4096])):
            ended = [line for line in said if line.get("what") == what]
            assert ended, (name, what)
            for line in ended:
                assert line["begin"] == line["timestamp"] - took and line["result"] == result, line
                assert (line["about_id"], line["about_cpu"], line["arguments"]) == (about, flags, arguments), line


def series_of_programs_follow_those_of_the_sources(tmp):
    path = os.path.join(tmp, "number")
    with open(path, "w", encoding="ascii") as file:
        file.write("17")
    for args in [], ["--latency"]:
        done = record(tmp, *args, "--poll", f"frogs={path}@50", "sleep", "0.3", env=fake(FAKE_RATE=1))
        assert done.returncode == 0, done
        capture, records = check(os.path.join(tmp, "kbarman.cap"))
        names = [capture.string(row[1]) for row in capture.series]
        assert names[0] == "Lost records" and names[11:] == ["frogs"], names
        assert any(names[1:11]) == bool(args), names
        assert [struct.unpack_from("=Q", data, 24)[0] for kind, _, _, data in records
                if kind == "custom_counter" and data[20] == 11], names
        info = json.loads(tap.run("info", "-j", cwd=tmp).stdout.splitlines()[0])
        assert info["series"] == [name for name in names if name], info


def interrupts_have_their_names_from_begin_and_end(tmp):
    table, later = os.path.join(tmp, "interrupts"), os.path.join(tmp, "later")
    head = "            CPU0       CPU1\n"
    many = ", ".join(f"device{i}" for i in range(100))
    with open(table, "w", encoding="ascii") as file:
        file.write(head +
                   "  1:          9          0   IO-APIC   1-edge      i8042\n"
                   " 33:         42         17  PCI-MSIX-0000:00:01.0   2-edge      virtio0-input.0\n"
                   " 34:          1          0     GICv3  27 Level     arch timer, x:y\n"
                   " 35:          5          0     GICv3  28 Level   \n"
                   f" 36:          5          0     GICv3  29 Level     {many}\n"
                   "NMI:          0          0   Non-maskable interrupts\n"
                   "IPI0:        11         12       Rescheduling interrupts\n"
                   "ERR:          0\n")
    with open(later, "w", encoding="ascii") as file:
        file.write(head + " 40:          1          0   IO-APIC   9-edge      acpi\n")
    move = f"sleep 0.2; mv {later} {table}"
    for args in [], ["--sources", "irq"]:
        shutil.copy(table, table + ".old")
        shutil.copy(later, later + ".old")
        done = record(tmp, *args, "sh", "-c", move, env=fake(FAKE_INTERRUPTS=table))
        assert done.returncode == 0, done
        facts = {key: value for key, value in whole(tmp)[0].facts().items() if key.startswith("irq.")}
        assert facts == ({} if not args else {
            "irq.1": "i8042", "irq.33": "virtio0-input.0", "irq.34": "arch timer, x:y",
            "irq.40": "acpi"}), facts
        os.rename(table + ".old", table)
        os.rename(later + ".old", later)


def a_snapshot_has_what_its_session_records(tmp):
    table = os.path.join(tmp, "interrupts")
    with open(table, "w", encoding="ascii") as file:
        file.write("     CPU0\n 33:  9   IO-APIC   1-edge      i8042\n")
    env = fake(FAKE_RUNNING=1, FAKE_SOURCES=0x3ff, FAKE_INTERRUPTS=table)
    done = tap.run("snapshot", "-o", "s.cap", env=env, cwd=tmp)
    assert done.returncode == 0, done
    capture, records = check(os.path.join(tmp, "s.cap"))
    facts = capture.facts()
    assert (facts["sources"], facts["irq.33"]) == (ALL_SOURCES, "i8042"), facts
    assert {what for _, what, *_ in details(records)} <= set(range(1, 13)) and details(records)


def a_flight_recorder_and_top_take_the_same_sources(tmp):
    env = {**fake(), "KBARMAN_RUNTIME_DIR": tmp}
    with subprocess.Popen([tap.KBARMAN, "flight", "run", "--latency", "-o", "f.cap"], cwd=tmp, env=env,
                          stderr=subprocess.DEVNULL) as flight:
        tap.until(lambda: tap.run("flight", "status", env=env, cwd=tmp).returncode == 0, "the flight recorder")
        flight.terminate()
    capture, records = check(os.path.join(tmp, "f.cap"))
    assert capture.facts()["sources"] == ALL_SOURCES, capture.facts()
    assert {what for _, what, *_ in details(records)} == set(range(1, 13))
    for args, status, says, waits in (
            (["--latency"], 0, "", True), (["--sources", "wake,irq"], 0, "", True),
            (["--sources", "irq"], 0, "", False), ([], 0, "", False), (["--sources", "x"], 2, "--sources x", False)):
        done = tap.run("top", "-n", "1", "-d", "0.2", *args, env=fake(), cwd=tmp)
        assert done.returncode == status and says in done.stderr, done
        assert ("Longest ms" in done.stdout) == waits, done
        assert not waits or re.search(r"\d  fake task, by (interrupt in )?fake task", done.stdout), done
    done = tap.run("top", "-n", "1", "--latency", env=fake(FAKE_DETAILS=0), cwd=tmp)
    assert done.returncode == 2 and "too old" in done.stderr, done


def what_is_kept_of_values_is_kept_whole(tmp):
    """By what rewrites records: merge, recover, and the leaving out of short waits."""
    done = record(tmp, "--latency", "--off-cpu", "--off-cpu-min", "0.001", "sleep", "0.2")
    assert done.returncode == 0, done
    wanted = details(whole(tmp)[1])
    assert len(wanted) > 100, len(wanted)
    done = tap.run("merge", "kbarman.cap", "-o", "merged.cap", cwd=tmp)
    assert done.returncode == 0, done
    assert details(check(os.path.join(tmp, "merged.cap"))[1]) == wanted
    with open(os.path.join(tmp, "kbarman.cap"), "rb") as file:
        data = file.read()
    with open(os.path.join(tmp, "cut.cap"), "wb") as file:
        file.write(data[:-len(data) // 3])
    done = tap.run("recover", "cut.cap", "-o", "whole.cap", cwd=tmp)
    assert done.returncode in (0, 1), done
    kept = details(check(os.path.join(tmp, "whole.cap"))[1])
    assert kept and kept == wanted[:len(kept)], (len(kept), len(wanted))


def sources_that_the_kernel_lacks_are_said_and_left_out(tmp):
    wake, irq, freq, calls = 1 << 5, 1 << 7, 1 << 9, 1 << 10
    for absent, args, says, wanted in (
            (wake, [], [], None),	# nobody asked
            (wake | freq, ["--latency"], ["'sched_waking': wakeups", "'cpu_frequency': frequencies"],
             "migrate,irq,softirq"),
            (calls, ["--latency"], [], ALL_SOURCES),
            (calls, ["--sources", "syscalls,wake"], ["'sys_exit': system calls will be missing"], "wake"),
            (irq, ["--sources", "irq,wake"], ["'irq_handler_entry': interrupts will be missing"],
             "wake")):
        result = record(tmp, *args, "sleep", "0.1", env=fake(FAKE_ABSENT=absent))
        assert result.returncode == 0, result
        missing = [line for line in result.stderr.splitlines() if "will be missing" in line]
        assert len(missing) == len(says), result
        assert all(text in line for text, line in zip(says, missing)), result
        assert whole(tmp)[0].facts().get("sources") == wanted
    result = tap.run("doctor", "-j", cwd=tmp, env=fake(FAKE_ABSENT=wake | irq))
    tracepoints, = [check for check in map(json.loads, result.stdout.splitlines())
                    if check["name"] == "tracepoints"]
    assert tracepoints["verdict"] == "warn" and "sched_waking (no wakeups)" in tracepoints["found"] \
        and "irq_handler_entry" in tracepoints["found"], tracepoints


def an_older_module_is_told_from_a_kernel_that_lacks_sources(tmp):
    for args in ["--latency"], ["--sources", "irq"]:
        result = record(tmp, *args, "true", env=fake(FAKE_DETAILS=0))
        assert result.returncode == 2 and "too old to record" in result.stderr, result
        assert ("wake" in result.stderr) == (args == ["--latency"]) and not files(tmp), result
    assert record(tmp, "sleep", "0.1", env=fake(FAKE_DETAILS=0)).returncode == 0
    result = tap.run("doctor", "-j", cwd=tmp, env=fake(FAKE_DETAILS=0))
    tracepoints, = [check for check in map(json.loads, result.stdout.splitlines())
                    if check["name"] == "tracepoints"]
    assert tracepoints["verdict"] == "warn" and "too old" in tracepoints["found"], tracepoints


def a_module_of_another_version_of_the_abi_is_refused_and_named(tmp):
    for abi in 2, 4:
        result = record(tmp, "touch", "ran", env=fake(FAKE_ABI=abi))
        assert result.returncode == 2 and not files(tmp), result
        assert f"the module speaks version {abi} of the ABI and this tool version 3: use a module and a tool of " \
            "one release" in result.stderr, result.stderr
    doctor = tap.run("doctor", "-j", env=fake(FAKE_ABI=2))
    device, = [check for check in map(json.loads, doctor.stdout.splitlines()) if check.get("name") == "device"]
    assert device["verdict"] == "fail" and "version 2 of the ABI" in device["fix"], device


def sizes_and_cpus_out_of_range_are_named(tmp):
    for args, says in (["-m", "1K"], "64K to 1024M"), (["-m", "2G"], "64K to 1024M"), \
            (["-C", "0-5"], "no CPU 5"), (["-C", "x"], "0-3,8"):
        result = record(tmp, *args, "true")
        assert result.returncode == 2 and says in result.stderr, result
    assert not files(tmp)


def build_fake():
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-fPIC",
                    "-shared", "-I" + os.path.join(HERE, "..", "..", "kmod"),
                    os.path.join(HERE, "fake_device.c"), "-o", FAKE, "-ldl", "-pthread"],
                   check=False)


def main(namespace):
    """The tests of `namespace`, beside the fake device."""
    build_fake()
    try:
        tap.main(namespace)
    finally:
        shutil.rmtree(BUILT)


if __name__ == "__main__":
    main(globals())
