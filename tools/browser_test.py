"""A learner's first minutes in a real browser: JupyterLab, the notebook of hw1, a check red, an edit, the check green.

    python tools/browser_test.py [--out FOLDER]

Needs JupyterLab and Playwright (pip install jupyterlab playwright) and Chromium (Debian, Ubuntu: apt install chromium).
Screenshots go to FOLDER, by default build/browser.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

STAGE, PART = "hw1", "hw1/negate_forward"
FILE = "python/needle/ops/ops_mathematic.py"
ANSWER = "return -a"
SECONDS = 120  # for the slowest step, a kernel's start on a busy machine
SETTINGS = {  # all cells in the page at once, and no news or tours in front of them
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {"fetchNews": "false", "checkForUpdates": False},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "browser", help="the folder for screenshots")
    out = parser.parse_args().out
    missing = what_is_missing()
    if missing:
        print(f"browser-test: {missing}", file=sys.stderr)
        return 1
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "My tree"
        make_tree(tree)
        with server(tree, Path(folder) / "settings") as address, page_of_chromium() as page:
            try:
                walk(page, address, out)
            except Exception:
                page.screenshot(path=out / "failed.png")
                raise
    print(f"browser-test: set-up, a red check, an edit, a green check; screenshots in {out}")
    return 0


def what_is_missing() -> str:
    """A line that says what to install; empty if all is there."""
    for name in ("jupyterlab", "playwright"):
        try:
            __import__(name)
        except ImportError:
            return f"{name} is not installed; run: {sys.executable} -m pip install jupyterlab playwright"
    return "" if chromium() else "no chromium on PATH; install it (Debian, Ubuntu: apt install chromium)"


def chromium() -> str | None:
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


def make_tree(tree: Path) -> None:
    from needle_course import stages, starter

    starter.make(stages.load(ROOT), STAGE, tree)


# ---- the server and the page ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def server(tree: Path, settings: Path) -> Iterator[str]:
    """JupyterLab on a free port of this machine only, ended afterwards."""
    for name, content in SETTINGS.items():
        path = settings / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
               "--IdentityProvider.token=", "--allow-root", f"--ServerApp.root_dir={tree}"]  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NEEDLE_", "PYTHONPATH"))}
    environment = {**kept, "JUPYTERLAB_SETTINGS_DIR": str(settings), "JUPYTER_CONFIG_DIR": str(settings / "config")}
    with open(settings / "server.log", "wb") as log:
        process = subprocess.Popen(command, cwd=tree, env=environment, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(address + "/api", process)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(address: str, process: subprocess.Popen) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"browser-test: JupyterLab ended with status {process.returncode} before it answered")
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
            return
        time.sleep(0.5)
    raise RuntimeError(f"browser-test: JupyterLab did not answer within {SECONDS} s")


@contextlib.contextmanager
def page_of_chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * SECONDS)
        try:
            yield page
        finally:
            browser.close()


# ---- what a learner does --------------------------------------------------------------------------------------------


def walk(page: Any, address: str, out: Path) -> None:
    open_notebook(page, address)
    run_cell(page, "setup(STAGE)", "run on the files as saved")
    page.screenshot(path=out / "1-set-up.png")

    run_cell(page, 'here("ops")', "")
    run_cell(page, f'check("{PART}")', f"{PART} is not implemented yet")
    page.screenshot(path=out / "2-red.png")

    edit(page, address)
    page.screenshot(path=out / "3-edit.png")

    open_notebook(page, address)
    run_cell(page, f'check("{PART}")', "✓ passed")
    page.screenshot(path=out / "4-green.png")


def open_notebook(page: Any, address: str) -> None:
    """Open the notebook and wait for its kernel, which would forget what it is asked before it is there."""
    page.goto(f"{address}/lab/tree/hw/{STAGE}/{STAGE}.ipynb?reset")
    page.get_by_text("| Idle").locator("visible=true").first.wait_for()


def run_cell(page: Any, source: str, wanted: str) -> None:
    """Run the code cell that holds `source`, and wait until its output holds `wanted`."""
    cell = page.locator(".jp-CodeCell", has_text=source).first
    cell.locator(".cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    cell.locator(".jp-OutputArea-output").filter(has_text=wanted).first.wait_for()
    cell.scroll_into_view_if_needed()


def edit(page: Any, address: str) -> None:
    """Open the file in JupyterLab's editor, put the answer in the place of the blank, save."""
    page.goto(f"{address}/lab/tree/{FILE}?reset")
    page.locator(".jp-FileEditor .cm-line").first.hover()
    line = page.locator(
        ".jp-FileEditor .cm-line", has_text=f'raise NotImplementedError("{PART} is not implemented yet")'
    )
    for _ in range(100):  # the editor holds only the lines in sight
        if line.count():
            break
        page.mouse.wheel(0, 500)
        page.wait_for_timeout(100)
    line.click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.type(ANSWER)
    page.keyboard.press("ControlOrMeta+s")
    page.get_by_text("Saving completed").wait_for()


if __name__ == "__main__":
    sys.exit(main())
