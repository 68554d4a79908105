"""Programs in C++, JavaScript and Rust for `refssm new`: they read a case, and have a place for a
kernel. As they stand they decline each case: refssm has no kernel in these languages to put in.
"""

from importlib.resources import files

import numpy as np

from refssm._declaration.operator import Operator

ENDINGS = {"cpp": "cpp", "js": "mjs", "rust": "rs"}
BUILD = {
    "cpp": "g++ -O2 -std=c++17 -o {stem} {file}",
    "js": "",
    "rust": "rustc -O --edition 2021 -o {stem} {file}",
}
RUN = {"cpp": "./{stem} {{case}}", "js": "node {file} {{case}}", "rust": "./{stem} {{case}}"}
NUMBERS = {
    "cpp": {"float32": "float", "float64": "double", "complex64": "std::complex<float>",
            "complex128": "std::complex<double>"},
    "rust": {"float32": "f32", "float64": "f64", "complex64": "Complex<f32>",
             "complex128": "Complex<f64>"},
}  # fmt: skip
REAL = {"cpp": "Real<T>", "rust": "T::Real"}
FLAG = {"cpp": "Flag", "rust": "u8"}
OFFSETS = {"cpp": "Offset", "rust": "i64"}
READ = {
    "cpp": '    const auto {n} = judged.read<{t}>("{n}");  // {axes}',
    "rust": '    let {n} = case.read::<{t}>("{n}"); // {axes}',
    "js": "  const {n} = inputs.{n}; // {axes}",
}
MAKE = {
    "cpp": '    auto {n} = judged.zeros<{t}>("{n}");  // {axes}',
    "rust": '    let mut {n} = case.zeros::<{t}>("{n}"); // {axes}',
    "js": "  const {n} = outputs.{n}; // {axes}",
}
PARAMETER = {
    "cpp": '    const double {n} = judged.parameter("{n}");',
    "rust": '    let {n} = case.parameter("{n}");',
    "js": "  const {n} = parameters.{n};",
}
WRITE = {
    "cpp": '    if (done) judged.write("{n}", {n});',
    "rust": '    if done {{\n        case.write("{n}", &{n});\n    }}',
    "js": "",
}
DISPATCH = {
    "cpp": '        if (judged.dtype == "{d}") return kernel<{t}>(judged) ? 0 : 77;',
    "rust": '            "{d}" => kernel::<{t}>(&case),',
    "js": "",
}


def built(language: str, file: str) -> str:
    """The command that compiles a program; "" if there is nothing to compile."""
    return BUILD[language].format(file=file, stem=_stem(file))


def verified(op: Operator, language: str, file: str) -> str:
    """The command that judges a program."""
    run = RUN[language].format(file=file, stem=_stem(file))
    return f'refssm verify --exec "{run}" --as {op}'


def program(op: Operator, language: str, file: str) -> str:
    """The text of a program."""
    from refssm.conformance.checks.checks import types_of

    place = files("refssm.command") / "programs" / f"program.{ENDINGS[language]}"
    dispatch = [DISPATCH[language].format(d=t, t=_number(language, t)) for t in types_of(op)]
    parts = {
        "NAME": op.name,
        "FORMULA": (op.reference.__doc__ or "").strip().splitlines()[0],
        "BUILD": built(language, file),
        "VERIFY": verified(op, language, file),
        "READ": "\n".join(_given(op, language)),
        "WRITE": "\n".join(WRITE[language].format(n=name) for name in op.outputs),
        "DISPATCH": "\n".join(dispatch),
    }
    text = place.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def _given(op: Operator, language: str):
    """A line for each argument, parameter and output."""
    from refssm._declaration.layout import canonical

    usual = canonical(op)
    for (name, domain), axes in zip(op.inputs.items(), usual.inputs, strict=True):
        kind = {"flag": FLAG, "offsets": OFFSETS}.get(domain.kind, {}).get(language)
        yield _line(READ, language, name, axes, kind or (domain.real and REAL.get(language)) or "T")
    for name in op.static:
        yield PARAMETER[language].format(n=name)
    for name, axes, real in zip(op.outputs, usual.outputs, _real_outputs(op), strict=True):
        yield _line(MAKE, language, name, axes, (real and REAL.get(language)) or "T")


def _line(texts, language: str, name: str, axes, kind: str) -> str:
    return texts[language].format(n=name, t=kind, axes=" ".join(axes) or "one number")


def _real_outputs(op: Operator) -> list[bool]:
    """Whether each output is real even if the arguments are complex."""
    from refssm.conformance.cases.case import ordinary_case
    from refssm.conformance.checks.checks import types_of

    case = ordinary_case(op, types_of(op)[-1])
    if not op.inputs:
        with np.errstate(all="ignore"):
            made = op.reference(**case.statics)
        outputs = made if isinstance(made, tuple) else (made,)
        return [np.isrealobj(y) and types_of(op)[-1].startswith("complex") for y in outputs]
    return [t.kind == "f" for t in op.output_types(*case.arrays)]


def _number(language: str, dtype: str) -> str:
    return NUMBERS.get(language, {}).get(dtype, "")


def _stem(file: str) -> str:
    return file.rpartition(".")[0] or file
