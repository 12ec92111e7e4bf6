#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A flight recorder is found where the packaged service keeps its file, by root and by others.

In a mount namespace whose /run is empty; the device is fake_device.c's."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import preload
import tap
import test_record as recorder

NOBODY = 65534
SERVICE = "/run/kbarman"


def inside(tmp, script):
    """A shell as root of a mount namespace with an empty /run."""
    if os.getuid():
        raise tap.Skip("it takes root to be two users")
    os.chmod(tmp, 0o755)
    env = {key: value for key, value in recorder.fake(FAKE_RATE=1).items()
           if key not in ("KBARMAN_RUNTIME_DIR", "XDG_RUNTIME_DIR")}
    env.update(FAKE=env.pop("LD_PRELOAD"), KBARMAN=readable(tmp, tap.KBARMAN))
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c",
         f"mount -t tmpfs tmpfs /run && mkdir -m 755 {SERVICE} && cd '{tmp}' || exit 99\n"
         f"as_other='setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups'\n"
         + script], env=env, capture_output=True, text=True, timeout=300, check=False)


def readable(tmp, program):
    """A copy that other users can reach, wherever the tree is."""
    return shutil.copy(program, os.path.join(tmp, "kbarman"))


# The service as its unit runs it, until it records. Its file is its user's, and private.
SERVICE_RUNS = f"""
umask 027
KBARMAN_RUNTIME_DIR={SERVICE} LD_PRELOAD=$FAKE $KBARMAN flight run -o service.cap 2>service.log &
service=$!
export LD_PRELOAD=$FAKE
until $KBARMAN flight status >status 2>&1; do
	kill -0 $service || {{ cat service.log >&2; exit 98; }}
	sleep 0.05
	[ $((looks = looks + 1)) -lt 3000 ] || {{ cat status >&2; kill $service; exit 97; }}
done
unset LD_PRELOAD
echo "service $service"
"""


def root_finds_the_packaged_recorder(tmp):
    done = inside(tmp, SERVICE_RUNS + """
LD_PRELOAD=$FAKE $KBARMAN flight status
LD_PRELOAD=$FAKE $KBARMAN flight start && echo "a second one"
$KBARMAN flight stop
echo "stopped: $?"
wait $service
$KBARMAN flight status
""")
    service = done.stdout.split()[1]
    assert f"(process {service})" in done.stdout and "stopped: 0" in done.stdout, done
    assert "runs already" in done.stderr and "a second one" not in done.stdout, done
    assert "no flight recorder runs" in done.stderr.splitlines()[-1], done
    assert os.path.exists(os.path.join(tmp, "service.cap")), os.listdir(tmp)


# Others end the recorder at the moment when its file tells them its number.
EARLY = """
#include <signal.h>
#include <unistd.h>
int fchmod(int fd, unsigned int mode)
{
	(void)fd, (void)mode;
	return raise(SIGTERM);
}
"""


def a_recorder_that_is_ended_at_once_leaves_its_capture(tmp):
    early = preload.build(tmp, "early", EARLY)
    done = subprocess.run(
        [tap.KBARMAN, "flight", "run", "-o", "early.cap"], cwd=tmp, capture_output=True, text=True,
        timeout=300, check=False, env=recorder.fake(FAKE_RATE=1, KBARMAN_RUNTIME_DIR=tmp,
                                                   LD_PRELOAD=f"{recorder.FAKE}:{early}"))
    assert done.returncode == 0, done
    recorder.check(os.path.join(tmp, "early.cap"))


def another_user_is_told_that_it_runs_and_who_may_ask(tmp):
    done = inside(tmp, SERVICE_RUNS + """
$as_other $KBARMAN flight status
echo "status: $?"
$as_other $KBARMAN flight stop
echo "stop: $?"
kill -0 $service && echo "still there"
kill $service
wait $service
$as_other $KBARMAN flight status
echo "gone: $?"
""")
    service = done.stdout.split()[1]
    assert "status: 2" in done.stdout and "stop: 2" in done.stdout, done
    assert "still there" in done.stdout and "gone: 1" in done.stdout, done
    said = done.stderr.splitlines()
    assert f"a flight recorder runs (process {service})" in said[0], said
    assert f"process {service}" in said[1] and "systemctl stop kbarman-flight" in said[1], said
    assert "no flight recorder runs" in said[-1], said


def a_file_of_another_user_names_no_process_of_root(tmp):
    """Who may write into the service's folder must not choose whom root's `stop` ends."""
    done = inside(tmp, f"""
chown {NOBODY} {SERVICE}
sleep 300 & victim=$!
$as_other python3 -c "
import fcntl, struct, sys, time
file = open('{SERVICE}/kbarman-flight.pid', 'w')
fcntl.fcntl(file, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
print($victim, file=file, flush=True)
open('{SERVICE}/ready', 'w').close()
time.sleep(300)" & holder=$!
until [ -e {SERVICE}/ready ]; do
	kill -0 $holder || exit 98
	sleep 0.05
done
$KBARMAN flight stop
echo "stop: $?"
kill $victim && echo "victim lives"
kill $holder
""")
    assert "stop: 2" in done.stdout and "victim lives" in done.stdout, done
    assert "no flight recorder runs" in done.stderr, done


def who_makes_names_in_tmp_stops_no_recorder_of_others(tmp):
    """Without XDG_RUNTIME_DIR the files are in a folder that the user alone has."""
    if os.getuid():
        raise tap.Skip("it takes root to be two users")
    user = 60_000 + os.getpid() % 5000
    folder = f"/tmp/kbarman-{user}"
    env = {key: value for key, value in recorder.fake(FAKE_RATE=1).items()
           if key not in ("KBARMAN_RUNTIME_DIR", "XDG_RUNTIME_DIR")}
    # others may not reach the folder of all tests
    reach = tempfile.mkdtemp(prefix="kbarman-test-", dir="/tmp")
    os.chmod(reach, 0o755)
    program = readable(reach, tap.KBARMAN)
    env["LD_PRELOAD"] = shutil.copy(recorder.FAKE, reach)
    place = os.path.join(reach, "place")
    os.mkdir(place)
    os.chown(place, user, user)

    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", program, "flight"]

    def flight(*args):
        return subprocess.run([*command, *args], cwd=place, env=env, capture_output=True, text=True,
                              timeout=tap.HANG, check=False)

    try:
        for squat in os.mkdir, lambda path: os.symlink(place, path):
            squat(folder)
            done = flight("start")
            assert done.returncode == 2 and f"{folder} is not a folder of this user" in done.stderr, done
            done = flight("status")
            assert done.returncode == 1 and "no flight recorder runs" in done.stderr, done
            (os.unlink if os.path.islink(folder) else os.rmdir)(folder)
        with subprocess.Popen([*command, "run"], cwd=place, env=env, stderr=subprocess.PIPE, text=True) as running:
            tap.until(lambda: flight("status").returncode == 0 or running.poll() is not None, "it is not found")
            stopped = flight("stop")
            said = running.communicate(timeout=tap.HANG)[1]
            assert stopped.returncode == 0 and running.returncode == 0, (stopped, running.returncode, said)
        assert os.stat(folder).st_mode & 0o777 == 0o700, oct(os.stat(folder).st_mode)
        # a file that somebody else has put there is not taken
        with open(os.path.join(folder, "kbarman-flight.pid"), "w", encoding="ascii"):
            pass
        done = flight("start")
        assert done.returncode == 2 and "kbarman-flight.pid" in done.stderr, done
    finally:
        if os.path.islink(folder):
            os.unlink(folder)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(reach)


if __name__ == "__main__":
    recorder.build_fake()
    os.chmod(recorder.BUILT, 0o755)
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(recorder.BUILT)
