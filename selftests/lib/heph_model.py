# SPDX-License-Identifier: MIT
"""What the one existing reader of Heph traces takes, as a model of our own: it rejects
what that one rejects, and fails where that one fails or never ends."""
import struct

BUFFER = 4096       # bytes, refilled when fewer than LOW are left
LOW = 128
METADATA, EVENT = 0x75d11d4d, 0xc1fc1fb7


class Rejected(Exception):
    """The reader gives up on this trace; the text says why."""


def need(condition, why):
    if not condition:
        raise Rejected(why)


class Reader:
    def __init__(self, data):
        self.data, self.at, self.buffer = data, 0, b""
        self.epoch = None

    def fill(self):
        take = BUFFER - len(self.buffer)
        self.buffer += self.data[self.at:self.at + take]
        self.at += take

    def events(self):
        while True:
            if len(self.buffer) < LOW:
                self.fill()
            if not self.buffer:
                return
            need(len(self.buffer) >= 10, "bytes behind the last packet")
            magic, size = struct.unpack_from(">II", self.buffer)
            need(magic in (METADATA, EVENT), "no packet starts here")
            least = 10 if magic == METADATA else 34
            need(size > least, "packet too small")
            need(size <= len(self.buffer), "packet is not in the buffer as a whole")
            if magic == METADATA:
                self.metadata()
            else:
                yield self.event(self.buffer[8:size])
            self.buffer = self.buffer[size:]

    def metadata(self):
        name, rest = self.string(self.buffer[8:])
        need(name == "epoch", "unknown option")
        need(len(rest) > 8, "the epoch is the last thing in the file")
        self.epoch, = struct.unpack_from(">Q", rest)

    @staticmethod
    def string(data):
        need(len(data) >= 2, "string without a length")
        length, = struct.unpack_from(">H", data)
        need(len(data) >= 2 + length, "string beyond its packet")
        try:
            return data[2:2 + length].decode(), data[2 + length:]
        except UnicodeDecodeError as error:
            raise Rejected("a string is not UTF-8") from error

    def event(self, packet):
        need(len(packet) >= 32, "short event")
        stream, counter, substream, start, end = struct.unpack_from(">IIQQQ", packet)
        need(start <= end, "an event ends before it starts")
        description, rest = self.string(packet[32:])
        attributes = []
        while rest:
            name, rest = self.string(rest)
            need(rest, "attribute without a value")
            kind, rest = rest[0], rest[1:]
            need(1 <= kind <= 4, f"attribute type {kind:#x}")
            if kind == 4:
                value, rest = self.string(rest)
            else:
                need(len(rest) >= 8, "value beyond its packet")
                value, = struct.unpack_from(">" + " Qqd"[kind], rest)
                rest = rest[8:]
            attributes.append((name, value))
        return stream, counter, substream, start, end, description, attributes


def shift(taken, stamp, duration):
    """Make room for an event in the microseconds of its substream, as the reader does."""
    for _ in range(100000):
        if stamp not in taken:
            taken[stamp] = duration
            return
        if taken[stamp] > duration:
            need(duration > 0, "an instant in the microsecond where a longer event starts")
            stamp, duration = stamp + 1, duration - 1
        else:
            need(stamp > 0, "shifted before 1970")
            stamp, duration = stamp - 1, duration + 1
    raise Rejected("it never ends")


def read(data):
    """(epoch, events) of a trace that the reader takes; else Rejected."""
    reader, taken, events = Reader(data), {}, []
    for event in reader.events():
        need(reader.epoch is not None, "an event before the epoch: its time would be today")
        stream, _, substream, start, end, description, attributes = event
        shift(taken.setdefault((stream, substream), {}), (reader.epoch + start) // 1000,
              (end - start) // 1000)
        texts = [description] + [name for name, _ in attributes]
        texts += [value for _, value in attributes if isinstance(value, str)]
        for text in texts:
            need(all(c not in '"\\' and c >= " " for c in text), f"not JSON: {text!r}")
        events.append(event)
    return reader.epoch, events
