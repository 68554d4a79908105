"""Domains of constructor arguments: sizes, and the parameters of a measure."""

import numpy as np

from refssm.domains.domain import Counts, Numbers

orders = Counts(
    "1 to 129 states", (3, 1, 2, 4, 5, 8, 16, 31, 32, 33, 64, 65, 127, 128, 129, 64, 65, 100)
)
even_orders = Counts(
    "2 to 130 states, an even number",
    (4, 2, 6, 8, 16, 30, 32, 34, 64, 66, 126, 128, 130, 64, 66, 100),
    "an even integer >= 2",
    multiple=2,
)
windows = Numbers(
    "lengths of a window: 2^-10 to 1000",
    (1.0, 2.0, 0.5, 0.75, 3.0, 10.0, 1000.0, 2.0**-10, 0.1, 0.3),  # float32 has no 0.1
    "a number above 0",
    np.nextafter(0, 1),
    np.finfo(float).max,
)
laguerre_exponents = Numbers(
    "exponents of a Laguerre measure: −15/16 to 15/16",
    (0.0, 0.5, -0.5, 0.25, -0.75, 0.9375, -0.9375, 2.0**-11),
    "a number between -1 and 1, both excluded",
    np.nextafter(-1, 0),
    np.nextafter(1, 0),
)
laguerre_decays = Numbers(
    "decay rates of a Laguerre measure: 2^-10 to 64",
    (1.0, 0.5, 2.0, 0.25, 3.0, 64.0, 2.0**-10, 0.3),
    "a number above 0",
    np.nextafter(0, 1),
    np.finfo(float).max,
)
