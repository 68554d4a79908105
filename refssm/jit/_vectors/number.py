"""The two floating types of formulas: their bits, and constants for rounding and powers of two."""

from typing import NamedTuple


class Number(NamedTuple):
    """A floating type, and the polynomials that are accurate enough for it (`exponential.py`)."""

    bits: int
    fraction: int  # bits of the fraction
    bias: int  # the exponent's bits in 1.0
    lowest: float  # below, e^x rounds to 0
    highest: float  # above, e^x is infinite
    ln2: tuple[float, float]  # its first digits, so few that k · ln2[0] is exact; the others
    exp: tuple[float, ...]
    exp2: tuple[float, ...]
    log1p: tuple[float, ...]
    mills: tuple[float, ...]  # `normal.py`

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
