"""ggml's loops of llama.cpp on the processor: scans of Mamba, convolution, gated linear attention.

The shared libraries of the clone's own build, in `build/src`, are called through ggml's public
functions, one graph for each case. What llama.cpp puts around an operator (bias of the step, skip
connection, gate, SiLU) is in the graph, too. The memory of a graph is NaN before it is computed,
so what no operator has written is seen. Arrays have the innermost axis last, ggml's `ne` first.
"""

import ctypes
from typing import Any

import numpy as np

from refssm.adapters import linear_gate, oldest_first, scaled
from refssm.subjects import square
from refssm.subjects.clones import source
from refssm.testing import implements

THREADS = 1
KINDS = {"float32": 0, "int32": 26}  # enum ggml_type
POINTER, SIZE = ctypes.c_void_p, ctypes.c_int64


class GraphMemory(ctypes.Structure):
    """The struct ggml_init_params."""

    _fields_ = [("size", ctypes.c_size_t), ("buffer", POINTER), ("no_alloc", ctypes.c_bool)]


def library(name: str) -> ctypes.CDLL:
    """A shared library of the clone's build. ImportError with a sentence if it is not built."""
    path = source("ggml", f"build/src/lib{name}.so")
    if not path.is_file():
        raise ImportError(f"ggml is not built: {path} is not there (its README says how)")
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


BASE, CPU = library("ggml-base"), library("ggml-cpu")


def called(name: str, *kinds, result: Any = POINTER, of: ctypes.CDLL = BASE):
    """A function of ggml, with the kinds of its arguments."""
    function = getattr(of, name)
    function.argtypes, function.restype = kinds, result
    return function


def operator(name: str, *kinds):
    """A function of ggml that gets a context, then these arguments, and returns a tensor."""
    return called(f"ggml_{name}", POINTER, *kinds)


new_context = called("ggml_init", GraphMemory)
free = called("ggml_free", POINTER, result=None)
new_graph = operator("new_graph")
expand = called("ggml_build_forward_expand", POINTER, POINTER, result=None)
compute = called(
    "ggml_graph_compute_with_ctx", POINTER, POINTER, ctypes.c_int, result=ctypes.c_int, of=CPU
)
data = called("ggml_get_data", POINTER)
tensor_4d = operator("new_tensor_4d", ctypes.c_int, *4 * (SIZE,))
tensor_2d = operator("new_tensor_2d", ctypes.c_int, *2 * (SIZE,))
tensor_1d = operator("new_tensor_1d", ctypes.c_int, SIZE)
view_1d = operator("view_1d", POINTER, SIZE, ctypes.c_size_t)
view_4d = operator("view_4d", POINTER, *4 * (SIZE,), *4 * (ctypes.c_size_t,))
reshape_4d = operator("reshape_4d", POINTER, *4 * (SIZE,))
add, mul, gate = (operator(f, POINTER, POINTER) for f in ("add", "mul", "swiglu_split"))
silu, cumsum = operator("silu", POINTER), operator("cumsum", POINTER)
ssm_conv = operator("ssm_conv", POINTER, POINTER)
ssm_scan = operator("ssm_scan", *7 * (POINTER,), SIZE)
gla = operator("gated_linear_attn", *5 * (POINTER,), ctypes.c_float)
gdn = operator("gated_delta_net", *6 * (POINTER,), SIZE)
solve_tri = operator("solve_tri", POINTER, POINTER, *3 * (ctypes.c_bool,))
called("ggml_cpu_init", result=None, of=CPU)()


def tensor(context, x):
    """A tensor of ggml with the values of an array of up to four axes."""
    x = np.ascontiguousarray(x)
    ne, kind = x.shape[::-1], KINDS[x.dtype.name]
    if len(ne) == 1:
        made = tensor_1d(context, kind, *ne)
    else:
        made = tensor_4d(context, kind, *ne, *(4 - len(ne)) * (1,))
    ctypes.memmove(data(made), x.ctypes.data, x.nbytes)
    return made


def agree(axes: str, *arrays):
    """Raise an error for sizes at which ggml ends the process, or reads beyond an array."""
    sizes = {}
    for of, x in zip(axes.split(", "), arrays, strict=True):
        for axis, size in zip(of.split(), x.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"two sizes of {axis}: {sizes[axis]} and {size}")
    if not all(sizes.values()):
        raise NotImplementedError("ggml has no operators of nothing")


def computed(graph_of, *arrays, room: int):
    """What the tensors of `graph_of(context, *tensors)` have when its graph was computed.

    It returns pairs of a tensor and a shape; `room` is how many numbers it makes.
    """
    needed = sum(x.nbytes + 512 for x in arrays) + 4 * room + (1 << 20)
    memory = np.full(needed + 64, 255, np.uint8)
    start = -memory.ctypes.data % 64
    context = new_context(GraphMemory(needed, memory.ctypes.data + start, False))
    try:
        found = graph_of(context, *(tensor(context, x) for x in arrays))
        graph = new_graph(context)
        for made, _ in found:
            expand(graph, made)
        if compute(context, graph, THREADS):
            raise RuntimeError("the graph was not computed")
        return tuple(_values(made, shape) for made, shape in found)
    finally:
        free(context)


def _values(made, shape):
    floats = ctypes.cast(data(made), ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(floats, (int(np.prod(shape)),)).reshape(shape).copy()


DECLARED: dict[str, Any] = {"dtypes": ("float32",)}
TAPS: dict[str, Any] = {"adapters": (oldest_first(),), **DECLARED}


def steps(x):
    """The case if it has a step: without one, nothing writes the state that they return."""
    return x if x["u"].shape[-1] else None


@implements("short_convolution", layout="b d l, d t -> b l d", only=steps, **TAPS)
def convolution(u, k):
    """ggml_ssm_conv, of zeros and the inputs."""
    agree("b d l, d t", u, k)
    (b, d, l), t = u.shape, k.shape[1]
    padded = np.concatenate([np.zeros((b, d, t - 1), u.dtype), u], -1)

    def graph_of(context, x, taps):
        return [(ssm_conv(context, x, taps), (b, l, d))]

    return computed(graph_of, padded, k, room=u.size)[0]


def convolved(u, k, bias, s0):
    """ggml_ssm_conv, bias and SiLU, as in llama.cpp's graph of Mamba; the last inputs."""
    agree("b d l, d t, d, b d t", u, k, bias, s0)
    (b, d, l), t = u.shape, k.shape[1]
    inputs = np.concatenate([s0, u], -1)

    def graph_of(context, x, taps, bias):
        y = add(context, ssm_conv(context, x, taps), bias)
        return [(silu(context, y), (b, l, d))]

    return computed(graph_of, inputs[..., 1:], k, bias, room=4 * u.size)[0], inputs[..., -t:]


@implements(
    "causal_conv1d_stateful", layout="b d l, d t, d, b d t -> b l d, b d t", only=steps, **TAPS
)
def convolution_stateful(u, k, bias, s0):
    """ggml_ssm_conv after stored inputs, with bias and SiLU."""
    return convolved(u, k, bias, s0)


def mamba(x, dt, A, B, C, D, z, dt_bias, S0, snapshots=1):
    """llama.cpp's graph from the bias of the step to the gate; A has axes h n or h 1."""
    axes = f"b l h p, b l h, {'h n' if A.shape[1] > 1 else 'h r'}, b l g n, b l g n"
    agree(f"{axes}, h, b l h p, h, b h p n", x, dt, A, B, C, D, z, dt_bias, S0)
    (b, l, h, p), n = x.shape, B.shape[-1]
    states = (snapshots, b, h, p, n)

    def graph_of(context, x, dt, A, B, C, D, z, dt_bias, S0, ids):
        dt = add(context, dt, dt_bias)
        both = ssm_scan(context, S0, x, dt, A, B, C, ids, snapshots)
        size = 4 * p
        y = view_4d(context, both, p, h, l, b, size, size * h, size * h * l, 0)
        y = gate(context, z, add(context, y, mul(context, x, D)))
        last = view_1d(context, both, int(np.prod(states)), size * h * l * b)
        return [(y, (b, l, h, p)), (last, states)]

    ids = np.arange(b, dtype=np.int32)
    given = x, dt, A, B, C, D[:, None], z, dt_bias, S0, ids
    return computed(graph_of, *given, room=6 * x.size + snapshots * S0.size)


CHANNELS = "b l d, b l d, d n, b l n, b l n, d, b l d, d"
HEADS = "b l (g h) p, b l (g h), (g h), b l g n, b l g n, (g h), b l (g h) p, (g h)"


def by_channels(u, dt, A, B, C, D, z, dt_bias, x0):
    """Mamba-1: a channel is a head with one row."""
    y, x = mamba(
        u[..., None], dt, A, B[:, :, None], C[:, :, None], D, z[..., None], dt_bias, x0[:, :, None]
    )
    return y[..., 0], x[0, :, :, 0]


@implements("mamba_scan", layout=f"{CHANNELS} -> b l d", only=steps, **DECLARED)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """ggml_ssm_scan with a rate for each state: Mamba-1."""
    x0 = np.zeros((u.shape[0], *A.shape), u.dtype)
    return by_channels(u, dt, A, B, C, D, z, dt_bias, x0)[0]


@implements(
    "mamba_scan_stateful", layout=f"{CHANNELS}, b d n -> b l d, b d n", only=steps, **DECLARED
)
def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """ggml_ssm_scan with a rate for each state, from a state."""
    return by_channels(u, dt, A, B, C, D, z, dt_bias, x0)


def no_limits(x):
    """The case without limits of the step, if it has a step."""
    return {**x, "dt_min": 0.0, "dt_max": 1024.0} if x["x"].shape[-2] else None


def last_places(x):
    """The case with the states after the last steps, one after another, if there are so many."""
    m, l = len(x["places"]), x["dt" if "dt" in x else "beta"].shape[-1]
    return {**x, "places": np.arange(l - m + 1, l + 1)} if 0 < m <= l else None


def last_places_without_limits(x):
    """The case with the states after the last steps, and without limits of the step."""
    x = last_places(x)
    return no_limits(x) if x else None


@implements("mamba2_scan", layout=f"{HEADS} -> b l (g h) p", only=no_limits, **DECLARED)
def mamba2_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """ggml_ssm_scan with a rate for each head: Mamba-2."""
    S0 = np.zeros((*x[:, 0].shape, B.shape[-1]), x.dtype)
    return mamba(x, dt, A[:, None], B, C, D, z, dt_bias, S0)[0]


@implements(
    "mamba2_scan_stateful",
    layout=f"{HEADS}, b (g h) p n -> b l (g h) p, b (g h) p n",
    only=no_limits,
    **DECLARED,
)
def mamba2_scan_stateful(x, dt, A, B, C, D, z, dt_bias, S0, *, dt_min, dt_max):
    """ggml_ssm_scan with a rate for each head, from a state."""
    y, S = mamba(x, dt, A[:, None], B, C, D, z, dt_bias, S0)
    return y, S[0]


@implements(
    "mamba2_scan_states",
    layout=f"{HEADS}, b (g h) p n, m -> b l (g h) p, b (g h) m p n",
    only=last_places_without_limits,
    **DECLARED,
)
def mamba2_scan_states(x, dt, A, B, C, D, z, dt_bias, S0, places, *, dt_min, dt_max):
    """ggml_ssm_scan with the states after the last K steps."""
    y, S = mamba(x, dt, A[:, None], B, C, D, z, dt_bias, S0, len(places))
    return y, np.moveaxis(S[::-1], 0, 2)


def by_head(x):
    """The case with square states, if it has a step."""
    return square(x) if x["v"].shape[-2] else None


def by_key(x):
    """The same with a gate for each key."""
    return square(x, ("q", "k", "log_g")) if x["v"].shape[-2] else None


def by_head_last_places(x):
    """The case with square states, those after the last steps."""
    x = by_head(x)
    return last_places(x) if x else None


GATES = "b l g n, b l g n, b l (g h) p, b l (g h) n"
GATED: dict[str, Any] = {"adapters": (scaled(), linear_gate()), "only": by_key, **DECLARED}


def gated(q, k, v, g, S0):
    """ggml_gated_linear_attn, whose sequences are one after another; scale n^-1/2."""
    agree("b l g n, b l g n, b l h n, b l h n, b h n n", q, k, v, g, S0)
    (b, l, h, _), n = v.shape, k.shape[-1]
    q, k = (np.repeat(x, h // k.shape[2], 2) for x in (q, k))
    rows = [x.reshape(b * l, h, -1) for x in (k, v, q, g)]

    def graph_of(context, *tensors):
        *given, state = tensors
        both = gla(context, *given, state, n**-0.5)
        return [(both, (v.size + S0.size,))]

    found = computed(graph_of, *rows, S0.reshape(b, -1), room=v.size + S0.size)[0]
    return found[: v.size].reshape(v.shape), found[v.size :].reshape(S0.shape)


@implements("gated_linear_recurrence", layout=f"{GATES} -> b l (g h) p", **GATED)
def gated_linear_attn(q, k, v, g):
    """ggml_gated_linear_attn."""
    S0 = np.zeros((*v[:, 0, :, :1].shape[:2], k.shape[-1], v.shape[-1]), v.dtype)
    return gated(q, k, v, g, S0)[0]


@implements(
    "gated_linear_recurrence_stateful",
    layout=f"{GATES}, b (g h) n p -> b l (g h) p, b (g h) n p",
    **GATED,
)
def gated_linear_attn_stateful(q, k, v, g, S0):
    """ggml_gated_linear_attn from a state."""
    return gated(q, k, v, g, S0)


def delta(q, k, v, g, beta, S0, snapshots=1):
    """ggml_gated_delta_net, whose states are transposed, and whose heads have axis h g."""
    gates = f"b l h {'r' if g.shape[-1] == 1 else 'n'}"
    agree(f"b l g n, b l g n, b l h n, {gates}, b l h, b h n n", q, k, v, g, beta, S0)
    given = q, k, v, g, beta[..., None], S0
    states = (snapshots, *S0.shape)

    def graph_of(context, *tensors):
        both = gdn(context, *tensors, snapshots)
        return [(both, (v.size + snapshots * S0.size,))]

    found = computed(graph_of, *given, room=v.size + snapshots * S0.size)[0]
    return found[: v.size].reshape(v.shape), found[v.size :].reshape(states)


def at_rest(v):
    """States of zeros."""
    return np.zeros((*v[:, 0].shape, v.shape[-1]), v.dtype)


BY_HEAD = "b l g n, b l g n, b l (h g) p, b l (h g), b l (h g)"
BY_KEY = "b l g n, b l g n, b l (h g) p, b l (h g) n, b l (h g)"
OUTPUTS, STATE, STATES = "b l (h g) p", "b (h g) p n", "b (h g) m p n"
DELTA: dict[str, Any] = {"adapters": (scaled(),), "only": by_head, **DECLARED}
KEYED: dict[str, Any] = {**DELTA, "only": by_key}


@implements("gated_delta_rule", layout=f"{BY_HEAD} -> {OUTPUTS}", **DELTA)
def gated_delta_net(q, k, v, log_g, beta):
    """ggml_gated_delta_net."""
    return delta(q, k, v, log_g[..., None], beta, at_rest(v))[0]


@implements(
    "gated_delta_rule_stateful", layout=f"{BY_HEAD}, {STATE} -> {OUTPUTS}, {STATE}", **DELTA
)
def gated_delta_net_stateful(q, k, v, log_g, beta, S0):
    """ggml_gated_delta_net from a state."""
    y, S = delta(q, k, v, log_g[..., None], beta, S0)
    return y, S[0]


@implements(
    "gated_delta_rule_states",
    layout=f"{BY_HEAD}, {STATE}, m -> {OUTPUTS}, {STATES}",
    **{**DELTA, "only": by_head_last_places},
)
def gated_delta_net_states(q, k, v, log_g, beta, S0, places):
    """ggml_gated_delta_net with the states after the last K steps."""
    y, S = delta(q, k, v, log_g[..., None], beta, S0, len(places))
    return y, np.moveaxis(S[::-1], 0, 2)


@implements("kimi_delta_rule", layout=f"{BY_KEY} -> {OUTPUTS}", **KEYED)
def gated_delta_net_by_key(q, k, v, log_g, beta):
    """ggml_gated_delta_net with a gate for each key: Kimi Delta Attention."""
    return delta(q, k, v, log_g, beta, at_rest(v))[0]


@implements("kimi_delta_rule_stateful", layout=f"{BY_KEY}, {STATE} -> {OUTPUTS}, {STATE}", **KEYED)
def gated_delta_net_by_key_stateful(q, k, v, log_g, beta, S0):
    """ggml_gated_delta_net with a gate for each key, from a state."""
    y, S = delta(q, k, v, log_g, beta, S0)
    return y, S[0]


def decays_of_one(x):
    """The case with decays of 1: the sum of all inputs before."""
    return {**x, "a": np.ones_like(x["a"])}


@implements("linear_scan", layout="b n l, b n l -> b n l", only=decays_of_one, **DECLARED)
def cumulative(a, b):
    """ggml_cumsum."""
    agree("b n l, b n l", a, b)

    def graph_of(context, x):
        return [(cumsum(context, x), b.shape)]

    return computed(graph_of, b, room=b.size)[0]


def without_infinity(x):
    """The case, if its drives are no infinity: zeros of the matrix make NaN of it."""
    return None if np.isinf(x["b"]).any() else x


@implements("linear_scan", layout="n l, n l b -> n l b", only=without_infinity, **DECLARED)
def triangular(a, b):
    """ggml_solve_tri; rows of 1 and −a below the diagonal, times 1, 2 or 4."""
    agree("n l, n l b", a, b)
    n, l = a.shape
    scale = (2 ** (np.arange(l) % 3)).astype(a.dtype)
    A = np.tile(np.diag(scale), (n, 1, 1))
    A[:, np.arange(1, l), np.arange(l - 1)] = -a[:, 1:] * scale[1:]

    def graph_of(context, A, b_):
        return [(solve_tri(context, A, b_, True, True, False), b.shape)]

    return computed(graph_of, A, b * scale[:, None], room=b.size)[0]
