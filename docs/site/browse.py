"""`python -m docs.site.browse FOLDER`: every page of the built site in a headless browser, twice.

At 1200 and at 400 pixels: messages on the console, formulas that are wrong or cut off, pages wider
than the window, pictures that are not there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (1200, 400)
QUIET = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync",
         "disable-background-networking", "disable-component-update", "enable-logging=stderr",
         "v=0", "window-size=1280,1000", "remote-debugging-port=0")  # fmt: skip
DRIVER = Path(__file__).with_name("browse.html")
SECONDS = 900


class Handler(SimpleHTTPRequestHandler):
    """The site, the page that drives the browser, and what that page found."""

    found: ClassVar[dict] = {}
    done = threading.Event()

    def do_GET(self) -> None:
        """A file of the site, the driver, or the list of pages."""
        if self.path == "/-/driver":
            return self._send(DRIVER.read_bytes(), "text/html; charset=utf-8")
        if self.path == "/-/pages":
            root = Path(self.directory)
            pages = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.html"))
            body = json.dumps({"pages": pages, "widths": WIDTHS})
            return self._send(body.encode(), "application/json")
        return super().do_GET()

    def do_POST(self) -> None:
        """What was found."""
        length = int(self.headers["Content-Length"])
        Handler.found = json.loads(self.rfile.read(length))
        self._send(b"", "text/plain")
        Handler.done.set()

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args) -> None:
        """Nothing: the site is asked for thousands of files."""


def browsed(folder: Path, browser: str) -> list[str]:
    """A sentence for each thing that is wrong."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.done.clear()
    url = f"http://127.0.0.1:{server.server_port}/-/driver"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        flags = [f"--{flag}" for flag in (*QUIET, f"user-data-dir={place}/profile")]
        with Path(place, "said").open("w", encoding="utf-8") as said:
            started = subprocess.Popen([browser, *flags, url], stdout=said, stderr=said)
            ended = Handler.done.wait(SECONDS)
            started.terminate()
            started.wait(30)
        lines = Path(place, "said").read_text(encoding="utf-8", errors="replace").splitlines()
    server.shutdown()
    server.server_close()
    console = [line for line in lines if ":CONSOLE" in line]
    late = [] if ended else [f"not done after {SECONDS} seconds"]
    return [*late, *Handler.found.get("wrong", []), *dict.fromkeys(console)]


def main(folder: Path) -> int:
    """Print what is wrong; 1 if anything is, 2 without a browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.stderr.write(f"no browser: none of {', '.join(BROWSERS)} is installed\n")
        return 2
    wrong = browsed(folder, browser)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    formulas = Handler.found.get("formulas", 0)
    sys.stdout.write(f"{formulas} formulas at {len(WIDTHS)} widths, {len(wrong)} things wrong\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
