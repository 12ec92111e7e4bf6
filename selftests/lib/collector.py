# SPDX-License-Identifier: MIT
"""A server of profiles for tests, which answers as it is told, and what OTLP says in a request.

The schema is written from the field numbers that opentelemetry-proto 1.11 publishes.
"""
import gzip
import http.server
import os
import socket
import struct
import threading

import protobuf

VALUE = {1: ("text", "text"), 3: ("int", "uint")}
KEY_VALUE = {1: ("key", "text"), 2: ("value", VALUE)}
TYPE = {1: ("type", "uint"), 2: ("unit", "uint")}
SAMPLE = {1: ("stack", "uint"), 2: ("attributes", ["uint"]), 3: ("link", "uint"), 4: ("values", ["uint"])}
PROFILE = {1: ("type", TYPE), 2: ("samples", [SAMPLE]), 3: ("time", "fixed"), 4: ("duration", "uint"),
           7: ("id", "bytes")}
REQUEST = {
    1: ("resources", [{
        1: ("resource", {1: ("attributes", [KEY_VALUE])}),
        2: ("scopes", [{1: ("scope", {1: ("name", "text"), 2: ("version", "text")}),
                        2: ("profiles", [PROFILE])}])}]),
    2: ("dictionary", {
        1: ("mappings", [{1: ("start", "uint"), 2: ("limit", "uint"), 3: ("offset", "uint"),
                          4: ("file", "uint"), 5: ("attributes", ["uint"])}]),
        2: ("locations", [{1: ("mapping", "uint"), 2: ("address", "uint"),
                           3: ("lines", [{1: ("function", "uint"), 2: ("line", "uint")}]),
                           4: ("attributes", ["uint"])}]),
        3: ("functions", [{1: ("name", "uint"), 2: ("system_name", "uint"), 3: ("file", "uint")}]),
        4: ("links", [{1: ("trace", "bytes"), 2: ("span", "bytes")}]),
        5: ("strings", ["text"]),
        6: ("attributes", [{1: ("key", "uint"), 2: ("value", VALUE)}]),
        7: ("stacks", [{1: ("locations", ["uint"])}])}),
}

# The same for protoc, which refuses what does not fit.
PROTO = """
syntax = "proto3";
message Value { oneof value { string text = 1; int64 number = 3; } }
message KeyValue { string key = 1; Value value = 2; }
message Resource { repeated KeyValue attributes = 1; }
message Scope { string name = 1; string version = 2; }
message ValueType { int32 type_strindex = 1; int32 unit_strindex = 2; }
message Sample { int32 stack_index = 1; repeated int32 attribute_indices = 2; int32 link_index = 3;
  repeated int64 values = 4; repeated fixed64 timestamps_unix_nano = 5; }
message Profile { ValueType sample_type = 1; repeated Sample samples = 2; fixed64 time_unix_nano = 3;
  uint64 duration_nano = 4; bytes profile_id = 7; }
message ScopeProfiles { Scope scope = 1; repeated Profile profiles = 2; }
message ResourceProfiles { Resource resource = 1; repeated ScopeProfiles scope_profiles = 2; }
message Mapping { uint64 memory_start = 1; uint64 memory_limit = 2; uint64 file_offset = 3;
  int32 filename_strindex = 4; repeated int32 attribute_indices = 5; }
message Line { int32 function_index = 1; int64 line = 2; }
message Location { int32 mapping_index = 1; uint64 address = 2; repeated Line lines = 3;
  repeated int32 attribute_indices = 4; }
message Function { int32 name_strindex = 1; int32 system_name_strindex = 2; int32 filename_strindex = 3; }
message Link { bytes trace_id = 1; bytes span_id = 2; }
message KeyValueAndUnit { int32 key_strindex = 1; Value value = 2; int32 unit_strindex = 3; }
message Stack { repeated int32 location_indices = 1; }
message Dictionary { repeated Mapping mapping_table = 1; repeated Location location_table = 2;
  repeated Function function_table = 3; repeated Link link_table = 4; repeated string string_table = 5;
  repeated KeyValueAndUnit attribute_table = 6; repeated Stack stack_table = 7; }
message Request { repeated ResourceProfiles resource_profiles = 1; Dictionary dictionary = 2; }
"""


class Request:
    """A request with everything that it refers to looked up; what the protocol forbids is an error."""

    def __init__(self, packed):
        self.raw = gzip.decompress(packed)
        data = protobuf.read(self.raw, REQUEST)
        self.tables = data["dictionary"]
        self.used = {name: {0} for name in self.tables}
        assert self.tables["strings"][0] == ""
        for name, rows in self.tables.items():
            assert rows, (name, "has no entry 0")
            if name not in ("strings", "links"):
                assert not any(rows[0].values()), (name, rows[0])
            assert len({str(row) for row in rows}) == len(rows), (name, "has something twice")
        self.profiles = [profile for resource in data["resources"] for profile in self.read(resource)]
        for name, rows in self.tables.items():
            assert self.used[name] == set(range(len(rows))), (name, "has what nothing refers to")

    def get(self, table, index):
        self.used[table].add(index)
        return self.tables[table][index]

    def text(self, index):
        return self.get("strings", index)

    def read(self, resource):
        pairs = [(pair["key"], pair["value"]["text"]) for pair in resource["resource"]["attributes"]]
        assert len(dict(pairs)) == len(pairs), pairs
        for scope in resource["scopes"]:
            assert scope["scope"]["name"] == "kbarman", scope
            for profile in scope["profiles"]:
                assert len(profile["id"]) == 16 and any(profile["id"])
                samples = [self.sample(sample) for sample in profile["samples"]]
                keys = [str((s["stack"], s["attributes"])) for s in samples]
                assert samples and len(set(keys)) == len(keys), "two samples of the same"
                yield {"resource": dict(pairs), "type": self.text(profile["type"]["type"]),
                       "unit": self.text(profile["type"]["unit"]), "id": profile["id"],
                       "time": profile["time"], "duration": profile.get("duration", 0),
                       "samples": samples}

    def attributes(self, indices):
        pairs = {}
        for index in indices:
            row = self.get("attributes", index)
            key = self.text(row["key"])
            assert index and key not in pairs
            pairs[key] = row["value"].get("text", row["value"].get("int"))
        return pairs

    def sample(self, sample):
        assert len(sample["values"]) == 1 and "link" not in sample
        chain = self.get("stacks", sample.get("stack", 0))["locations"]
        return {"value": sample["values"][0], "attributes": self.attributes(sample["attributes"]),
                "stack": [self.location(index) for index in chain]}

    def location(self, index):
        assert index
        row = self.get("locations", index)
        mapping = self.get("mappings", row.get("mapping", 0))
        assert not row.get("mapping") or mapping["start"] <= row["address"] < mapping["limit"]
        names, system = [], None
        for line in row["lines"]:
            function = self.get("functions", line["function"])
            names.append(self.text(function["name"]))
            system = self.text(function["system_name"])
            self.text(function.get("file", 0))
        assert len(names) <= 1
        return {"address": row.get("address", 0), "file": self.text(mapping.get("file", 0)),
                "name": names[0] if names else None, "system": system, "kind": self.attributes(row["attributes"]),
                "image": self.attributes(mapping.get("attributes", []))}


class Collector:
    """Answers the requests in turn: each of `answers` is a status, a function of the handler, or a
    dictionary with status, headers, body; behind the last one every request is taken. `taken` has the
    bodies of those with status 200, `asked` a row for each request that was read."""

    def __init__(self, *answers):
        self.answers, self.taken, self.asked = list(answers), [], []
        self.lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):      # pylint: disable=invalid-name
                collector.answer(self)

            def log_message(self, format, *args):   # pylint: disable=redefined-builtin
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, handler):
        with self.lock:
            answer = self.answers.pop(0) if self.answers else 200
        if callable(answer):
            answer = answer(handler)
            if answer is None:
                return
        if isinstance(answer, int):
            answer = {"status": answer}
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            self.asked.append((handler.path, dict(handler.headers), body))
            if answer["status"] == 200 and not answer.get("not_taken"):
                self.taken.append(body)
        reply = answer.get("body", b"")
        handler.send_response(answer["status"])
        for key, value in answer.get("headers", {}).items():
            handler.send_header(key, value)
        handler.send_header("Content-Length", str(len(reply)))
        handler.end_headers()
        handler.wfile.write(reply)

    def requests(self):
        return [Request(body) for body in self.taken]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def cut(handler):
    """Reset the connection before anything is read."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def cut_in_the_body(handler):
    handler.rfile.read(10)
    cut(handler)


def garbage(handler):
    """Something that is not HTTP."""
    handler.rfile.read(int(handler.headers["Content-Length"]))
    handler.wfile.write(os.urandom(64) + b"\r\n\r\n")
    handler.close_connection = True


def nobody():
    """The URL of a port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def field(number, data):
    """A field of bytes, or of a number."""
    def varint(value):
        out = b""
        while value >= 0x80:
            out += bytes([value & 0x7f | 0x80])
            value >>= 7
        return out + bytes([value])
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data
