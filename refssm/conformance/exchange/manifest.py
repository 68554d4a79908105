"""Read and validate the manifest of a folder of cases: by its schema and by the files it names.

An error is one sentence: the file, the place in it, the wanted and the actual value.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files as packaged
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator

from refssm._declaration.layout import Layout, canonical, in_layout, parse, restored
from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import ENDS, MEDLEY, NORMAL_MEDLEY, PARTS_AT_ENDS, Case, Knob
from refssm.conformance.cases.stacking import free_arguments
from refssm.conformance.exchange import files
from refssm.conformance.exchange.call import TypedCall, described
from refssm.conformance.exchange.program import Ended
from refssm.conformance.file_errors import DOCUMENT, contents
from refssm.conformance.number_types import number_type
from refssm.conformance.usage_error import UsageError, shown
from refssm.presets.catalog import preset_named

FORMAT, VERSION, NAME = "refssm-cases", 1, "manifest.json"
SCHEMA = "manifest.schema.json"


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of a manifest, which lists the cases of a folder."""
    text = packaged("refssm.conformance.exchange").joinpath(SCHEMA).read_text(encoding="utf-8")
    return json.loads(text)


CHECKS = tuple(schema()["$defs"]["check"]["enum"])


@dataclass(frozen=True, eq=False)
class Stored:
    """One folder: its call, and the arguments with the catalog's axes."""

    id: str
    folder: Path
    call: TypedCall
    check: str
    record: dict
    arrays: list[np.ndarray]
    layout: Layout | None

    def canonical_outputs(self, outputs) -> tuple:
        """The outputs with the catalog's axes, not the layout's; Ended for one without them."""
        usual = _usual(self.call)
        kept = []
        for y, slot, axes in zip(outputs, self.call.outputs, usual, strict=True):
            try:
                laid_out = self.layout and isinstance(y, np.ndarray)
                kept.append(restored(y, slot.axes, axes, self.call.sizes) if laid_out else y)
            except ValueError as error:
                raise Ended("malformed", f"`{slot.name}` has {error}") from None
        return tuple(kept)


@dataclass(frozen=True)
class Folder:
    """A folder of cases."""

    path: Path
    head: dict
    cases: dict[str, Stored]
    judged: list[dict]

    def case(self, line: dict) -> Case:
        """A judged case, with the arguments in its folder."""
        op = operator_named(line["operator"])
        kind, drawn = number_type(line["dtype"]), self.cases[line["drawn"]]
        knobs = {name: Knob(**knob) for name, knob in line["knobs"].items()}
        half, preset = kind if kind.half else None, preset_named(op, line.get("preset", ""))
        drawn_as = kind.carrier, line["sizes"], line["batch"], knobs, line["seed"]
        case = Case(op, *drawn_as, half, line["parameters"], preset)
        # use the stored arrays: this machine may draw others
        vars(case)["arrays"] = drawn.arrays[len(drawn.arrays) - len(op.inputs) :]
        return case


def load(path: Path) -> Folder:
    """The folder of cases; UsageError if the manifest or a file is invalid or changed."""
    name = path / NAME
    document = _parsed(name)
    _validate(name, document)
    where = f"{name}: cases"
    layouts = {o: _layout(name, o, text) for o, text in document["layouts"].items()}
    cases: dict[str, Stored] = {}
    for i, record in enumerate(document["cases"]):
        if record["id"] in cases:
            raise UsageError(f"{where}[{i}].id: {record['id']!r} appears twice")
        stored = _stored(path, f"{where}[{i}]", record, layouts.get(record["operator"]))
        cases[stored.id] = stored
    for i, line in enumerate(document["judged"]):
        _fits(f"{name}: judged[{i}]", line, cases)
    return Folder(path, document, cases, document["judged"])


def _parsed(name: Path) -> Any:
    try:
        text = contents(name, DOCUMENT).decode("utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"{name}: no such file; `refssm cases write` writes a folder of cases"
        ) from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not JSON: byte {error.start} is not UTF-8") from None
    try:
        return json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}") from None


def _refused(constant: str):
    raise ValueError(f"{constant} is not a number in JSON")


def _once(pairs) -> dict:
    twice = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
    if twice:
        raise ValueError(f"the key {twice[0]!r} appears twice")
    return dict(pairs)


def _validate(name: Path, document) -> None:
    """UsageError for the first violation of the schema; format and version are checked first."""
    if isinstance(document, dict) and document.get("format") != FORMAT:
        came = shown(document.get("format"))
        raise UsageError(f"{name}: format: wanted {FORMAT!r}, got {came}")
    if isinstance(document, dict) and document.get("version") != VERSION:
        came = shown(document.get("version"))
        raise UsageError(f"{name}: version: this refssm reads {VERSION}, got {came}")
    for error in Draft202012Validator(schema()).iter_errors(document):
        while error.context:  # none of several alternatives holds: report the first
            error = error.context[0]
        place = _place(error.absolute_path)
        raise UsageError(f"{name}: {place}{_wanted(error)}")


def _place(path) -> str:
    words = [f"[{p}]" if isinstance(p, int) else f".{p}" for p in path]
    return f"{''.join(words).lstrip('.')}: " if words else ""


def _wanted(error) -> str:
    """The wanted and the actual value, shortened."""
    kind, wanted, came = str(error.validator), error.validator_value, shown(error.instance)
    if kind == "required":
        return f"has no key {next(k for k in wanted if k not in error.instance)!r}"
    if kind in ("additionalProperties", "unevaluatedProperties"):
        return f"has an unknown key: {error.message}"
    if kind == "minItems":
        return "is empty"
    if kind == "enum":
        wanted = f"one of {', '.join(map(str, wanted))}"
    words = {"pattern": "a name like {}", "minimum": "{} or more", "maximum": "{} or less"}
    return f"wanted {words.get(kind, '{}').format(wanted)}, got {came}"


def _layout(name: Path, operator: str, text: str) -> Layout:
    try:
        return parse(in_layout(operator_named(operator), text), text)
    except (ValueError, UsageError) as error:
        raise UsageError(f"{name}: layouts.{operator}: {error}") from None


def _operator(where: str, name: str) -> Operator:
    try:
        return operator_named(name)
    except UsageError as error:
        raise UsageError(f"{where}.operator: {error}") from None


def _stored(path: Path, where: str, record: dict, layout: Layout | None) -> Stored:
    """One folder, if its files are unchanged and fit the manifest and the operator."""
    op, folder = _operator(where, record["operator"]), path / record["id"]
    op = in_layout(op, f"{layout or ''}")
    vjp = record["call"] != op.name
    if vjp and (record["call"] != f"{op}_vjp" or not op.differentiable):
        raise UsageError(f"{where}.call: wanted {op} or {op}_vjp, got {record['call']!r}")
    for holder in _files(record):
        _unchanged(folder / holder["file"], holder["sha256"])
    given = [_read(folder / told["file"]) for told in record["inputs"]]
    kind, merged = number_type(record["dtype"]), record.get("merged", {})
    usual = canonical(op)
    axes = (usual.outputs * vjp + usual.inputs, (layout or usual).outputs * vjp)
    axes = (axes[0], axes[1] + (layout or usual).inputs)
    try:
        arrays = given
        if layout:
            pairs = zip(given, *axes, strict=True)
            arrays = [restored(a, own, to, merged) for a, to, own in pairs]
        primals = arrays[len(op.outputs) * vjp :]
        if {*record["statics"]} != {*op.static}:
            raise ValueError(f"wanted the keywords {', '.join(op.static) or 'none'}")
        op.output_shapes(*primals, **record["statics"])
        call = described(op, vjp, kind, given, record["statics"], layout, merged)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise UsageError(f"{where}: {folder} does not fit {record['call']}: {error}") from None
    _alike(where, record, call)
    arrays = [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays]
    return Stored(record["id"], folder, call, record["check"], record, arrays, layout)


def _files(record: dict) -> Iterator[dict]:
    """All entries of a record with a checksum."""
    yield from record["inputs"]
    for told in record["outputs"]:
        yield from (told[what] for what in ("want", "allowed") if told[what])
    if record["gauge"]:
        yield record["gauge"]


def _unchanged(path: Path, sha256: str) -> None:
    if not path.is_file():
        raise UsageError(f"{path}: no such file, but the manifest lists it")
    try:
        came = files.digest(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if came != sha256:
        raise UsageError(
            f"{path} was changed: its SHA-256 begins with {came[:8]}, wanted "
            f"{sha256[:8]}; write the cases again"
        )


def _read(path: Path) -> np.ndarray:
    try:
        return files.read(path)
    except files.Unreadable as error:
        raise UsageError(f"{path.parent}: {error}") from None


def _alike(where: str, record: dict, call: TypedCall) -> None:
    """UsageError if the manifest's description of an array differs from file or operator."""
    for side, slots in (("inputs", call.inputs), ("outputs", call.outputs)):
        told = record[side]
        if len(told) != len(slots):
            raise UsageError(f"{where}.{side}: wanted {len(slots)} arrays, got {len(told)}")
        for i, slot in enumerate(slots):
            for key, wanted in asdict(slot).items():
                wanted = [*wanted] if isinstance(wanted, tuple) else wanted
                if told[i][key] != wanted:
                    came = shown(told[i][key])
                    raise UsageError(f"{where}.{side}[{i}].{key}: wanted {wanted!r}, got {came}")


def _fits(where: str, line: dict, cases: dict[str, Stored]) -> None:
    """UsageError if a judged case has unknown folders, or sizes or knobs its operator lacks."""
    op = _operator(where, line["operator"])
    for name in (line["drawn"], *line["calls"]):
        if name not in cases:
            raise UsageError(f"{where}: there is no case {name!r}")
        if cases[name].call.op.name != op.name:
            raise UsageError(f"{where}: {name} is a case of {cases[name].call.op}, not of {op}")
    drawn = cases[line["drawn"]]
    known = {
        "sizes": {d for dims in (*op.input_dims, *op.output_dims) for d in dims},
        "batch": {*op.batch_names},
        "parameters": {*op.static},
        "knobs": {*op.inputs},
    }
    for key, names in known.items():
        if stray := sorted({*line[key]} - names):
            raise UsageError(f"{where}.{key}: {op} has no {stray[0]!r}")
    try:
        preset = preset_named(op, line.get("preset", ""))
    except LookupError as error:
        raise UsageError(f"{where}.preset: {error}") from None
    wanted = {*(free_arguments(op, preset) if preset else op.inputs)}
    if missing := sorted(wanted - {*line["knobs"]}):
        raise UsageError(f"{where}.knobs: has no key {missing[0]!r}")
    given = drawn.record["dtype"]
    if given != line["dtype"]:
        raise UsageError(f"{where}.dtype: wanted {given!r} as in {drawn.id}, got {line['dtype']!r}")
    for name, knob in line["knobs"].items():
        domain = op.inputs[name]
        textures = (*domain.textures, *chain(*domain.structured.values()), *ENDS, *PARTS_AT_ENDS)
        for key, kinds in (("map", domain.maps), ("texture", textures)):
            if knob[key] not in (*kinds, MEDLEY, NORMAL_MEDLEY, "each"):
                raise UsageError(f"{where}.knobs.{name}.{key}: unknown {key} {knob[key]!r}")


def _usual(call: TypedCall):
    """The canonical axes of the outputs or gradients of a call."""
    usual = canonical(call.op)
    if not call.vjp:
        return usual.outputs
    named = zip(call.op.inputs, usual.inputs, strict=True)
    return [axes for name, axes in named if name not in call.op.discrete]
