"""Formulas for compiled code, written once for single numbers and for the lanes of a SIMD register.

A function of `Term`s is a formula. `elementwise` makes it callable in compiled functions:

    @elementwise
    def half_square(x):
        return 0.5 * x * x

Numba then puts its instructions where it is called, without branches, so loops around it vectorize.
Bits and fused products are available that Python's floats do not have.
"""

from dataclasses import dataclass
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import models, register_model

from refssm.jit._compiling.parts import callable_as


class Number(NamedTuple):
    """A floating type: its bits, constants for rounding and powers of two, and the polynomials that
    are accurate enough for it (`exponential.py`)."""

    bits: int
    fraction: int  # bits of the fraction
    bias: int  # the exponent's bits in 1.0
    lowest: float  # below, e^x rounds to 0
    highest: float  # above, e^x is infinite
    ln2: tuple[float, float]  # its first digits, so few that k · ln2[0] is exact; the others
    exp: tuple[float, ...]
    exp2: tuple[float, ...]
    log1p: tuple[float, ...]
    mills: tuple[float, ...]  # of the normal distribution

    @property
    def rounder(self) -> float:
        """M: t + M has no digits behind the point, and its last bits are the whole number."""
        return 1.5 * 2**self.fraction

    @property
    def rounder_bits(self) -> int:
        """The bits of M, as a whole number."""
        return (self.bias + self.fraction << self.fraction) + (1 << self.fraction - 1)


# polynomials at Chebyshev's nodes, the constant first; tests/test_exponential.py computes them
FLOAT32 = Number(
    bits=32,
    fraction=23,
    bias=127,
    lowest=-105.0,
    highest=89.0,
    ln2=(0.693115234375, 3.194618329871446e-05),
    exp=(0.5, 0.1666666716337204, 0.04166646674275398, 0.00833331048488617,
         0.0013933641603216529, 0.00019890980911441147),
    exp2=(0.6931471824645996, 0.24022650718688965, 0.055503569543361664, 0.009618083015084267,
          0.0013390863314270973, 0.00015453163359779865),
    log1p=(0.0833333358168602, 0.012499907985329628, 0.002233777893707156, 0.0004239565460011363,
           0.00011340004857629538),
    mills=(0.23665238916873932, -0.190471351146698, 0.12130097299814224, -0.05844307318329811,
           0.01892698183655739, -0.002357923425734043, -0.0011032212059944868,
           0.0004909487324766815, 5.9218004025751725e-05, -3.9341026422334835e-05),
)  # fmt: skip
FLOAT64 = Number(
    bits=64,
    fraction=52,
    bias=1023,
    lowest=-746.0,
    highest=710.0,
    ln2=(0.6931471805592082, 7.371002565167799e-13),
    exp=(0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752,
         0.00019841269874800493, 2.4801587325533363e-05, 2.7557255425746435e-06,
         2.7557273661348637e-07, 2.510520637395701e-08, 2.0914679376583935e-09),
    exp2=(0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888,
          0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05,
          1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09,
          4.4549605981865186e-10),
    log1p=(0.08333333333333333, 0.012499999999999852, 0.0022321428571562578,
           0.00043402777730931194, 8.877841747052107e-05, 1.8779960894605164e-05,
           4.069573556960833e-06, 8.9525444498468e-07, 2.068553618408206e-07,
           3.572532556319602e-08, 1.8633100749162258e-08),
    mills=(0.23665238291356067, -0.19047136385249777, 0.12130119435844994, -0.05844262037480935,
           0.018923970288979852, -0.002362556357162043, -0.0010902869076394475,
           0.0005109819523389416, 4.178055834587388e-05, -7.240860254189954e-05,
           -5.977817781074488e-07, 1.101168536614313e-05, 2.2400822990873714e-07,
           -1.8545957262909316e-06, -1.958274198550998e-07, 3.196174576402404e-07,
           8.257557501227253e-08, -4.844675831195251e-08, -2.3921733852572336e-08,
           4.650544327432624e-09, 4.379245082110326e-09, -3.1812111912153817e-12,
           -3.1303476250907414e-10),
)  # fmt: skip
NUMBERS = {"float": FLOAT32, "double": FLOAT64}  # by LLVM's name


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

    return callable_as(formula, define)
