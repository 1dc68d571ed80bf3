"""TensorBoard event files with scalar values.

The file is a sequence of records: uint64 length · masked CRC-32C of the length · content · masked CRC-32C of the content. Each
content is a protobuf ``Event``: 1 wall time (double), 2 step (int64), 3 file version (string), 5 summary; a summary holds values
(1), each with 1 tag (string) and 2 simple value (float). Format: tensorflow/core/lib/io/record_writer.h, util/event.proto.
"""

from __future__ import annotations

import os
import socket
import struct
import time


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C (Castagnoli), reflected
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(content: bytes) -> int:
    """The CRC-32C of the content, rotated and shifted as the record format asks."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes(parts) + bytes([number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


class EventFile:
    """A new event file in a folder, which is made when needed; every scalar is on the disk's way when ``add_scalar`` returns.

    Args:
        folder: where TensorBoard looks.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with EventFile(folder) as events:
        ...     events.add_scalar("train/loss", 0.5, step=1)
        >>> os.listdir(folder)[0].startswith("events.out.tfevents.")
        True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}"
        self._file = open(os.path.join(folder, name), "xb")
        self._write(_field(3, b"brain.Event:2"))

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Write one value of a curve.

        Args:
            tag: the curve's name; a slash groups curves.
            value: the value.
            step: where on the curve.
        """
        summary = _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
        self._write(b"\x10" + _varint(step) + _field(5, summary))

    def _write(self, fields: bytes) -> None:
        content = b"\x09" + struct.pack("<d", time.time()) + fields
        length = struct.pack("<Q", len(content))
        self._file.write(length + struct.pack("<I", masked_crc(length)) + content + struct.pack("<I", masked_crc(content)))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> EventFile:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()
