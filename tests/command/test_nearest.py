"""A misspelt name is answered with the nearest one."""

import pytest
from judging import run

import refssm

COMMANDS = {
    "show linear_scann": "did you mean linear_scan?",
    "show selective_scan_fn": "mamba_scan is nearest to it",  # by a tag
    "new liner_scan": "did you mean linear_scan?",
    "plot memmory": "`refssm plot` has no command `memmory`; did you mean memory?",
    "plot foo": "`foo`; wanted one of memory, basis, kernels, spectrum",
    "experiment digit": "did you mean digits?",
    "experiment foo": "wanted one of hankel-rank, hankel-exponents, perturbation,",
    "cases jugde": "did you mean judge?",
    "vectors chek": "did you mean check?",
    "lst": "`refssm` has no command `lst`; did you mean list?",
}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_wrong_name_on_the_command_line_is_one_sentence_with_the_nearest(capfd, words):
    result, out, err = run(capfd, *words.split())
    assert (result, out) == (4, "")
    assert COMMANDS[words] in err
    assert len(err.splitlines()) == 1


def test_a_wrong_operator_of_a_function_is_answered_with_the_nearest(capfd, tmp_path):
    (tmp_path / "x.py").write_text("def f(a, b): ...\n", encoding="utf-8")
    result, _, err = run(capfd, "verify", f"{tmp_path / 'x.py'}::f", "--as", "liner_scan")
    assert (result, "did you mean linear_scan?" in err) == (4, True)


def test_a_wrong_preset_is_answered_with_the_nearest(capfd, tmp_path):
    (tmp_path / "x.py").write_text("def linear_scan(a, b): ...\n", encoding="utf-8")
    result, _, err = run(capfd, "verify", str(tmp_path / "x.py"), "--preset", "s4d-lim-16")
    assert (result, "did you mean s4d-lin-16?" in err) == (4, True)


def test_a_wrong_name_in_python_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="'linear_scann'; did you mean linear_scan\\?"):
        _ = refssm.linear_scann  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match=r"'torch'$"):
        _ = refssm.torch  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(refssm, "__wrapped__")
