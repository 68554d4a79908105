"""Libraries that can be judged by name: their plug-in modules, and which package each needs."""

from importlib.util import find_spec

from refssm.catalog import OPERATORS
from refssm.subjects import clones

SUBJECTS = "refssm.subjects"
MODULES = {
    "scipy": ("scipy",),
    "jax": ("jax_kernels", "jax_scans", "jax_recurrences", "jax_chunks", "jax_layers"),
    "torch": (
        "torch_kernels",
        "torch_scans",
        "torch_associative",
        "torch_recurrences",
        "torch_chunks",
        "torch_layers",
    ),
    "accelerated-scan": ("accelerated_scan",),
    "mambapy": ("mambapy",),
    "transformers": (
        "transformers",
        "transformers_xlstm",
        "qwen3_next",
        "mamba2_mixers",
        "transformers_layers",
    ),
    "onnx": ("onnx",),
    "s5-pytorch": ("s5_pytorch",),
    "lrnnx": ("lrnnx",),
    "mamba-ssm": ("mamba_ssm",),
    "control": ("control",),
}
# repositories without a package: folders that REFSSM_SUBJECTS has
MODULES |= {name: clone.modules for name, clone in clones.CLONES.items()}
# kernels that need a card; `refssm bench --device gpu --peers` times them
KERNELS = {
    "mamba-ssm": ("mamba_ssm_kernels",),
    "causal-conv1d": ("causal_conv1d",),
    "structured-kernels": ("s4_extension",),
    "accelerated-scan": ("accelerated_scan_warp", "accelerated_scan_triton"),
}
# if the importable module has another name
NEEDS = {
    "accelerated-scan": "accelerated_scan",
    "causal-conv1d": "causal_conv1d",
    "s5-pytorch": "s5",
    "mamba-ssm": "mamba_ssm",
    "structured-kernels": "structured_kernels",
}
# what no registry has under this name
BUILT = {"structured-kernels": "S4's authors publish its source, extensions/kernels of their code"}
NAMES = ("jit", *MODULES)


def target(name: str) -> list[str]:
    """The modules to judge for a library; `jit` stands for refssm's own Numba mirrors."""
    if name == "jit":
        mirrored = (op.family for op in OPERATORS if "jit" not in op.lacks)
        return [f"refssm.jit.{family}" for family in dict.fromkeys(mirrored)]
    return [f"{SUBJECTS}.{module}" for module in MODULES[name]]


def absent(name: str) -> str:
    """Why a library cannot be judged here, or ""."""
    if name in clones.CLONES:
        return clones.absent(name)
    module = NEEDS.get(name, name)
    if name == "jit" or find_spec(module) is not None:
        return ""
    return f"{module} is not installed: {BUILT.get(name, f'pip install {name}')}"
