"""Helpers of several enclosures: conjugates, matrices of balls, the functions φ_k."""

from flint import acb, acb_mat, acb_poly


def conj(x):
    """x*; a real ball stays."""
    return x.conjugate() if isinstance(x, acb) else x


def dot(a, b):
    """Σ a_i b_i, summed from the end."""
    return sum((x * y for x, y in zip(reversed(a), reversed(b), strict=True)), acb(0))


def matrix(rows):
    """A matrix of balls from rows."""
    return acb_mat([[acb(x) for x in row] for row in rows])


def column(x):
    """A matrix with one column."""
    return matrix([[y] for y in x])


def identity(n):
    """The identity matrix."""
    return matrix([[int(i == k) for k in range(n)] for i in range(n)])


def transposed(rows, width):
    """Aᵀ of a nested list with `width` columns; it may have no rows."""
    return [[row[k] for row in rows] for k in range(width)]


def phi(k, z):
    """φ_k(z) = Σ_j z^j/(j + k)! = ₁F₁(1; k + 1; z)/k!."""
    return acb(z).hypgeom_1f1(1, k + 1) / acb(k + 1).gamma()


def product(a, b, count):
    """The first `count` coefficients of the product of two polynomials."""
    known = (acb_poly(list(map(acb, a))) * acb_poly(list(map(acb, b)))).coeffs()[:count]
    return known + [acb(0)] * (count - len(known))
