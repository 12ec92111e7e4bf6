#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman doctor: every precondition can be found missing, and says what to do.

The machine is a folder of files here; in the VM it is a real one (record_device)."""
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap  # noqa: E402

RELEASE = platform.release()
GOOD = {
    "sys/module/kbarman/version": None,     # the tool's own
    "sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
    "sys/module/module/parameters/sig_enforce": "N\n",
    "sys/bus/event_source/devices/cpu/type": "4\n",
    "proc/sys/kernel/kptr_restrict": "0\n",
    "proc/sys/kernel/perf_event_paranoid": "2\n",
    "proc/sys/kernel/perf_event_max_sample_rate": "50000\n",
    "usr/lib/debug/.build-id/00/1.debug": "",
    "proc/self/status": "CapEff:\t000001ffffffffff\n",
    f"lib/modules/{RELEASE}/build/Makefile": "",
    f"boot/config-{RELEASE}": "".join(f"CONFIG_{name}=y\n" for name in [
        "TRACEPOINTS", "PERF_EVENTS", "MODULES", "KPROBES", "CPU_IDLE", "KALLSYMS_ALL"]),
}


def machine(tmp, **changes):
    """A folder with GOOD's files; `changes` by the check's name: (path, text or None = gone)."""
    files = dict(GOOD)
    files["sys/module/kbarman/version"] = tap.run("version").stdout.split()[1] + "\n"
    for path, text in changes.values():
        if text is None:
            del files[path]
        else:
            files[path] = text
    root = os.path.join(tmp, "root")
    for path, text in files.items():
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return root


def doctor(root, *args, **kwargs):
    os.environ.pop("DEBUGINFOD_URLS", None)
    done = tap.run("doctor", "-j", "--root", root, *args, **kwargs)
    checks = {}
    for line in done.stdout.splitlines():
        check = json.loads(line)
        checks[check["name"]] = check
    return done, checks


def a_good_machine_is_ok_but_for_the_device(tmp):
    """There is no device on a host without the module: that is its only failure."""
    done, checks = doctor(machine(tmp), cwd=tmp)
    assert len(checks) == 18, checks.keys()
    # what this kernel can do for a sandbox no files say
    del checks["sandbox"]
    bad = {name for name, check in checks.items() if check["verdict"] != "ok"}
    if os.path.exists("/dev/kbarman"):
        raise tap.Skip("this machine has a /dev/kbarman")
    assert bad == {"device"} and done.returncode == 1, bad
    assert "load the module" in checks["device"]["fix"]


def each_lack_is_found_and_has_a_remedy(tmp):
    config = GOOD[f"boot/config-{RELEASE}"]
    lacks = [
        ("module", "warn", "sys/module/kbarman/version", "0.0.0\n", "of this tool's release"),
        ("lockdown", "fail", "sys/kernel/security/lockdown",
         "none integrity [confidentiality]\n", "boot without"),
        ("kernel symbols", "warn", "proc/sys/kernel/kptr_restrict", "2\n", "kptr_restrict=1"),
        ("debug symbols", "warn", "usr/lib/debug/.build-id/00/1.debug", None, "DEBUGINFOD_URLS"),
        ("perf events", "fail", "proc/sys/kernel/perf_event_paranoid", None, "PERF_EVENTS"),
        ("perf events", "warn", "proc/sys/kernel/perf_event_max_sample_rate", "750\n",
         "sysctl kernel.perf_event_max_sample_rate=100000"),
        ("permission", "fail", "proc/self/status", "CapEff:\t0000000000000000\n", "root"),
        ("permission", "warn", "proc/self/status", "CapEff:\t0000004000000000\n", "CAP_SYSLOG"),
        ("kernel config", "fail", f"boot/config-{RELEASE}",
         config.replace("CONFIG_TRACEPOINTS=y", ""), "CONFIG_TRACEPOINTS"),
        ("kernel config", "warn", f"boot/config-{RELEASE}",
         config.replace("CONFIG_KPROBES=y", ""), "CONFIG_KPROBES"),
        ("pmu", "warn", "sys/bus/event_source/devices/cpu/type", None, "cpu-clock"),
    ]
    for i, (name, verdict, path, text, remedy) in enumerate(lacks):
        root = machine(os.path.join(tmp, str(i)), lack=(path, text))
        _, checks = doctor(root, cwd=tmp)
        assert checks[name]["verdict"] == verdict, (name, checks[name])
        assert remedy in checks[name]["fix"], checks[name]


def a_module_that_is_not_there_needs_headers_and_maybe_a_signature(tmp):
    gone = ("sys/module/kbarman/version", None)
    root = machine(tmp, module=gone, headers=(f"lib/modules/{RELEASE}/build/Makefile", None),
                   signature=("sys/module/module/parameters/sig_enforce", "Y\n"))
    done, checks = doctor(root, cwd=tmp)
    assert done.returncode == 1 and checks["module"]["verdict"] == "fail"
    assert "insmod" in checks["module"]["fix"]
    assert f"linux-headers-{RELEASE}" in checks["kernel headers"]["fix"]
    assert "sign-file" in checks["signature"]["fix"]


def a_kernel_of_clang_is_told(tmp):
    config = GOOD[f"boot/config-{RELEASE}"]
    root = machine(tmp, clang=(f"boot/config-{RELEASE}", config + "CONFIG_CC_IS_CLANG=y\n"))
    assert "LLVM=1" in doctor(root)[1]["kernel headers"]["found"]
    root = machine(tmp, clang=(f"boot/config-{RELEASE}", config))
    assert "LLVM=1" not in doctor(root)[1]["kernel headers"]["found"]


def built(folder, release):
    """A file that says of itself what the module says of the kernel that it was built for."""
    path = os.path.join(folder, "kbarman.ko")
    os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x7fELF\0license=Dual MIT/GPL\0vermagic=" + release.encode() +
                   b" SMP preempt mod_unload \0")
    return path


def a_module_of_another_kernel_is_to_be_built_anew(tmp):
    root = machine(tmp, module=("sys/module/kbarman/version", None))
    folder = os.path.join(root, "lib", "modules", RELEASE)
    tool = shutil.copy(tap.KBARMAN, tmp)
    other = built(tmp, "5.10.0-1-other")

    def module():
        done = subprocess.run([tool, "doctor", "-j", "--root", root], capture_output=True, text=True,
                              timeout=tap.HANG, check=False)
        return json.loads(done.stdout.splitlines()[0])
    check = module()
    assert check["name"] == "module" and check["verdict"] == "fail", check
    for word in other, "is for the kernel 5.10.0-1-other", f"this one is {RELEASE}":
        assert word in check["found"], (word, check)
    assert "build it anew" in check["fix"] and "make module" in check["fix"], check
    # one that fits is better than one that does not
    fits = built(os.path.join(folder, "updates", "dkms"), RELEASE)
    check = module()
    assert check["found"] == "not loaded" and f"insmod {fits}" in check["fix"], check


def a_locked_down_kernel_takes_no_unsigned_module(tmp):
    """Whatever sig_enforce says: either of the two levels forbids it."""
    for i, level in enumerate(["integrity", "confidentiality"]):
        text = "none integrity confidentiality\n".replace(level, f"[{level}]")
        root = machine(os.path.join(tmp, str(i)), module=("sys/module/kbarman/version", None),
                       lockdown=("sys/kernel/security/lockdown", text))
        _, checks = doctor(root, cwd=tmp)
        assert checks["signature"]["verdict"] == "warn", (level, checks["signature"])
        assert level in checks["signature"]["found"], checks["signature"]
        assert "sign-file" in checks["signature"]["fix"], checks["signature"]


def a_module_that_is_in_the_kernel_was_taken_though_it_is_locked_down(tmp):
    root = machine(tmp, lockdown=("sys/kernel/security/lockdown",
                                  "none [integrity] confidentiality\n"))
    _, checks = doctor(root, cwd=tmp)
    assert checks["signature"]["verdict"] == "ok", checks["signature"]


def the_configuration_may_be_packed_in_proc(tmp):
    root = machine(tmp, config=(f"boot/config-{RELEASE}", None))
    with gzip.open(os.path.join(root, "proc", "config.gz"), "wt") as file:
        file.write("CONFIG_MODULES=y\n# CONFIG_TRACEPOINTS is not set\n")
    _, checks = doctor(root, cwd=tmp)
    assert "CONFIG_TRACEPOINTS" in checks["kernel config"]["found"], checks["kernel config"]


def a_folder_that_takes_no_capture_is_told(tmp):
    _, checks = doctor(machine(tmp), "-o", os.path.join(tmp, "no", "such"))
    assert checks["disk"]["verdict"] == "fail" and "No such file" in checks["disk"]["found"]


def colours_are_only_for_those_who_want_them(tmp):
    root = machine(tmp)
    for args, env, coloured in [([], {}, False), (["--color=always"], {}, True),
                                (["--color=always"], {"NO_COLOR": "1"}, True),
                                (["--color=never"], {}, False)]:
        done = tap.run("doctor", "--root", root, *args, cwd=tmp, env={**os.environ, **env})
        assert ("\033[" in done.stdout) == coloured, (args, env)


if __name__ == "__main__":
    tap.main(globals())
