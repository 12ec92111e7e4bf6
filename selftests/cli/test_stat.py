#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman stat: counts are the kernel's, and the command's exit status is passed on."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap  # noqa: E402


def stat(*args, **kwargs):
    done = tap.run("stat", "-j", *args, **kwargs)
    if done.returncode == 2 and ("not allowed" in done.stderr or "not on this machine" in done.stderr):
        raise tap.Skip("this machine lets nobody count: " + done.stderr.strip())
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return done, lines


def counters(lines):
    return {line["event"]: line for line in lines if line["kind"] == "counter"}


def exit_status_of_the_command_is_passed_on(tmp):
    for status in (0, 3):
        assert stat("-e", "task-clock", "sh", "-c", f"exit {status}")[0].returncode == status
    assert stat("-e", "task-clock", "--", "sh", "-c", "kill -9 $$")[0].returncode == 128 + 9
    done, _ = stat("-e", "task-clock", "./no-such-command-at-all")
    assert done.returncode == 127 and "can't run" in done.stderr and done.stdout == "", done


def the_commands_output_is_left_alone(tmp):
    for options in (), ("-j",):
        done, _ = stat("-e", "task-clock", "true")
        assert done.returncode == 0
        done = tap.run("stat", *options, "-e", "task-clock", "sh", "-c", "echo its own")
        assert done.stdout == "its own\n" and "task-clock" in done.stderr, done
        path = os.path.join(tmp, "counts")
        done = tap.run("stat", *options, "-o", path, "-e", "task-clock", "sh", "-c", "echo its own")
        with open(path, encoding="utf-8") as file:
            assert "task-clock" in file.read()
        assert done.stdout == "its own\n" and not done.stderr, done
        # who asks for it gets it
        done = tap.run("stat", *options, "-o", "-", "-e", "task-clock", "true")
        assert "task-clock" in done.stdout and not done.stderr, done


def page_faults_are_those_the_command_makes(tmp):
    """Twice the memory touched, at least so many more faults: children included."""
    def faults(pages):
        code = f"import mmap; m = mmap.mmap(-1, {pages} * 4096)\n" \
               f"for i in range({pages}): m[i * 4096] = 1"
        _, lines = stat("-e", "page-faults", "sh", "-c", f"{sys.executable} -c '{code}'; true")
        return counters(lines)["page-faults"]["value"]
    # huge pages may take several at once: a map of that size says nothing of 4 KiB then
    few, many = faults(16), faults(20000)
    assert few > 0 and many > few, (few, many)


def task_clock_is_the_time_that_the_command_ran(tmp):
    _, lines = stat("-e", "task-clock", sys.executable, "-c",
                    "import time\nwhile time.process_time() < 0.3: pass")
    clock = counters(lines)["task-clock"]["value"] / 1e9
    elapsed = [line for line in lines if line["kind"] == "elapsed"][0]
    assert clock >= 0.29, clock
    assert abs(clock - elapsed["user_s"] - elapsed["system_s"]) < 0.25 * clock + 0.05, (clock, elapsed)


def what_this_machine_cannot_count_is_said_not_nought(tmp):
    done, lines = stat("-e", "task-clock,LLC-prefetch-misses", "true")
    event = counters(lines)["LLC-prefetch-misses"]
    if event["value"] is not None:
        raise tap.Skip("this machine counts even LLC-prefetch-misses")
    assert done.returncode == 0 and event["why"], event
    text = tap.run("stat", "-e", "task-clock,LLC-prefetch-misses", "true").stderr
    assert "-  LLC-prefetch-misses" in text, text


def intervals_add_up_to_the_whole(tmp):
    # the command goes on until there were three of them, and says how many faults it had
    code = "import mmap, os, resource, time\n" \
           f"while not os.path.exists({os.path.join(tmp, 'end')!r}):\n" \
           "  m = mmap.mmap(-1, 99 * 4096)\n  for i in range(99): m[i * 4096] = 1\n  time.sleep(0.05)\n" \
           "usage = resource.getrusage(resource.RUSAGE_SELF)\nprint(usage.ru_minflt + usage.ru_majflt)"
    with subprocess.Popen([tap.KBARMAN, "stat", "-j", "-I", "50", "-e", "page-faults", sys.executable, "-c", code],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        said = [child.stderr.readline() for _ in range(3)]
        with open(os.path.join(tmp, "end"), "w", encoding="ascii"):
            pass
        said += child.stderr
        faults = child.stdout.read()
    if child.returncode == 2:
        raise tap.Skip("this machine lets nobody count")
    lines = [line for line in map(json.loads, said) if line["kind"] == "counter"]
    # where it did not run there is no count
    at, parts = [line["at_s"] for line in lines], [line["value"] or 0 for line in lines]
    assert len(parts) >= 3 and at == sorted(at), lines
    # its beginning and its end have some more, and some that are not its own
    assert abs(sum(parts) - int(faults)) < 0.2 * sum(parts) + 50, (sum(parts), faults)


def a_process_is_counted_until_it_ends(tmp):
    with subprocess.Popen([sys.executable, "-c", "import time\nend = time.time() + 3\n"
                           "while time.time() < end: pass"]) as busy:
        _, lines = stat("-e", "task-clock", "-p", str(busy.pid))
    assert counters(lines)["task-clock"]["value"] > 0


def ctrl_c_ends_with_the_counts(tmp):
    with subprocess.Popen([tap.KBARMAN, "stat", "-j", "-a", "-e", "cpu-clock"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        tap.wait_for_handler(child.pid, signal.SIGINT)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=tap.HANG)
    if child.returncode == 2:
        raise tap.Skip("this machine lets nobody count: " + err.strip())
    assert child.returncode == 0 and '"event":"cpu-clock"' in err and not out, (out, err)


def a_command_says_how_long_processes_are_counted(tmp):
    code = "import time\nprint(flush=True)\nwhile True: time.sleep(0.001)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
        try:
            busy.stdout.readline()
            # it lasts until the process has switched ten times
            script = "switches() { awk '/^voluntary/ { print $2 }' /proc/$1/status; }\n" \
                     "end=$(($(switches $1) + 10)); until [ $(switches $1) -gt $end ]; do sleep 0.05; done; exit $2"
            process = str(busy.pid)
            done, lines = stat("-e", "context-switches", "-p", process, "sh", "-c", script, "sh", process, "3")
            assert done.returncode == 3 and counters(lines)["context-switches"]["value"] > 3, lines
            _, lines = stat("-r", "3", "-e", "context-switches", "-p", process, "sh", "-c", script, "sh", process, "0")
            assert lines[-1]["runs"] == 3 and counters(lines)["context-switches"]["value"] > 0, lines
        finally:
            busy.kill()
    with subprocess.Popen(["sleep", "300"]) as short:   # also when they end, as with perf
        _, lines = stat("-e", "task-clock", "-p", str(short.pid), "sh", "-c", f"kill {short.pid}; sleep 0.6")
        assert lines[-1]["seconds"] > 0.5 and lines[-1]["user_s"] < 0.2, lines


def intervals_that_were_missed_are_not_made_up_for(tmp):
    script = f"until [ -e {tmp}/end ]; do sleep 0.05; done"
    with subprocess.Popen([tap.KBARMAN, "stat", "-j", "-I", "20", "-e", "task-clock", "sh", "-c", script],
                          stderr=subprocess.PIPE, text=True) as child:
        first = [child.stderr.readline()]
        child.send_signal(signal.SIGSTOP)
        time.sleep(1)
        child.send_signal(signal.SIGCONT)
        # some may have been in the pipe
        while child.poll() is None and len(first) < 40:
            first.append(child.stderr.readline())
        with open(os.path.join(tmp, "end"), "w", encoding="ascii"):
            pass
        lines = [json.loads(line) for line in [*first, *child.stderr] if line.startswith("{")]
    if child.returncode == 2:
        raise tap.Skip("this machine lets nobody count")
    at = [line["at_s"] for line in lines if line["kind"] == "counter"]
    assert max(b - a for a, b in zip(at, at[1:])) > 0.9, at
    assert sum(b - a < 0.001 for a, b in zip(at, at[1:])) < 5, at


def each_cpu_has_a_line_if_asked_for(tmp):
    _, lines = stat("-A", "-a", "-e", "cpu-clock", "sleep", "0.1")
    cpus = [line["cpu"] for line in lines if line["kind"] == "counter"]
    assert len(cpus) == len(set(cpus)) == os.sysconf("SC_NPROCESSORS_ONLN"), cpus


def fields(text):
    return [line.split(",") for line in text.splitlines() if line]


def perf_fields(*args):
    """What perf stat -x, prints, or a Skip."""
    perf = shutil.which("perf")
    done = perf and subprocess.run([perf, "stat", "-x,", *args], capture_output=True, text=True,
                                   check=False, timeout=300)
    if not done or done.returncode or "task-clock" not in done.stderr:
        raise tap.Skip("perf stat does not count here")
    return [line for line in fields(done.stderr) if not line[0].startswith("Events ")]


def csv(*args):
    done = tap.run("stat", "-x,", *args)
    if done.returncode == 2:
        raise tap.Skip("this machine lets nobody count: " + done.stderr.strip())
    return fields(done.stderr)


def fields_are_those_of_perf(tmp):
    """Their number, and all but the figures: names, units, what is not supported."""
    for args in (["-e", "task-clock,page-faults:u", "-e", "LLC-prefetch-misses", "true"],
                 ["-r", "2", "-e", "task-clock,context-switches", "true"],
                 ["-r", "2", "-D", "700", "-e", "task-clock,context-switches", "true"],
                 ["-a", "-A", "-e", "cpu-clock,task-clock", "sleep", "0.1"],
                 ["-a", "--per-core", "-e", "task-clock", "sleep", "0.1"],
                 ["-a", "--per-socket", "-e", "task-clock", "sleep", "0.1"]):
        perf, ours = perf_fields(*args), csv(*args)
        words = [[[field for field in line if not field.strip("%").replace(".", "").isdigit()]
                  for line in lines] for lines in (perf, ours)]
        # the scale of a rate depends on the rate
        words = [[[w.replace("K/", "/").replace("M/", "/") for w in line] for line in lines]
                 for lines in words]
        assert words[0] == words[1] and list(map(len, perf)) == list(map(len, ours)), (perf, ours)


def intervals_are_a_field_of_their_own(tmp):
    lines = csv("-I", "50", "--interval-count", "2", "-e", "task-clock", "sleep", "5")
    assert len(lines) == 2 and all(len(line) == 8 and line[3] == "task-clock" for line in lines), lines
    assert float(lines[0][0]) < float(lines[1][0]), lines


def runs_have_a_mean_and_a_deviation(tmp):
    done, lines = stat("-r", "5", "-e", "page-faults", "sh", "-c", f"echo >> {tmp}/runs")
    with open(os.path.join(tmp, "runs"), encoding="utf-8") as file:
        assert len(file.read()) == 5
    line, elapsed = counters(lines)["page-faults"], lines[-1]
    assert done.returncode == 0 and 0 <= line["deviation_percent"] < 50 and elapsed["runs"] == 5, lines
    text = tap.run("stat", "-r", "2", "-e", "page-faults", "true").stderr
    assert "(2 runs)" in text and text.count("( +-") == 2, text


def groups_and_modifiers_are_counted(tmp):
    _, lines = stat("-e", "{task-clock,page-faults}:u", "-e", "context-switches", "true")
    got = counters(lines)
    assert list(got) == ["task-clock:u", "page-faults:u", "context-switches"], got
    assert got["task-clock:u"]["running_ns"] == got["page-faults:u"]["running_ns"] > 0, got
    assert got["page-faults:u"]["user_only"] and got["page-faults:u"]["value"] > 0, got


def metrics_are_made_of_counts(tmp):
    _, lines = stat("-M", "cpus", sys.executable, "-c",
                    "import time\nwhile time.process_time() < 0.2: pass")
    metric = [line for line in lines if line["kind"] == "metric"][0]
    want = counters(lines)["task-clock"]["value"] / 1e9 / lines[-1]["seconds"]
    assert metric["metric"] == "cpus" and abs(metric["value"] - want) < 0.01 * want, (metric, want)


def a_timeout_ends_the_command(tmp):
    # it would hang otherwise
    _, lines = stat("--timeout", "100", "-e", "task-clock", "sleep", str(2 * tap.HANG))
    assert lines[-1]["seconds"] >= 0.1, lines


def counting_can_begin_later(tmp):
    def faults(*args, sleep=0):
        done, lines = stat(*args, "-e", "page-faults", sys.executable, "-c",
                           "import time\nb = bytearray(40000000)\n"
                           f"print(time.monotonic(), flush=True)\ntime.sleep({sleep})")
        return counters(lines)["page-faults"]["value"], float(done.stdout)

    whole, _ = faults()
    for delay in 2, 10, 50:     # on a busy machine the command may have its faults only then
        begin = time.monotonic()
        late, touched = faults("-D", str(1000 * delay), sleep=delay + 1)
        if touched - begin < delay:
            break
    assert late is None or late < whole / 2, (late, whole)


def the_time_is_that_of_counting(tmp):
    """As perf has it: what passed before is in no rate, and intervals and --timeout begin then."""
    command = (sys.executable, "-c", "import time\nend = time.time() + 3\nwhile time.time() < end: pass")
    begin = time.time()
    _, lines = stat("-D", "800", "-e", "task-clock", "-M", "cpus", *command)
    metric, seconds = [line["value"] for line in lines if line["kind"] == "metric"][0], lines[-1]["seconds"]
    want = counters(lines)["task-clock"]["value"] / 1e9 / seconds
    assert 0 < seconds < time.time() - begin - 0.7 and abs(metric - want) < 0.01 * want, lines
    begin = time.time()
    _, lines = stat("-D", "500", "-I", "200", "--timeout", "450", "-e", "task-clock", "sleep", "9")
    at = [line["at_s"] for line in lines if line["kind"] == "counter"]
    # a busy machine may miss all but the last one
    assert at and 0.2 <= at[0] and at[-1] < time.time() - begin - 0.4, (at, time.time() - begin)


def a_command_that_ends_before_it_is_counted_has_no_time(tmp):
    _, lines = stat("-D", "30000", "-e", "task-clock", "true")
    assert lines[-1]["seconds"] < 29, lines
    text = tap.run("stat", "-D", "30000", "-e", "task-clock", "true").stderr
    assert "nan" not in text and "inf" not in text, text


def commands_that_were_ended_are_awaited(tmp):
    """The next run begins when the one before it is over, as with perf."""
    log = os.path.join(tmp, "log")
    script = f"trap 'sleep 0.3; echo end >> {log}; exit 7' TERM; echo begin >> {log}; " \
             "while :; do sleep 0.05; done"
    for options, runs in (("-r", "2", "--timeout", 2000), 2), (("--interval-count", "2", "-I", 1000), 1):
        for slower in 1, 5, 25:     # on a busy machine a shell may not have begun when it is ended
            with open(log, "w", encoding="utf-8"):
                pass
            done, lines = stat(*options[:-1], options[-1] * slower, "-e", "task-clock", "sh", "-c", script)
            with open(log, encoding="utf-8") as file:
                said = file.read().split()
            if said.count("begin") == runs:
                break
        assert said == ["begin", "end"] * runs, done
        assert done.returncode == 7 and lines[-1]["seconds"] >= 0.1, done
    assert stat("-r", "2", "--timeout", "50", "-e", "task-clock", "sleep", "50")[0].returncode == 0


def ctrl_c_ends_what_heeds_nothing(tmp):
    log = os.path.join(tmp, "pids")
    for seconds in 2, 10, 50:
        with subprocess.Popen([tap.KBARMAN, "stat", "-r", "9", "--timeout", str(1000 * seconds), "-e", "task-clock",
                               "sh", "-c", f"trap '' TERM INT; echo $$ >> {log}; exec sleep 600 >/dev/null 2>&1"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            tap.until(lambda: child.poll() is not None or os.path.exists(log) and os.path.getsize(log), "a run")
            time.sleep(seconds + 1)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=tap.HANG)
        if child.returncode == 2:
            return
        with open(log, encoding="utf-8") as file:
            for pid in map(int, file):
                os.kill(pid, signal.SIGKILL)
        os.unlink(log)
        if "(1 runs)" in err:   # else the first shell was ended before it said what it heeds
            return
    raise AssertionError(err)


def where_nothing_ran_is_not_counted_for_scripts(tmp):
    """perf has no count there."""
    line = csv("-D", "30000", "-e", "task-clock,page-faults", "true")
    assert line == [["<not counted>", "msec", "task-clock", "0", "100.00", "", ""],
                    ["<not counted>", "", "page-faults", "0", "100.00", "", ""]], line


def files_can_grow(tmp):
    path = os.path.join(tmp, "counts")
    for _ in range(2):
        tap.run("stat", "-o", path, "--append", "-x;", "-e", "task-clock", "true")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert len(lines) == 2 and all(line.split(";")[2] == "task-clock" for line in lines), lines


def numbers_can_be_plain(tmp):
    code = "import mmap; m = mmap.mmap(-1, 8192 * 4096)\nfor i in range(8192): m[i * 4096] = 1"
    texts = [tap.run("stat", *more, "-e", "page-faults", sys.executable, "-c", code).stderr
             for more in ([], ["--no-big-num"])]
    numbers = [text.split("page-faults")[0].split()[-1] for text in texts]
    assert "," in numbers[0] and numbers[1].isdigit(), numbers


# Phases that touch pages and phases that do not, of two lengths.
PHASES = """
import mmap, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def touch(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        m = mmap.mmap(-1, 64 * 4096)
        for i in range(64): m[i * 4096] = 1
        m.close()
for length in 0.03, 0.02, 0.07, 0.01, 0.04:
    touch(length)
    burn(length)
"""


def what_takes_turns_lies_within_its_error(tmp):
    """page-faults are counted all the time, minor-faults in turns: they are the same."""
    runs, told, end = 20, [], time.monotonic() + tap.HANG
    while len(told) < runs and time.monotonic() < end:
        _, lines = stat("--rotate", "3", "-e", "page-faults,{minor-faults,major-faults},"
                        "{context-switches,cpu-migrations}", sys.executable, "-c", PHASES)
        got = counters(lines)
        turns = got["minor-faults"]
        assert got["page-faults"]["running_ns"] == got["page-faults"]["enabled_ns"], got
        assert "running_ns" not in turns or turns["running_ns"] < turns["enabled_ns"], turns
        # On a busy machine there may be too few turns; an error as large as the value would always hold.
        truth = got["page-faults"]["value"] - (got["major-faults"]["value"] or 0)
        if turns.get("error") is not None and turns["error"] < 0.9 * truth:
            told.append((truth, turns["value"], round(turns["error"])))
    if len(told) < 5:
        raise tap.Skip("this machine is too busy to let groups take turns")
    good = sum(abs(value - truth) <= error for truth, value, error in told)
    print(f"# {good} of {len(told)} within the error: {told[:3]} ...")
    # It holds in 95 of 100 runs, so three may be outside by chance; test_turns counts this exactly.
    assert good > len(told) / 2, told


def few_turns_have_no_error(tmp):
    text = tap.run("stat", "--rotate", "10000", "-e", "{page-faults,minor-faults},"
                   "{context-switches,cpu-migrations}", "true").stderr
    assert "too few to say" in text or "never got a counter" in text, text


def turns_need_two_groups(tmp):
    done = tap.run("stat", "--rotate", "5", "-e", "page-faults,task-clock", "true")
    assert done.returncode == 0 and "nothing takes turns" in done.stderr, done


def errors_are_fields_for_scripts(tmp):
    for _ in range(20):         # on a busy machine there may be too few turns
        text = tap.run("stat", "-x,", "--rotate", "2", "-e", "page-faults,{minor-faults,major-faults},"
                       "{context-switches,cpu-migrations}", sys.executable, "-c", PHASES).stderr
        rows = {row[2]: row for row in (line.split(",") for line in text.splitlines()) if len(row) > 5}
        if rows["minor-faults"][3] != "inf%":
            break
    assert rows["page-faults"][3] == "0.00%" and float(rows["minor-faults"][3][:-1]) > 0, text
    assert float(rows["minor-faults"][5]) < 100, text


def wrong_usage_is_told(tmp):
    for args, sentence in [((), "give a command"), (("-p", "x"), "process numbers"),
                           (("-p", "1", "-a"), "-p takes no"), (("-A", "true"), "-A needs"),
                           (("-I", "1", "true"), "milliseconds"), (("-e", "xyzzy", "true"), "xyzzy"),
                           (("-p", "4194304"), "no process"), (("-r", "0", "true"), "from 1 to"),
                           (("-r", "2", "-I", "50", "true"), "takes no -I"),
                           (("-M", "nonsense", "true"), "'nonsense' is no metric"),
                           (("--per-core", "true"), "--per-core needs"),
                           (("-C", "65535", "true"), "CPU 65535 is not online"),
                           (("-C", "", "true"), "-C"),
                           (("--rotate", "0", "true"), "from 1ms to 10s"),
                           (("-a", "-A", "--per-core", "true"), "one of -A"),
                           (("--append", "true"), "file of -o"), (("-x", "", "true"), "-x,"),
                           (("-e", "cycles:x", "true"), "'x' are no modifiers"),
                           (("-e", "{cycles", "true"), "not closed")]:
        done = tap.run("stat", *args)
        assert done.returncode == 2 and sentence in done.stderr and not done.stdout, (args, done)


def needs_the_kernels_part(tmp):
    raise tap.Skip("this user may count user code alone: run it as root")


if __name__ == "__main__":
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as paranoid:
        if os.geteuid() and int(paranoid.read()) > 1:
            for test in ("a_command_says_how_long_processes_are_counted", "fields_are_those_of_perf",
                         "intervals_are_a_field_of_their_own", "where_nothing_ran_is_not_counted_for_scripts",
                         "files_can_grow", "errors_are_fields_for_scripts"):
                globals()[test] = needs_the_kernels_part
    tests = {name: f for name, f in globals().items() if name != "needs_the_kernels_part"}
    tap.main(tests)
