"""Groups of operators in which bugs of state-space duality are planted."""

from refssm.conformance.planted.ssd.forms import CHUNKED, RECURRENT
from refssm.ssd import SSD_QUADRATIC, SSD_STEP
from refssm.ssd.chunked import CHUNKED as BY_CHUNKS
from refssm.ssd.recurrent import SSD

REC, REC_STATEFUL, REC_PACKED = ((op,) for op in RECURRENT)
CHUNK, CHUNK_STATEFUL, CHUNK_PACKED = ((op,) for op in CHUNKED)
QUAD, STEP = (SSD_QUADRATIC,), (SSD_STEP,)
PLAIN = REC + QUAD + CHUNK
STATEFUL = REC_STATEFUL + CHUNK_STATEFUL
PACKED = REC_PACKED + CHUNK_PACKED
ATTENTION = QUAD + CHUNK
# from a state, packed, by pieces; all but the form from rest and the step
IN_FORMS = tuple(op for op in SSD.operators + BY_CHUNKS.operators if op not in REC + CHUNK + STEP)
FORWARD = tuple(op for op in IN_FORMS if not op.name.endswith("_reversed"))
CHUNKED_FORMS, RECURRENT_FORMS = BY_CHUNKS.operators, SSD.operators
SEQUENCES_WITH_STATES = tuple(op for op in IN_FORMS if op.name.endswith("_packed_stateful"))
