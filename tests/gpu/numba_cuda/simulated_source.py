"""A kernel's Python source as a generator for the simulator.

Barriers become `yield`, operators and literals are checked, and names get the simulator's meaning.
Functions that the kernel calls are translated too; there must be no barrier in them.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from gpu.numba_cuda.field import cuda
from gpu.numba_cuda.simulated_memory import KernelBug
from gpu.numba_cuda.simulated_names import BUILTINS, LIBDEVICE, MATH, Device, arithmetic, element

OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne",
}  # fmt: skip
CHECKED = {f"_{name}": arithmetic(name) for name in OPERATORS.values()}
WIDE = {"_f8": np.float64, "_c16": np.complex128}  # what a literal is in Numba
ALLOWED = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Expr, ast.Constant, ast.Assign, ast.Name, ast.Load,
    ast.Store, ast.Tuple, ast.Call, ast.Attribute, ast.Subscript, ast.If, ast.IfExp, ast.For,
    ast.While, ast.Return, ast.UnaryOp, ast.Not, ast.USub, ast.Pass, ast.BoolOp, ast.And,
    ast.Or, ast.Yield, ast.Module,
)  # fmt: skip


def translated(function: Callable, device: Device, edit: Callable[[str], str] = str):
    """The kernel as a function that makes a thread, and the file name in its traces."""
    filename = inspect.getsourcefile(function) or "kernel"
    return _translated(function, device, {}, edit, barriers=True), filename


def _translated(function, device, known, edit, barriers=False):
    if function in known:
        return known[function]
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(edit(textwrap.dedent("".join(lines))))
    tree = ast.increment_lineno(_Translator(barriers, first - 1).visit(tree), first - 1)
    (definition,) = tree.body
    definition.decorator_list = []
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise KernelBug(f"the simulator does not know {type(node).__name__}")
    names: dict[str, Any] = {"__builtins__": BUILTINS, **WIDE, **CHECKED, "_device": device}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    outer = inspect.getclosurevars(function)
    for name, value in {**function.__globals__, **outer.nonlocals}.items():
        if name in used:
            names[name] = _meaning(value, device, known, edit)
    source = inspect.getsourcefile(function) or "kernel"
    exec(compile(ast.fix_missing_locations(tree), source, "exec"), names)
    known[function] = names[definition.name]
    return known[function]


def _meaning(value: Any, device: Device, known: dict, edit: Callable[[str], str]) -> Any:
    """What a name outside of the kernel is inside of the simulator."""
    if value is cuda:
        return device
    if value is math:
        return MATH
    if getattr(value, "__module__", "").endswith("cuda.libdevice"):
        return LIBDEVICE[value.__name__]
    function = getattr(value, "py_func", value)
    if inspect.isfunction(function):
        return _translated(function, device, known, edit)
    return element(value)


class _Translator(ast.NodeTransformer):
    """Rewrites one function."""

    def __init__(self, barriers: bool, offset: int):
        self.barriers, self.offset = barriers, offset

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        if self.barriers:  # a generator, even if no barrier is left
            last = ast.If(ast.Constant(False), [ast.Expr(ast.Yield(ast.Constant(0)))], [])
            node.body.append(last)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if ast.unparse(node) != "cuda.syncthreads()":
            return self.generic_visit(node)
        if not self.barriers:
            raise KernelBug(f"line {node.lineno}: a barrier in a function that a kernel calls")
        line = ast.Constant(node.lineno + self.offset)
        return ast.copy_location(ast.Expr(ast.Yield(line)), node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, float | complex):
            return node
        kind = "_f8" if isinstance(node.value, float) else "_c16"
        return ast.copy_location(ast.Call(ast.Name(kind, ast.Load()), [node], []), node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return _applied(node, node.op, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) > 1:
            raise KernelBug(f"line {node.lineno + self.offset}: a chain of comparisons")
        (op,), (right,) = node.ops, node.comparators
        return _applied(node, op, node.left, right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        value = _applied(node, node.op, self.visit(before), node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Call(self, node: ast.Call) -> Any:
        if ast.unparse(node.func) == "cuda.shared.array":
            place = ast.Constant(f"line {node.lineno}, {node.col_offset}")
            node.func = ast.Attribute(ast.Name("_device", ast.Load()), "shared_at", ast.Load())
            node.args = [place, *node.args]
        return self.generic_visit(node)


def _applied(node: ast.expr | ast.stmt, op: ast.AST, left: ast.expr, right: ast.expr) -> ast.Call:
    """The checked function for an operator."""
    kind = type(op).__name__
    if kind not in OPERATORS:
        raise KernelBug(f"line {node.lineno}: the simulator does not know {kind}")
    call = ast.Call(ast.Name(f"_{OPERATORS[kind]}", ast.Load()), [left, right], [])
    return ast.copy_location(call, node)
