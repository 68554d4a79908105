"""`refssm plot`: the data of the pictures; files are complete or absent."""

from pathlib import Path
from xml.etree.ElementTree import fromstring

import memories
import numpy as np
import pytest
from judging import run

import refssm

pytest.importorskip("matplotlib")

from docs.build import scalings
from refssm.gallery import basis, drawing, kernels, memory, spectrum

STORED = sorted((Path(__file__).parents[2] / "docs/pictures").glob("*.svg"))
PICTURES = ("memory", "basis", "kernels", "spectrum")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_written_and_twice_the_same(folder, capfd, picture, suffix):
    for name in ("one", "two"):
        result, out, err = run(capfd, "plot", picture, "--n", 8, "-o", f"{name}{suffix}")
        assert (result, out, err) == (0, f"{name}{suffix}\n", "")
    first, second = ((folder / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert first == second
    assert first.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert sorted(p.name for p in folder.iterdir()) == [f"one{suffix}", f"two{suffix}"]


@pytest.mark.parametrize("measure", memory.MEASURES)
def test_every_memory_is_drawn_under_its_name(folder, capfd, measure):
    assert run(capfd, "plot", "memory", "--measure", measure, "--n", 7)[0] == 0
    assert (folder / f"memory_{measure}.png").is_file()


def content(element):
    """What an SVG element says, without spaces and line ends that mean nothing."""
    attributes = {name: value.split() for name, value in element.attrib.items()}
    return element.tag, attributes, (element.text or "").strip(), [*map(content, element)]


@pytest.mark.parametrize("picture", PICTURES)
def test_an_svg_has_few_lines_and_the_content_that_matplotlib_wrote(
    folder, capfd, monkeypatch, picture
):
    run(capfd, "plot", picture, "--n", 8, "-o", "short.svg")
    monkeypatch.setattr(drawing, "one_element_a_line", str)
    run(capfd, "plot", picture, "--n", 8, "-o", "long.svg")
    short, long = ((folder / name).read_text("utf-8") for name in ("short.svg", "long.svg"))
    assert 8 * short.count("\n") < long.count("\n")
    assert content(fromstring(short)) == content(fromstring(long))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_a_stored_picture_has_one_element_a_line(path):
    text = path.read_text(encoding="utf-8")
    assert text == drawing.one_element_a_line(text)


REFUSED = {
    "measure": (("--measure", "legx"), "unknown measure 'legx'; wanted one of legs, legt, lmu,"),
    "format": (("-o", "x.pdf"), "x.pdf: wanted a file name that ends in .png or .svg"),
    "folder": (("-o", "nowhere/x.png"), "nowhere/x.png: No such file or directory"),
    "size": (("--n", "1"), "Invalid value for '--n'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_picture_that_cannot_be_is_one_sentence(folder, capfd, what):
    arguments, sentence = REFUSED[what]
    result, out, err = run(capfd, "plot", "memory", *arguments)
    assert (result, out) == (4, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert [*folder.iterdir()] == []


def test_without_matplotlib_the_command_says_how_to_get_it(capfd, monkeypatch):
    monkeypatch.setattr("refssm.command.plot.find_spec", lambda name: None)
    result, _, err = run(capfd, "plot", "kernels")
    assert result == 4
    assert err == "refssm: pictures need matplotlib: pip install matplotlib\n"


def test_an_interrupted_picture_leaves_the_old_one_and_nothing_else(folder, capfd, monkeypatch):
    Path("kernels.png").write_text("old", encoding="utf-8")

    def interrupted(self, name, **how):
        Path(name).write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr(drawing.Figure, "savefig", interrupted)
    assert run(capfd, "plot", "kernels", "--n", 4)[0] == 2
    assert [p.name for p in folder.iterdir()] == ["kernels.png"]
    assert Path("kernels.png").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("measure", ["legs", "legt", "lmu", "fourier"])
def test_more_states_give_back_more(measure):
    few, many = (memory.remembered(measure, n) for n in (8, 48))
    errors = [np.sqrt(np.mean((m.y - memory.signal(m.past)) ** 2)) for m in (few, many)]
    assert errors[1] < errors[0] / 2
    assert many.x.shape == (memory.STEPS, 48)


def test_the_basis_starts_from_b_and_solves_its_equation():
    s, p = basis.functions("legt", 5)
    A, B = memories.legt(5)
    assert p[0].tolist() == B.tolist()
    slope = (p[1] - p[0]) / s[1]
    # |p(h) − p(0) − h A B| ≤ h²/2 max ‖e^{sA} A² B‖, and ‖e^{sA}‖₂ ≤ 1 in orthonormal scaling
    assert np.linalg.norm(slope - A @ B) <= s[1] / 2 * np.linalg.norm(A @ A @ B)


def test_the_poles_of_the_normal_parts_lie_on_a_line_in_pairs():
    real = {"legs": -0.5, "legt": 0.0, "lagt": -0.5, "fourier": 0.0}
    for measure, on in real.items():
        w = spectrum.spectra(8)[f"normal part of {measure}"]
        bound = 8 * 2.0**-53 * np.abs(w).max() * 8
        assert np.abs(w.real - on).max() <= bound
        assert np.abs(w.imag + w.imag[::-1]).max() <= bound
    assert (
        np.abs(
            np.sort(spectrum.spectra(8)["normal part of fourier"].imag)[5:]
            - 2 * np.pi * np.arange(1, 4)
        ).max()
        <= bound
    )


def test_the_kernel_of_legs_is_the_impulse_response_of_its_system():
    t, held = kernels.kernels(4)
    A, B = memories.legs(4)
    # for an input that is constant over a step, the response is the mean of e^{tA} B over it
    first = [np.sum(refssm.discretize_impulse(A, B[:, None], h)[0] @ B) for h in (0, t[1])]
    assert min(first) <= held["LegS"][0] <= max(first)
    assert list(held) == list(kernels.NAMES)
    assert all(k.shape == t.shape and np.isfinite(k).all() for k in held.values())


def test_no_scaling_of_the_states_is_worth_half_a_digit():
    for measure in ("legs", "legt"):
        found = scalings.digits(measure, 16)
        assert max(found) - min(found) < 0.5  # as the docs page says
        assert min(found) > 5
