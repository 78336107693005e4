"""bench/xla_memory.py: reading a buffer assignment by wire format, and adding up a plan."""

import os
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from xla_memory import constant_bytes, fields, planned_bytes  # noqa: E402  found through the path above


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def allocation(size, constant):
    return message(3, number(2, size) + number(7, 1) + (number(12, 1) if constant else b""))


class XlaMemory(unittest.TestCase):
    def test_fields_of_every_wire_type(self):
        data = number(1, 300) + message(2, b"ab") + varint(3 << 3 | 1) + b"12345678" + varint(16 << 3 | 5) + b"1234"
        self.assertEqual([(1, 300), (2, b"ab"), (3, b"12345678"), (16, b"1234")], list(fields(data)))

    def test_groups_are_refused(self):
        with self.assertRaisesRegex(ValueError, "field 1 has wire type 3"):
            list(fields(varint(1 << 3 | 3)))

    def test_only_constants_count(self):
        data = message(1, b"not an allocation") + allocation(1 << 20, True) + allocation(4096, False) + allocation(12, True)
        self.assertEqual((1 << 20) + 12, constant_bytes(data))

    def test_peak_counts_an_aliased_result_once(self):
        statistics = types.SimpleNamespace(argument_size_in_bytes=100, output_size_in_bytes=40, temp_size_in_bytes=7, alias_size_in_bytes=30,
                                           serialized_buffer_assignment_proto=allocation(5, True))
        self.assertEqual({"argument_bytes": 100, "result_bytes": 40, "temporary_bytes": 7, "constant_bytes": 5, "peak_bytes": 122},
                         planned_bytes(statistics))


if __name__ == "__main__":
    unittest.main()
