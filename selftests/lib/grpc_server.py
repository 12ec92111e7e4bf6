# SPDX-License-Identifier: MIT
"""A collector of profiles by gRPC, of the gRPC project's own library. It is a process of its own, with an
interpreter that has this library, and answers as it is told:

    grpc_server.py FOLDER OPTIONS

OPTIONS is JSON: "answers" ([status, message], or null, which takes the request and is what follows the last one),
"limit" (bytes of a request), "reply" (hex of the answer), "cert" and "key" (files), "clients" (a file: only they are served). The
port is printed. FOLDER/N is the N-th request that was taken; N.headers has the headers of each that came.
"""
import json
import os
import subprocess
import sys
import threading

METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"


class Server:
    """Of a test: `python` has the library."""

    def __init__(self, python, tmp, **options):
        self.folder = os.path.join(tmp, f"server{len(os.listdir(tmp))}")
        os.mkdir(self.folder)
        self.process = subprocess.Popen([python, __file__, self.folder, json.dumps(options)],  # pylint: disable=R1732
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "GRPC_VERBOSITY": "NONE"})
        self.address = f"127.0.0.1:{int(self.process.stdout.readline())}"
        self.url = ("https://" if "cert" in options else "http://") + self.address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def asked(self):
        """The headers of all requests."""
        names = (name for name in os.listdir(self.folder) if name.endswith(".headers"))
        found = []
        for name in sorted(names, key=lambda name: int(name.partition(".")[0])):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                found.append(dict(json.load(file)))
        return found

    def taken(self):
        """The bodies of those that were taken."""
        found = []
        for name in sorted(filter(str.isdigit, os.listdir(self.folder)), key=int):
            with open(os.path.join(self.folder, name), "rb") as file:
                found.append(file.read())
        return found


def serve(folder, options):
    from concurrent import futures  # pylint: disable=C0415
    import grpc  # pylint: disable=C0415,E0401

    answers, lock, number = list(options.get("answers", [])), threading.Lock(), [0]

    def export(request, context):
        with lock:
            number[0] += 1
            mine = number[0]
            answer = answers.pop(0) if answers else None
        with open(os.path.join(folder, f"{mine}.headers"), "w", encoding="utf-8") as file:
            json.dump([list(pair) for pair in context.invocation_metadata()], file)
        if answer:
            code = next(code for code in grpc.StatusCode if code.value[0] == answer[0])
            context.abort(code, answer[1])
        with open(os.path.join(folder, str(mine)), "wb") as file:
            file.write(request)
        return bytes.fromhex(options.get("reply", ""))

    class Profiles(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(export) if details.method == METHOD else None

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), handlers=[Profiles()],
                         options=[("grpc.max_receive_message_length", options.get("limit", -1))])
    if "cert" in options:
        def read(name):
            with open(options[name], "rb") as file:
                return file.read()
        credentials = grpc.ssl_server_credentials(
            [(read("key"), read("cert"))], read("clients") if "clients" in options else None, "clients" in options)
        port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()    # until the test is over
    server.stop(0).wait()


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]))
