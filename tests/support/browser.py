"""Chromium without a window, driven over its debugging pipe: the standard library is all it takes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: Seconds that any one answer may take.
PATIENCE = 60.0


def find_chromium() -> str | None:
    """Path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        found = shutil.which(name)
        if found is not None:
            return found
    return None


class Browser:
    """One tab of a running Chromium. What it reports on its own is kept in `events`."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[Json] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Json:
        """One command of the DevTools protocol; its result. Raises RuntimeError where it fails."""
        self._number += 1
        number = self._number
        message: Json = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") != number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                result: Json = answer["result"]
                return result

    def _read(self) -> Json:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], max(end - time.monotonic(), 0))
            part = os.read(self._back, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError("Chromium has gone or does not answer.")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message: Json = json.loads(line)
        return message

    def open(self, url: str) -> None:
        """Loads a page and waits until it stands. What was reported before is forgotten."""
        self.call("Page.navigate", url="about:blank")  # so that a change of the hash alone loads anew
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page. Raises RuntimeError where it throws."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until an expression holds. Raises RuntimeError where it does not come to that."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            if time.monotonic() > end:
                raise RuntimeError(f"never: {condition}")
            time.sleep(0.01)

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Size of the view in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def media(self, *, scheme: str = "light", kind: str = "") -> None:
        """Colour scheme ("light", "dark") and kind of media ("" or "print")."""
        self.call(
            "Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    def key(self, key: str) -> None:
        """Presses a key."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Enter": 13, "Tab": 9}
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            code = codes.get(key, ord(key[0].upper()))
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def mouse(self, x: float, y: float, *, click: bool = False) -> None:
        """Moves the mouse to a point of the view, and clicks there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of the view, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions and refusals since the page was opened."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was opened, the page itself among them."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """A fresh Chromium with an empty profile; ended and cleaned up afterwards."""
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        # The pipe's ends must be descriptors 3 and 4 of the browser: a shell moves them there.
        moved = f'exec "$@" 3<&{to_read} 4>&{back_write}'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        quiet = ["--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions", f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            ["bash", "-c", moved, "bash", program, *flags, *quiet, "about:blank"],
            pass_fds=(to_read, back_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(back_write)
        try:
            browser = Browser(to_write, back_read)
            yield browser
            _end(lambda: browser.call("Browser.close"))
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)
            os.close(to_write)
            os.close(back_read)


def _end(close: Callable[[], object]) -> None:
    """Asks the browser to close; it may be gone before it can say so."""
    try:
        close()
    except (RuntimeError, OSError):
        return
