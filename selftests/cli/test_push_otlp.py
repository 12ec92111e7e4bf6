#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""push --otlp: what a collector gets is what the capture says."""
import collections
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import test_waits  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402
from collector import PROTO, Collector  # noqa: E402

MINUTE = 60 * 10**9


def push(path, *options, status=0):
    with Collector() as collector:
        result = tap.run("push", "--otlp", collector.url, "--retry", 1, *options, path, errors="replace")
        assert result.returncode == status, result
        for where, headers, _ in collector.asked:
            assert where == "/v1development/profiles", where
            assert headers["Content-Type"] == "application/x-protobuf", headers
            assert headers["Content-Encoding"] == "gzip", headers
        return collector.requests()


def samples_of(requests, kind):
    return [(profile, sample) for request in requests for profile in request.profiles
            if profile["type"] == kind for sample in profile["samples"]]


def total(requests, kind):
    return sum(sample["value"] for _, sample in samples_of(requests, kind))


def reported(path):
    result = tap.run("report", "--json", path, errors="replace")
    return [json.loads(line) for line in result.stdout.splitlines()]


def sums_are_those_of_the_report(tmp):
    for path in viewers.all_captures(tmp):
        rows = reported(path)
        if "golden" in path and not rows:
            continue
        requests = push(path)
        said = viewers.Said(path)
        want, got = collections.Counter(), collections.Counter()
        for (_, tid), samples in said.samples.items():
            want[tid] += samples
        for _, sample in samples_of(requests, "samples"):
            got[sample["attributes"]["thread.id"]] += sample["value"]
        viewers.same(path, sorted(want.items()), sorted(got.items()))
        assert rows[0]["samples"] - rows[0]["samples_without_pc"] == total(requests, "samples"), path
        if "golden" not in path and "hostile" not in path:
            kinds = {p["type"] for request in requests for p in request.profiles}
            sums = sorted(filter(None, (total(requests, kind) for kind in
                                        kinds - {"cpu", "samples", "off_cpu"})))
            assert sums == viewers.counter_sums(said), (path, sums)


def waits_are_those_of_the_report(tmp):
    path = test_waits.make(tmp, repeat=20)
    want = {row["task"]: row["preempted_ns"] + row["blocked_ns"] for row in reported(path)
            if row["kind"] == "task_time" and row["tid"]}
    got, units = collections.Counter(), set()
    for profile, sample in samples_of(push(path), "off_cpu"):
        got[sample["attributes"]["thread.name"]] += sample["value"]
        units.add(profile["unit"])
    assert got == want and got and units == {"nanoseconds"}, (got, want, units)


def chains_and_their_tasks_are_there(tmp):
    requests = push(viewers.small().save(os.path.join(tmp, "a.cap")))
    found = [sample for _, sample in samples_of(requests, "cpu")
             if sample["attributes"]["thread.id"] == 11]
    assert [s["attributes"] for s in found] == [{"thread.name": "beta", "thread.id": 11, "process.pid": 10}]
    assert [(f["file"], f["address"], f["kind"]) for f in found[0]["stack"]] == [
        ("/gone/libbeta.so", 0x20010, {"profile.frame.type": "native"}),
        ("/gone/alpha", 0x10677, {"profile.frame.type": "native"}),
        ("/gone/alpha", 0x10233, {"profile.frame.type": "native"})], found
    assert found[0]["value"] == 700


def frames_of_the_kernel_are_told(tmp):
    found = {(frame["kind"]["profile.frame.type"], frame["name"]) for _, sample in
             samples_of(push(viewers.save_kernel(tmp)), "samples") for frame in sample["stack"]}
    assert ("kernel", "start_kernel") in found and ("native", None) in found, found


def resources_are_the_programs(tmp):
    requests = push(viewers.small().save(os.path.join(tmp, "a.cap")))
    assert [p["resource"] for p in requests[0].profiles][0] == {
        "service.name": "alpha", "host.name": "target", "os.type": "linux",
        "os.version": "6.1.0-viewers", "process.executable.name": "alpha"}
    requests = push(viewers.random_capture().save(os.path.join(tmp, "a.cap")))
    names = {p["resource"]["service.name"] for p in requests[0].profiles}
    assert len(names) > 20 and all(s["attributes"]["thread.name"] == p["resource"]["service.name"]
                                   for p, s in samples_of(requests, "samples"))


def services_and_containers_are_those_of_the_cgroups(tmp):
    container = "0123456789abcdef" * 4
    for path, wanted in (
            ("/system.slice/shop.service", {"service.name": "shop"}),
            ("/user.slice/user@0.service/app.slice/app.service/x", {"service.name": "app"}),
            (f"/system.slice/docker-{container}.scope", {"service.name": "alpha", "container.id": container}),
            (f"/kubepods/burstable/pod12-34/{container}", {"container.id": container}),
            (f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{container}.scope",
             {"container.id": container}),
            ("/user.slice", {"service.name": "alpha"})):
        maker = viewers.small()
        row = next(i for i, task in enumerate(maker.tasks) if struct.unpack("<QII", task)[1] == 10)
        maker.fact("cgroup.0", path)
        maker.fact(f"cgroup_of.{row}", 0)
        requests = push(maker.save(os.path.join(tmp, "a.cap")))
        found = [p["resource"] for p in requests[0].profiles if p["resource"].get("process.linux.cgroup")]
        assert found, path
        for resource in found:
            assert resource["process.linux.cgroup"] == path
            assert wanted.items() <= resource.items(), (wanted, resource)
            assert ("container.id" in resource) == ("container.id" in wanted), resource


def what_the_user_says_of_resources_counts(tmp):
    requests = push(viewers.small().save(os.path.join(tmp, "a.cap")), "--resource", "service.name=shop",
                    "--resource", "container.id=0123", "--resource", "empty=")
    for profile in requests[0].profiles:
        assert profile["resource"]["service.name"] == "shop", profile
        assert profile["resource"]["container.id"] == "0123" and profile["resource"]["empty"] == ""
        assert profile["resource"]["process.executable.name"] == "alpha"


def a_request_covers_a_minute(tmp):
    c = CaptureWriter(cores=1)
    c.task(5, b"five")
    # at 0, 30 and 59.9 s; at 60 s; in the 4th minute; an hour later
    for ns in 0, 30 * 10**9, MINUTE - 1, MINUTE, 3 * MINUTE + 5, 60 * MINUTE:
        c.sample(0, BASE + ns, 5, 0x1000 + ns // MINUTE)
    requests = push(c.save(os.path.join(tmp, "a.cap")))
    assert [total([request], "samples") for request in requests] == [3, 1, 1, 1]
    times = [(p["time"] - c.unix_base, p["duration"]) for p, _ in samples_of(requests, "samples")]
    times = sorted(set(times))
    assert [time for time, _ in times] == [0, MINUTE, 3 * MINUTE, 60 * MINUTE], times
    assert all(duration <= MINUTE for _, duration in times), times


def a_request_stands_alone(tmp):
    """Each has the entries that its own samples need, and no others; Request() checks that."""
    c = viewers.begin(cores=1)
    for minute in range(5):
        for step in range(20):
            c.sample(0, BASE + minute * MINUTE + step, 10 + step % 2, 0x10000 + 16 * step,
                     (1, 1), (0x10000 + 16 * step, 0x10100 + minute))
    requests = push(c.save(os.path.join(tmp, "a.cap")))
    assert [total([request], "samples") for request in requests] == [20] * 5
    assert len({request.raw for request in requests}) == 5


def profiles_have_ids_that_stay_the_same(tmp):
    path = viewers.random_capture().save(os.path.join(tmp, "a.cap"))
    other = viewers.random_capture(seed=2)
    other.fact("host", "another")
    first, again, others = (sorted(p["id"] for request in push(which) for p in request.profiles)
                            for which in (path, path, other.save(os.path.join(tmp, "b.cap"))))
    assert first == again and len(set(first)) == len(first)
    assert not set(first) & set(others)


def readable_names_have_their_mangled_ones_beside_them(tmp):
    samples = samples_of(push(viewers.save_mangled(tmp)), "samples")
    found = sorted((sample["stack"][0]["system"], sample["stack"][0]["name"]) for _, sample in samples)
    assert found == [(mangled, "alfa::next") for mangled in viewers.MANGLED], found


def images_have_their_build_ids_and_functions(tmp):
    notes = subprocess.run(["readelf", "-n", tap.KBARMAN], capture_output=True, text=True, check=True)
    symbols = subprocess.run(["readelf", "-sW", tap.KBARMAN], capture_output=True, text=True, check=True)
    main = [line.split() for line in symbols.stdout.splitlines() if line.endswith(" main")]
    c = CaptureWriter()
    c.task(5, b"t")
    c.map(5, 0x10000, 2**24, 0, tap.KBARMAN.encode())
    c.sample(0, BASE + 1, 5, 0x10000 + int(main[0][1], 16) + 1)
    (_, sample), = samples_of(push(c.save(os.path.join(tmp, "a.cap"))), "samples")
    frame, = sample["stack"]
    assert frame["name"] == "main", frame
    if "Build ID: " in notes.stdout:
        want = notes.stdout.split("Build ID: ")[1].split()[0]
        assert frame["image"] == {"process.executable.build_id.gnu": want}, frame


def a_clock_is_cpu_time_and_stands_once(tmp):
    c = CaptureWriter(counters=1, cores=1)
    c.fact("ext", 1)
    c.fact("counter.0.0", "cpu-clock")
    c.task(5, b"five")
    c.sample(0, BASE + 77, 5, 0x1000, (1000000,))
    requests = push(c.save(os.path.join(tmp, "a.cap")))
    assert [(p["type"], p["unit"]) for p in requests[0].profiles] == [
        ("cpu", "nanoseconds"), ("samples", "count")]
    assert total(requests, "cpu") == 1000000


def protoc_takes_every_request(tmp):
    viewers.need("protoc")
    schema = os.path.join(tmp, "otlp.proto")
    with open(schema, "w", encoding="ascii") as file:
        file.write(PROTO)
    for path in viewers.all_captures(tmp):
        for request in push(path):
            result = subprocess.run(["protoc", f"-I{tmp}", "--decode=Request", schema], input=request.raw,
                                    capture_output=True, check=False)
            assert result.returncode == 0, result.stderr
            # what the schema has not is printed by its number
            assert not any(line.strip()[:1].isdigit() for line in result.stdout.splitlines())
            values = [line for line in result.stdout.splitlines() if line.strip().startswith(b"values:")]
            assert len(values) == sum(len(p["samples"]) for p in request.profiles)


def a_damaged_capture_is_sent_up_to_the_damage(tmp):
    path = viewers.random_capture().save(os.path.join(tmp, "a.cap"))
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 20000)
    requests = push(path, status=1)
    assert 0 < total(requests, "samples") < 505


if __name__ == "__main__":
    tap.main(globals())
