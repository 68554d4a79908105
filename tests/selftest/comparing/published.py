"""The checks that people use now: their published numbers, and where they were read."""

from __future__ import annotations

import numpy as np

from refssm._declaration.operator import Operator
from selftest.comparing import chunks
from selftest.comparing.differences import CheckGrads
from selftest.comparing.inputs import normal, normalized, small_steps, times, uniform
from selftest.comparing.recipes import Recipe, lengths, near, within

# mamba_ssm: (rtol, atol) of the output and the last state, and of gradients where there is a gate
MAMBA = {"du": (1.2e-3, 4e-3), "ddt": (3e-3, 2e-2), "dA": (1e-3, 1e-2)}
MAMBA |= dict.fromkeys(("dB", "dC"), (6e-4, 2e-3))
MAMBA_OUTPUT, MAMBA_GRADIENT, MAMBA_SSD = (6e-4, 2e-3), (1e-3, 2e-3), (1e-2, 3e-3)
# fla: the RMS ratio of its operators and of its convolution, and the largest error that is no error
FLA, FLA_CONVOLUTION = 5e-3, 1e-3
FLA_NO_ERROR, FLA_NO_ERROR_OF_DECAY = 1e-6, 2e-4
FLA_DELTA = {"y": 5e-3, "dq": 8e-3, "dk": 8e-3, "dv": 8e-3, "dbeta": 2e-2, "dlog_g": 2e-2}
FLA_OF = {  # by operator, then by result; else FLA
    "gated_delta_rule_chunked": FLA_DELTA,
    "kimi_delta_rule_chunked": FLA_DELTA,
    "rwkv6_chunked": {"y": 4e-3},
    "delta_dplr_chunked": {"y": 7e-3}
    | dict.fromkeys(("dq", "dk", "dv", "da", "db", "dlog_g"), 8e-3),
}
KERNELBENCH, GPU_MODE = 1e-4, 1e-3  # rtol = atol
ALLCLOSE, ASSERT_CLOSE = (1e-5, 1e-8), (1.3e-6, 1e-5)  # rtol, atol


def mamba_close(op: Operator, result: str, found, truth) -> str:
    """The tolerances of mamba_ssm's test for this result."""
    if op.family == "ssd":
        return near(found, truth, *MAMBA_SSD)
    usual = MAMBA_OUTPUT if result in op.outputs else MAMBA_GRADIENT
    return near(found, truth, *MAMBA.get(result, usual))


def fla_close(op: Operator, result: str, found, truth) -> str:
    """RMS error over RMS below the ratio, or no entry off by more; |x|² where x is complex."""
    usual = FLA_CONVOLUTION if op.family == "convolution" else FLA
    ratio = FLA_OF.get(op.name, {}).get(result, usual)
    error = np.abs(found - truth)
    none = FLA_NO_ERROR_OF_DECAY if result == "dlog_a" else FLA_NO_ERROR
    if error.max(initial=0) <= none:
        return ""
    if np.isnan(found).any() or np.isnan(truth).any():
        return "NaN"
    off, rms = (np.sqrt(np.square(np.abs(x)).mean()) for x in (error, truth))
    ok = off / (rms + 1e-8) < ratio
    return "" if ok else f"RMS error {off / (rms + 1e-8):.2g} of the RMS, {ratio:g} allowed"


def gpu_mode_close(op: Operator, result: str, found, truth) -> str:
    """1e-3 + 1e-3 |truth| for each entry; their task has no state after the last chunk."""
    if (op.name, result) == ("chunk_states", "last"):
        return ""
    return near(found, truth, GPU_MODE, GPU_MODE)


OF_DELTA = {"q": normalized(uniform), "k": normalized(uniform), "v": uniform}  # in fla's tests
PLAIN = lengths((128,), d=4, n=16, p=8, t=4)
IN_PYTORCH = "one input: l = 128, batch 2, 4 channels, n = 16"

RECIPES = (
    Recipe(
        "torch.allclose",
        "torch 2.13.0, documented defaults",
        within(*ALLCLOSE),
        f"each entry within 1e-8 + 1e-5 |truth|; {IN_PYTORCH}",
        PLAIN,
    ),
    Recipe(
        "torch assert_close",
        "torch 2.13.0, table of torch.testing.assert_close",
        within(*ASSERT_CLOSE),
        f"each entry within 1e-5 + 1.3e-6 |truth|, for float32 and complex64; {IN_PYTORCH}",
        PLAIN,
    ),
    Recipe(
        "mamba_ssm",
        "mamba e9594ce (2.3.2.post1), tests/ops/test_selective_scan.py and triton/test_ssd.py",
        mamba_close,
        "each output within 2e-3 + 6e-4 |truth|, gradients 2e-3 to 2e-2 + 6e-4 to 3e-3 "
        "|truth|; SSD 3e-3 + 1e-2 |truth|, values only; l = 128, 256, … 4096 (SSD: 56, "
        "128, 199), batch 2, 4 channels, n = 8 (SSD: n = 32, 4 heads of 64 in 1, 2 or 4 groups, "
        "p = 16 of 64)",
        lengths((128, 256, 512, 1024, 2048, 4096), d=4, n=8, p=8, t=4),
        {"ssd": {"log_a": small_steps, "B": times(0.2, normal)}},
        own=("selective_scan", "mamba_scan_stateful", "ssd_chunked"),
        value_only=("ssd",),
        sizes_of={
            "ssd": tuple(
                {"l": l, "g": g, "h": 4 // g, "n": 32, "p": 16}
                for l, g in ((56, 1), (128, 2), (199, 4))
            )
        },
    ),
    Recipe(
        "fla assert_close",
        "flash-linear-attention bc3b101 (0.5.2), fla/utils/_testing.py; tests/ops/test_NAME.py of "
        "simple_gla, hgrn, gla, gdn, gdn_kernels, kda, rwkv6 and dplr_delta, "
        "tests/modules/test_conv.py",
        fla_close,
        "RMS error below 0.005 of the RMS of the truth (convolutions 0.001; RWKV-6 0.004; delta "
        "rules 0.005 and DPLR 0.007, their gradients 0.008 to 0.02), or no entry off by "
        "1e-6; l = 63, 500, 1024, 2048 (convolutions 64 to 1024), batch 2, n = 16 of 60 to 128",
        lengths((63, 500, 1024, 2048), h=2, d=4, n=16, p=16),
        {
            "gated_linear_recurrence_chunked": dict.fromkeys("qkv", uniform),
            "gated_delta_rule_chunked": OF_DELTA,
            "kimi_delta_rule_chunked": OF_DELTA,
        },
        own=(
            *("linear_scan", "ssd_recurrent", "ssd_chunked", "short_convolution"),
            *("gated_linear_recurrence_chunked", "gated_delta_rule_chunked"),
            *("kimi_delta_rule_chunked", "rwkv6_chunked", "delta_dplr_chunked", *chunks.STAGES),
        ),
        sizes_of={
            "convolution": tuple(
                {"l": l, "d": 16, "t": t} for l, t in ((64, 3), (128, 4), (500, 3), (1024, 4))
            )
        },
    ),
    Recipe(
        "KernelBench",
        "KernelBench 423217d, src/kernelbench/eval.py, level3/48_Mamba2ReturnY.py",
        within(KERNELBENCH, KERNELBENCH),
        "each entry within 1e-4 + 1e-4 |truth|, values only; five inputs, uniform from 0 to 1 "
        "(SSD: log decays, B and C normal), l = 128, batch 2 of 2048, 2 heads of 8, p = 64, n = 16",
        lengths((128,) * 5, h=2, d=4, n=16, p=64, t=4),
        {
            "": {"": uniform},
            "ssd": {"log_a": normal, "B": normal, "C": normal},
        },
        of_gradient=False,
        own=("ssd_chunked",),
    ),
    Recipe(
        "GPU MODE",
        "reference-kernels f83cb92, problems/helion: utils.py, eval.py; causal_conv1d_py and the "
        "three gated_deltanet_…_py, reference.py and task.yml of each",
        gpu_mode_close,
        "each entry within 1e-3 + 1e-3 |truth|, values only, of any type; l = 64, 128, 256 (tests) "
        "and 64, 512, 1024 (checked before times are taken), in chunks of 64; the stages with "
        "their inputs at their sizes, others n = p = 16; convolutions with 3, 4 and 8 taps, "
        "without their bias, d = 16 of 64 to 256, of 1536 for l = 2048",
        lengths((64, 128, 256, 64, 512, 1024), h=2, d=4, n=16, p=16, t=4),
        of_gradient=False,
        own=("short_convolution", *chunks.STAGES),
        sizes_of={
            "convolution": tuple(
                {"b": b, "l": l, "d": 16, "t": t}
                for b, l, t in (
                    *((1, 64, 4), (2, 128, 4), (1, 256, 3), (1, 64, 8), (4, 128, 4)),
                    (1, 2048, 4),
                )
            ),
            **dict.fromkeys(
                chunks.STAGES,
                tuple(
                    {"b": b, "c": l // 64, "m": l // 64, "l": 64, "h": h, "n": 64, "p": p}
                    for b, l, h, p in (
                        *((1, 64, 2, 64), (2, 128, 4, 64), (1, 256, 4, 128)),
                        *((1, 64, 1, 64), (2, 512, 3, 64), (2, 1024, 3, 64)),
                    )
                ),
            ),
        },
        together=chunks.of_gpu_mode,
        any_type=True,
    ),
)
CHECK_GRADS = CheckGrads(
    "jax check_grads",
    "jax 0.10.2, jax/_src/public_test_util.py (order 1, mode rev)",
    "no truth: along one random direction, the gradient within 2e-3 + 2e-3 |slope| of a "
    "central difference of the program itself, ε = 1e-4; l = 12, n = 3, batch 2, 2 channels",
)
PUBLISHED = (*RECIPES, CHECK_GRADS)
