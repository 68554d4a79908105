import numpy as np
import pytest
from scipy.special import expit

import refssm
from refssm.layers.mamba import MAMBA_LAYER, Mamba

SUBJECTS = "published code: pip install -e '.[subjects]'"


def counted(h, **sizes):
    p = MAMBA_LAYER.init(np.random.default_rng(0), h=h, **sizes)
    return sum(a.size for a in p.arrays().values())


def test_its_parameters_are_those_of_the_published_models():
    """Of mamba-130m: 24 blocks with h = 768, a norm each, one more norm, 50280 tied embeddings."""
    block = counted(768) + 768
    assert block == 3_771_648
    assert 24 * block + 768 + 50280 * 768 == 129_135_360


def test_the_rank_of_dt_is_a_sixteenth_of_the_channels_rounded_up():
    for h, rank in ((16, 1), (17, 2), (768, 48)):
        assert MAMBA_LAYER.init(np.random.default_rng(0), h=h).W_dt.shape == (rank, 2 * h)


def test_it_starts_as_its_paper_says():
    p = MAMBA_LAYER.init(np.random.default_rng(0), h=64)
    assert np.array_equal(p.log_rate, np.tile(np.log(np.arange(1.0, 17)), (128, 1)))
    assert np.array_equal(p.D, np.ones(128))
    dt = np.logaddexp(0, p.dt_bias)
    assert dt.min() >= 1e-3 * (1 - 2**-40)  # a step that went through log and exp
    assert dt.max() <= 1e-1 * (1 + 2**-40)
    assert np.abs(p.W_dt).max() <= 4**-0.5
    assert np.abs(p.k).max() <= 4**-0.5
    assert np.abs(p.W_out).max() <= 128**-0.5


def test_without_its_scan_it_is_a_gated_short_convolution():
    p = MAMBA_LAYER.init(np.random.default_rng(0), h=3, n=2, t=2)
    p = Mamba(**(p.arrays() | {"W_C": 0 * p.W_C}))
    u = np.random.default_rng(1).standard_normal((5, 3))
    x, z = np.split(u @ p.W_in, 2, axis=-1)
    before = np.concatenate([np.zeros((1, 6)), x[:-1]])
    x = p.k[:, 0] * x + p.k[:, 1] * before + p.k_bias
    wanted = (x * expit(x) * z * expit(z)) @ p.W_out
    got = MAMBA_LAYER.forward(refssm, p, u)
    size = (np.abs(x) * np.abs(z)).max() * np.abs(p.W_out).sum()
    assert np.abs(got - wanted).max() <= 64 * 2.0**-53 * size


@pytest.mark.long
def test_the_published_block_has_as_many_parameters_and_starts_alike():
    transformers = pytest.importorskip("transformers", reason=SUBJECTS)
    torch = pytest.importorskip("torch", reason=SUBJECTS)
    modeling = pytest.importorskip("transformers.models.mamba.modeling_mamba", reason=SUBJECTS)
    torch.manual_seed(0)
    config = transformers.MambaConfig(hidden_size=40, num_hidden_layers=1, vocab_size=8)
    theirs = modeling.MambaMixer(config, 0)
    assert sum(p.numel() for p in theirs.parameters()) == counted(40)
    with torch.device("meta"):  # without memory
        config = transformers.MambaConfig(hidden_size=768, num_hidden_layers=24, vocab_size=50280)
        whole = transformers.MambaForCausalLM(config)
    assert sum(p.numel() for p in whole.parameters()) == 129_135_360
    ours = MAMBA_LAYER.init(np.random.default_rng(0), h=40)
    assert np.abs(theirs.A_log.detach().numpy() - ours.log_rate).max() <= 8 * 2.0**-24
    for theirs_, mine in ((theirs.in_proj, ours.W_in), (theirs.out_proj, ours.W_out)):
        bound = np.abs(mine).max()
        assert abs(theirs_.weight.abs().max().item() / bound - 1) <= 2 / 40  # many numbers near it
    dt = np.logaddexp(0, theirs.dt_proj.bias.detach().numpy())
    assert 1e-3 * (1 - 2**-12) <= dt.min() <= dt.max() <= 0.1 * (1 + 2**-12)
