"""Oracles for refssm.kalman: conditional distributions of the joint Gaussian of states and data."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def kalman_filter(A, C, Q, R, y, m0, P0):
    """x_k given the first (k + 1) p numbers of y, and the log density of y."""
    joint = _Joint(A, C, Q, R, y, m0, P0)
    known = [joint.given(k, (k + 1) * joint.p) for k in range(len(y))]
    means, spreads = [m for m, _ in known], [P for _, P in known]
    return means, spreads, joint.log_density()


def kalman_smoother(A, C, Q, R, y, m0, P0):
    """x_k given all of y."""
    joint = _Joint(A, C, Q, R, y, m0, P0)
    known = [joint.given(k, len(y) * joint.p) for k in range(len(y))]
    return [m for m, _ in known], [P for _, P in known]


class _Joint:
    """Means and covariances of all x_k and y_k, and the Cholesky factor of all y together."""

    def __init__(self, A, C, Q, R, y, m0, P0):
        self.p, self.n, self.l = len(R), len(m0), len(y)
        self.A, self.C, m = _matrix(A, self.n), _matrix(C, self.n), _matrix([[x] for x in m0], 1)
        Q, R, P = (_symmetric(X) for X in (Q, R, P0))
        self.means, self.spreads, self.powers = [], [], [mp.eye(self.n)]
        for _ in range(self.l):
            m, P = self.A * m, self.A * P * self.A.T + Q
            self.means.append(m)
            self.spreads.append(P)
            self.powers.append(self.A * self.powers[-1])
        places = [(k, a) for k in range(self.l) for a in range(self.p)]
        S = mp.matrix(len(places), len(places))
        for k in range(self.l):
            rows = self.C * self.beside(k)
            for a in range(self.p):
                for place, (j, b) in enumerate(places):
                    S[k * self.p + a, place] = rows[a, place] + (R[a, b] if j == k else 0)
        self.L = mp.cholesky(S) if S.rows else S
        seen = [self.C * m for m in self.means]
        self.z = _below(self.L, [y[k][a] - seen[k][a] for k, a in places])

    def beside(self, k):
        """Cov(x_k, y), all y in one row of blocks."""
        blocks = mp.matrix(self.n, self.l * self.p)
        for j in range(self.l):
            before = self.powers[k - j] * self.spreads[j] if k >= j else None
            block = (before or self.spreads[k] * self.powers[j - k].T) * self.C.T
            for i in range(self.n):
                for a in range(self.p):
                    blocks[i, j * self.p + a] = block[i, a]
        return blocks

    def given(self, k, count):
        """Mean and covariance of x_k given the first `count` numbers."""
        beside, m, P = self.beside(k), self.means[k], self.spreads[k]
        W = [_below(self.L, beside[i, :].tolist()[0][:count]) for i in range(self.n)]
        mean = [m[i] + mp.fdot(zip(W[i], self.z[:count], strict=True)) for i in range(self.n)]
        spread = [
            [P[i, j] - mp.fdot(zip(W[i], W[j], strict=True)) for j in range(self.n)]
            for i in range(self.n)
        ]
        return mean, spread

    def log_density(self):
        """−½ (Σ z² + log det 2π S)."""
        logs = mp.fsum(2 * mp.log(self.L[i, i]) + mp.log(2 * mp.pi) for i in range(self.L.rows))
        return -(mp.fdot(zip(self.z, self.z, strict=True)) + logs) / 2


def _matrix(rows, width):
    """A matrix from rows, which may be none or empty."""
    return mp.matrix(rows) if rows and width else mp.matrix(len(rows), width)


def _symmetric(rows):
    """(X + Xᵀ)/2."""
    X = _matrix(rows, len(rows))
    return (X + X.T) / 2


def _below(L, x):
    """L⁻¹ x by substitution, from the first entry on."""
    z = []
    for i, x_i in enumerate(x):
        z.append((x_i - mp.fdot((L[i, j], z[j]) for j in range(i))) / L[i, i])
    return z
