"""Formulas for compiled code, written once for single numbers and for the lanes of a SIMD register.

A function of `Term`s is a formula. `elementwise` makes it callable in compiled functions:

    @elementwise
    def half_square(x):
        return 0.5 * x * x

Numba then puts its instructions where it is called, without branches, so loops around it vectorize.
Bits and fused products are available that Python's floats do not have.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalCall=false
# pyright: reportArgumentType=false
# (Numba and llvmlite make attributes when they are imported; an intrinsic is called without its
# first parameter)

import inspect
from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic, models, register_model

from refssm.jit._vectors.number import NUMBERS

REGISTER = 512  # bits; where registers are shorter, the compiler uses several


class Lanes(types.Type):
    """The type of a register of numbers: 16 of float32, 8 of float64."""

    def __init__(self, dtype: types.Float):
        self.dtype, self.count = dtype, REGISTER // dtype.bitwidth
        super().__init__(f"Lanes({dtype})")


@register_model(Lanes)
class _FormulaModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, kind.count))


@dataclass(frozen=True)
class Term:
    """A value of the compiled function: a number or lanes, floating or whole."""

    builder: ir.IRBuilder
    value: ir.Value

    @property
    def number(self):
        """What is known of the floating type: digits, exponents, coefficients."""
        return NUMBERS[str(_element(self.value.type))]

    def _of(self, other):
        """`other` as a value of this type; a constant becomes all lanes."""
        return other.value if isinstance(other, Term) else _constant(self.value.type, other)

    def _apply(self, name, other, swapped=False):
        pair = self.value, self._of(other)
        name = name if isinstance(_element(self.value.type), ir.IntType) else f"f{name}"
        return Term(self.builder, getattr(self.builder, name)(*(pair[::-1] if swapped else pair)))

    def __add__(self, other):
        return self._apply("add", other)

    def __sub__(self, other):
        return self._apply("sub", other)

    def __mul__(self, other):
        return self._apply("mul", other)

    def __truediv__(self, other):
        return self._apply("div", other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return self._apply("sub", other, swapped=True)

    def __rtruediv__(self, other):
        return self._apply("div", other, swapped=True)

    def __neg__(self):
        return Term(self.builder, self.builder.fneg(self.value))

    def __lshift__(self, count):
        return Term(self.builder, self.builder.shl(self.value, self._of(count)))

    def __rshift__(self, count):
        return Term(self.builder, self.builder.ashr(self.value, self._of(count)))

    def bits(self):
        """The same bits as a whole number."""
        kind = ir.IntType(self.number.bits)
        return Term(self.builder, self.builder.bitcast(self.value, _shaped(kind, self.value.type)))

    def floating(self):
        """The same bits as a floating number."""
        kind = ir.FloatType() if _element(self.value.type).width == 32 else ir.DoubleType()
        return Term(self.builder, self.builder.bitcast(self.value, _shaped(kind, self.value.type)))

    def times_plus(self, factor, summand):
        """self · factor + summand, rounded once where the processor can."""
        # not LLVM's `fma`, which is a slow function where the processor has no instruction
        kind = self.value.type
        lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
        name = f"llvm.fmuladd.{lanes}f{self.number.bits}"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(kind, [kind] * 3), name
        )
        arguments = self.value, self._of(factor), self._of(summand)
        return Term(self.builder, self.builder.call(function, arguments))

    def where(self, sign, other, chosen, rejected):
        """`chosen` where `self sign other`, else `rejected`; NaN compares as false."""
        condition = self.builder.fcmp_ordered(sign, self.value, self._of(other))
        pair = self._of(chosen), self._of(rejected)
        return Term(self.builder, self.builder.select(condition, *pair))


def _element(kind: ir.Type) -> ir.Type:
    """The type of a lane, or of the number itself."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def _shaped(element: ir.Type, like: ir.Type) -> ir.Type:
    """As many of this element as `like` has."""
    return ir.VectorType(element, like.count) if isinstance(like, ir.VectorType) else element


def _constant(kind: ir.Type, number) -> ir.Constant:
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)
    return ir.Constant(kind, number)


def splatted(builder, value, kind: ir.Type):
    """A number in all lanes; lanes stay."""
    if value.type == kind:
        return value
    empty, whole = ir.Constant(kind, ir.Undefined), ir.VectorType(ir.IntType(32), kind.count)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(whole, [0] * kind.count))


def signature_of(*arguments):
    """Lanes where an argument has lanes; numbers beside them have the lanes' type."""
    kind = next((a for a in arguments if isinstance(a, Lanes)), arguments[0])
    number = kind.dtype if isinstance(kind, Lanes) else kind
    return kind(*(a if isinstance(a, Lanes) else number for a in arguments))


def code_of(formula):
    """What Numba calls to write the instructions of a formula."""

    def write(context, builder, signature, values):
        kind = context.get_value_type(signature.return_type)
        return formula(*(Term(builder, splatted(builder, v, kind)) for v in values)).value

    return write


def elementwise(formula):
    """This formula as a function for compiled code, of numbers or lanes."""

    def define(typingctx, *arguments):
        return signature_of(*arguments), code_of(formula)

    # Numba asks for the number of arguments
    own = inspect.signature(formula).parameters
    context = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    define.__signature__ = inspect.Signature([context, *own.values()])
    define.__name__, define.__doc__ = formula.__name__, formula.__doc__
    return intrinsic(define)
