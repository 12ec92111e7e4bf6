#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debug files from a server, as debuginfod has them."""
import ctypes.util
import http.server
import os
import pty
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from test_lines import C_SOURCE, build, capture, code, frames, plain, truth


class Server(http.server.ThreadingHTTPServer):
    """Serves files as /buildid/ID/debuginfo and counts what it is asked for."""

    def __init__(self, files, seconds=0):
        self.files, self.asked, self.seconds = files, [], seconds
        super().__init__(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Of Server."""

    def do_GET(self):
        self.server.asked.append(self.path)
        time.sleep(self.server.seconds)
        content = self.server.files.get(self.path)
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


def stripped(directory):
    """A stripped program, its truth, its build-id, and its debug file's bytes."""
    if not ctypes.util.find_library("debuginfod"):
        raise tap.Skip("there is no libdebuginfod: scripts/setup installs it")
    program = build(directory, C_SOURCE, "gcc", "-Wl,--build-id=sha1")
    addresses = code(program, "outer", "main")
    want = truth(program, addresses)
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True,
                           text=True).stdout
    build_id = notes.split("Build ID: ")[1].split()[0]
    debug = os.path.join(directory, "debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    capture(directory, program, addresses)
    with open(debug, "rb") as file:
        return program, want, build_id, file.read()


def with_server(tmp, server):
    for name in [name for name in os.environ if name.startswith("DEBUGINFOD")]:
        del os.environ[name]
    os.environ["DEBUGINFOD_CACHE_PATH"] = os.path.join(tmp, "cache")
    os.environ["DEBUGINFOD_URLS"] = f"http://127.0.0.1:{server.server_port}"
    try:
        return frames(tmp)
    finally:
        del os.environ["DEBUGINFOD_URLS"]


def symbols_and_lines_come_from_the_server(tmp):
    _, want, build_id, debug = stripped(tmp)
    with Server({f"/buildid/{build_id}/debuginfo": debug}) as server:
        got, errors = with_server(tmp, server)
        assert plain(got) == plain(want) and not errors, (got, errors, server.asked)
        assert server.asked == [f"/buildid/{build_id}/debuginfo"], server.asked


def a_file_of_another_build_is_not_taken(tmp):
    _, want, build_id, _ = stripped(tmp)
    other = build(tmp, C_SOURCE + "int x;", "gcc", "-Wl,--build-id=sha1", "-o",
                  os.path.join(tmp, "other"))
    with open(os.path.join(os.path.dirname(other), "other"), "rb") as file:
        wrong = file.read()
    with Server({f"/buildid/{build_id}/debuginfo": wrong}) as server:
        got, errors = with_server(tmp, server)
        assert server.asked and len(got) == len(want), server.asked
        assert all(name.startswith("lines+0x") and place == ["??", 0]
                   for (name, *place), in got), got
        assert "stripped" in errors, errors


def a_server_without_the_file_is_no_error(tmp):
    _, want, _, _ = stripped(tmp)
    with Server({}) as server:
        got, errors = with_server(tmp, server)
        assert server.asked and len(got) == len(want), server.asked
        assert len(errors.splitlines()) == 1 and "stripped" in errors, errors


def a_slow_server_is_told_of_on_a_terminal(tmp):
    _, _, build_id, debug = stripped(tmp)
    ours, theirs = pty.openpty()
    with Server({f"/buildid/{build_id}/debuginfo": debug}, seconds=2) as server:
        env = {**os.environ, "DEBUGINFOD_CACHE_PATH": os.path.join(tmp, "cache"),
               "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}"}
        with subprocess.Popen([tap.KBARMAN, "report"], stdout=subprocess.DEVNULL, stderr=theirs,
                              cwd=tmp, env=env) as child:
            os.close(theirs)
            said = tap.read_all(ours)
    assert child.returncode == 0 and b"fetching debug information" in said, said


def nobody_is_asked_unless_the_user_wants_it(tmp):
    _, want, build_id, debug = stripped(tmp)
    with Server({f"/buildid/{build_id}/debuginfo": debug}) as server:
        got, _ = frames(tmp)
        assert not server.asked and len(got) == len(want), server.asked


def a_bundle_without_symbols_is_completed(tmp):
    program, want, build_id, debug = stripped(tmp)
    assert tap.run("bundle", cwd=tmp).returncode == 0
    os.remove(program)
    with Server({f"/buildid/{build_id}/debuginfo": debug}) as server:
        got, errors = with_server(tmp, server)
        assert plain(got) == plain(want) and not errors, (got, errors)


if __name__ == "__main__":
    tap.main(globals())
