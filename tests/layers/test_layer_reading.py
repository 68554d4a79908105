"""Files with transformers' names: what is read, and what is refused in one sentence."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import refssm
from refssm.layers.reading import from_safetensors
from refssm.norms import rms_norm, rms_norm_vjp

H, V, N, T, R, E = 4, 7, 3, 4, 1, 8
SUBJECTS = "published code: pip install -e '.[subjects]'"


def tensors(blocks=2):
    """A model's tensors, in the shapes that PyTorch stores."""
    rng = np.random.default_rng(0)
    inside = {
        "norm.weight": (H,), "mixer.in_proj.weight": (2 * E, H), "mixer.conv1d.weight": (E, 1, T),
        "mixer.conv1d.bias": (E,), "mixer.x_proj.weight": (R + 2 * N, E),
        "mixer.dt_proj.weight": (E, R), "mixer.dt_proj.bias": (E,), "mixer.A_log": (E, N),
        "mixer.D": (E,), "mixer.out_proj.weight": (H, E),
    }  # fmt: skip
    shapes = {f"backbone.layers.{i}.{k}": s for i in range(blocks) for k, s in inside.items()}
    shapes |= {"backbone.embeddings.weight": (V, H), "backbone.norm_f.weight": (H,)}
    return {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}


def written(tmp_path, made):
    path = tmp_path / "model.safetensors"
    save_file(made, path)
    return path


def test_a_model_is_read_with_its_maps_turned_and_its_taps_reversed(tmp_path):
    made = tensors()
    model = from_safetensors(written(tmp_path, made))
    scale, p = model.blocks[1]
    under = {k.removeprefix("backbone.layers.1."): v for k, v in made.items()}
    assert np.array_equal(scale, under["norm.weight"])
    assert np.array_equal(p.W_in, under["mixer.in_proj.weight"].T)
    assert np.array_equal(p.k, under["mixer.conv1d.weight"][:, 0, ::-1])
    low_B_C = np.concatenate([p.W_low, p.W_B, p.W_C], axis=-1)
    assert np.array_equal(low_B_C, under["mixer.x_proj.weight"].T)
    assert np.array_equal(model.head, model.embedding.T)  # tied: the file has no head


def test_a_head_of_its_own_and_names_without_prefix_are_read_too(tmp_path):
    made = {k.removeprefix("backbone."): v for k, v in tensors().items()}
    made["embedding.weight"] = made.pop("embeddings.weight")
    made["lm_head.weight"] = np.ones((V, H), np.float32)
    model = from_safetensors(written(tmp_path, made))
    assert np.array_equal(model.head, np.ones((H, V)))


def test_a_model_without_convolution_bias_has_zeros(tmp_path):
    made = {k: v for k, v in tensors(1).items() if not k.endswith("conv1d.bias")}
    assert not from_safetensors(written(tmp_path, made)).blocks[0][1].k_bias.any()


def test_half_precision_is_read_as_the_same_numbers_in_single_precision(tmp_path):
    made = {k: v.astype(np.float16) for k, v in tensors(1).items()}
    model = from_safetensors(written(tmp_path, made))
    assert model.embedding.dtype == np.float32
    assert np.array_equal(model.embedding, made["backbone.embeddings.weight"])


def raw(path, kind, made):
    """A file of uint16 under another name of their type, as the format says: length, head, data."""
    head, data = {}, b""
    for name, array in made.items():
        ends = [len(data), len(data) + array.nbytes]
        head[name] = {"dtype": kind, "shape": array.shape, "data_offsets": ends}
        data += array.astype("<u2").tobytes()
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_bfloat16_is_read_as_the_same_numbers_in_single_precision(tmp_path):
    made = {k: v.view(np.uint32) >> 16 for k, v in tensors(1).items()}
    path = raw(tmp_path / "b.safetensors", "BF16", {k: v.astype("<u2") for k, v in made.items()})
    found = from_safetensors(path).blocks[0][0]
    wanted = made["backbone.layers.0.norm.weight"] << 16
    assert np.array_equal(found.view(np.uint32), wanted)
    assert found.dtype == np.float32


def test_integers_are_refused_by_the_name_of_the_tensor(tmp_path):
    made = {k: v.astype("<u2") for k, v in tensors(1).items()}
    with pytest.raises(ValueError, match=r"` has a type .*F64, F32, F16, BF16, got U16"):
        from_safetensors(raw(tmp_path / "u.safetensors", "U16", made))


def test_pieces_of_tokens_give_the_logits_of_the_whole(tmp_path):
    model = from_safetensors(written(tmp_path, tensors()))
    tokens = np.array([[3, 1, 4, 1, 5], [2, 6, 5, 3, 5]])
    whole = model.forward(refssm, tokens)
    first, states = model.stateful(refssm, tokens[:, :2], model.rest((2,)))
    rest, _ = model.stateful(refssm, tokens[:, 2:], states)
    # the two differ in the order in which BLAS adds E numbers; two blocks and a head do so
    error = np.abs(np.concatenate([first, rest], axis=1) - whole)
    assert error.max() <= 3 * E * 2.0**-24 * np.abs(whole).max()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"backbone.layers.0.mixer.D": None}, "block 0 has no `mixer.D`"),
        ({"backbone.norm_f.weight": None}, "no tensor for the scale"),
        ({"backbone.layers.0.mixer.in_proj.bias": (2 * E,)}, "in_proj.bias` has no place"),
        ({"backbone.layers.5.norm.weight": (H,)}, r"numbered from 0, got \[0, 1, 5\]"),
        ({"classifier.weight": (2, H)}, "`classifier.weight` has no place"),
        (
            {"backbone.layers.1.mixer.D": (E + 1,)},
            r"block 1: `mixer.D` .* wanted \(8,\), got \(9,\)",
        ),
        ({"backbone.layers.0.mixer.x_proj.weight": (N, E)}, r"wanted \(7, 8\), got \(3, 8\)"),
    ],
)
def test_another_model_is_refused_by_the_name_of_what_differs(tmp_path, change, said):
    made = tensors()
    for name, shape in change.items():
        made.pop(name, None)
        if shape:
            made[name] = np.zeros(shape, np.float32)
    with pytest.raises(ValueError, match=said):
        from_safetensors(written(tmp_path, made))


G, P = 4, 2


def tensors_of_mamba2():
    """A model of one block with G heads of P numbers."""
    rng, c = np.random.default_rng(0), E + 2 * N
    inside = {
        "norm.weight": (H,), "mixer.in_proj.weight": (E + c + G, H), "mixer.dt_bias": (G,),
        "mixer.conv1d.weight": (c, 1, T), "mixer.conv1d.bias": (c,), "mixer.A_log": (G,),
        "mixer.D": (G,), "mixer.norm.weight": (E,), "mixer.out_proj.weight": (H, E),
    }  # fmt: skip
    shapes = {f"backbone.layers.0.{k}": s for k, s in inside.items()}
    shapes |= {"backbone.embeddings.weight": (V, H), "backbone.norm_f.weight": (H,)}
    return {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}


def test_a_block_of_mamba2_is_parted_into_gate_signal_b_c_and_steps(tmp_path):
    made = tensors_of_mamba2()
    model = from_safetensors(written(tmp_path, made))
    (_, p), under = (
        model.blocks[0],
        {k.removeprefix("backbone.layers.0."): v for k, v in made.items()},
    )
    W = under["mixer.in_proj.weight"]
    assert model.layer.name == "mamba2"
    assert np.array_equal(p.W_z[1], W[P : 2 * P].T)
    assert np.array_equal(p.W_x[1], W[E + P : E + 2 * P].T)
    assert np.array_equal(p.W_B, W[2 * E : 2 * E + N].T)
    assert np.array_equal(p.W_C, W[2 * E + N : 2 * E + 2 * N].T)
    assert np.array_equal(p.W_dt, W[-G:].T)
    taps = under["mixer.conv1d.weight"][:, 0, ::-1]
    assert np.array_equal(p.k_x.reshape(E, T), taps[:E])
    assert np.array_equal(p.k_C, taps[-N:])
    assert np.array_equal(p.W_out[1], under["mixer.out_proj.weight"].T[P : 2 * P])
    tokens = np.array([[3, 1, 4, 1, 5]])
    whole = model.forward(refssm, tokens)
    first, states = model.stateful(refssm, tokens[:, :2], model.rest((1,)))
    rest, _ = model.stateful(refssm, tokens[:, 2:], states)
    error = np.abs(np.concatenate([first, rest], axis=1) - whole)
    assert error.max() <= 3 * E * 2.0**-24 * np.abs(whole).max()


def test_a_config_beside_the_file_that_says_otherwise_is_refused(tmp_path):
    path = written(tmp_path, tensors_of_mamba2())
    refused = {"n_groups": (2, "2, wanted 1"), "layer_norm_epsilon": (1e-6, "1e-06, wanted 1e-05")}
    for name, (value, said) in refused.items():
        (tmp_path / "config.json").write_text(json.dumps({name: value}), encoding="utf-8")
        with pytest.raises(ValueError, match=f"`{name}` is {said}"):
            from_safetensors(path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    assert from_safetensors(path).blocks


def test_tensors_of_both_layers_in_one_block_are_refused(tmp_path):
    made = tensors_of_mamba2()
    made["backbone.layers.0.mixer.dt_proj.bias"] = np.zeros(E, np.float32)
    with pytest.raises(ValueError, match=r"`mixer\.dt_proj\.bias` has no place in mamba2"):
        from_safetensors(written(tmp_path, made))


def test_a_file_that_is_none_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x80\x04not tensors")
    with pytest.raises(ValueError, match="cannot be read"):
        from_safetensors(path)
    with pytest.raises(ValueError, match="cannot be read"):
        from_safetensors(tmp_path / "absent.safetensors")


def gradients(model, dy, tokens):
    """Σ|x ∂φ/∂x| over all parameters, φ = ⟨dy, logits⟩: back through the blocks."""
    x, before = model.embedding[tokens], []
    for scale, p in model.blocks:
        before.append(x)
        x = x + model.layer.forward(refssm, p, rms_norm(x, scale))
    last = rms_norm(x, model.scale)
    size = np.abs((last.reshape(-1, H).T @ dy.reshape(-1, V)) * model.head).sum()
    dx, dscale = rms_norm_vjp(dy @ model.head.T, x, model.scale)
    size += np.abs(dscale * model.scale).sum()
    for x, (scale, p) in zip(reversed(before), reversed(model.blocks), strict=True):
        of_p, inner = model.layer.vjp(refssm, dx, p, rms_norm(x, scale))
        pairs = zip(of_p.arrays().values(), p.arrays().values(), strict=True)
        size += sum(np.abs(g * a).sum() for g, a in pairs)
        through, dscale = rms_norm_vjp(inner, x, scale)
        dx, size = dx + through, size + np.abs(dscale * scale).sum()
    return size + np.abs(dx * model.embedding[tokens]).sum()


SECOND = {"num_heads": 4, "head_dim": 2, "n_groups": 1}


@pytest.mark.long
@pytest.mark.parametrize(("name", "more"), [("Mamba", {}), ("Mamba2", SECOND)])
def test_the_logits_of_a_random_model_of_transformers_agree(tmp_path, name, more):
    """Theirs in single precision against ours in double, for a random functional of the logits.

    A program of N roundings one after another is off by N u S, S = Σ|dy y| + Σ|x ∂φ/∂x|.
    """
    torch = pytest.importorskip("torch", reason=SUBJECTS)
    transformers = pytest.importorskip("transformers", reason=SUBJECTS)
    torch.manual_seed(0)
    usual = {"vocab_size": V, "hidden_size": H, "state_size": N, "num_hidden_layers": 2}
    usual |= {"expand": 2, "conv_kernel": T}
    config = getattr(transformers, f"{name}Config")(**usual, **more)
    theirs = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.1 * torch.randn_like(p))
    theirs.save_pretrained(tmp_path)
    tokens = np.random.default_rng(0).integers(0, V, (2, 9))
    with torch.no_grad():
        found = theirs(torch.tensor(tokens)).logits.numpy()
    model = from_safetensors(tmp_path / "model.safetensors")
    wide = type(model)(
        model.layer,
        model.embedding.astype(float),
        tuple((s.astype(float), p.map(lambda a: a.astype(float))) for s, p in model.blocks),
        model.scale.astype(float),
        model.head.astype(float),
    )
    wanted = wide.forward(refssm, tokens)
    dy = np.random.default_rng(1).standard_normal(wanted.shape)
    size = np.abs(dy * wanted).sum() + gradients(wide, dy, tokens)
    roundings = 2 * (9 + 4) * (2 * E + 10)  # as in property_tests/test_layers.py, of two blocks
    assert abs((dy * (found - wanted)).sum()) <= roundings * 2.0**-24 * size
    other = wide.forward(refssm, tokens[:, ::-1])[:, ::-1]  # another program: refused
    assert abs((dy * (other - wanted)).sum()) > roundings * 2.0**-24 * size
