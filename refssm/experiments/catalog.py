"""The experiments by the names of the command: the module of each, and a line about it."""

from importlib import import_module
from types import ModuleType

EXPERIMENTS = {
    "hankel-rank": "Count Hankel singular values against n. Random systems and HOPE.",
    "hankel-exponents": "Draw poles near the circle. Exponents of the rank, by their radial law.",
    "perturbation": "Move parameters, measure transfer functions. Compared with the bounds.",
    "perturbation-noise": "Add noise to parameters. Hankel singular values, and the factor n.",
    "memory": "Compare impulse responses. How long LegS, S4D, S5, HOPE remember, and aliasing.",
    "initialisation": "Draw Hankel singular values at the start. LegS, S4D, random poles, HOPE.",
    "resolution": "Read signals of several lengths. What n coefficients keep of them.",
    "cost": "Time layers alone on the machine. Growth with l and n, steps beside passes.",
    "digits": "Train every layer on scanned digits. Loss and accuracy, three seeds.",
    "frequency": "Fit waves by systems whose poles stay. Which frequencies S4D and HOPE reach.",
    "convergence": "Run gradient descent to a target. In HOPE's parameters and in diagonal ones.",
}
# of experiments that train models: their runs have folders, and share processes
TRAINED = {
    "recall": "Train on induction and associative recall. Attention, S4D, GSS, H3, Mamba.",
    "padded": "Train on digits followed by noise. HOPE, S4D, a free convolution.",
    "recency": "Start HOPE with a bias to what is recent, and with other steps. Behind noise.",
    "rnn-hippo": "Give a recurrent network a HiPPO matrix. As its memory, as its start; and S4.",
    "s5-ablation": "Change S5's poles, blocks, steps and parameters, one at a time. On digits.",
    "pendulum": "Follow a pendulum at irregular times. S5 with gaps, without, an RNN.",
    "half-rate": "Hear tones at half of the rate of training. With and without longer steps.",
    "training-rank": "Count Hankel singular values before and after training. HOPE and S4D.",
    "parametrisations": "Compare HOPE, spectral filters, stable rates, S4D. Size and gradients.",
}


def all_experiments() -> dict[str, str]:
    """Each name with a line about it."""
    return EXPERIMENTS | TRAINED


def module_of(name: str) -> ModuleType:
    """The module of an experiment, which has its name with _ instead of -."""
    folder = "refssm.experiments.trained." if name in TRAINED else "refssm.experiments."
    return import_module(folder + name.replace("-", "_"))
