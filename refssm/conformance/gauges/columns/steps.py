"""The bounds of COLUMNS: errors of recurrences with S ← M S + b cᵀ, column by column of the state.

Moduli explode where a product of matrices I − β k kᵀ does not: with unit keys, |M|·|M|·… grows
exponentially and M·M·… has a norm of at most 1. But M acts on each column of S alone, so for column
j the 2-norm of its error is bounded by

    e_t(j) = ‖M_t‖₂ e_{t−1}(j) + the 2-norm of the roundings of step t,

with ‖M_t‖₂ ≤ e^g max(1, |1 − β‖k‖²|), of several gates the largest. An output y = Sᵀ q errs by
‖q‖₂ e_t(j) and the roundings of the sum. Cotangents of the state obey the same with Mᵀ, from the
last step to the first; a gradient is a product of both, and its errors follow by the product rule.
K0 has the roundings of the steps alone; K1 also those of the inputs, one each.

The second gauge, of grade N, is that of programs by chunks that take a decay from one step to
another as e^{G_i − G_j}, with sums G of the gates: it keeps the digits that G has. What it
multiplies is all that was ever added, which the bound of a column counts. Such programs sum the
gradients of gates from the end of a chunk, too: that of G_i is a product of queries, keys and their
gradients. And they may solve a chunk's system with exchanges of rows (`rows.py`).

The bounds run through the forms of a recurrence as its own functions do
(`refssm._declaration.recurrence`): a state has one more row, which is e, and states and bounds a
first axis of K0 and K1. Arguments are tracked arrays: behind an adapter, they have errors in K0,
too, those of the parametrisation. The states come first, step by step, then all that follows from
them at once, and last the errors, of which a step is one product and one sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm._numerics.contraction import einsum
from refssm.conformance.gauges.columns.rows import of_taken_back, of_written
from refssm.conformance.gauges.cumulated.sums import ALLOWED, CHUNK
from refssm.conformance.gauges.rules import tree
from refssm.conformance.gauges.tracked import Tracked, lifted
from refssm.linear_attention.chunked import DELTA_CHUNKED, GATED_DELTA_CHUNKED, KIMI_CHUNKED
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.kimi import KIMI

EXPONENTIAL = 4  # roundings of an exponential, as in `rules.py`
WINDOW = 2**20  # entries of states that are in memory at once, of each kind
LONG = 128  # steps of the longest chunks that kernels have, whatever size they are asked for


class Terms(NamedTuple):
    """The arguments of all recurrences together, in double precision; log_g is (…, l, n)."""

    q: Any
    k: Any
    v: Any
    log_g: Any
    beta: Any

    def at(self, w: slice) -> "Terms":
        """Those of some steps."""
        q, k, v, log_g = (x[..., w, :] for x in self[:4])
        return Terms(q, k, v, log_g, self.beta[..., w])


class Errors(NamedTuple):
    """The errors of the arguments, K0 and K1 as first axis, then the leading axes of the state."""

    q: Any
    k: Any
    v: Any
    log_g: Any
    beta: Any
    by_sums: Any  # of each step's strongest decay, in the second gauge
    written: Any = 0  # of what a step writes, in the second gauge: β r
    taken_back: Any = 0  # of its cotangent

    def at(self, w: slice) -> "Errors":
        """Those of some steps."""
        own = Terms(*self[:5]).at(w)
        return Errors(*own, self.by_sums[..., w], self.written, self.taken_back)


class Kept(NamedTuple):
    """What a reverse pass needs of some steps: values, and the errors of their columns."""

    Z: Any  # diag(e^{log_g}) S_{t−1}
    of_Z: Any
    r: Any  # v − Zᵀ k
    of_r: Any
    S: Any
    of_S: Any


@dataclass(frozen=True)
class Columns:
    """`run` and `back` of one recurrence for bounds.

    `floor` is the least size of a rounded number: smaller ones have its rounding error.
    """

    names: Sequence[str]
    keyed: bool  # a gate for each key
    floor: float = 0.0
    unit: float = 0.0
    chunked: bool = False  # sums over pairs of steps, and exponentials of sums of gates
    cumulated: str = ""  # K0 beside that of the second gauge: "whole", or of its "terms" alone

    def run(self, arguments, S0, resets, chunk=0):
        """The bounds of the outputs, and the last state with those of its columns below it."""
        terms = self._terms([x.value for x in arguments])
        state, resets = self._started(terms, S0, resets)
        errors, y = self._errors(arguments, state, chunk, resets), []
        for w in self._windows(terms, state):
            of_w, some = errors.at(w), terms.at(w)
            state, kept = self._steps(some, of_w, state, resets[..., w])
            read = with_row(kept.S[..., -1, :, :], kept.of_S[..., -1, :])
            y.append(self._product(some.q, self._norm(some.q), of_w.q, kept.S, kept.of_S))
        batch, p = state.shape[:-2], state.shape[-1]
        y = [np.broadcast_to(part, (*batch, *part.shape[-2:-1], p)) for part in y]
        return (np.concatenate(y, axis=-2), read) if y else (np.zeros((*batch, 0, p)), state)

    def back(self, cotangents, arguments, S0, resets, chunk=0):
        """The bounds of the gradients; that of the state has its value above its bound. A tracked
        cotangent has errors of its own, beside which K1 counts no rounding of it."""
        terms = self._terms([x.value for x in arguments])
        start, resets = self._started(terms, S0, resets)
        errors = self._errors(arguments, start, chunk, resets)
        dy, G = (*cotangents, np.zeros_like(start))[:2]
        dy, of_dy = _with_errors(dy, start)
        if self.cumulated:
            at_end = of_taken_back(self, terms, dy, G[0, ..., :-1, :], resets)
            errors = errors._replace(taken_back=at_end)
        G = np.broadcast_to(G, start.shape)
        state, kept, parts = start, [], []
        windows = self._windows(terms, start)
        for w in windows:
            state, of_steps = self._steps(terms.at(w), errors.at(w), state, resets[..., w])
            kept.append(of_steps)
        for w in reversed(windows):
            some = terms.at(w), errors.at(w), kept.pop(), resets[..., w]
            of_steps, G = self._steps_back(dy[..., w, :], of_dy[..., w, :], G, *some)
            parts.insert(0, of_steps)
        found = {name: np.concatenate([part[name] for part in parts], axis=-2)
                 for name in Terms._fields if parts}  # fmt: skip
        if self.cumulated and parts:
            self._sum_from_the_end(found, terms)
        first = start if S0 is None else S0
        return *self._gathered(found, arguments), self._summed(G, first[0])

    def _windows(self, terms: Any, state) -> list[slice]:
        """The steps, so many at once as have WINDOW entries of states."""
        l, entries = terms.q.shape[-2], max(1, state[0].size)
        length = max(1, WINDOW // entries)
        return [slice(t, min(t + length, l)) for t in range(0, l, length)]

    def _terms(self, arguments) -> Terms:
        given = dict(zip(self.names, arguments, strict=True))
        k = given["k"]
        if "log_g" not in given:
            log_g = np.zeros_like(k[..., :1])
        else:
            log_g = given["log_g"] if self.keyed else given["log_g"][..., None]
        return Terms(given["q"], k, given["v"], log_g, given["beta"])

    def _errors(self, arguments, state, chunk: int, resets) -> Errors:
        """The errors; in chunks exponents are sums of gates, which err by a rounding each."""
        rank, told = state.ndim - 3, []
        tracked = Terms(*map(lifted, self._terms(arguments)))
        for x, core in zip(tracked, (2, 2, 2, 2, 1), strict=True):
            errors = np.moveaxis(x.errors, -1, 0)
            more = [1] * (rank - (x.ndim - core))
            told.append(errors.reshape(2, *more, *x.shape))
        if self.cumulated:
            told = [np.stack([e[0], e[0]]) for e in told]
        log_g = tracked.log_g.value
        by_sums = (np.exp(log_g) * self._of_differences(log_g, chunk)).max(-1, initial=0)
        errors = Errors(*Terms(*told), by_sums)
        if self.cumulated:
            terms = Terms(*(x.value for x in tracked))
            written = of_written(self, terms, state[0, ..., :-1, :], resets)
            errors = errors._replace(written=written)
        return errors._replace(log_g=np.maximum(errors.log_g, self.chunked * np.abs(log_g)))

    def _of_differences(self, log_g, chunk: int):
        """The errors of differences of sums of gates: of both sums, in any chunk of this length.

        A sum counts up to 1/(16 u): beyond, its exponential has no digits, and programs differ.
        """
        if self.cumulated != "whole":
            return np.zeros_like(log_g)
        size, w = np.abs(log_g), max(chunk, LONG)
        sums = np.cumsum(np.where(np.isfinite(size), size, 0), axis=-2)
        before = np.concatenate([np.zeros_like(sums[..., :w, :]), sums[..., :-w, :]], axis=-2)
        charge = 2 * tree(min(w, log_g.shape[-2]))
        return charge * np.minimum(
            sums - before[..., : size.shape[-2], :], 1 / (ALLOWED * self.unit)
        )

    def _pairs_of(self, found, terms):
        """What q ∘ dq and k ∘ dk err by, whose sums are gradients of gates."""
        return np.abs(terms.q) * found["q"][1] + np.abs(terms.k) * found["k"][1]

    def _sum_from_the_end(self, found, terms):
        """Add to the second gauge of gates' gradients what sums from the end of a chunk err by."""
        l = terms.q.shape[-2]
        of_pairs = (tree(min(l, 2 * CHUNK)) + 2) * self._pairs_of(found, terms)
        of_pairs = of_pairs if self.keyed else of_pairs.sum(-1, keepdims=True)
        (base, own), total = found["log_g"], []
        for start in range(0, l, CHUNK):  # a chunk that begins within this one ends in the next
            after = start + 2 * CHUNK
            piece = np.flip(of_pairs[..., start:after, :], -2)
            summed = np.flip(np.cumsum(piece, axis=-2), -2)[..., :CHUNK, :]
            total.append(summed + own[..., after : after + 1, :].sum(-2, keepdims=True))
        found["log_g"] = np.stack([base, own + np.concatenate(total, axis=-2)])

    def _started(self, terms: Terms, S0, resets):
        """The state with a row for errors and all leading axes, and the resets."""
        q, k, v, log_g, beta = terms
        resets = np.zeros(q.shape[-2], bool) if resets is None else resets != 0
        shapes = (q.shape[:-2], k.shape[:-2], v.shape[:-2], log_g.shape[:-2], beta.shape[:-1])
        shapes = (*shapes, resets.shape[:-1], () if S0 is None else S0.shape[1:-2])
        batch = np.broadcast_shapes(*shapes)
        if S0 is None:
            return np.zeros((2, *batch, k.shape[-1] + 1, v.shape[-1])), resets
        more = [1] * (len(batch) - (S0.ndim - 3))
        return with_batch(S0.reshape(2, *more, *S0.shape[1:]), 2, (2, *batch)), resets

    def _steps(self, terms: Terms, errors: Errors, state, resets):
        """The state after some steps, and what a reverse pass needs of them."""
        k, beta, of_beta = terms.k, terms.beta[..., None], errors.beta[..., None]
        Z, r, S = self._states(terms, state[0, ..., :-1, :], resets)
        size, u = self._norm(k), beta * r
        strongest, by_decay = self._decays(terms), self._of_decays(Z, errors)
        own = self._product(k, size, errors.k, Z, 0) + self._least(r) + errors.v
        # of k uᵀ: those of β r, of the product, of k and β; and of the sum
        made = size * (beta * own + 2 * self._least(u) + of_beta * np.abs(r))
        made = made + self._norm(errors.k) * np.abs(u) + self._size(S)
        made = made + size * _each_step(errors.written)
        kept_of, by_sums = self._reflected(k, beta), errors.by_sums[..., None]
        more = size * beta * size * by_sums if self.cumulated else None
        given = kept_of * strongest, kept_of * by_decay + made, more
        before, of_S = _run(*given, state[..., -1, :], resets)
        by_sums = self._by_sums(before, by_sums)
        of_Z = strongest * before + by_decay
        of_r = own + size * (of_Z + by_sums) + _each_step(errors.written)
        kept = Kept(Z, of_Z + by_sums, r, of_r, S, of_S + by_sums)
        return with_row(S[..., -1, :, :], of_S[..., -1, :]), kept

    def _states(self, terms: Terms, S, resets):
        """diag(e^{log_g}) S_{t−1}, what is missing there, and S_t of some steps."""
        gates, found = np.exp(terms.log_g), []
        for t in range(terms.k.shape[-2]):
            k = terms.k[..., t, :]
            Z = gates[..., t, :, None] * np.where(resets[..., t, None, None], 0, S)
            r = terms.v[..., t, :] - einsum("...np,...n->...p", Z, k)
            S = Z + k[..., :, None] * (terms.beta[..., t, None] * r)[..., None, :]
            found.append((Z, r, S))
        Z, r, S = zip(*found, strict=True)
        return np.stack(Z, axis=-3), np.stack(r, axis=-2), np.stack(S, axis=-3)

    def _cotangents(self, dy, G, terms: Terms, resets):
        """The cotangents of S, Sᵀk and Z of some steps, and of the state before them."""
        gates, found = np.exp(terms.log_g), []
        for t in range(terms.k.shape[-2] - 1, -1, -1):
            q, k = terms.q[..., t, :], terms.k[..., t, :]
            G = q[..., :, None] * dy[..., t, None, :] + G
            w = einsum("...np,...n->...p", G, k)
            dZ = G - k[..., :, None] * (terms.beta[..., t, None] * w)[..., None, :]
            found.append((G, w, dZ))
            G = np.where(resets[..., t, None, None], 0, gates[..., t, :, None] * dZ)
        all_G, w, dZ = zip(*reversed(found), strict=True)
        return np.stack(all_G, axis=-3), np.stack(w, axis=-2), np.stack(dZ, axis=-3), G

    def _steps_back(self, dy, of_dy, G, terms: Terms, errors: Errors, kept: Kept, resets):
        """The bounds of the gradients of some steps, and the cotangent of the state before them."""
        q, k, beta, of_beta = terms.q, terms.k, terms.beta[..., None], errors.beta[..., None]
        Z, of_Z, r, of_r, S, of_S = kept
        of_G, of_dy = G[..., -1, :], 0 if self.cumulated else of_dy
        G, w, dZ, before = self._cotangents(dy, G[0, ..., :-1, :], terms, resets)
        size, dv = self._norm(k), beta * w
        made = self._norm(q) * (self._least(dy) + of_dy) + self._size(G)
        made = made + self._norm(errors.q) * np.abs(dy)
        own = self._product(k, size, errors.k, G, 0) + _each_step(errors.taken_back)  # of Gᵀ k
        by_w = size * (2 * self._least(dv) + of_beta * np.abs(w)) + self._norm(errors.k) * np.abs(
            dv
        )
        by_w = by_w + size * beta * own + self._size(dZ)
        strongest, kept_of = self._decays(terms), self._reflected(k, beta)
        by_decay = self._of_decays(np.exp(terms.log_g)[..., None] * dZ, errors)
        by_sums = errors.by_sums[..., None] if self.cumulated else None
        of_G, of_before = _run_back(
            (made, kept_of, by_w, strongest, by_decay, by_sums), of_G, resets
        )
        of_dZ, of_w = kept_of * of_G + by_w, own + size * of_G
        products = self._sum(G, of_G, r, of_r) + self._sum(Z, of_Z, w, of_w)
        by_beta = einsum("...np,...p->...n", G, r) - einsum("...np,...p->...n", Z, w)
        of_gate = np.where(resets[..., None], 0, self._of_gate(Z, of_Z, dZ, of_dZ))
        found = {
            "q": self._sum(S, of_S, dy, of_dy),
            "k": beta * products + (2 * beta + of_beta) * np.abs(by_beta) + self.floor,
            "v": beta * of_w + self._least(dv) + of_beta * np.abs(w),
            "log_g": of_gate,
            "beta": self._sum(w[..., None, :], of_w, r, of_r),
        }
        if np.ndim(errors.written):  # roundings of a system's solution have no factor β
            found["k"] = found["k"] + _each_column(G, errors.written)
            found["k"] = found["k"] + _each_column(Z, errors.taken_back)
            found["v"] = found["v"] + _each_step(errors.taken_back)
        return found, with_row(before, of_before)

    def _decays(self, terms: Terms):
        """The strongest part of a column that a step keeps."""
        return np.exp(terms.log_g).max(-1, initial=0)[..., None]

    def _of_decays(self, Z, errors: Errors):
        """What Z = diag(e^{log_g}) S errs by, beside the errors of S."""
        return (EXPONENTIAL + 1) * self._size(Z) + self._by_gate(Z, errors.log_g)

    def _by_sums(self, of_S, by_sums):
        """What decays by differences of sums add where a state is read, beside the second gauge.

        A later step takes its decays from the first steps again: what it reads has these errors,
        and what it writes of it, but not the state itself.
        """
        if not self.cumulated:
            return 0 * of_S
        return np.stack([0 * of_S[0], by_sums * of_S[0]])

    def _of_gate(self, Z, of_Z, dZ, of_dZ):
        """The bound of Σ_p Z ∘ dZ for each key, or of its sum over all keys."""
        if self.keyed:
            return self._sum(Z, of_Z, dZ, of_dZ)
        n, p = Z.shape[-2:]
        norms = of_Z * self._norm(dZ, -2) + of_dZ * self._norm(Z, -2)
        moduli = np.abs(Z * dZ).sum((-2, -1))
        total = norms.sum(-1) + (tree(n * p) + 1) * (moduli + n * p * self.floor)
        return total[..., None] + self._pairs(of_Z, of_dZ)[..., None]

    def _product(self, x, size, of_x, S, e):
        """The bound of Sᵀ x, whose columns S have errors e."""
        moduli = einsum("...np,...n->...p", np.abs(S), np.abs(x)) + S.shape[-2] * self.floor
        by_x = einsum("...np,...n->...p", np.abs(S), of_x)
        return size * e + (tree(S.shape[-2]) + 1) * moduli + by_x

    def _sum(self, S, of_S, x, of_x):
        """The bound of Σ_p S_np x_p, entry by entry; a column's error is at most its norm."""
        p, size, of_x = S.shape[-1], np.abs(S), np.broadcast_to(of_x, of_S.shape)
        if x.ndim < S.ndim:
            by_S = (of_S * np.abs(x)).sum(-1)[..., None]
            moduli = einsum("...np,...p->...n", size, np.abs(x))
        else:
            by_S = einsum("...np,...p->...n", np.abs(x), of_S)
            moduli = np.abs(S * x).sum(-1)
        errors = by_S + einsum("...np,...p->...n", size, of_x)
        moduli = moduli + p * self.floor
        return errors + (tree(p) + 1) * moduli + self._pairs(of_S, of_x)[..., None]

    def _pairs(self, of_S, of_x):
        """What a product of S and x errs by because both err.

        Where both are 0 but for roundings, this is all that is left: with equal keys and β = 1 the
        state keeps the roundings of what was taken away, and so does its cotangent. In chunks a
        sum over pairs of steps multiplies the terms of S by those of x themselves. The bounds of
        both count all that was ever added to them, so they are at least as large as these terms.
        """
        return (1 if self.chunked else self.unit) * (of_S * of_x).sum(-1)

    def _by_gate(self, Z, of_log_g):
        """What Z = e^{log_g} S errs by because log_g does."""
        some = (of_log_g > 0).any(-1)[..., None]
        return np.where(some, self._size(Z * of_log_g[..., None]), 0) if some.any() else 0

    def _reflected(self, k, beta):
        """‖I − β k kᵀ‖₂."""
        return np.maximum(1, np.abs(1 - beta * (k**2).sum(-1)[..., None]))

    def _norm(self, x, axis=-1):
        """‖x‖₂ along an axis; along the last one it stays with length 1."""
        largest = np.abs(x).max(axis, keepdims=True, initial=0)
        scale = np.where((largest > 0) & np.isfinite(largest), largest, 1)  # 1e-200² is 0
        norm = scale * np.sqrt(((x / scale) ** 2).sum(axis, keepdims=True))
        return norm if axis == -1 else norm.squeeze(axis)

    def _size(self, S):
        """The 2-norms of the columns, at least of numbers of the least size."""
        return self._norm(S, -2) + self.floor * np.sqrt(S.shape[-2])

    def _least(self, x):
        return np.maximum(np.abs(x), self.floor)

    def _gathered(self, found, arguments):
        """The bounds of all steps, summed over broadcast axes with the roundings of that sum."""
        if not found:
            return [np.zeros((2, *x.shape)) for x in arguments]
        bounds = []
        for name, x in zip(self.names, arguments, strict=True):
            each = found[name]
            if name == "beta" or (name == "log_g" and not self.keyed):
                each = each[..., 0]
            summed = self._summed(each, x.value)
            terms = each.size // max(1, summed.size)
            bounds.append((1 + tree(terms)) * summed)  # each bound is at least the term's modulus
        return bounds

    @staticmethod
    def _summed(bounds, x):
        """Both bounds, summed over the broadcast axes of x."""
        return np.stack([unbroadcast(bound, x) for bound in bounds])


def _each_step(e):
    """The same errors in each step: 0, or those of columns."""
    return e[..., None, :] if np.ndim(e) else e


def _each_column(S, e):
    """Σ_p |S_np| e_p of each step, with the same errors e in each."""
    return np.matmul(np.abs(S), e[..., None, :, None])[..., 0]


def _run(kept, made, more, e, resets):
    """e_t = kept_t e_{t−1} + made_t, from 0 at a reset: the errors before and after each step.

    What `more` times those of K0 is belongs to the second gauge.
    """
    before, after = [], []
    for t in range(made.shape[-2]):
        e = np.where(resets[..., t, None], 0, e)
        before.append(e)
        first = e[0]
        e = kept[..., t, :] * e + made[..., t, :]
        if more is not None:
            e = np.stack([e[0], e[1] + more[..., t, :] * first])
        after.append(e)
    return np.stack(before, axis=-2), np.stack(after, axis=-2)


def _run_back(given, e, resets):
    """The errors of the cotangents of all states, and of the one before them."""
    made, kept, by_w, strongest, by_decay, by_sums = given
    found = []
    for t in range(made.shape[-2] - 1, -1, -1):
        found.append(e + made[..., t, :])
        of_dZ = kept[..., t, :] * found[-1] + by_w[..., t, :]
        e = strongest[..., t, :] * of_dZ + by_decay[..., t, :]
        if by_sums is not None:
            e = np.stack([e[0], e[1] + by_sums[..., t, :] * of_dZ[0]])
        e = np.where(resets[..., t, None], 0, e)
    return np.stack(found[::-1], axis=-2), e


def _with_errors(dy, start):
    """A cotangent and its errors: its own, or for K1 a rounding."""
    if isinstance(dy, Tracked):
        errors = np.moveaxis(dy.errors, -1, 0)
        more = [1] * (start.ndim - 1 - dy.ndim)
        return dy.value, errors.reshape(2, *more, *dy.shape)
    return dy, one_of(start)[..., None] * np.abs(dy)


def one_of(state):
    """Whether inputs are rounded, for K0 and for K1, beside arrays of columns."""
    return np.array([0, 1]).reshape(2, *[1] * (state.ndim - 2))


def with_row(S, e):
    """The state with its columns' errors as one more row, for K0 and for K1."""
    batch = np.broadcast_shapes(S.shape[:-2], e.shape[:-1])
    S, e = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (S, e[..., None, :]))
    return np.concatenate([S, e], axis=-2)


RECURRENCES = (DELTA, GATED_DELTA, KIMI, DELTA_CHUNKED, GATED_DELTA_CHUNKED, KIMI_CHUNKED)
