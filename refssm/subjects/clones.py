"""Clones of public repositories that no package index has, and how a plug-in imports one.

The environment variable REFSSM_SUBJECTS names a folder of clones, each under the name of its
repository. Nothing of them is part of refssm. `make subjects FOLDER=…` says which are there.
"""

import ast
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

VARIABLE = "REFSSM_SUBJECTS"


@dataclass(frozen=True)
class Clone:
    """A repository, the judged commit, its plug-ins, and the packages that its files import."""

    repository: str
    commit: str
    modules: tuple[str, ...]
    needs: tuple[str, ...] = ()
    subject: str = ""  # for `--subject`, if a package has the repository's name

    @property
    def name(self) -> str:
        """The name of its folder, as `git clone` gives it."""
        return self.repository.rpartition("/")[2]


CLONES = {
    clone.subject or clone.name: clone
    for clone in (
        Clone(
            "Doraemonzzz/xopes",
            "1dfa3df896141398cd1afb92bca5c95ea8dacbac",
            ("xopes",),
            ("torch", "triton", "einops"),
        ),
        Clone(
            "erfanzar/ejkernel",
            "2107406ec1b90a7fa06b3af40799c8f9c7f02aff",
            ("ejkernel",),
            ("jax", "jaxtyping"),
        ),
        Clone(
            "NX-AI/mlstm_kernels",
            "39d3c61741e5d2c0e6ab8922106dd236632c5139",
            ("mlstm_kernels",),
            ("torch", "einops", "triton"),
        ),
        Clone(
            "NX-AI/xlstm",
            "032a6fb8ee19a8c0db80ae6111ff4744a09414a9",
            ("xlstm_backends",),
            ("torch",),
        ),
        Clone(
            "tommyip/mamba2-minimal",
            "4f4413731f24303b4e046962bce6ca5b6a3b13d6",
            ("mamba2_minimal",),
            ("torch", "einops"),
        ),
        Clone(
            "lindermanlab/S5",
            "3c18fdb6b06414da35e77b94b9cd855f6a95ef17",
            ("s5",),
            ("jax", "flax"),
        ),
        Clone(
            "NicolasZucchet/minimal-LRU",
            "bbd71b1104c399ec0d13819527d791949e66f599",
            ("minimal_lru",),
            ("jax", "flax"),
        ),
        Clone(
            "HazyResearch/hippo-code",
            "201148256bd2b71cb07668dc00075420cfd4c567",
            ("hippo_code",),
            ("torch", "nengo", "matplotlib"),
        ),
        Clone(
            "raminmh/liquid-s4",
            "06031dc770975d364f7d5b2fbf77b41b2c4bddd1",
            ("liquid_s4",),
            ("torch", "einops", "opt_einsum", "pytorch_lightning", "omegaconf", "rich"),
        ),
        Clone(
            "radarFudan/StableSSM",
            "64315ac894688b852016191ad73631cfaff7ecae",
            ("stablessm",),
            ("torch", "einops"),
        ),
        Clone(
            "state-spaces/s4",
            "e757cef57d89e448c413de7325ed5601aceaac13",
            ("s4",),
            ("torch", "einops", "pytorch_lightning", "scipy"),
        ),
        Clone(
            "ag1988/dss",
            "777084e777c27caba2e87eceecb3f49d1b761cd8",
            ("dss",),
            ("torch", "einops", "opt_einsum", "pytorch_lightning", "omegaconf"),
        ),
        Clone(
            "HazyResearch/H3",
            "5c4d06b5795405170387c80998b58d76179a8a1a",
            ("h3",),
            ("torch", "einops", "opt_einsum"),
        ),
        Clone(
            "AnnanYu/HOPE-SSM",
            "553ffde161f426d37939754cae1d62dddf9b7b77",
            ("hope_ssm",),
            ("torch", "einops", "scipy"),
        ),
        Clone(
            "srush/annotated-s4",
            "f19e2464990f0c07943bb922894d6f2af65c9bd9",
            ("annotated_s4",),
            ("jax", "flax"),
        ),
        Clone(
            "fla-org/flash-linear-attention",
            "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89",
            (
                "flash_linear_attention",
                "flash_linear_attention_delta",
                "flash_linear_attention_delta_kernels",
                "flash_linear_attention_rwkv6",
                "flash_linear_attention_rwkv7",
            ),
            ("torch", "triton", "einops", "transformers"),
        ),
        Clone(
            "state-spaces/mamba",
            "e9594ce1c732d97440f0332fdc43170a2294dbfa",
            ("mamba", "mamba2_references", "mamba3_references"),
            ("torch", "triton", "einops", "transformers"),
        ),
        Clone(
            "Dao-AILab/causal-conv1d",
            "0d2252d161f25f7907bbd05985c08ab98d255874",
            ("causal_conv1d_references",),
            ("torch",),
            subject="causal-conv1d-references",
        ),
        Clone(
            "proger/accelerated-scan",
            "866fa4cd4eaf01338ee6d77a4f99fcd4b2f656d1",
            ("proger_accelerated_scan",),
            ("torch", "triton"),
            subject="proger-accelerated-scan",
        ),
        Clone(
            "johnma2006/mamba-minimal",
            "03de542a36d873f6e6c4057ad687278cc6ae944d",
            ("mamba_minimal",),
            ("torch", "einops"),
        ),
        Clone(
            "alxndrTL/mamba.py",
            "2cc168c78b2494557f45072c4b8daa9d6f5608c7",
            ("mamba_py",),
            ("torch",),
        ),
        Clone(
            "kroggen/mamba.c",
            "7387f49e352f86a0c22041c0f66fd2a40b58a207",
            ("mamba_c",),
        ),
        Clone(
            "ggml-org/ggml",
            "d99724f2b141fed9e1a9f402213506c081433465",
            ("ggml", "ggml_rwkv", "ggml_rwkv7"),
        ),
        Clone(
            "BlinkDL/RWKV-LM",
            "524481d5099b38d9bc8ef1e89209161b86c8011b",
            ("rwkv_lm", "rwkv7"),
            ("torch",),
        ),
        Clone(
            "BlinkDL/RWKV-CUDA",
            "9b17d5d80a0e9d2cbf090590725672464daa3aee",
            ("rwkv_cuda",),
            ("torch", "triton"),
        ),
        Clone(
            "vllm-project/vllm",
            "v0.33.0",
            ("vllm",),
            ("torch", "einops"),
        ),
        Clone(
            "flashinfer-ai/flashinfer",
            "fb28d7242b3506a2348265962041acc1fb56cca4",
            ("flashinfer",),
            ("torch",),
        ),
        Clone(
            "ml-explore/mlx-lm",
            "d78bf58e217c904ec282ed8da9b947491f78c022",
            ("mlx_lm", "mlx_lm_recurrences"),
            ("mlx",),
        ),
        Clone(
            "meta-pytorch/attention-gym",
            "7fdb85d0b96668397adee48de54b6f1036497717",
            ("attention_gym",),
            ("torch",),
        ),
        Clone(
            "gpu-mode/reference-kernels",
            "f83cb92a534cc67fa98d7e9813e7f8238abdb4e0",
            ("gpu_mode",),
            ("torch",),
        ),
        Clone(
            "ScalingIntelligence/KernelBench",
            "423217d9fda91e0c2d67e4a43bf62f96f6d104f1",
            ("kernelbench",),
            ("torch", "einops"),
        ),
        Clone(
            "idoh/mamba.np",
            "6c54a64254de986e375da40a995f02e329ba1582",
            ("mamba_np",),
            ("einops", "transformers"),
        ),
        Clone(
            "google-deepmind/recurrentgemma",
            "2efa84dac0e68e63547a27a18fa943c98f1c312e",
            ("recurrentgemma_torch", "recurrentgemma_jax"),
            ("torch", "jax", "flax", "einops", "jaxtyping", "typeguard", "absl", "sentencepiece"),
        ),
        Clone(
            "lucidrains/minGRU-pytorch",
            "38b26e119a2e85e70ea53825dc09b91b021afa06",
            ("mingru_pytorch",),
            ("torch",),
        ),
        Clone(
            "tk-rusch/linoss",
            "83e6318469cf9e5f78290ed5f5fe8db7cfb6e667",
            ("linoss",),
            ("jax",),
        ),
        Clone(
            "TariqAHassan/S4Torch",
            "9c5c72ce3ea84d1450ec11e5ae97bed7085ea3fb",
            ("s4torch",),
            ("torch",),
        ),
    )
}


def path_of(name: str) -> Path | None:
    """The folder of a clone, or None if it is not there."""
    folder = os.environ.get(VARIABLE, "")
    path = Path(folder).expanduser() / (CLONES[name].name if name in CLONES else name)
    return path if folder and path.is_dir() else None


def absent(name: str) -> str:
    """Why a repository cannot be judged here, or ""."""
    clone = CLONES[name]
    if path_of(name) is None:
        clone_it = f"git clone https://github.com/{clone.repository}"
        return f"{name} is not here: {clone_it} in a folder that {VARIABLE} names"
    lacking = [package for package in clone.needs if find_spec(package) is None]
    return f"{name} needs {', '.join(lacking)}: pip install it" if lacking else ""


def source(name: str, file: str) -> Path:
    """A file of a clone. Raises ImportError with a sentence if the clone is not there."""
    if reason := absent(name):
        raise ImportError(reason)
    path = path_of(name)
    assert path is not None
    return path / file


def module(name: str, dotted: str, root: str = "", *, stays: bool = False) -> ModuleType:
    """A module of a clone, by its dotted name below the folder `root` of the clone.

    Many repositories call their package `src` or `models`, so its modules do not stay in
    `sys.modules`, unless `stays`: for functions that import their package again when they are
    called. Raises ImportError with a sentence if the clone or a package is not there.
    """
    path = source(name, "")
    with _first_on_path(path / root, path, stays):
        return import_module(dotted)


def alone(name: str, file: str) -> ModuleType:
    """One file of a clone as a module, without the package that it belongs to.

    For a package that imports far more than the file needs. Raises ImportError as `module` does.
    """
    path = source(name, file)
    spec = spec_from_file_location(f"{path.stem} of {name}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def definitions(name: str, file: str, *functions: str, **imported: Any) -> SimpleNamespace:
    """Functions and classes of a file that imports too much, with the modules that they need.

    These come by their names. Test files have references beside tests that need a card. Raises
    ImportError as `module` does.
    """
    path = source(name, file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (x for x in tree.body if isinstance(x, (ast.FunctionDef, ast.ClassDef)))
    kept: list[ast.stmt] = [x for x in found if x.name in functions]
    exec(compile(ast.Module(kept, []), str(path), "exec"), imported)
    return SimpleNamespace(**{f: imported[f] for f in functions})


@contextmanager
def _first_on_path(root: Path, clone: Path, stays: bool) -> Iterator[None]:
    """Import from `root` before anything else, without bytecode, and forget the clone's modules."""
    before, written = dict(sys.modules), sys.dont_write_bytecode
    tops = {p.stem for p in root.iterdir()} if root.is_dir() else set()
    if not stays:
        _forget([m for m in sys.modules if m.partition(".")[0] in tops], clone)
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = written
        if not stays:
            _forget([m for m in sys.modules if m not in before], clone)


def _forget(names: list[str], clone: Path) -> None:
    """Delete those of these modules that are the clone's.

    All are looked at before one is deleted: a package without `__init__.py` asks its parent.
    """
    for theirs in [name for name in names if _inside(sys.modules[name], clone)]:
        del sys.modules[theirs]


def _inside(loaded: ModuleType, clone: Path) -> bool:
    """True if a loaded module, or a package without `__init__.py`, is a file of the clone."""
    spec = getattr(loaded, "__spec__", None)  # torch.classes answers to every name
    folders = getattr(spec, "submodule_search_locations", None) or []
    places = [getattr(spec, "origin", None), *folders]
    return any(isinstance(p, str) and Path(p).is_relative_to(clone) for p in places)
