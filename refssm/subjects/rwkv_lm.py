"""RWKV-LM's CUDA kernels of RWKV-6, those it trains with, compiled as C++ for the processor.

Their source is unchanged up to its launches. A thread of a block is a thread here, blocks come one
after another, `__expf` is the processor's, and numbers are float32 where theirs are bfloat16. They
take w with log_w = −e^w, as many keys as values (4 or 8 here), and states of values by keys. A
kernel with a first state returns no last one, so states at no place are asked for.
"""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from refssm.adapters import neg_exp
from refssm.subjects import square
from refssm.subjects.clones import source
from refssm.testing import implements

LONGEST = 64  # steps: _T_
HOST = """
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>
namespace at { using BFloat16 = float; }
struct float4 { float x, y, z, w; };
struct place { int x; };
static thread_local place threadIdx, blockIdx;
static std::barrier<>* fence;
static void __syncthreads() { fence->arrive_and_wait(); }
#define __expf(x) std::exp(float(x))
#define __global__
#define __shared__ static
template <class K, class... A> void launch(K kernel, int blocks, A... given) {
    std::barrier<> all(_N_);
    fence = &all;
    std::vector<std::thread> threads;
    for (int i = 0; i < _N_; ++i)
        threads.emplace_back([=] {
            threadIdx.x = i;
            for (int b = 0; b < blocks; ++b) {
                blockIdx.x = b;
                kernel(given...);
                __syncthreads();
            }
        });
    for (auto& thread : threads) thread.join();
}
"""
SIZES = "int B, int T, int C, int H"


def calls(state: str, *backward: tuple[str, str]) -> str:
    """The exported functions: forward, and backward by kernels with these outputs."""
    given = f"r, k, v, w, u{state}"
    lines = [("forward", given + ", y", [("kernel_forward", given + ", y")])]
    outputs = ", ".join(out for _, out in backward)
    launches = [(kernel, f"{given}, gy, {out}") for kernel, out in backward]
    lines.append(("backward", f"{given}, gy, {outputs}", launches))
    text = ""
    for name, arguments, kernels in lines:
        typed = ", ".join(f"float* {x}" for x in arguments.split(", "))
        body = " ".join(f"launch({k}<float>, B * H, B, T, C, H, {a});" for k, a in kernels)
        text += f'extern "C" void {name}({SIZES}, {typed}) {{ {body} }}\n'
    return text


FROM_REST = calls(
    "",
    ("kernel_backward_101", "gr, gu"),
    ("kernel_backward_102", "gk"),
    ("kernel_backward_103", "gv"),
    ("kernel_backward_201", "gw"),
)
FROM_STATE = calls(
    ", s", ("kernel_backward_111", "gr, gk, gv, gu, gs"), ("kernel_backward_222", "gw")
)


@cache
def compiled(file: str, exported: str, n: int) -> ctypes.CDLL:
    """A file of kernels for heads of n keys."""
    kernels = source("RWKV-LM", file).read_text(encoding="utf-8").partition("void cuda_forward")[0]
    kernels = kernels.replace('#include "ATen/ATen.h"', "")
    with tempfile.TemporaryDirectory() as folder:
        program, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        program.write_text(HOST + kernels + exported, encoding="utf-8")
        flags = ["-std=c++20", "-O2", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-pthread"]
        flags += [f"-D_N_={n}", f"-D_T_={LONGEST}", "-shared", "-fPIC"]
        flags += ["-fno-gnu-unique", "-Wl,-Bsymbolic"]  # each library has its own shared memory
        subprocess.run(["g++", *flags, "-o", library, program], check=True)
        return ctypes.CDLL(str(library))


def run(function, sizes, *arrays):
    """Call an exported function with arrays of floats."""
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
    function(*map(ctypes.c_int, sizes), *pointers)


def heads_of_four(x):
    """The case with 4 or 8 keys and as many values, and 1 to 64 steps."""
    n = next((n for n in (8, 4) if n <= x["k"].shape[-1]), 0)
    x = {name: a[..., :LONGEST, :] if name in "rkv" or name == "log_w" else a
         for name, a in x.items()}  # fmt: skip
    cut = {name: x[name][..., :n] for name in ("r", "k", "log_w", "u")}
    cut |= {"S0": x["S0"][..., :n, :]} if "S0" in x else {}
    x = square({**x, **cut}, ("r", "k", "log_w", "u"))
    return x if n and x["v"].shape[-2] else None


def with_a_gradient(x):
    """The same with 3 steps or more: the gradient of w reads and writes beyond shorter ones."""
    x = heads_of_four(x)
    return x if x and x["v"].shape[-2] > 2 else None


def without_places(x):
    """The same without states at places."""
    x = with_a_gradient(x)
    return {**x, "places": x["places"][..., :0]} if x else None


def merged(r, k, v, w):
    """B, T, C, H, and the arguments with heads and what they have along one axis."""
    b, l, h, n = v.shape
    r, k = (np.repeat(x, h // x.shape[2], 2) for x in (r, k))
    return (b, l, h * n, h), [np.ascontiguousarray(x) for x in (r, k, v, w)]


def forward(library, r, k, v, w, u, *state):
    """The outputs."""
    sizes, given = merged(r, k, v, w)
    y = np.full(v.shape, np.nan, v.dtype)
    own = map(np.ascontiguousarray, (u, *state))
    run(library.forward, sizes, *given, *own, y)
    return y


def gradients(library, dy, r, k, v, w, u, *state):
    """The gradients; those of a group and of members of the batch are added."""
    sizes, given = merged(r, k, v, w)
    dr, dk, dv, dw = (np.full(v.shape, np.nan, v.dtype) for _ in range(4))
    du = np.full((v.shape[0], *u.shape), np.nan, v.dtype)
    own = [np.ascontiguousarray(x) for x in (u, *state, dy)]
    found = [dr, du, dk, dv, dw]
    if state:
        dS = np.full(state[0].shape, np.nan, v.dtype)
        found = [dr, dk, dv, du, dS, dw]
    run(library.backward, sizes, *given, *own, *found)
    dr, dk = (x.reshape(*r.shape[:3], -1, r.shape[3]).sum(3) for x in (dr, dk))
    return dr, dk, dv, dw, du.sum(0), *([dS] if state else [])


GIVEN = "b l g n, b l g n, b l (g h) p, b l (g h) n, (g h) n"
Y, STATE = "b l (g h) p", "b (g h) p n"
DECLARED: dict[str, Any] = {"dtypes": ("float32",)}
REST = "RWKV-v5/cuda/wkv6_cuda.cu", FROM_REST
STATED = "RWKV-v5/cuda/wkv6state_cuda.cu", FROM_STATE


def of(v, kernels):
    """The library for so many keys."""
    return compiled(*kernels, v.shape[-1])


@implements(
    "rwkv6",
    layout=f"{GIVEN} -> {Y}",
    only=with_a_gradient,
    adapters=(neg_exp("log_w"),),
    **DECLARED,
)
def wkv6(r, k, v, w, u):
    """kernel_forward of wkv6_cuda.cu."""
    return forward(of(v, REST), r, k, v, w, u)


def wkv6_vjp(dy, r, k, v, w, u):
    """kernel_backward_101 to 201."""
    return gradients(of(v, REST), dy, r, k, v, w, u)


@implements(
    "rwkv6_states",
    layout=f"{GIVEN}, {STATE}, m -> {Y}, b (g h) m p n",
    only=without_places,
    adapters=(neg_exp("log_w"),),
    **DECLARED,
)
def wkv6state(r, k, v, w, u, S0, places):
    """kernel_forward of wkv6state_cuda.cu."""
    y = forward(of(v, STATED), r, k, v, w, u, S0)
    return y, np.zeros((*S0.shape[:2], 0, *S0.shape[2:]), S0.dtype)


def wkv6state_vjp(dy, dS, r, k, v, w, u, S0, places):
    """kernel_backward_111 and 222."""
    return *gradients(of(v, STATED), dy, r, k, v, w, u, S0), None
