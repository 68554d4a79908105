"""The page of `refssm verify --html` in a browser: rows, pictures, filter, nothing external."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from judging import SCAN, plugin, run

pytest.importorskip("jinja2", reason="the page is made by jinja2")
pytest.importorskip("matplotlib", reason="its pictures are drawn by matplotlib")

from matplotlib.image import imread

from refssm.conformance.report.page import page
from refssm.conformance.report.verdict import verdict_of

pytestmark = pytest.mark.outside

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync",
         "disable-background-networking", "disable-component-update", "enable-logging=stderr",
         "v=0", "window-size=1280,1600")  # fmt: skip


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Open a page: its document after the script ran, console messages, a screenshot."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser to open the page with: none of {', '.join(BROWSERS)} is installed")
    place = tmp_path_factory.mktemp("browser")

    def read(path):
        flags = [f"--{flag}" for flag in (*QUIET, f"user-data-dir={place / 'profile'}")]
        flags += [f"--screenshot={place / 'seen.png'}", "--dump-dom", path.resolve().as_uri()]
        done = subprocess.run([browser, *flags], capture_output=True, encoding="utf-8", timeout=120)
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        return done.stdout, said, imread(place / "seen.png")

    return read


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_browser_shows_the_page_and_has_nothing_to_complain_of(folder, capfd, opened):
    plugin(folder, SCAN.replace("return x", "return x * 1.01"))
    checks = ("--check", "value", "--check", "repeat", "--profile", "quick")
    assert run(capfd, "verify", "my_ops.py", *checks, "--html", "report.html")[0] == 1
    text = (folder / "report.html").read_text("utf-8")
    document, said, seen = opened(folder / "report.html")
    assert said == []
    assert document.count('<tr role="row" id="r') == 2
    assert "2 of 2 shown" in document  # written by the script
    assert document.count("<svg") == text.count("<svg") > 0
    assert seen.shape[:2] == (1600, 1280)
    assert len(np.unique(seen.reshape(-1, seen.shape[-1]), axis=0)) > 50
    # the same page after clicks; the page's policy would block this script
    clicks = "document.querySelectorAll('#filter button')[0].click();"
    clicks += (
        "[...document.querySelectorAll('thead button')].find(b => b.textContent == 'Check').click()"
    )
    open_to_all = re.sub(r'<meta http-equiv="[^>]*>', "", text)
    (folder / "used.html").write_text(f"{open_to_all}<script>{clicks}</script>", "utf-8")
    used, said, _ = opened(folder / "used.html")
    assert said == []
    assert "1 of 2 shown" in used
    assert re.search(r'<tr role="row" id="r1"[^>]* hidden=""', used)
    assert used.index('id="r2"') < used.index('id="r1"')  # repeat before value


def test_the_browser_would_complain_of_what_comes_from_outside_or_was_put_in(folder, opened):
    text = page(verdict_of([]), [], ["x   profile quick, seed 0"], 0.0, {})
    planted = "<img src='http://127.0.0.1:9/x.png'><script>document.title = 'taken'</script>"
    (folder / "planted.html").write_text(text.replace("</main>", f"{planted}</main>"), "utf-8")
    document, said, _ = opened(folder / "planted.html")
    assert len(said) == 2
    assert all("Content Security Policy" in line for line in said)
    assert "<title>taken" not in document
