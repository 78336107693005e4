"""The bytes that XLA plans for a compiled program, counted as hlorun's `--json` counts its own.

Both add up what the plan holds at once: arguments + results + temporaries + constants, an argument counted though nothing reads it, a
result beside the argument whose memory it might take over (donation is taken out of XLA's module, and hlorun's caller donates
nothing). Temporaries are the one block that buffers share by their lives: hlorun's arena, XLA's `temp_size_in_bytes`. Neither counts
code. What XLA:CPU's libraries take while they run (Eigen's and oneDNN's packed panels) is in no plan of XLA's; hlorun packs in its
arena, and counts it. Constants are only in XLA's buffer assignment, a proto that is read here by wire format.
"""

# xla/service/hlo.proto: BufferAssignmentProto and BufferAllocationProto.
ALLOCATIONS, SIZE, IS_CONSTANT = 3, 2, 12
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5


def varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def fields(data):
    """(number, value) of each field of a serialized proto: an int, or bytes."""
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        kind = tag & 7
        if kind == VARINT:
            value, position = varint(data, position)
        else:
            size = {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(kind)
            if kind == BYTES:
                size, position = varint(data, position)
            if size is None:
                raise ValueError(f"field {tag >> 3} has wire type {kind}, which no proto of XLA's uses")
            value, position = data[position:position + size], position + size
        yield tag >> 3, value


def constant_bytes(buffer_assignment):
    allocations = [dict(fields(value)) for number, value in fields(buffer_assignment) if number == ALLOCATIONS]
    return sum(allocation.get(SIZE, 0) for allocation in allocations if allocation.get(IS_CONSTANT))


def planned_bytes(statistics):
    """The members of a report, from jaxlib's CompiledMemoryStats."""
    parts = {"argument_bytes": statistics.argument_size_in_bytes, "result_bytes": statistics.output_size_in_bytes,
             "temporary_bytes": statistics.temp_size_in_bytes,
             "constant_bytes": constant_bytes(statistics.serialized_buffer_assignment_proto)}
    return {**parts, "peak_bytes": sum(parts.values()) - statistics.alias_size_in_bytes}
