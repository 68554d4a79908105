"""Oracles for refssm.linear_attention.stages and stages_keyed: gates as rows, one number or n."""

from mpmath import mp

__all__ = [
    "chunk_gates",
    "chunk_inverse",
    "chunk_outputs",
    "chunk_outputs_keyed",
    "chunk_products",
    "chunk_products_keyed",
    "chunk_states",
    "chunk_states_keyed",
    "chunk_writes",
    "chunk_writes_keyed",
]


def chunk_gates(log_g):
    """G_i = Σ_{j≤i} log_g_j."""
    return [mp.fsum(log_g[: i + 1]) for i in range(len(log_g))]


def chunk_products_keyed(k, g, beta):
    """L_ij = β_i Σ_n k_in k_jn e^{G_in − G_jn}, i > j."""
    steps = range(len(k))
    return [
        [beta[i] * _decayed(k[i], k[j], g[i], g[j]) if i > j else mp.zero for j in steps]
        for i in steps
    ]


def chunk_inverse(L):
    """Each column of X solves (I + L) x = e by substitution."""
    steps = range(len(L))
    X = [[mp.mpf(i == j) for j in steps] for i in steps]
    for i in steps:
        for j in range(i):
            X[i][j] = -mp.fsum(L[i][a] * X[a][j] for a in range(j, i))
    return X


def chunk_writes_keyed(k, v, g, beta, X):
    """W = X β (e^G K), U = X β V."""
    decayed = [_scaled(*row) for row in zip(k, g, strict=True)]
    return _written(X, beta, decayed), _written(X, beta, v)


def chunk_states_keyed(k, w, u, g, S):
    """V' = U − W S, S ← e^{G_end} S + (e^{G_end − G} K)ᵀ V'."""
    before, new = [], []
    for k_c, w_c, u_c, g_c in zip(k, w, u, g, strict=True):
        before.append(S)
        taken = [_read(row, S, len(u_i)) for row, u_i in zip(w_c, u_c, strict=True)]
        new.append([_less(*rows) for rows in zip(u_c, taken, strict=True)])
        end = g_c[-1] if g_c else [mp.zero] * len(S)
        S = [
            [
                mp.exp(end[n]) * s
                + mp.fsum(
                    mp.exp(end[n] - g_i[n]) * k_i[n] * v_i[p]
                    for k_i, g_i, v_i in zip(k_c, g_c, new[-1], strict=True)
                )
                for p, s in enumerate(row)
            ]
            for n, row in enumerate(S)
        ]
    return before, new, S


def chunk_outputs_keyed(q, k, v, g, S):
    """Y_i = Sᵀ(e^{G_i} q_i) + Σ_{j≤i} (Σ_n q_in k_jn e^{G_in − G_jn}) V_j."""
    y = []
    for i, (q_i, v_i) in enumerate(zip(q, v, strict=True)):
        decayed = _scaled(q_i, g[i])
        weights = [_decayed(q_i, k[j], g[i], g[j]) for j in range(i + 1)]
        read = _read(decayed, S, len(v_i))
        y.append(
            [s + mp.fsum(a * v[j][p] for j, a in enumerate(weights)) for p, s in enumerate(read)]
        )
    return y


def _decayed(q, k, later, earlier):
    """Σ_n q_n k_n e^{G_n − G'_n}."""
    terms = zip(q, k, later, earlier, strict=True)
    return mp.fsum(q_n * k_n * mp.exp(a - b) for q_n, k_n, a, b in terms)


def _written(X, beta, rows):
    """X β times these rows, up to the diagonal."""
    sizes = range(len(rows[0]) if rows else 0)
    return [
        [mp.fsum(X[i][j] * beta[j] * rows[j][n] for j in range(i + 1)) for n in sizes]
        for i in range(len(X))
    ]


def _scaled(k, g):
    """e^G k."""
    return [mp.exp(x) * k_n for x, k_n in zip(g, k, strict=True)]


def _less(x, y):
    """x − y."""
    return [a - b for a, b in zip(x, y, strict=True)]


def _read(q, S, p):
    """Sᵀ q."""
    return [mp.fsum(q_n * row[i] for q_n, row in zip(q, S, strict=True)) for i in range(p)]


def _of_heads(g, n):
    """One gate a head as the same gate for all of n keys."""
    return [[x] * n for x in g]


def _keys(k):
    return len(k[0]) if k else 0


def chunk_products(k, g, beta):
    """L_ij = β_i (k_i·k_j) e^{G_i − G_j}, i > j."""
    return chunk_products_keyed(k, _of_heads(g, _keys(k)), beta)


def chunk_writes(k, v, g, beta, X):
    """W = X β (e^G K), U = X β V."""
    return chunk_writes_keyed(k, v, _of_heads(g, _keys(k)), beta, X)


def chunk_states(k, w, u, g, S):
    """V' = U − W S, S ← e^{G_end} S + (e^{G_end − G} K)ᵀ V'."""
    return chunk_states_keyed(k, w, u, [_of_heads(g_c, len(S)) for g_c in g], S)


def chunk_outputs(q, k, v, g, S):
    """Y_i = e^{G_i} Sᵀ q_i + Σ_{j≤i} (q_i·k_j) e^{G_i − G_j} V_j."""
    return chunk_outputs_keyed(q, k, v, _of_heads(g, len(S)), S)
