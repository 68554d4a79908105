"""Which tests of this folder say something about the host build alone: on a card they skip."""

import inspect

FILES = {
    "test_host_": "it is about the host build",
    "test_mirrors_sanitized": "the sanitizers run the host build; .ci/gpu has compute-sanitizer",
    "test_gate": "it is about the compiler, which needs no card",
    "test_numba_": "it is about Numba's simulator; test_on_a_card.py has that tier on the card",
    "test_array_strict": "it is about arrays of the processor",
    "test_on_target": "it is about these tests themselves",
    "test_gpu_script": "it is about the script that runs these tests",
    "test_gpu_arguments": "it is about sentences, which a fake card gives",
}
USES = {
    "plant(": "a kernel with a bug may end the card's context",
    "def test_a_planted_bug": "a kernel with a bug may end the card's context",
    "only=": "only the host build runs chosen blocks alone",
    ".counts": "only the host build counts launches",
}
REASON = "only on the host build: "


def reason(file: str, source: str, parameters: dict) -> str:
    """Why a test needs the host build, or "": by its file, what it uses, and its parameters."""
    for start, why in FILES.items():
        if file.startswith(start):
            return REASON + why
    for used, why in USES.items():
        if used in source:
            return REASON + why
    if parameters.get("order", 0) != 0:
        return REASON + "threads of a card have no order that one could choose"
    return ""


def reason_of(item) -> str:
    """The reason of an item of pytest."""
    call = getattr(item, "callspec", None)
    source = inspect.getsource(item.function) if hasattr(item, "function") else ""
    return reason(item.path.name, source, dict(call.params) if call else {})
