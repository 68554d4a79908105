"""How far a transfer function moves if the parameters of its system move.

A diagonal system with residues v_j = B_j C_j and poles w_j has G(s) = Σ_j v_j/(s − w_j); HOPE with
Markov parameters h has G(z) = Σ_j h_j z^{−(j+1)}. ‖·‖∞ is the largest modulus on the imaginary
axis, or on the unit circle [yu2024hope].
"""

import numpy as np


def markov_perturbation_bound(dh):
    """‖G̃ − G‖∞ ≤ √n ‖Δh‖₂ for Markov parameters that move by Δh.

    `dh` is (…, n), real or complex; the result has the leading axes. By Cauchy and Schwarz, for |z|
    = 1: |Σ_j Δh_j z^{−(j+1)}| ≤ Σ_j |Δh_j| ≤ √n ‖Δh‖₂. A constant Δh attains it at z = 1. It holds
    for every `dt`: the warp maps the unit circle to itself.

    >>> import refssm
    >>> float(refssm.markov_perturbation_bound([0.5, 0.5, 0.5, 0.5]))  # G̃ − G = 2 at z = 1
    2.0
    """
    dh = np.asarray(dh)
    return np.sqrt(dh.shape[-1]) * np.linalg.norm(dh, axis=-1)


def pole_perturbation_bound(w, B, C, delta):
    """‖G̃ − G‖∞ ≤ n Δ max_j |B_j C_j| / (|Re w_j| (|Re w_j| − Δ)) for poles that move by up to Δ.

    `w`, `B` and `C` are (…, n), `delta` = Δ is (…); leading axes broadcast and are those of the
    result. On the imaginary axis |s − w_j| ≥ |Re w_j|, and each pole contributes |B_j C_j δ_j| /
    (|s − w_j| |s − w_j − δ_j|). One pole that moves by Δ towards the axis attains 1/n of the bound;
    n equal poles with equal residues attain all of it.

    Raises ValueError unless Re w < 0 and 0 ≤ Δ < |Re w_j| for all j: a pole on the axis has no
    bound.

    >>> import refssm
    >>> float(refssm.pole_perturbation_bound([-1.0, -2.0], [1.0, 1.0], [1.0, 1.0], 0.5))
    2.0
    """
    w, delta = np.asarray(w), np.asarray(delta)
    rates = _rates("pole_perturbation_bound", w)
    if not ((delta[..., None] >= 0) & (delta[..., None] < rates)).all():
        raise ValueError(
            "pole_perturbation_bound: `delta` must be from 0 to below every |Re w|, "
            f"got {delta} and |Re w| down to {rates.min(initial=np.inf)}"
        )
    moduli = np.abs(np.asarray(B) * np.asarray(C))
    of_each = moduli / (rates * (rates - delta[..., None]))
    return w.shape[-1] * delta * of_each.max(-1, initial=0)


def residue_perturbation_bound(w, delta):
    """‖G̃ − G‖∞ ≤ n Δ max_j 1/|Re w_j| for residues B_j C_j that move by up to Δ.

    `w` is (…, n), `delta` = Δ is (…); leading axes broadcast and are those of the result. One
    residue attains 1/n of the bound; n equal poles attain all of it.

    Raises ValueError unless Re w < 0 and Δ ≥ 0.

    >>> import refssm
    >>> float(refssm.residue_perturbation_bound([-0.5, -2.0], 0.25))
    1.0
    """
    w, delta = np.asarray(w), np.asarray(delta)
    rates = _rates("residue_perturbation_bound", w)
    if not (delta >= 0).all():
        raise ValueError(f"residue_perturbation_bound: `delta` must not be negative, got {delta}")
    return w.shape[-1] * delta * (1 / rates).max(-1, initial=0)


def _rates(name, w):
    """|Re w|; ValueError unless all poles are stable."""
    if not (w.real < 0).all():
        raise ValueError(f"{name}: `w` must have Re w < 0, got {w[~(w.real < 0)]}")
    return -w.real
