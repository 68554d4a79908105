"""The bounds of COLUMNS for S ← diag(e^g) S + b (aᵀ S) + k vᵀ, by ellipsoids (`ellipsoids.py`).

What is said in `steps.py` holds, but for the error of a column: it is in an ellipsoid, which is
moved by M and grows by the roundings of each step, entry by entry. The root of its trace bounds the
2-norm. Cotangents obey the same with Mᵀ = diag(e^g) + a bᵀ. A form by chunks adds, and takes
nothing away before the end of a chunk: what is read of a state has the roundings of all that was
ever added to it, which `Added` counts. No program exchanges rows here: in the system of a chunk,
I − A, entries are |a_i · b_j| ≤ 1.

In the second gauge all forms add so, and a term of step j comes to step i by e^{G_i − G_j}, with
sums G since the start of a chunk that err by the roundings ε_i and ε_j of each. |ε_i| is at most
that of a sum of |G_j| + |G_i − G_j|: so each term has twice the error of G_j in its chunk, and once
that of all gates since, also through later chunks. Each key has its own: those that forget fast
have large sums and small terms. What a reads of these errors is written by b, and from there on
moved by M as the roundings are. Cotangents come from later chunks: theirs have twice the error of
G_i where they are read, too. a reads with a sum that ends one step earlier; G_i − g_i in its place
loses what a closed gate g_i takes, and has no allowance.
"""

from typing import Any, NamedTuple

import numpy as np

from refssm._numerics.broadcasting import with_batch
from refssm._numerics.contraction import einsum
from refssm.conformance.gauges.columns.ellipsoids import Ellipsoids, balls, boxes
from refssm.conformance.gauges.columns.steps import EXPONENTIAL, LONG, Columns, one_of, with_row
from refssm.conformance.gauges.rules import tree
from refssm.conformance.gauges.tracked import lifted


class LowRankTerms(NamedTuple):
    """The arguments, in double precision, or their errors with K0 and K1 as first axis."""

    q: Any
    k: Any
    v: Any
    log_g: Any
    a: Any
    b: Any

    def at(self, w) -> "LowRankTerms":
        """Those of some steps, or of one."""
        return LowRankTerms(*(x[..., w, :] for x in self))


class Passed(NamedTuple):
    """What a reverse pass needs of some steps: values, and the errors of their columns."""

    before: Any  # S_{t−1}, 0 where a sequence begins
    of_before: Any
    z: Any  # aᵀ S_{t−1}
    of_z: Any
    S: Any
    of_S: Any


class Added(NamedTuple):
    """The moduli of all that was added to a state, as they decay, and the same times their gates.

    The second is Σ (G_i − G_j) e^{G_i − G_j} of the terms: what roundings of exponents are worth.
    The third has what their sums of gates erred by when they were added, the last the same of those
    that have not decayed yet: their exponent is 0.
    """

    moduli: Any
    by_gates: Any
    by_sums: Any
    fresh: Any

    def decayed(self, gate, log_g) -> "Added":
        """Those after a decay."""
        more = self.by_gates + np.abs(log_g) * self.moduli
        by_gates = np.where(gate > 0, gate * more, 0)
        met = self.met()
        return Added(gate * self.moduli, by_gates, gate * met.by_sums, met.fresh)

    def met(self) -> "Added":
        """The same, all of whose exponents count."""
        return self._replace(by_sums=self.by_sums + self.fresh, fresh=0 * self.fresh)

    def plus(self, more, e) -> "Added":
        """Those with more terms, whose sums of gates err by e in each key."""
        return self._replace(moduli=self.moduli + more, fresh=self.fresh + e[..., None] * more)

    def kept(self, resets) -> "Added":
        """Nothing where a sequence begins."""
        return Added(*(np.where(resets[..., None, None], 0, x) for x in self))

    def roundings(self, l: int):
        """What a sum of so many steps errs by."""
        return (tree(l) + EXPONENTIAL + 3) * self.moduli + (tree(l) + 1) * self.by_gates


class LowRankColumns(Columns):
    """`run` and `back` for bounds of the rule with a low-rank transition."""

    longest = LONG  # steps of the sums of a form by chunks

    def run(self, arguments, S0, resets, chunk=0):
        """The bounds of the outputs, and the last state with those of its columns below it."""
        terms = LowRankTerms(*(x.value for x in arguments))
        state, resets = self._begun(terms, S0, resets)
        errors, of_sums = self._charged(arguments, state, chunk)
        now, y = self._of_state(state), []
        for w in self._windows(terms, state):
            of_w, some = errors.at(w), terms.at(w)
            now, kept = self._passed(some, of_w, of_sums[..., w, :], now, resets[..., w])
            y.append(self._product(some.q, self._norm(some.q), of_w.q, kept.S, kept.of_S))
        batch, p = state.shape[:-2], state.shape[-1]
        y = [np.broadcast_to(part, (*batch, *part.shape[-2:-1], p)) for part in y]
        y = np.concatenate(y, axis=-2) if y else np.zeros((*batch, 0, p))
        return y, self._row_of(now)

    def back(self, cotangents, arguments, S0, resets, chunk=0):
        """The bounds of the gradients; that of the state has its value above its bound."""
        terms = LowRankTerms(*(x.value for x in arguments))
        start, resets = self._begun(terms, S0, resets)
        errors, of_sums = self._charged(arguments, start, chunk)
        before = np.concatenate([0 * of_sums[..., :1, :], of_sums[..., :-1, :]], axis=-2)
        dy, G = (*cotangents, np.zeros_like(start))[:2]
        now, kept, parts = self._of_state(start), [], []
        windows = self._windows(terms, start)
        for w in windows:
            given = terms.at(w), errors.at(w), of_sums[..., w, :]
            now, passed = self._passed(*given, now, resets[..., w])
            kept.append(passed)
        now = self._of_state(np.broadcast_to(G, start.shape))
        for w in reversed(windows):
            some = terms.at(w), errors.at(w), (of_sums[..., w, :], before[..., w, :])
            found, now = self._gradients(dy[..., w, :], now, *some, kept.pop(), resets[..., w])
            parts.insert(0, found)
        found = {name: np.concatenate([part[name] for part in parts], axis=-2)
                 for name in LowRankTerms._fields if parts}  # fmt: skip
        if self.cumulated and parts:
            self._sum_from_the_end(found, terms)
        first = start if S0 is None else S0
        return *self._gathered(found, arguments), self._summed(self._row_of(now), first[0])

    def _row_of(self, now):
        """A state or cotangent with the errors of its columns below it."""
        S, of_S, added = now
        return with_row(S, of_S.e + self._norm(self._of_all(added), -2))

    def _of_all(self, now: Added, more=0.0):
        """What entries err by where all that they were made of is added: in chunks, or gauge 2."""
        made = now.roundings(self.longest)
        own = made if self.chunked else 0 * made
        return np.stack([own, made + now.by_sums + more if self.cumulated else own])

    def _begun(self, terms, S0, resets):
        """The state with a row for errors and all leading axes, and the resets."""
        resets = np.zeros(terms.q.shape[-2], bool) if resets is None else resets != 0
        shapes = [x.shape[:-2] for x in terms] + [resets.shape[:-1]]
        shapes += [] if S0 is None else [S0.shape[1:-2]]
        batch = np.broadcast_shapes(*shapes)
        if S0 is None:
            return np.zeros((2, *batch, terms.k.shape[-1] + 1, terms.v.shape[-1])), resets
        more = [1] * (len(batch) - (S0.ndim - 3))
        return with_batch(S0.reshape(2, *more, *S0.shape[1:]), 2, (2, *batch)), resets

    def _of_state(self, state):
        """The values and the ellipsoids of a state with a row of errors."""
        S = state[0, ..., :-1, :]
        return S, balls(state[..., -1, :], state.shape[-2] - 1), Added(np.abs(S), *3 * (0 * S,))

    def _charged(self, arguments, state, chunk: int):
        """The errors of the arguments, and in the second gauge that of each step's decays."""
        rank, told = state.ndim - 3, []
        tracked = LowRankTerms(*map(lifted, arguments))
        for x in tracked:
            more = [1] * (rank - (x.ndim - 2))
            told.append(np.moveaxis(x.errors, -1, 0).reshape(2, *more, *x.shape))
        if self.cumulated:
            told = [np.stack([e[0], e[0]]) for e in told]
        log_g = tracked.log_g.value
        errors = LowRankTerms(*told)
        of_gates = np.maximum(errors.log_g, self.chunked * np.abs(log_g))
        return errors._replace(log_g=of_gates), self._of_differences(log_g, chunk)

    def _passed(self, terms, errors, of_sums, now, resets):
        """The state after some steps with its ellipsoids, and what a reverse pass needs."""
        S, of_S, added = now
        before, z, Z, S = self._states(terms, S, resets)
        more = np.abs(terms.b)[..., None] * np.abs(z)[..., None, :]
        more = more + np.abs(terms.k)[..., None] * np.abs(terms.v)[..., None, :]
        (read, after), added = self._added(terms, more, of_sums, added, resets)
        own = self._product(terms.a, 0, errors.a, before, 0 * z)
        own = own + einsum("...np,...n->...p", read, np.abs(terms.a))
        made = self._of_step((Z, errors.log_g), (terms.b, errors.b, z, own), S)
        made = made + self._of_outer(terms.k, errors.k, terms.v, errors.v)
        run = (np.exp(terms.log_g), terms.a, terms.b, *boxes(made), resets)
        of_before, of_after, of_S = self._carried(run, of_S)
        of_z = own + self._norm(terms.a) * of_before
        of_before, of_after = of_before + self._norm(read, -2), of_after + self._norm(after, -2)
        return (S[..., -1, :, :], of_S, added), Passed(before, of_before, z, of_z, S, of_after)

    def _added(self, terms, more, of_sums, now: Added, resets):
        """What all steps before each one, and all up to it, err by where they are added up."""
        gates, found = np.exp(terms.log_g), []
        for t in range(gates.shape[-2]):
            now = now.kept(resets[..., t])
            before = self._of_all(now.met())
            now = now.decayed(gates[..., t, :, None], terms.log_g[..., t, :, None])
            now = now.plus(more[..., t, :, :], of_sums[..., t, :])
            found.append((before, self._of_all(now)))
        return [np.stack(x, axis=-3) for x in zip(*found, strict=True)], now

    def _added_back(self, terms, driven, moved, of_sums, now: Added, resets):
        """The same of cotangents, with each step's output; `moved` is of the step before."""
        (own, before), gates, found = of_sums, np.exp(terms.log_g), []
        for t in range(gates.shape[-2] - 1, -1, -1):
            here, later = own[..., t, :], now.moduli
            now = now.plus(driven[..., t, :, :], here)
            found.append(self._of_all(now, here[..., None] * later))
            now = now.decayed(gates[..., t, :, None], terms.log_g[..., t, :, None])
            now = now.plus(moved[..., t, :, :], before[..., t, :]).met().kept(resets[..., t])
        return np.stack(found[::-1], axis=-3), now

    def _states(self, terms: Any, S, resets):
        """S_{t−1}, what a reads there, diag(e^{log_g}) S_{t−1} and S_t."""
        gates, found = np.exp(terms.log_g), []
        for t in range(terms.k.shape[-2]):
            before = np.where(resets[..., t, None, None], 0, S)
            z = einsum("...np,...n->...p", before, terms.a[..., t, :])
            moved = terms.b[..., t, :, None] * z[..., None, :]
            Z = gates[..., t, :, None] * before
            S = Z + moved + terms.k[..., t, :, None] * terms.v[..., t, None, :]
            found.append((before, z, Z, S))
        steps = zip(zip(*found, strict=True), (-3, -2, -3, -3), strict=True)
        return [np.stack(parts, axis=axis) for parts, axis in steps]

    @staticmethod
    def _carried(run, now: Ellipsoids):
        """The errors before and after each step, and the ellipsoids after the last one."""
        resets, before, after = run[-1], [], []
        for t in range(run[0].shape[-2]):
            now = now.kept(resets[..., t])
            before.append(now.e)
            now = _stepped(run, now, t)
            after.append(now.e)
        return np.stack(before, axis=-2), np.stack(after, axis=-2), now

    def _of_step(self, decayed, moved, S):
        """The roundings of diag(e^g) S and of b zᵀ, and those of the sum of all."""
        (Z, of_gate), (b, of_b, z, own) = decayed, moved
        made = (EXPONENTIAL + 2 + of_gate[..., None]) * np.abs(Z)
        made = made + (2 * np.abs(b) + of_b)[..., None] * self._least(z)[..., None, :]
        made = made + np.abs(b)[..., None] * own[..., None, :]
        return made + np.abs(S) + self.floor

    def _of_outer(self, k, of_k, v, of_v):
        """The roundings of k vᵀ, one of the product and one of the sum."""
        made = (2 * np.abs(k) + of_k)[..., None] * np.abs(v)[..., None, :]
        return made + np.abs(k)[..., None] * of_v[..., None, :] + self.floor

    def _gradients(self, dy, now, terms, errors, of_sums, kept: Passed, resets):
        """The bounds of the gradients of some steps, and the cotangent of the state before them."""
        G, of_G, added = now
        G, w, moved, Z, before = self._cotangents(dy, G, terms, resets)
        one = 0 if self.cumulated else one_of(of_G.e[..., None])[..., None]
        driven = self._of_outer(terms.q, errors.q, dy, one * np.abs(dy)) + np.abs(G)
        outputs = np.abs(terms.q)[..., None] * np.abs(dy)[..., None, :]
        read, added = self._added_back(terms, outputs, np.abs(moved), of_sums, added, resets)
        own = self._product(terms.b, 0, errors.b, G, 0 * w)
        own = own + einsum("...np,...n->...p", read, np.abs(terms.b))
        made = self._of_step((Z, errors.log_g), (terms.a, errors.a, w, own), Z + moved)
        run = (np.exp(terms.log_g), terms.b, terms.a, *boxes(made), resets)
        of_all, of_G = self._carried_back(run, boxes(driven), of_G)
        back = G, of_all + self._norm(read, -2), w, own + self._norm(terms.b) * of_all
        found = self._of_products(dy, back, terms, errors, kept, resets)
        return found, (before, of_G, added)

    def _cotangents(self, dy, G, terms: Any, resets):
        """G_t, what b reads there, what a adds of it, diag(e^{log_g}) G_t, and the last of all."""
        gates, found = np.exp(terms.log_g), []
        for t in range(terms.k.shape[-2] - 1, -1, -1):
            G = terms.q[..., t, :, None] * dy[..., t, None, :] + G
            w = einsum("...np,...n->...p", G, terms.b[..., t, :])
            moved = terms.a[..., t, :, None] * w[..., None, :]
            Z = gates[..., t, :, None] * G
            found.append((G, w, moved, Z))
            G = np.where(resets[..., t, None, None], 0, Z + moved)
        steps = zip(zip(*found[::-1], strict=True), (-3, -2, -3, -3), strict=True)
        return *(np.stack(parts, axis=axis) for parts, axis in steps), G

    @staticmethod
    def _carried_back(run, driven, now: Ellipsoids):
        """The errors of all cotangents, and the ellipsoids of the one before the first step."""
        resets, found = run[-1], []
        for t in range(run[0].shape[-2] - 1, -1, -1):
            now = now.plus(driven[0][..., t, :, :], driven[1][..., t, :])
            found.append(now.e)
            now = _stepped(run, now, t).kept(resets[..., t])
        return np.stack(found[::-1], axis=-2), now

    def _of_products(self, dy, back, terms, errors, kept: Passed, resets):
        """The bounds of the gradients by name, by the product rule."""
        G, of_G, w, of_w = back
        one = 0 if self.cumulated else one_of(of_G[..., None])
        gate = np.exp(terms.log_g)
        Z, strongest = gate[..., None] * kept.before, gate.max(-1, initial=0)[..., None]
        of_Z = strongest * kept.of_before + (EXPONENTIAL + 1) * self._size(Z)
        of_Z = of_Z + self._by_gate(Z, errors.log_g)
        return {
            "q": self._sum(kept.S, kept.of_S, dy, one * np.abs(dy)),
            "k": self._sum(G, of_G, terms.v, errors.v),
            "v": self._product(terms.k, self._norm(terms.k), errors.k, G, of_G),
            "log_g": np.where(resets[..., None], 0, self._sum(Z, of_Z, G, of_G)),
            "a": self._sum(kept.before, kept.of_before, w, of_w),
            "b": self._sum(G, of_G, kept.z, kept.of_z),
        }

    def _pairs_of(self, found, terms):
        """What q ∘ dq, k ∘ dk, a ∘ da and b ∘ db err by, which gradients of sums of gates add."""
        return sum(np.abs(getattr(terms, name)) * found[name][1] for name in "qkab")


def _stepped(run, now: Ellipsoids, t: int) -> Ellipsoids:
    """The ellipsoids after a step, from those before it."""
    gates, read, write, shapes, sums, _ = run
    moved = now.moved(*(x[..., t, None, :] for x in (gates, read, write)))
    return moved.plus(shapes[..., t, :, :], sums[..., t, :])
