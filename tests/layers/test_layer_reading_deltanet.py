"""Models with the names of Qwen3-Next: whose rows are whose, ε, pieces, refusals, transformers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

import refssm
from refssm.activations import silu, silu_vjp
from refssm.layers.attention.gated_deltanet import GATED_DELTANET_LAYER
from refssm.layers.reading import from_safetensors
from refssm.layers.reading_deltanet import OfEpsilon

SUBJECTS = "models of transformers need PyTorch and transformers"
V, H, N, P, T, F = 11, 8, 3, 5, 4, 12  # symbols, channels, keys, values, taps, and the maps after
KEYS, VALUES = 2, 4  # heads
CONFIG = {"linear_num_key_heads": KEYS, "rms_norm_eps": 1e-6}


def tensors(blocks=2, seed=0):
    rng = np.random.default_rng(seed)
    sizes = {
        "input_layernorm.weight": (H,),
        "linear_attn.in_proj_qkvz.weight": (2 * KEYS * N + 2 * VALUES * P, H),
        "linear_attn.in_proj_ba.weight": (2 * VALUES, H),
        "linear_attn.conv1d.weight": (2 * KEYS * N + VALUES * P, 1, T),
        "linear_attn.dt_bias": (VALUES,),
        "linear_attn.A_log": (VALUES,),
        "linear_attn.norm.weight": (P,),
        "linear_attn.out_proj.weight": (H, VALUES * P),
        "post_attention_layernorm.weight": (H,),
        "mlp.gate_proj.weight": (F, H),
        "mlp.up_proj.weight": (F, H),
        "mlp.down_proj.weight": (H, F),
    }
    made = {f"model.layers.{i}.{name}": rng.standard_normal(size) / 2
            for i in range(blocks) for name, size in sizes.items()}  # fmt: skip
    made["model.embed_tokens.weight"] = rng.standard_normal((V, H))
    made["model.norm.weight"] = rng.standard_normal(H) / 2
    return made


def written(folder, made, config=CONFIG):
    path = folder / "model.safetensors"
    save_file(made, path)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def test_rows_lie_by_heads_of_keys_and_two_heads_of_values_share_one(tmp_path):
    made = tensors(blocks=1)
    p = from_safetensors(written(tmp_path, made)).blocks[0].layer
    rows = made["model.layers.0.linear_attn.in_proj_qkvz.weight"]
    each = 2 * N + 4 * P  # q, k, two heads of v and two of the gate
    second = rows[each:]  # of the second head of keys: heads 2 and 3 of values
    for g in (2, 3):
        assert np.array_equal(p.W_q[g], second[:N].T)
        assert np.array_equal(p.W_k[g], second[N : 2 * N].T)
    assert np.array_equal(p.W_v[3], second[2 * N + P : 2 * N + 2 * P].T)
    assert np.array_equal(p.W_gate[2], second[2 * N + 2 * P : 2 * N + 3 * P].T)
    ba = made["model.layers.0.linear_attn.in_proj_ba.weight"]
    assert np.array_equal(p.W_b, ba[[0, 1, 4, 5]].T)
    assert np.array_equal(p.W_a, ba[[2, 3, 6, 7]].T)


def test_the_filter_has_queries_then_keys_then_values_with_the_oldest_input_first(tmp_path):
    made = tensors(blocks=1)
    p = from_safetensors(written(tmp_path, made)).blocks[0].layer
    taps = made["model.layers.0.linear_attn.conv1d.weight"][:, 0, ::-1]
    assert np.array_equal(p.k_q[1], taps[:N])
    assert np.array_equal(p.k_k[3], taps[3 * N : 4 * N])
    assert np.array_equal(p.k_v[1], taps[4 * N + P : 4 * N + 2 * P])
    out = made["model.layers.0.linear_attn.out_proj.weight"]
    assert np.array_equal(p.W_out[2], out[:, 2 * P : 3 * P].T)


def test_scales_are_stored_as_distances_from_1_but_for_the_gated_norm(tmp_path):
    made = tensors(blocks=1)
    model = from_safetensors(written(tmp_path, made))
    assert np.array_equal(model.scale, 1 + made["model.norm.weight"])
    block = model.blocks[0]
    assert np.array_equal(block.scale, 1 + made["model.layers.0.input_layernorm.weight"])
    assert np.array_equal(block.layer.scale, made["model.layers.0.linear_attn.norm.weight"])


def test_every_norm_has_the_epsilon_of_the_config(tmp_path):
    """With zeros after the first norm, ε alone divides."""
    config = {**CONFIG, "rms_norm_eps": 0.25}
    model = from_safetensors(written(tmp_path, tensors(), config))
    assert model.normal(np.zeros(H), model.scale).tolist() == [0.0] * H
    one = np.full(H, 0.5)  # mean square ¼: x/√½
    assert np.allclose(model.normal(one, np.ones(H)), np.sqrt(0.5), rtol=2**-50)
    x, z, w = np.full(4, 0.5), np.ones(4), np.ones(4)
    gated = OfEpsilon(refssm, 0.25).rms_norm_gated(x, z, w)
    assert np.allclose(gated, np.sqrt(0.5) * silu(np.ones(4)), rtol=2**-50)
    usual = from_safetensors(written(tmp_path, tensors()))
    tokens = np.arange(6)
    assert np.abs(usual.forward(refssm, tokens) - model.forward(refssm, tokens)).max() > 0.01


def test_pieces_of_tokens_give_the_logits_of_the_whole(tmp_path):
    model = from_safetensors(written(tmp_path, tensors()))
    tokens = np.random.default_rng(1).integers(0, V, (2, 9))
    whole, states, found = model.forward(refssm, tokens), model.rest((2,)), []
    for piece in np.split(tokens, [1, 5], axis=-1):
        y, states = model.stateful(refssm, piece, states)
        found.append(y)
    assert np.abs(np.concatenate(found, axis=-2) - whole).max() <= 2.0**-40 * np.abs(whole).max()


FIRST = "model.layers.0."


@pytest.mark.parametrize(
    ("change", "config", "said"),
    [
        (lambda t: t.pop("model.norm.weight"), CONFIG, "no `model.norm.weight`"),
        (lambda t: t.pop(f"{FIRST}mlp.up_proj.weight"), CONFIG, "block 0 has no `mlp.up_proj"),
        (lambda t: t.update({f"{FIRST}self_attn.q_proj.weight": np.ones((H, H))}), CONFIG,
         "`model.layers.0.self_attn.q_proj.weight` has no place in blocks of Gated DeltaNet"),
        (lambda t: t.update({f"{FIRST}linear_attn.dt_bias": np.ones(VALUES + 1)}), CONFIG,
         r"`linear_attn.dt_bias` does not fit the others: wanted \(4,\), got \(5,\)"),
        (lambda t: t, None, "do not show `linear_num_key_heads`, wanted in a config.json beside"),
        (lambda t: t, {**CONFIG, "linear_num_key_heads": 3}, "does not fit the others"),
    ],
)  # fmt: skip
def test_a_file_that_is_another_model_is_refused_by_the_name_of_what_differs(
    tmp_path, change, config, said
):
    made = tensors(blocks=1)
    change(made)
    with pytest.raises(ValueError, match=said):
        from_safetensors(written(tmp_path, made, config))


def _normal_vjp(dy, x, scale, eps):
    rate = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    y, g = x * rate, dy * scale
    return rate * (g - y * (g * y).mean(-1, keepdims=True)), (dy * y).reshape(-1, len(scale)).sum(0)


def _flat(x):
    return x.reshape(-1, x.shape[-1])


def _sizes_of_block(model, block, x, dx):
    """The cotangent of the block's input, and Σ|a ∂φ/∂a| over its parameters."""
    ops = OfEpsilon(refssm, model.eps)
    inner = model.normal(x, block.scale)
    after = x + GATED_DELTANET_LAYER.forward(ops, block.layer, inner)
    second = model.normal(after, block.second_scale)
    a, b = second @ block.gate, second @ block.up
    dh = dx @ block.down.T
    da, db = silu_vjp(dh * b, a), dh * silu(a)
    size = np.abs(_flat(silu(a) * b).T @ _flat(dx) * block.down).sum()
    size += np.abs(_flat(second).T @ _flat(da) * block.gate).sum()
    size += np.abs(_flat(second).T @ _flat(db) * block.up).sum()
    through, dscale = _normal_vjp(da @ block.gate.T + db @ block.up.T, after, block.second_scale,
                                  model.eps)  # fmt: skip
    dx, size = dx + through, size + np.abs(dscale * block.second_scale).sum()
    of_p, dinner = GATED_DELTANET_LAYER.vjp(ops, dx, block.layer, inner)
    pairs = zip(of_p.arrays().values(), block.layer.arrays().values(), strict=True)
    size += sum(np.abs(g * a).sum() for g, a in pairs)
    through, dscale = _normal_vjp(dinner, x, block.scale, model.eps)
    return dx + through, size + np.abs(dscale * block.scale).sum()


def size_of_terms(model, dy, tokens):
    """Σ|x ∂φ/∂x| over all parameters, φ = ⟨dy, logits⟩: back through the blocks."""
    x, before, ops = model.embedding[tokens], [], OfEpsilon(refssm, model.eps)
    for block in model.blocks:
        before.append(x)
        x = x + GATED_DELTANET_LAYER.forward(ops, block.layer, model.normal(x, block.scale))
        x = x + model.mixed(block, x)
    size = np.abs(_flat(model.normal(x, model.scale)).T @ _flat(dy) * model.head).sum()
    dx, dscale = _normal_vjp(dy @ model.head.T, x, model.scale, model.eps)
    size += np.abs(dscale * model.scale).sum()
    for x, block in zip(reversed(before), reversed(model.blocks), strict=True):
        dx, of_block = _sizes_of_block(model, block, x, dx)
        size += of_block
    return size + np.abs(dx * model.embedding[tokens]).sum()


@pytest.mark.long
def test_the_logits_of_a_random_model_of_transformers_agree(tmp_path):
    """Theirs in single precision against ours in double, for a random functional of the logits.

    A program of N roundings one after another is off by N u S, S = Σ|dy y| + Σ|x ∂φ/∂x|.
    """
    torch = pytest.importorskip("torch", reason=SUBJECTS)
    transformers = pytest.importorskip("transformers", reason=SUBJECTS)
    torch.manual_seed(0)
    config = transformers.Qwen3NextConfig(
        vocab_size=V, hidden_size=H, intermediate_size=F, num_hidden_layers=2,
        layer_types=["linear_attention"] * 2, mlp_only_layers=[0, 1], num_experts=0,
        linear_num_key_heads=KEYS, linear_num_value_heads=VALUES, linear_key_head_dim=N,
        linear_value_head_dim=P, linear_conv_kernel_dim=T, num_attention_heads=2,
        num_key_value_heads=1, head_dim=4,
    )  # fmt: skip
    theirs = transformers.Qwen3NextForCausalLM(config).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.1 * torch.randn_like(p))
    theirs.save_pretrained(tmp_path)
    tokens = np.random.default_rng(0).integers(0, V, (2, 9))
    with torch.no_grad():
        found = theirs(torch.tensor(tokens), use_cache=False).logits.numpy()
    model = from_safetensors(tmp_path / "model.safetensors")
    blocks = tuple(
        type(block)(*(x.map(lambda a: a.astype(float)) if hasattr(x, "map") else x.astype(float)
                      for x in block))
        for block in model.blocks
    )  # fmt: skip
    wide = replace(
        model, blocks=blocks,
        **{name: getattr(model, name).astype(float) for name in ("embedding", "scale", "head")},
    )  # fmt: skip
    wanted = wide.forward(refssm, tokens)
    dy = np.random.default_rng(1).standard_normal(wanted.shape)
    bound = 2.0**-24 * (np.abs(dy * wanted).sum() + size_of_terms(wide, dy, tokens))
    bound *= 2 * (9 + 4) * (H + F + 10)  # steps and taps, and the terms of a sum, of two blocks
    assert abs((dy * (found - wanted)).sum()) <= bound
    other = wide.forward(refssm, tokens[:, ::-1])[:, ::-1]  # another program: refused
    assert abs((dy * (other - wanted)).sum()) > bound
