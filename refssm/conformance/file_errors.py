"""What NumPy and the library of archives raise on files that are no arrays."""

import struct
import zlib
from tokenize import TokenError
from zipfile import BadZipFile

UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, MemoryError, OverflowError, SyntaxError),
    *(KeyError, RuntimeError, TokenError, BadZipFile, zlib.error, struct.error),
)  # RuntimeError: an archive that is encrypted, or packed in a way that is not known
