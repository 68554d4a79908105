from fractions import Fraction

import numpy as np
import pytest

from refssm import domains
from refssm.catalog import OPERATORS
from refssm.domains import (
    Domain,
    decays,
    nodes,
    poles,
    residues,
    signals,
    state_matrices,
    states,
)
from refssm.domains.domain import DISCRETE, TEXTURES

DOMAINS = {name: d for name, d in vars(domains).items() if isinstance(d, Domain)}
MAPS = [(d, m) for d in DOMAINS for m in DOMAINS[d].maps]
LIMIT = Fraction(2**60)
CORNER = np.zeros(1)


def square(seed, shape=(2000,)):
    """Random points of the unit square, plus its corners and edges."""
    edge = np.array([0.0, 0.5, 1.0])
    a, b = np.random.default_rng(seed).random((2, *shape))
    grid = np.meshgrid(edge, edge)
    return np.append(a, grid[0]), np.append(b, grid[1])


def drawn(domain, name, real=False, seed=1):
    return domain.draw(name, *square(seed), real)


def origin(domain, name):
    return complex(DOMAINS[domain].draw(name, CORNER, CORNER, real=False)[0])


@pytest.mark.parametrize(("domain", "name"), MAPS)
def test_every_map_is_finite_on_the_closed_square(domain, name):
    z = drawn(DOMAINS[domain], name)
    assert z.dtype == complex
    assert np.isfinite(z).all()


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_first_map_sends_the_origin_to_zero_one_or_a_half(domain):
    assert origin(domain, next(iter(DOMAINS[domain].maps))) in (0, 1, -1, 0.5, -0.5)


@pytest.mark.parametrize(("domain", "name"), MAPS)
def test_real_draws_are_real_and_inside_the_complex_range(domain, name):
    x = drawn(DOMAINS[domain], name, real=True)
    assert x.dtype == float
    assert np.isfinite(x).all()


@pytest.mark.parametrize("name", decays.maps)
def test_real_decays_are_exactly_the_complex_ones_where_the_phase_is_0_or_pi(name):
    a, _ = square(2)
    for turns in (0.0, 0.5):
        exact = decays.draw(name, a, np.full_like(a, turns), real=False)
        assert np.array_equal(decays.draw(name, a, np.full_like(a, turns), real=True), exact.real)


@pytest.mark.parametrize("name", ["turning", "moderate", "wide", "steep", "unit", "growing"])
def test_half_a_turn_is_exactly_real(name):
    a, _ = square(3)
    for turns in (0.0, 0.5, 1.0):
        z = decays.draw(name, a, np.full_like(a, turns), real=False)
        assert not z.imag.any()
        assert (np.sign(z.real) == (-1 if turns == 0.5 else 1)).all()


def test_every_texture_and_every_domain_in_use_is_known():
    used = [d for op in OPERATORS for d in op.inputs.values()]
    assert all(any(d is known for known in DOMAINS.values()) for d in used)
    for domain in DOMAINS.values():
        assert set(domain.textures) <= set(TEXTURES)
        assert domain.kind in ("real", "complex", "either", *DISCRETE)
        assert ("beside" in domain.textures) == bool(domain.meets)
    for op in OPERATORS:
        assert all(d.meets in ("", *op.inputs) for d in op.inputs.values())


def within(size, low, high):
    """low ≤ size ≤ high, up to rounding errors of the maps (a few eps)."""
    slack = 1 + 8 * np.finfo(float).eps
    return ((size >= low / slack) & (size <= high * slack)).all()


def test_decays_have_the_rates_they_promise():
    for name in ("slow", "turning", "moderate", "wide", "steep", "near 0", "near pi"):
        rate = -np.log(np.abs(drawn(decays, name)))
        small = 1 / (1 - 2**-20)  # the log of a number close to 1 loses digits
        assert within(rate, 1e-5 / small, 1e2 * small), name
    for name in ("one", "unit"):
        assert within(np.abs(drawn(decays, name)), 1, 1)
    assert within(np.abs(drawn(decays, "growing")), 1, np.exp(2))
    assert (np.abs(drawn(decays, "growing")) > 1).all()
    assert set(drawn(decays, "compass")) == {0, 1, -1, 1j, -1j}


def test_signals_states_and_residues_have_the_magnitudes_they_promise():
    for domain in (signals, residues):
        assert within(np.abs(drawn(domain, "magnitudes")), 1e-6, 1e3)
    assert within(np.abs(drawn(states, "large")), 0, 1e2)
    for domain in (signals, states):
        z = drawn(domain, "integer")
        assert np.array_equal(z, np.round(z))
        assert within(np.abs(z), 0, np.hypot(8, 8))
    assert within(np.abs(drawn(signals, "positive")), 0.5, 1.5)


@pytest.mark.parametrize("name", poles.maps)
def test_poles_lie_in_the_left_half_plane(name):
    w = drawn(poles, name)
    assert within(-w.real, 1e-6, 1e2)
    assert within(np.abs(w.imag), 0, 1e3)
    assert (drawn(poles, name, real=True) < 0).all()


@pytest.mark.parametrize("name", nodes.maps)
def test_nodes_lie_on_or_right_of_the_imaginary_axis(name):
    assert (drawn(nodes, name).real >= 0).all()
    assert (drawn(nodes, name, real=True) >= 0).all()


def span_products(a):
    """|Π a| over every span of time, exactly."""
    for channel in np.abs(a).reshape(a.shape[-2], -1).T:
        for start in range(channel.size):
            product = Fraction(1)
            for factor in channel[start:].tolist():
                product *= Fraction(factor)
                yield product


def bounded(a):
    """True if every span product is at most 2^60, up to roundings of log2, 2^x and a per factor."""
    fitted = domains.products_bounded(a)
    assert np.isfinite(fitted).all()
    slack = (1 + Fraction(2) ** -44) ** a.shape[-2]
    return max(span_products(fitted)) <= LIMIT * slack


@pytest.mark.parametrize("seed", range(4))
def test_no_span_of_bounded_decays_grows_beyond_2_to_the_60(seed):
    a, b = np.random.default_rng(seed).random((2, 60, 2))
    grown = 2 * decays.draw("growing", a, b, real=True)
    assert max(span_products(grown)) > LIMIT
    assert bounded(grown)
    mixed = np.where(b < 0.6, grown, decays.draw("moderate", a, b, real=True))
    assert bounded(10 * mixed)


def test_bounding_leaves_what_is_bounded_as_it_is():
    a, b = np.random.default_rng(5).random((2, 60, 2))
    for name in ("slow", "wide", "unit", "compass", "steep"):
        z = decays.draw(name, a, b, real=False)
        assert np.array_equal(domains.products_bounded(z), z)


def test_bounding_keeps_phases_shapes_and_empty_arrays():
    a, b = np.random.default_rng(6).random((2, 3, 60, 2))
    z = 2 * decays.draw("growing", a, b, real=False)
    fitted = domains.products_bounded(z)
    assert fitted.shape == z.shape
    assert (np.abs(fitted) <= np.abs(z)).all()
    assert (np.sign(fitted.real) == np.sign(z.real)).all()
    assert (np.sign(fitted.imag) == np.sign(z.imag)).all()
    assert domains.products_bounded(np.ones((2, 0, 3))).shape == (2, 0, 3)


def test_bounding_keeps_zeros_and_bounds_the_growth_between_them():
    a = np.full((100, 1), 2.0)
    a[70] = 0
    assert bounded(a)
    assert domains.products_bounded(a)[70] == 0


def test_state_matrices_have_no_growing_mode_and_can_be_solved_with():
    rng = np.random.default_rng(7)
    for name, lower in ((name, lower) for name in state_matrices.maps for lower in (0, 1)):
        A = state_matrices.draw(name, *rng.random((2, 4, 64, 64)), real=False)
        A = domains.stable(np.tril(A) if lower else A)
        assert (np.linalg.eigvals(A).real.max(-1) <= 2.0**-20).all()
        assert (np.linalg.cond(np.eye(64) - A / 2) < 2.0**40).all()


def test_a_stable_matrix_without_heavy_rows_is_left_as_it_is():
    A = np.array([[-1.0, 4.0], [-4.0, -1.0]])
    assert np.array_equal(domains.stable(A), A)
    assert np.array_equal(domains.stable(-A), -A - 1 * np.eye(2))
