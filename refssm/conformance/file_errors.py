"""The exceptions that NumPy and zipfile raise when they read files that are not arrays."""

import struct
import zlib
from tokenize import TokenError
from zipfile import BadZipFile

UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, MemoryError, OverflowError, SyntaxError),
    *(KeyError, RuntimeError, TokenError, BadZipFile, zlib.error, struct.error),
)  # RuntimeError: an encrypted archive, or an unknown compression
