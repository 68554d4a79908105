# pyright: reportMissingImports=false
"""RWKV-LM's own RWKV-7 in PyTorch, with which its demonstration runs without a card.

It takes w with log_g = −e^w, as many keys as values, and a head for each of them along one axis.
"""

import ast
from typing import Any

import torch

from refssm.adapters import neg_exp
from refssm.subjects import square
from refssm.subjects.clones import source
from refssm.testing import implements

DEMO = "RWKV-v7/rwkv_v7_demo.py"
GIVEN = "b l g n, b l g n, b l (g h) p" + 3 * ", b l (g h) n"
DECLARED: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",), "vjp": True}


def operator_of(n: int):
    """Their RWKV7_OP for heads of n keys: the one of the branch without a kernel."""
    path = source("RWKV-LM", DEMO)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    branch = next(x for x in tree.body if isinstance(x, ast.If) and x.orelse and any(
        isinstance(y, ast.FunctionDef) and y.name == "RWKV7_OP" for y in x.orelse))  # fmt: skip
    kept = [x for x in branch.orelse if isinstance(x, ast.FunctionDef)]
    told: dict[str, Any] = {"torch": torch, "HEAD_SIZE": n, "DTYPE": torch.float32}
    exec(compile(ast.Module(list[ast.stmt](kept), []), str(path), "exec"), told)
    return told["RWKV7_OP"]


operator_of(1)  # an ImportError if the clone is not there


def with_square_states(x):
    """The case with as many keys as values, if it has a step."""
    return square(x, ("q", "k", "log_g", "a", "b")) if x["v"].shape[-2] else None


@implements(
    "delta_dplr",
    layout=f"{GIVEN} -> b l (g h) p",
    only=with_square_states,
    adapters=(neg_exp("log_g"),),
    **DECLARED,
)
def rwkv7_op(q, k, v, w, a, b):
    """RWKV7_OP of the demonstration, without a kernel."""
    m, l, h, n = v.shape
    q, k = (x.repeat_interleave(h // x.shape[2], 2) for x in (q, k))
    given = (x.reshape(m, l, h * n) for x in (q, w, k, v, a, b))
    return operator_of(n)(*given).view(v.shape)
