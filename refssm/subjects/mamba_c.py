"""mamba.c's `forward_layer`: one Mamba block, one step after another, compiled from the clone."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from refssm.subjects.clones import source
from refssm.testing import implements

FLOATS = ctypes.POINTER(ctypes.c_float)
SIZES = "n_layers vocab_size dim d_inner dt_rank d_state d_conv shared_classifier rounded_vocab"
WEIGHTS = "embedding in_proj conv conv_bias x_proj dt_proj dt_bias A D out_proj norm last_norm head"
BUFFERS = "input hidden_state xz x_db dt dA dB temp y logits conv_state ssm_state"


class ModelConfig(ctypes.Structure):
    """The struct Config."""

    _fields_ = [(name, ctypes.c_int) for name in SIZES.split()]


class Weights(ctypes.Structure):
    """The struct MambaWeights."""

    _fields_ = [(name, FLOATS) for name in WEIGHTS.split()]


class RunState(ctypes.Structure):
    """The struct RunState."""

    _fields_ = [(name, FLOATS) for name in BUFFERS.split()]


class Whole(ctypes.Structure):
    """The struct Mamba, without the file that the weights come from."""

    _fields_ = [("config", ModelConfig), ("weights", Weights), ("state", RunState)]


def compiled():
    """The functions of mamba.c, with the flags of its makefile."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "mamba.so"
        command = ["cc", "-O3", "-shared", "-fPIC", "-o", library, source("mamba.c", "mamba.c")]
        subprocess.run([*command, "-lm"], check=True)
        return ctypes.CDLL(str(library))


C = compiled()
DECLARED = {"dtypes": ("float32",)}
PARAMETERS = "h 2e, e t, e, e r, e n, e n, r e, e, e n, e, e h"


def small_taps(x):
    """The case, if its taps fit into `temp`, which has the size of the state."""
    return x if x["k"].shape[-1] <= x["log_rate"].shape[-1] else None


def pointer(x):
    """The address of an array of floats."""
    return x.ctypes.data_as(FLOATS)


@implements("mamba_layer", layout=f"l h, {PARAMETERS} -> l h", only=small_taps, **DECLARED)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """forward_layer for one row after another, from rest."""
    weights = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    return mamba_layer_stateful(u, *weights, np.zeros_like(k), np.zeros_like(log_rate))[0]


@implements(
    "mamba_layer_stateful",
    layout=f"l h, {PARAMETERS}, e t, e n -> l h, e t, e n",
    only=small_taps,
    **DECLARED,
)
def mamba_layer_stateful(
    u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, s0, x0
):
    """forward_layer for one row after another; A is −e^{A_log}, as export.py writes it."""
    (h, e, n), r, t = (*W_in.shape[:1], *log_rate.shape), W_dt.shape[0], k.shape[1]
    given = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, s0, x0
    sizes = (h, 2 * e), (e, t), (e,), (e, r), (e, n), (e, n), (r, e), (e,), (e, n), (e,), (e, h)
    if not t or u.shape[1] != h or [v.shape for v in given] != [*sizes, (e, t), (e, n)]:
        raise ValueError("sizes disagree, or no taps")
    x_proj = np.concatenate([W_low, W_B, W_C], -1).T
    weights = W_in.T, k[:, ::-1], k_bias, x_proj, W_dt.T, dt_bias, -np.exp(log_rate), D, W_out.T
    weights = [np.array(w, np.float32, order="C") for w in weights]
    names = WEIGHTS.split()[1 : 1 + len(weights)]
    model = Whole(
        ModelConfig(n_layers=1, dim=h, d_inner=e, dt_rank=r, d_state=n, d_conv=t),
        Weights(**dict(zip(names, map(pointer, weights), strict=True))),
    )
    C.malloc_run_state(ctypes.byref(model.state), ctypes.byref(model.config))
    conv, ssm, y = model.state.conv_state, model.state.ssm_state, u.copy()
    ctypes.memmove(conv, pointer(s0.copy()), s0.nbytes)
    ctypes.memmove(ssm, pointer(x0.copy()), x0.nbytes)
    for row in y:
        C.forward_layer(ctypes.byref(model), ctypes.c_ulonglong(0), pointer(row))
    s, x = (np.ctypeslib.as_array(v, w.shape).copy() for v, w in ((conv, s0), (ssm, x0)))
    C.free_run_state(ctypes.byref(model.state))
    return y, s, x


@implements("short_convolution_step", layout="d, d t, d t -> d, d t", **DECLARED)
def short_convolution_step(u, k, s):
    """The four functions of the step of the convolution."""
    d, t = k.shape
    if not t or s.shape != (d, t) or u.shape != (d,):
        raise ValueError("sizes disagree, or no taps")
    s, k, u = s.copy(), np.array(k[:, ::-1], order="C"), u.copy()
    products = np.empty_like(s)
    C.shift_matrix_left(pointer(s), d, t)
    C.update_last_column(pointer(s), pointer(u), d, t)
    C.elementwise_multiply(pointer(products), pointer(s), pointer(k), d * t)
    C.sum_along_last_dim(pointer(u), pointer(products), d, t)
    return u, s
