"""Linear scans and diagonal systems with one decay per step, in any way of adding inputs."""

from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.scan.diagonal import driven, read, skipped_back


def rest(a, b):
    """A state of zeros."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.zeros_like(b, shape=(*batch, b.shape[-1]))


def none(b):
    """No sequence begins after the start."""
    return np.zeros(b.shape[-2], bool)


def with_last(d, last):
    """The cotangents of all states, with that of the last state added to the last of them."""
    batch = np.broadcast_shapes(d.shape[:-2], last.shape[:-1])
    d = np.broadcast_to(d, (*batch, *d.shape[-2:]))
    return np.concatenate([d[..., :-1, :], d[..., -1:, :] + last[..., None, :]], axis=-2)


def _after_start(resets):
    return np.asarray(resets) != 0


@dataclass(frozen=True)
class Scans:
    """The functions of `refssm` with these names, in one way."""

    way: Way

    def linear_scan(self, a, b):
        return self.way.scanned(a, b, rest(a, b), none(b))[..., 1:, :]

    def linear_scan_vjp(self, dx, a, b):
        da, db, _ = self.way.scanned_back(dx, a, b, rest(a, b), none(b))
        return unbroadcast_each((da, db), (a, b))

    def linear_scan_from(self, a, b, x0):
        return self.way.scanned(a, b, x0, none(b))[..., 1:, :]

    def linear_scan_from_vjp(self, dx, a, b, x0):
        return unbroadcast_each(self.way.scanned_back(dx, a, b, x0, none(b)), (a, b, x0))

    def linear_scan_packed(self, a, b, resets):
        return self.way.scanned(a, b, rest(a, b), _after_start(resets))[..., 1:, :]

    def linear_scan_packed_vjp(self, dx, a, b, resets):
        da, db, _ = self.way.scanned_back(dx, a, b, rest(a, b), _after_start(resets))
        return *unbroadcast_each((da, db), (a, b)), None

    def diagonal_ssm_varying(self, a, B, C, D, u):
        b = driven(B, u)
        return read(C, self.way.scanned(a, b, rest(a, b), none(b))[..., 1:, :]) + read(D, u)

    def diagonal_ssm_varying_vjp(self, dy, a, B, C, D, u):
        x0 = rest(a, driven(B, u))
        gradients = self._diagonal_back(dy, np.zeros_like(x0), a, B, C, D, u, x0)[:-1]
        return unbroadcast_each(gradients, (a, B, C, D, u))

    def diagonal_ssm_varying_stateful(self, a, B, C, D, u, x0):
        x = self.way.scanned(a, driven(B, u), x0, none(u))
        y = read(C, x[..., 1:, :]) + read(D, u)
        return y, with_batch(x[..., -1, :], 1, y.shape[:-2])

    def diagonal_ssm_varying_stateful_vjp(self, dy, dx, a, B, C, D, u, x0):
        gradients = self._diagonal_back(dy, dx, a, B, C, D, u, x0)
        return unbroadcast_each(gradients, (a, B, C, D, u, x0))

    def _diagonal_back(self, dy, dx, a, B, C, D, u, x0):
        """Cotangents of all arguments, from those of the outputs and of the last state."""
        b = driven(B, u)
        x = self.way.scanned(a, b, x0, none(u))[..., 1:, :]
        d = with_last(driven(C.conj().swapaxes(-1, -2), dy), dx)
        da, db, dx0 = self.way.scanned_back(d, a, b, x0, none(u))
        dB = np.einsum("...ln,...lm->...nm", db, u.conj())
        dC = np.einsum("...lp,...ln->...pn", dy, x.conj())
        dD, skipped = skipped_back(dy, D, u)
        return da, dB, dC, dD, np.einsum("...nm,...ln->...lm", B.conj(), db) + skipped, dx0
