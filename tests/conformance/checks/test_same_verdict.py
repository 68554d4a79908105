"""One judge for all: the same bug gets the same verdict in NumPy, PyTorch and JAX.

Each bug is written once, for any array namespace: a scan by doubling, x_k = a_k x_{k-1} + b_k,
where spans of 2, 4, 8, … steps become one step.
"""

import re
from functools import cache

import pytest
from frameworks import judged

FRAMEWORKS = ("numpy", "torch", "jax")


class Space:
    """The array operations that the planted bugs need, under common names."""

    def __init__(self, framework):
        module = pytest.importorskip(framework, reason=f"nothing is judged in {framework} here")
        self.torch = framework == "torch"
        self.xp = module.numpy if framework == "jax" else module
        self.compiled = module.jit if framework == "jax" else lambda function: function

    def cast(self, x, dtype):
        return x.to(dtype) if self.torch else x.astype(dtype)

    def common(self, a, b):
        """Both arrays in the shape and type of the result."""
        dtype = self.xp.result_type(a, b)
        broadcast = self.xp.broadcast_tensors if self.torch else self.xp.broadcast_arrays
        return broadcast(self.cast(a, dtype), self.cast(b, dtype))

    def joined(self, *pieces):
        """Concatenate along time."""
        return self.xp.cat(pieces, -2) if self.torch else self.xp.concatenate(pieces, -2)

    def backwards(self, x):
        return self.xp.flip(x, (-2,))


def scan(s, a, b, after=lambda x: x):
    """The scan; `after` changes the states after each doubling."""
    (a, x), span = s.common(a, b), 1
    while span < x.shape[-2]:
        later = a[..., span:, :] * x[..., :-span, :] + x[..., span:, :]
        x = after(s.joined(x[..., :span, :], later))
        a = s.joined(a[..., :span, :], a[..., span:, :] * a[..., :-span, :])
        span *= 2
    return x + 0


def vjp(s, dx, a, b, conj=lambda x: x.conj()):
    """The gradient of the scan: a reverse scan of dx with the next step's conj(a)."""
    later = s.joined(a[..., 1:, :], 0 * a[..., :1, :])
    db = s.backwards(scan(s, s.backwards(conj(later)), s.backwards(dx)))
    x = scan(s, a, b)
    before = s.joined(0 * x[..., :1, :], x[..., :-1, :])
    da = db * before.conj()
    return tuple(g if g.dtype == y.dtype else g.real for g, y in ((da, a), (db, b)))


def state_lost(s, a, b):
    """The scan restarts every 64 steps."""
    return scan(s, a * s.cast(s.xp.arange(a.shape[-2]) % 64 != 0, a.dtype)[:, None], b)


def one_step_late(s, a, b):
    """a_{k-1} instead of a_k."""
    return scan(s, s.joined(a[..., :1, :], a[..., :-1, :]), b)


def reset_on_nan(s, a, b):
    return scan(s, s.xp.nan_to_num(a), s.xp.nan_to_num(b))


def float16_state(s, a, b):
    return scan(s, a, b, after=lambda x: s.cast(s.cast(x, s.xp.float16), x.dtype))


def odd_width(s, a, b):
    """With an odd number of channels, the last one is twice as large."""
    x = scan(s, a, b)
    if x.shape[-1] % 2 == 0:
        return x
    last = s.xp.arange(x.shape[-1]) == x.shape[-1] - 1
    return x * (1 + s.cast(last, x.dtype))


def unconjugated(s, dx, a, b):
    return vjp(s, dx, a, b, conj=lambda x: x)


# the function or its gradient, the check that fails, its type, the verdict
BUGS = {
    "state lost every 64 steps": (state_lost, "value", "float32", "wrong"),
    "a used one step late": (one_step_late, "value", "float32", "wrong"),
    "no conjugate in the gradient": (unconjugated, "gradient", "complex64", "wrong"),
    "reset on NaN": (reset_on_nan, "nan", "float32", "wrong"),
    "float16 state": (float16_state, "value", "float32", "inaccurate"),
    "last channel of an odd number": (odd_width, "value", "float32", "wrong"),
}
RIGHT = {"value": (scan, "float32"), "nan": (scan, "float32"), "gradient": (vjp, "complex64")}


@cache
def result_of(framework, function, check, dtype, sizes=()):
    """The judge's result for a function in one framework; all may flush to zero, as JAX does."""
    s, by_hand = Space(framework), check == "gradient"
    forward, hand = (scan, function) if by_hand else (function, None)
    forward, hand = (f and s.compiled(lambda *x, f=f: f(s, *x)) for f in (forward, hand))
    settings = {"framework": framework, "ftz": True, "sizes": dict(sizes)}
    return judged("linear_scan", forward, check, dtype=dtype, hand=hand, **settings)


def place(message):
    """The place of the worst entry and of the wrong entries, without the size of the error."""
    return re.sub(r"\]: got .*; ", "]; ", message)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("check", RIGHT)
def test_the_scan_without_a_bug_passes(check, framework):
    function, dtype = RIGHT[check]
    sizes = (("l", (1, 5)), ("n", (1, 2)))  # JAX compiles once per shape
    result = result_of(framework, function, check, dtype, sizes)
    assert (result.verdict, result.check, result.message) == ("pass", check, "")


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("what", BUGS)
def test_a_planted_bug_gets_the_verdict_that_it_gets_in_numpy(what, framework):
    function, check, dtype, expected = BUGS[what]
    result, usual = (result_of(f, function, check, dtype) for f in (framework, "numpy"))
    assert (result.verdict, result.check, result.dtype) == (expected, check, dtype)
    assert (result.grade, result.examples) == (usual.grade, usual.examples)
    assert place(result.message) == place(usual.message)
    assert result.smallest == usual.smallest


def test_no_two_bugs_are_told_in_the_same_words():
    told = {place(result_of("numpy", *d[:3]).message) for d in BUGS.values()}
    assert len(told) == len(BUGS)
    assert "worst x[0, 64, 1]; entries with l ≥ 64 wrong, none before" in told
