"""PNG images of 8 bits a sample without interlace, by their specification: gray, or made gray.

row ← row + what its filter predicts from the left, from above, or from both   (modulo 256)
"""

import zlib
from struct import error as short
from struct import unpack

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # gray, colours, gray and opacity, colours and opacity
GRAY = np.array([0.299, 0.587, 0.114])  # of red, green, blue


def gray_of(data: bytes) -> np.ndarray:
    """Rows and columns from 0 to 255; ValueError for another kind of file, or a damaged one."""
    if not data.startswith(SIGNATURE):
        raise ValueError("not a PNG")
    try:
        chunks = list(_chunks(data))
        width, height, bits, kind, _, _, interlaced = unpack(">IIBBBBB", chunks[0][1])
        packed = b"".join(body for name, body in chunks if name == b"IDAT")
        if bits != 8 or kind not in CHANNELS or interlaced:
            raise ValueError(f"a PNG of kind {kind}, {bits} bits, interlace {interlaced}")
        lines = np.frombuffer(zlib.decompress(packed), np.uint8)
        lines = lines.reshape(height, 1 + width * CHANNELS[kind])
    except (zlib.error, short, IndexError) as error:
        raise ValueError(f"a damaged PNG ({error})") from None
    image = _unfiltered(lines, CHANNELS[kind]).reshape(height, width, -1).astype(np.float64)
    return image[..., :3] @ GRAY if kind in (2, 6) else image[..., 0]


def _chunks(data: bytes):
    """Name and body of each chunk."""
    at = len(SIGNATURE)
    while at < len(data):
        size, name = unpack(">I4s", data[at : at + 8])
        yield name, data[at + 8 : at + 8 + size]
        at += size + 12  # size, name, and checksum


def _unfiltered(lines: np.ndarray, step: int) -> np.ndarray:
    """The samples of each row, from differences to the left, above, both, or the nearest one."""
    rows, above = [], np.zeros(lines.shape[1] - 1 + step, int)
    for kind, *line in lines.tolist():
        if kind > 4:
            raise ValueError(f"a damaged PNG (filter {kind})")
        row = [0] * step
        for i, x in enumerate(line):
            left, up, corner = row[i], int(above[step + i]), int(above[i])
            row.append((x + _predicted(kind, left, up, corner)) % 256)
        above = np.array(row)
        rows.append(above[step:])
    return np.array(rows)


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    slope = left + up - corner
    return min((left, up, corner), key=lambda x: abs(x - slope))  # the first of equals
