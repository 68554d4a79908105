"""Enclosures for refssm.response: e^x as (e^{x/2})², poles from the last."""


def impulse_response(v, w, t):
    """y_l = Σ_n v_n (e^(w_n t_l/2))²."""
    return [
        sum(v_n * (w_n * t_l / 2).exp() ** 2 for v_n, w_n in reversed([*zip(v, w, strict=True)]))
        for t_l in t
    ]
