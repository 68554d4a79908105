"""Groups of operators in which bugs of state-space duality are planted."""

from refssm.conformance.planted.ssd.forms import CHUNKED, RECURRENT
from refssm.ssd import SSD_QUADRATIC, SSD_STEP

REC, REC_STATEFUL, REC_PACKED = ((op,) for op in RECURRENT)
CHUNK, CHUNK_STATEFUL, CHUNK_PACKED = ((op,) for op in CHUNKED)
QUAD, STEP = (SSD_QUADRATIC,), (SSD_STEP,)
PLAIN = REC + QUAD + CHUNK
STATEFUL = REC_STATEFUL + CHUNK_STATEFUL
PACKED = REC_PACKED + CHUNK_PACKED
ATTENTION = QUAD + CHUNK
