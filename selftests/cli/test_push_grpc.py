#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""push --protocol grpc: a server of the gRPC project takes what one of HTTP takes, and each of its statuses has the
fate that HTTP's has."""
import contextlib
import gzip
import os
import socket
import ssl
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import grpc_server  # noqa: E402
import tap  # noqa: E402
from collector import Collector, Request, field  # noqa: E402
from test_push import capture, certificate, kept, many_programs, samples_of  # noqa: E402
from test_python import python_with  # noqa: E402


def server(tmp, **options):
    return grpc_server.Server(python_with("grpc"), tmp, **options)


def push(url, *args, **kwargs):
    return tap.run("push", "--protocol", "grpc", "--otlp", url, *args, **kwargs)


def a_request_is_that_of_http(tmp):
    path = capture(tmp, 3)
    with Collector() as collector, server(tmp) as s:
        assert tap.run("push", "--otlp", collector.url, path).returncode == 0
        result = push(s.url, path, "--http-header", "Authorization: Bearer it is me")
        assert result.returncode == 0 and "sent 3 requests: 6 samples" in result.stderr, result
        assert s.taken() == [request.raw for request in collector.requests()]
        assert [headers["authorization"] for headers in s.asked()] == ["Bearer it is me"] * 3


def what_is_unavailable_is_asked_again(tmp):
    busy = [[14, "come back"], [4, "too late"], [8, "slow down"], [10, "aborted"]]
    with server(tmp, answers=busy) as s:
        result = push(s.url, capture(tmp), "--retry", 120)
        assert result.returncode == 0 and "sent 1 request" in result.stderr, result
        assert len(s.asked()) == 5 and len(s.taken()) == 1


def a_spool_survives_what_is_no_fault_of_its_requests(tmp):
    spool = os.path.join(tmp, "spool")
    for status, why in ((16, "who are you? 100 %"), (7, "not you"), (12, "no such thing"), (5, "nothing here"), (13, "a bug")):
        with server(tmp, answers=[[status, why]] * 9) as s:
            result = push(s.url, capture(tmp, 2), "--retry", 0, "--spool", spool)
            assert result.returncode == 3 and f"gRPC's status {status}: {why}" in result.stderr, result
            assert len(s.asked()) == 1 and len(kept(tmp)) == 2
        for name in kept(tmp):
            os.unlink(os.path.join(spool, name))
    # the port of a server is another one each time, so the spool is of this one
    with server(tmp, answers=[[14, "later"]]) as s:
        assert push(s.url, capture(tmp, 2), "--retry", 0, "--spool", spool).returncode == 3
        result = push(s.url, "--spool", spool, "--spool-only")
        assert result.returncode == 0 and len(s.taken()) == 2 and not kept(tmp), result


def what_is_refused_is_lost_and_said(tmp):
    with server(tmp, answers=[[3, "no such profile"]]) as s:
        result = push(s.url, capture(tmp, 2), "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 1 and "gRPC's status 3: no such profile" in result.stderr, result
        assert "lost 1 request: 2 samples" in result.stderr and len(s.taken()) == 1 and not kept(tmp)


def a_request_that_is_too_large_is_sent_in_halves(tmp):
    path = many_programs(tmp)
    with server(tmp) as s:
        assert push(s.url, path).returncode == 0
        whole = s.taken()
    with server(tmp, limit=len(whole[0]) // 2) as s:
        result = push(s.url, path, "--retry", 0)
        assert result.returncode == 0 and "it is sent in parts" in result.stderr, result
        parts, whole = [[gzip.compress(body) for body in bodies] for bodies in (s.taken(), whole)]
        assert len(parts) > 1 and samples_of(map(Request, parts)) == samples_of(map(Request, whole))


def what_a_server_rejects_is_said(tmp):
    with server(tmp, reply=field(1, b"\x08\x02" + field(2, b"too old")).hex()) as s:
        result = push(s.url, capture(tmp))
        assert result.returncode == 1 and "not 2 profiles of it: too old" in result.stderr, result


def a_server_of_http_alone_takes_nothing_and_nothing_is_lost(tmp):
    with Collector() as collector:
        result = push(collector.url, capture(tmp), "--retry", 0, "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 3 and not collector.taken and len(kept(tmp)) == 1, result
    with server(tmp) as s:
        result = tap.run("push", "--otlp", s.url, capture(tmp), "--retry", 0)
        assert result.returncode == 1 and not s.taken(), result


class Bare:
    """A server of HTTP/2 that answers each request with status 200, these headers and no body; over TLS with a context."""

    def __init__(self, *headers, tls=None):
        self.block = b"\x88" + b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
                                        for name, value in headers)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.socket.getsockname()[1]}"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                with self.socket.accept()[0] as client, client.makefile("rwb") as file:
                    self.answer(file)
            except OSError:
                if self.socket.fileno() < 0:
                    return

    @staticmethod
    def put(file, kind, flags, stream, data=b""):
        file.write(struct.pack(">I", len(data))[1:] + struct.pack(">BBI", kind, flags, stream) + data)
        file.flush()

    def answer(self, file):
        self.put(file, 4, 0, 0)                         # SETTINGS
        file.read(24)                                   # the preface
        while len(head := file.read(9)) == 9:
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            file.read(int.from_bytes(head[:3], "big"))
            if kind == 4 and not flags & 1:
                self.put(file, 4, 1, 0)                 # ACK
            if kind == 0 and flags & 1:                 # the end of DATA
                self.put(file, 1, 5, stream, self.block)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def an_answer_without_a_status_of_grpc_takes_nothing(tmp):
    for headers in [], [(b"grpc-status", b"abc")], [(b"grpc-status", b"")], [(b"grpc-status", b"4294967296")]:
        spool = os.path.join(tmp, f"spool{len(os.listdir(tmp))}")
        with contextlib.closing(Bare(*headers)) as s:
            result = push(s.url, capture(tmp), "--retry", 0, "--spool", spool)
            assert result.returncode == 3 and "gRPC's status 2" in result.stderr, (headers, result)
            assert len(os.listdir(spool)) == 1


def proxy(listener, answer):
    """Makes tunnels, and says this of each."""
    def carry(source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client = listener.accept()[0]
                with client.makefile("rb", buffering=0) as file:
                    host, port = file.readline().split()[1].decode().split(":")
                    while file.readline() not in (b"\r\n", b""):
                        pass
                client.sendall(answer)
                server_side = socket.create_connection((host, int(port)))
                for ends in (client, server_side), (server_side, client):
                    threading.Thread(target=carry, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def what_a_proxy_says_of_its_tunnel_is_no_status_of_the_server(tmp):
    cert, key = certificate(tmp, "server")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    tls.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.closing(Bare(tls=tls)) as s:
        tunnel = proxy(listener, b"HTTP/1.1 200 OK\r\ngrpc-status: 0\r\n\r\n")
        result = push(s.url, capture(tmp), "--cacert", cert, "--proxy", tunnel, "--retry", 0,
                      "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 3 and "gRPC's status 2" in result.stderr and len(kept(tmp)) == 1, result


def certificates_are_checked_on_both_sides(tmp):
    cert, key = certificate(tmp, "server")
    own, own_key = certificate(tmp, "own")
    path = capture(tmp)
    with server(tmp, cert=cert, key=key, clients=own) as s:
        for options in [], ["--cacert", cert], ["--cacert", cert, "--cert", cert, "--key", key]:
            result = push(s.url, path, "--retry", 0, *options)
            assert result.returncode == 1 and not s.taken(), result
        result = push(s.url, path, "--cacert", cert, "--cert", own, "--key", own_key)
        assert result.returncode == 0 and len(s.taken()) == 1, result


def the_environment_may_ask_for_it(tmp):
    path = capture(tmp)
    with server(tmp) as s:
        for name in "PROTOCOL", "PROFILES_PROTOCOL":
            result = tap.run("push", path, "--retry", 0, env={
                **os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": s.url + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-a=b",
                "OTEL_EXPORTER_OTLP_" + name: "grpc"})
            assert result.returncode == 0 and s.asked()[-1]["x-a"] == "b", result
        # that of the command counts more
        result = tap.run("push", path, "--retry", 0, "--protocol", "http/protobuf", env={
            **os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": s.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
        assert result.returncode == 1 and len(s.taken()) == 2, result


def wrong_uses_are_refused(tmp):
    path = capture(tmp)
    for args, why in ((["--otlp", "http://127.0.0.1:1/v1development/profiles", "--protocol", "grpc"], "a path of its own"),
                      (["--otlp", "http://127.0.0.1:1", "--protocol", "http/json"], "give http/protobuf or grpc"),
                      (["--pprof", "http://127.0.0.1:1", "--protocol", "grpc"], "--protocol is for --otlp"),
                      (["--openmetrics", "0", "--protocol", "grpc"], "--openmetrics sends nothing")):
        result = tap.run("push", *args, path)
        assert result.returncode == 2 and why in result.stderr, result


if __name__ == "__main__":
    tap.main(globals())
