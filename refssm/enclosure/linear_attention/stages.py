"""Enclosures for refssm.linear_attention.stages and stages_keyed: quotients of decays, powers of L,
the matrix of a whole chunk, and for outputs the recurrence from step to step."""

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
    """G_i = G_{i−1} + log_g_i."""
    found, G = [], 0
    for x in log_g:
        G = G + x
        found.append(G)
    return found


def chunk_products_keyed(k, g, beta):
    """Rows e^{G_i} k_i times β_i, and columns k_j/e^{G_j}."""
    rows = [_times(b, _scaled(k_i, g_i)) for k_i, g_i, b in zip(k, g, beta, strict=True)]
    columns = [_divided(*row) for row in zip(k, g, strict=True)]
    steps = range(len(k))
    return [[_dot(rows[i], columns[j]) if i > j else 0 for j in steps] for i in steps]


def chunk_inverse(L):
    """Σ_r (−L)^r, which ends at r = l."""
    steps = range(len(L))
    lower = [[-L[i][j] if i > j else 0 for j in steps] for i in steps]
    power = [[int(i == j) for j in steps] for i in steps]
    X = power
    for _ in steps:
        power = _product(lower, power)
        X = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(X, power, strict=True)]
    return X


def chunk_writes_keyed(k, v, g, beta, X):
    """Sums over columns of X."""
    W = [[0] * len(row) for row in k]
    U = [[0] * len(row) for row in v]
    for j, rate in enumerate(beta):
        decayed, value = _times(rate, _scaled(k[j], g[j])), _times(rate, v[j])
        for i in range(j, len(X)):
            W[i] = _added(W[i], X[i][j], decayed)
            U[i] = _added(U[i], X[i][j], value)
    return W, U


def chunk_states_keyed(k, w, u, g, S):
    """S ← M S + K̃ᵀ U with the matrix M = diag(e^{G_end}) − K̃ᵀ W of a chunk."""
    before, new = [], []
    for k_c, w_c, u_c, g_c in zip(k, w, u, g, strict=True):
        before.append(S)
        p = len(S[0]) if S else 0
        taken = [_read(w_i, S, p) for w_i in w_c]
        new.append([_added(u_i, -1, t) for u_i, t in zip(u_c, taken, strict=True)])
        keys = [[k_n * (g_c[-1][n] - g_i[n]).exp() for n, k_n in enumerate(k_i)]
                for k_i, g_i in zip(k_c, g_c, strict=True)]  # fmt: skip
        M = [[(g_c[-1][n].exp() if g_c else 1) if n == i else 0 for i in range(len(S))]
             for n in range(len(S))]  # fmt: skip
        driven = [[0] * p for _ in S]
        for key, w_i, u_i in zip(keys, w_c, u_c, strict=True):
            M = [_added(row, -k_n, w_i) for row, k_n in zip(M, key, strict=True)]
            driven = [_added(row, k_n, u_i) for row, k_n in zip(driven, key, strict=True)]
        S = [_added(_read(row, S, p), 1, d) for row, d in zip(M, driven, strict=True)]
    return before, new, S


def chunk_outputs_keyed(q, k, v, g, S):
    """S_i = e^{G_i − G_{i−1}} S_{i−1} + k_i V_iᵀ, y_i = S_iᵀ q_i."""
    y, last = [], [0] * len(S)
    for q_i, k_i, v_i, g_i in zip(q, k, v, g, strict=True):
        decays = [(a - b).exp() for a, b in zip(g_i, last, strict=True)]
        terms = zip(S, decays, k_i, strict=True)
        S, last = [_added(_times(a, row), k_n, v_i) for row, a, k_n in terms], g_i
        y.append(_read(q_i, S, len(v_i)))
    return y


def _scaled(k, g):
    """e^G k."""
    return [k_n * x.exp() for k_n, x in zip(k, g, strict=True)]


def _divided(k, g):
    """k/e^G."""
    return [k_n / x.exp() for k_n, x in zip(k, g, strict=True)]


def _times(c, x):
    return [c * x_n for x_n in x]


def _dot(x, y):
    return sum((a * b for a, b in zip(x, y, strict=True)), 0)


def _added(x, c, y):
    """x + c y."""
    return [a + c * b for a, b in zip(x, y, strict=True)]


def _read(q, S, p):
    """Sᵀ q."""
    return [sum((q_n * row[i] for q_n, row in zip(q, S, strict=True)), 0) for i in range(p)]


def _product(L, M):
    """L M."""
    steps = range(len(L))
    return [[sum((L[i][a] * M[a][j] for a in steps), 0) for j in steps] for i in steps]


def _of_heads(g, n):
    """One gate a head as the same gate for all of n keys."""
    return [[x] * n for x in g]


def _keys(k):
    return len(k[0]) if k else 0


def chunk_products(k, g, beta):
    """As with the same gate for all keys."""
    return chunk_products_keyed(k, _of_heads(g, _keys(k)), beta)


def chunk_writes(k, v, g, beta, X):
    """As with the same gate for all keys."""
    return chunk_writes_keyed(k, v, _of_heads(g, _keys(k)), beta, X)


def chunk_states(k, w, u, g, S):
    """As with the same gate for all keys."""
    return chunk_states_keyed(k, w, u, [_of_heads(g_c, len(S)) for g_c in g], S)


def chunk_outputs(q, k, v, g, S):
    """As with the same gate for all keys."""
    return chunk_outputs_keyed(q, k, v, _of_heads(g, len(S)), S)
