#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman push --openmetrics`: what Prometheus scrapes is what the report says of the same records,
whoever else asks."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_record as recorder
from latency_capture import Late
from simulate import Machine

OPEN = "application/openmetrics-text"
NS = 1e9


def prometheus():
    """The folder of Debian's Prometheus, in the cache."""
    try:
        done = subprocess.run([os.path.join(HERE, "../../scripts/prometheus")], capture_output=True,
                              text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise tap.Skip(f"Prometheus can't be had: {error}") from None
    if done.returncode:
        raise tap.Skip(f"Prometheus can't be had: {done.stderr.strip()[-200:]}")
    root = done.stdout.strip()
    if subprocess.run([f"{root}/usr/bin/promtool", "--version"], capture_output=True,
                      check=False).returncode:
        raise tap.Skip("Debian's Prometheus does not run here")
    return root


def parse(text):
    """{(name, ((label, value), ...)): number} of a text in either form."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        name, labels, number = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
        key = name, tuple(sorted(pairs))
        assert key not in values, line
        values[key] = float(number)
    return values


def pick(values, name, *by, **only):
    """{(values of the labels `by`): sum} of a metric."""
    found = {}
    for (metric, labels), number in values.items():
        labels = dict(labels)
        if metric == name and only.items() <= labels.items():
            key = tuple(labels[label] for label in by)
            found[key] = round(found.get(key, 0) + number, 9)
    return found


def written(tmp, *captures, name="metrics.txt", status=0):
    path = os.path.join(tmp, name)
    done = tap.run("push", "--openmetrics", path, *captures)
    assert done.returncode == status, done
    with open(path, encoding="utf-8") as file:
        return file.read()


def report(path, *options):
    done = tap.run("report", "--json", *options, path)
    assert done.returncode in (0, 1), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def seconds(ns):
    return round(ns / NS, 9)


def expected(path):
    """What the report says, by the names of metrics."""
    late, irq = report(path, "--latency"), report(path, "--irq")
    causes = {False: "woken", True: "preempted"}
    want = {"waits": {}, "sums": {}, "cut": late[0]["cut"], "unexplained": late[0]["unexplained"]}
    for row in late:
        if row["kind"] == "latency_sum":
            want["waits"][causes[row["preempted"]],] = row["waits"]
            want["sums"][causes[row["preempted"]],] = seconds(row["sum_ns"])
    halts = [row for row in irq if row["kind"] == "halts"]
    handlers = [row for row in irq if row["kind"] == "interrupt"]
    want["halts"] = {(str(row["cpu"]), str(row["idle_state"])): row["count"] for row in halts}
    want["idle"] = {(str(row["cpu"]), str(row["idle_state"])): seconds(row["duration_ns"]) for row in halts}
    want["above"] = {(str(row["cpu"]), str(row["idle_state"])): row["above"] for row in halts}
    want["interrupts"] = {(row["what"], row["handler"]): row["count"] for row in handlers}
    want["interrupt_s"] = {(row["what"], row["handler"]): seconds(row["own_ns"]) for row in handlers}
    want["modes"] = {(str(row["cpu"]), mode): seconds(row[f"{mode}_ns"]) for row in irq
                     if row["kind"] == "cpu_time"
                     for mode in ("unknown", "lost", "task", "idle", "halt", "softirq", "irq", "ipi")}
    want["lost"] = late[0]["lost"]
    return want


def measured(values):
    left_out = pick(values, "kbarman_waits_left_out_total", "why")
    latency = "kbarman_run_queue_latency_seconds"
    return {
        "waits": pick(values, latency + "_count", "cause"), "sums": pick(values, latency + "_sum", "cause"),
        "cut": left_out["cut",], "unexplained": left_out["unexplained",],
        "halts": pick(values, "kbarman_idle_entries_total", "cpu", "state"),
        "idle": pick(values, "kbarman_idle_residency_seconds_total", "cpu", "state"),
        "above": pick(values, "kbarman_idle_misses_total", "cpu", "state", was="above"),
        "interrupts": pick(values, "kbarman_interrupts_total", "kind", "handler"),
        "interrupt_s": pick(values, "kbarman_interrupt_seconds_total", "kind", "handler"),
        "modes": pick(values, "kbarman_cpu_seconds_total", "cpu", "mode"),
        "lost": sum(pick(values, "kbarman_records_lost_total").values()),
    }


def same(values, path):
    got, want = measured(values), expected(path)
    for key, value in want.items():
        assert got[key] == value, (key, got[key], value)


def machine(tmp, seed=1, name="sim.cap", **kwargs):
    return Machine(seed, **kwargs).save(os.path.join(tmp, name))


def with_losses(tmp, name="losses.cap"):
    made = Machine(5, facts={"lost.0.full": "7", "lost.2.nested": "4", "written.1": "5000",
                             "missed.task": "3", "stopped.1.throttled": "2"})
    for when in range(3_000_000, 40_000_000, 9_000_000):
        made.capture.lost(0, when, 1)
    made.capture.records.sort(key=lambda record: int.from_bytes(record[16:24], "little"))
    return made.save(os.path.join(tmp, name))


@contextlib.contextmanager
def serving(*args, env=None, where="0"):
    """Yields the URL of a server, and its process."""
    with subprocess.Popen([tap.KBARMAN, "push", "--openmetrics", where, *map(str, args)], env=env,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            url = None
            for line in process.stderr:
                found = re.search(r"http://\S+", line)
                if found:
                    url = found.group()
                    break
            assert url, process.wait()
            yield url, process
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()


def get(url, accept=OPEN):
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})

    def answer():
        try:
            with urllib.request.urlopen(request, timeout=tap.HANG) as said:
                return said.headers["Content-Type"], said.read().decode()
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return None             # nothing was read yet

    return tap.until(answer, "metrics")


def address(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def numbers_are_those_of_the_report(tmp):
    for seed in range(8):
        path = machine(tmp, seed, f"{seed}.cap", cores=1 + seed % 4)
        values = parse(written(tmp, path))
        same(values, path)
        assert values["kbarman_captures_total", ()] == 1
        assert sum(pick(values, "kbarman_records_total").values()) == report(path, "--latency")[0]["records"]


def buckets_add_up_to_the_powers_of_the_report(tmp):
    """Every wait is in the first bucket that it fits into."""
    path = machine(tmp)
    values = parse(written(tmp, path))
    waits = [row["duration_ns"] for row in report(path, "--latency") if row["kind"] == "latency_wait"]
    assert waits
    for cause in "woken", "preempted":
        buckets = pick(values, "kbarman_run_queue_latency_seconds_bucket", "le", cause=cause)
        counts = [buckets[le] for le in sorted(buckets, key=lambda le: float(le[0]))]
        assert counts == sorted(counts) and len(counts) == 23, counts
        assert counts[-1] == pick(values, "kbarman_run_queue_latency_seconds_count", cause=cause)[()]
    # a power of two between two bounds: 8192 ns and 16384 ns are in the buckets of 5 to 20 us
    powers = {row["preempted"]: row["powers"] for row in report(path, "--latency") if row["kind"] == "latency_sum"}
    woken = pick(values, "kbarman_run_queue_latency_seconds_bucket", "le", cause="woken")
    assert woken["5e-06",] <= sum(powers[False][:13]) <= woken["1e-05",]
    assert woken["2e-05",] <= sum(powers[False][:15]) <= woken["5e-05",]


def happened(values, name, *by):
    return {key: number for key, number in pick(values, name, *by).items() if number}


def a_series_is_there_before_its_first_event(tmp):
    """What begins with the event shows no rate of it: Prometheus wants a number before."""
    quiet, lossy = parse(written(tmp, machine(tmp))), parse(written(tmp, with_losses(tmp)))
    cpus = {cpu for cpu, in pick(quiet, "kbarman_records_total", "cpu")}
    assert len(cpus) > 1
    for name in "kbarman_records_lost_total", "kbarman_pmu_stops_total", "kbarman_rows_missed_total":
        assert not happened(quiet, name), name
        by = ("what",) if "rows" in name else ("cpu", "reason")
        there, later = pick(quiet, name, *by), happened(lossy, name, *by)
        assert later and later.keys() <= there.keys(), (name, later, there)
    reasons = {reason for _, reason in pick(quiet, "kbarman_records_lost_total", "cpu", "reason")}
    with open(os.path.join(HERE, "../../user/lib/analysis/facts/losses_read.c"), encoding="utf-8") as file:
        known = re.findall(r"\[KBARMAN_LOST_\w+\]\s*= \"(\w+)\"", file.read())
    assert len(known) > 3 and reasons == set(known), (reasons, known)


def losses_are_those_of_the_report(tmp):
    path = with_losses(tmp)
    values = parse(written(tmp, path))
    same(values, path)
    assert happened(values, "kbarman_records_lost_total", "cpu", "reason") == \
        {("0", "full"): 7, ("2", "nested"): 4}
    assert happened(values, "kbarman_rows_missed_total", "what") == {("task",): 3}
    assert happened(values, "kbarman_pmu_stops_total", "cpu", "reason") == {("1", "throttled"): 2}
    assert values["kbarman_records_written_total", ()] == 5001 and values["kbarman_gaps_total", ()] > 2
    assert pick(values, "kbarman_cpu_seconds_total", mode="lost")[()] > 0


def several_captures_add_up(tmp):
    paths = [machine(tmp, seed, f"{seed}.cap") for seed in range(3)] + [with_losses(tmp)]
    together = measured(parse(written(tmp, *paths)))
    alone = [measured(parse(written(tmp, path))) for path in paths]
    for key, value in together.items():
        if isinstance(value, dict):
            for label, number in value.items():
                assert round(sum(one[key].get(label, 0) for one in alone), 9) == number, (key, label)
        else:
            assert sum(one[key] for one in alone) == value, key


def a_damaged_capture_counts_up_to_the_damage(tmp):
    path = machine(tmp)
    os.truncate(path, os.path.getsize(path) - 1000)
    values = parse(written(tmp, path, status=1))
    assert values["kbarman_captures_damaged_total", ()] == 1
    same(values, path)


def odd_names_stay_one_label(tmp):
    name = 'a "disk"\\with\nlines, and \udcff'
    capture = Late(cores=1, facts={"irq.7": name.replace(",", ";"), "written.0": "1"})
    capture.irq(0, 1000, 2000, 7)
    text = written(tmp, capture.save(os.path.join(tmp, "odd.cap")))
    labels = [dict(labels) for (metric, labels) in parse(text) if metric == "kbarman_interrupts_total"]
    assert [row["handler"] for row in labels] == ['a \\"disk\\"\\\\with?lines; and ?'], labels


def a_capture_with_many_handlers_makes_few_series(tmp):
    capture = Late(cores=2)
    for number in range(20_000):
        capture.irq(number % 2, 1000 + 10 * number, 1005 + 10 * number, number)
    values = parse(written(tmp, capture.save(os.path.join(tmp, "many.cap"))))
    handlers = pick(values, "kbarman_interrupts_total", "kind", "handler")
    assert len(handlers) == 1025 and sum(handlers.values()) == 20_000
    assert handlers["other", "other"] == 20_000 - 1024
    assert pick(values, "kbarman_interrupt_seconds_total")[()] == seconds(5 * 20_000)


def a_strict_parser_takes_the_text(tmp):
    root = prometheus()
    sys.path.insert(0, os.path.join(root, "usr/lib/python3/dist-packages"))
    from prometheus_client.openmetrics.parser import \
        text_string_to_metric_families  # pylint: disable=import-error,import-outside-toplevel
    text = written(tmp, machine(tmp), with_losses(tmp))
    assert text.endswith("# EOF\n")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, family in families.items():
        assert name.startswith("kbarman_") and family.documentation.endswith("."), family
        assert not family.unit or name.endswith("_" + family.unit), family
        for unit in "seconds", "bytes":
            assert family.unit == unit or not name.endswith("_" + unit), family
    assert len(families) > 25


def promtool_finds_nothing(tmp):
    root = prometheus()
    text = written(tmp, machine(tmp), with_losses(tmp), name="metrics.prom")
    done = subprocess.run([f"{root}/usr/bin/promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0 and not done.stdout + done.stderr, done


@contextlib.contextmanager
def scraping(tmp, root, url):
    """A Prometheus that scrapes @url; yields a function that asks it."""
    host, port = address(url)
    config = os.path.join(tmp, "prometheus.yml")
    with open(config, "w", encoding="ascii") as file:
        file.write("global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n"
                   f"  - job_name: kbarman\n    static_configs: [ targets: [ '{host}:{port}' ] ]\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    with subprocess.Popen([f"{root}/usr/bin/prometheus", f"--config.file={config}",
                           f"--storage.tsdb.path={tmp}/tsdb", f"--web.listen-address=127.0.0.1:{own}"],
                          stderr=subprocess.PIPE, text=True) as server:
        said = []
        reader = threading.Thread(target=lambda: said.extend(server.stderr))
        reader.start()

        def ask(query):
            with urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/query?" + urllib.parse.urlencode(
                    {"query": query}), timeout=tap.HANG) as answer:
                return json.load(answer)["data"]["result"]

        try:
            yield ask
        except Exception:
            print("#", "# ".join(said[-10:]))
            raise
        finally:
            server.terminate()
            reader.join()


def wait_for(what, found):
    def found_it():
        with contextlib.suppress(OSError):
            return found()

    tap.until(found_it, what)


def a_real_prometheus_scrapes_what_the_report_says(tmp):
    root, path = prometheus(), machine(tmp)
    with serving(path) as (url, _), scraping(tmp, root, url) as ask:
        wait_for("scrape", lambda: ask('kbarman_captures_total == 1'))
        assert [row["value"][1] for row in ask("up")] == ["1"]
        values = {}
        for row in ask('{__name__=~"kbarman_.+"}'):
            labels = {key: value for key, value in row["metric"].items()
                      if key not in ("__name__", "job", "instance")}
            values[row["metric"]["__name__"], tuple(sorted(labels.items()))] = float(row["value"][1])
        same(values, path)
        # it knows the type: a histogram has quantiles
        p99 = ask("histogram_quantile(0.99, sum by (le) (kbarman_run_queue_latency_seconds_bucket))")
        assert 1e-5 < float(p99[0]["value"][1]) < 1e-3, p99
        with urllib.request.urlopen(url.replace("/metrics", "/"), timeout=tap.HANG) as answer:
            assert b"/metrics" in answer.read()
        # those of the documentation; a rate takes a second scrape
        with open(os.path.join(HERE, "../../docs/fleet.md"), encoding="utf-8") as file:
            queries = re.findall(r"```promql\n(.*?)```", file.read(), re.DOTALL)
        assert len(queries) >= 5
        for query in queries:
            wait_for(query, lambda query=query: ask(query))


def the_client_chooses_the_form(tmp):
    with serving(machine(tmp)) as (url, _):
        kind, text = get(url)
        assert kind.startswith(OPEN + "; version=1.0.0") and text.endswith("# EOF\n") and "# UNIT" in text
        for accept in None, "text/plain", "*/*", OPEN + ";q=0,text/plain", "x" + OPEN:
            kind, text = get(url, accept)
            assert kind.startswith("text/plain; version=0.0.4") and "# UNIT" not in text, (accept, kind)
        for accept in (f"{OPEN};version=1.0.0;q=0.5,text/plain;q=0.3", f"text/html, {OPEN}; q=0.75",
                       OPEN.upper()):
            assert get(url, accept)[0].startswith(OPEN), accept


def raw(url, data, timeout=tap.HANG):
    """What the server sends back until it closes."""
    with socket.create_connection(address(url), timeout=timeout) as client:
        client.sendall(data)
        said = b""
        with contextlib.suppress(ConnectionError):
            while piece := client.recv(65536):
                said += piece
        return said


def what_is_no_request_is_refused(tmp):
    with serving(machine(tmp)) as (url, process):
        get(url)
        for data, status in (
                (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200), (b"GET /metrics HTTP/1.0\n\n", 200),
                (b"GET /metrics?a=b HTTP/1.1\r\n\r\n", 200), (b"GET / HTTP/1.1\r\n\r\n", 200),
                (b"GET /metrics/ HTTP/1.1\r\n\r\n", 404), (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
                (b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 405),
                (b"\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"GET /metrics\r\n\r\n", 400),
                (b"GET http://x/metrics HTTP/1.1\r\n\r\n", 400), (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
                (b"GET /\0metrics HTTP/1.1\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\n\n", 400),
                (b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 3000, 431)):
            said = raw(url, data)
            assert said.startswith(b"HTTP/1.1 %d " % status), (data[:40], said[:200])
            head, body = said.split(b"\r\n\r\n", 1)
            assert b"Content-Length: %d" % len(body) in head and b"Connection: close" in head, said[:300]
        said = raw(url, b"HEAD /metrics HTTP/1.1\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 200 ") and said.endswith(b"\r\n\r\n"), said
        refused = parse(get(url)[1])["kbarman_server_refused_total", ()]
        assert refused == 11 and process.poll() is None, refused


def rest(process):
    """Memory and open files of it."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        memory = int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
    return memory, len(os.listdir(f"/proc/{process.pid}/fd"))


def hostile_clients_do_not_keep_prometheus_away(tmp):
    """Slow ones, silent ones, ones that take nothing, and more of them than there is room for."""
    with serving(machine(tmp)) as (url, process), contextlib.ExitStack() as stack:
        get(url)
        memory, files = rest(process)
        silent = []
        for number in range(300):
            client = stack.enter_context(socket.create_connection(address(url), timeout=tap.HANG))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            with contextlib.suppress(ConnectionError):      # it may be the oldest by now
                client.sendall([b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\n\r\n", b"\0" * 100][number % 4])
            silent.append(client)
            if number % 50 == 49:
                assert get(url)[1].endswith("# EOF\n")
        more, descriptors = rest(process)
        assert descriptors <= files + 33 and more < memory + 20_000, (memory, more, files, descriptors)
        # a slow one gets its time and no more
        with socket.create_connection(address(url), timeout=tap.HANG) as slow:
            start, closed = time.monotonic(), True
            with contextlib.suppress(ConnectionError):
                for letter in b"GET /metrics HTTP/1.1\r\n" + b"A: " + b"x" * 200:
                    slow.sendall(bytes([letter]))
                    time.sleep(0.1)
                    slow.settimeout(0.001)
                    with contextlib.suppress(TimeoutError):
                        if not slow.recv(1):
                            break
                    slow.settimeout(tap.HANG)
                else:
                    closed = False
            assert closed and time.monotonic() - start > 3, (closed, time.monotonic() - start)
        wait_for("end of the others", lambda: rest(process)[1] <= files)
        assert parse(get(url)[1])["kbarman_server_dropped_total", ()] >= 200


def only_this_machine_can_connect_unless_told(tmp):
    path = machine(tmp)
    with serving(path) as (url, process):
        assert address(url)[0] == "127.0.0.1"
        with open(f"/proc/{process.pid}/net/tcp", encoding="ascii") as file:
            port = f":{address(url)[1]:04X}"
            assert [line.split()[1] for line in file if port in line.split()[1] and " 0A " in line] == \
                ["0100007F" + port]
    with serving(path, where="127.0.0.2:0") as (url, _):
        assert address(url)[0] == "127.0.0.2" and get(url)
    with serving(path) as (url, _):
        done = tap.run("push", "--openmetrics", address(url)[1], path)
        assert done.returncode == 2 and "in use" in done.stderr, done


# ---- a session that runs ----

def live(tmp, *args, **settings):
    settings = {"FAKE_RATE": 20, "FAKE_CPUS": 2, **settings}
    return serving("--interval", "0.3", *args, env={**recorder.fake(**settings), "TMPDIR": tmp})


def numbers_of_a_session_only_grow_and_each_record_counts_once(tmp):
    rate = 5

    def was_read_in_time():
        """Follows a session. On a busy machine its buffers may have been overwritten: then another one."""
        with live(tmp, FAKE_RATE=rate) as (url, _):
            before, sums, wakeups = {}, [], ("kbarman_reader_wakeups_total", ())
            while before.get(wakeups, 0) < 12 or sums[-1][0] == sums[0][0]:
                values = parse(get(url)[1])
                for key, number in before.items():
                    if key[0].endswith(("_total", "_count", "_sum", "_bucket")):
                        assert values[key] >= number, (key, number, values.get(key))
                before = values
                sums.append((sum(pick(values, "kbarman_records_total").values()),
                             values["kbarman_records_written_total", ()]))
                time.sleep(0.25)
        # what came between the moment and the copy is left to the next reading
        assert all(read <= there for read, there in sums), sums
        assert before["kbarman_reader_cpu_seconds_total", ()] > 0 < before["kbarman_reader_bytes_total", ()]
        # and is no more than that
        return not pick(before, "kbarman_unread_seconds_total").get((), 0) and \
            min(there - read for read, there in sums) < rate * 2 * 3000

    tap.until(was_read_in_time, "a session that is read in time")


def what_was_overwritten_before_it_was_read_is_said(tmp):
    """64 KiB rings of somebody else, and a writer that fills them far faster than they are read."""
    with live(tmp, FAKE_RUNNING=1, FAKE_SOURCES=0x3ff, FAKE_RATE=2000) as (url, _):
        wait_for("overwritten records", lambda: pick(
            parse(get(url)[1]), "kbarman_unread_seconds_total").get((), 0) > 0)
        values = parse(get(url)[1])
        assert values["kbarman_records_overwritten_total", ()] > 0
        assert sum(pick(values, "kbarman_records_total").values()) < \
            values["kbarman_records_written_total", ()]


def the_session_ends_with_the_server(tmp):
    for number in signal.SIGTERM, signal.SIGKILL:
        with live(tmp) as (url, process):
            get(url)
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                children = file.read().split()
            assert len(children) == 1
            process.send_signal(number)
            assert process.wait(tap.HANG) == (0 if number == signal.SIGTERM else -number)
            wait_for("end of the reader", lambda pid=children[0]: not os.path.exists(f"/proc/{pid}"))


def a_file_is_whole_at_any_moment(tmp):
    path = os.path.join(tmp, "kbarman.prom")
    env = recorder.fake(FAKE_RATE=5)
    with subprocess.Popen([tap.KBARMAN, "push", "--openmetrics", path, "--interval", "0.1"], env=env,
                          stderr=subprocess.PIPE, text=True) as process:
        seen, ends = set(), time.monotonic() + 4
        while time.monotonic() < ends or len(seen) <= 5:
            with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as file:
                values = parse(file.read())
                assert ("kbarman_server_cpu_seconds_total", ()) in values      # the last one
                seen.add(values["kbarman_reader_wakeups_total", ()])
        process.terminate()
        assert process.wait(tap.HANG) == 0, process.stderr.read()
    assert len(seen) > 5, seen
    assert os.listdir(tmp) == ["kbarman.prom"] and os.stat(path).st_mode & 0o777 == 0o644 & ~tap_umask()


def tap_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def a_file_that_can_t_be_written_is_tried_again(tmp):
    folder = os.path.join(tmp, "later")
    os.mkdir(folder)
    path = os.path.join(folder, "kbarman.prom")
    with subprocess.Popen([tap.KBARMAN, "push", "--openmetrics", path, "--interval", "0.1", "--no-sandbox"],
                          env=recorder.fake(), stderr=subprocess.PIPE, text=True) as process:
        wait_for("file", lambda: os.path.exists(path))
        def is_gone():      # while it writes there
            shutil.rmtree(folder, ignore_errors=True)
            return not os.path.exists(folder)

        wait_for("folder that is gone", is_gone)
        while "can't write" not in (line := process.stderr.readline()):
            assert line, "it ended"
        os.mkdir(folder)
        wait_for("file", lambda: os.path.exists(path))
        process.terminate()
        assert process.wait(tap.HANG) == 1


def without_a_module_it_is_said(tmp):  # pylint: disable=unused-argument
    if os.path.exists("/dev/kbarman"):
        raise tap.Skip("the module is loaded")
    done = tap.run("push", "--openmetrics", "0")
    assert done.returncode == 2 and "/dev/kbarman" in done.stderr, done


def without_any_capture_no_file_is_written(tmp):
    path = os.path.join(tmp, "out.prom")
    done = tap.run("push", "--openmetrics", path, os.path.join(tmp, "none.cap"))
    assert done.returncode == 2 and not os.listdir(tmp), done


def wrong_uses_are_refused(tmp):
    path = machine(tmp, steps=50)
    for args, why in (
            (["--openmetrics", "0", "--otlp", "http://h"], "sends nothing"),
            (["--openmetrics", "0", "--spool", tmp], "sends nothing"),
            (["--openmetrics", ""], "[HOST:]PORT"), (["--openmetrics", "70000", path], "at most 65535"),
            (["--openmetrics", "0", "--interval", "0"], "give a time from 100ms to 1d"),
            (["--openmetrics", "0", "--interval", "1", path], "not for FILEs"),
            (["--interval", "1", path], "is for --openmetrics"),
            (["--openmetrics", os.path.join(tmp, "no/file"), path], "can't write")):
        result = tap.run("push", *args)
        assert result.returncode == 2 and why in result.stderr, (args, result)


if __name__ == "__main__":
    recorder.main(globals())
