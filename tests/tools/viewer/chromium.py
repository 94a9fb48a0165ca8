"""Drives a headless Chromium through its DevTools protocol over a pipe; standard library only."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_chromium():
    """The path of a Chromium, or None. POZOR_CHROMIUM names one that is not on the PATH."""
    named = os.environ.get("POZOR_CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


class PageError(Exception):
    """JavaScript threw, or the browser refused a command."""


class Chromium:
    """A browser with one page. Messages are JSON, each ended by a zero byte, on descriptors 3 and 4."""

    def __init__(self, width=1400, height=900):
        self.profile = tempfile.mkdtemp(prefix="pozor_viewer_")
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", find_chromium(),
             "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--force-color-profile=srgb", "--force-device-scale-factor=1",
             f"--window-size={width},{height}", f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.events = []
        self.count = 0
        self.session = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.send(
            "Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(domain + ".enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.output)
        os.close(self.input)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, seconds):
        """The next message; None after that many seconds."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            data = os.read(self.input, 1 << 20)
            if not data:
                raise PageError("the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        while True:
            answer = self.receive(60)
            if answer is None:
                raise PageError(f"no answer to {method}")
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def open(self, address, seconds=60):
        """Opens a page and waits until it says that it has read all its data."""
        self.events.clear()
        # The same document with another fragment would not be loaded again.
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=address)
        self.wait('location.href !== "about:blank" && document.documentElement?.dataset.ready === "true"', seconds)

    def value(self, expression):
        """What an expression (or the promise it gives) is worth."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise PageError(f"{expression[:200]}: {details.get('exception', details).get('description', details)}")
        return result["result"].get("value")

    def wait(self, condition, seconds=30):
        """Until it is true. An exception is "not yet": an element may still be missing."""
        end = time.monotonic() + seconds
        while True:
            try:
                if self.value(condition):
                    return
                why = ""
            except PageError as error:
                why = f" ({error})"
            if time.monotonic() > end:
                raise PageError(f"never true: {condition}{why}; on the page: {self.problems()}")
            time.sleep(0.02)

    def settle(self):
        """Waits until what was changed is on the screen."""
        self.value("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def mouse(self, kind, x, y, modifiers=0, buttons=0):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=modifiers, button="left" if buttons or
                  kind == "mouseReleased" else "none", buttons=buttons, clickCount=1)

    def middle(self, element):
        """The middle of an element (a JavaScript expression), scrolled into view."""
        box = self.value(f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
                         " const b = e.getClientRects()[0]; return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        return box

    def click(self, element, modifiers=0):
        x, y = self.middle(element)
        self.mouse("mouseMoved", x, y, modifiers)
        self.mouse("mousePressed", x, y, modifiers, 1)
        self.mouse("mouseReleased", x, y, modifiers)
        self.settle()

    def press(self, key, modifiers=0):
        text = {"text": key} if len(key) == 1 and not modifiers & 7 else {}
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowDown": 40, "Home": 36, "End": 35}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text, **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers, **code)
        self.settle()

    def screenshot(self, path, whole=True):
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def problems(self):
        """Exceptions, console errors and requests that left the page, since it was opened."""
        self.value("1")
        found = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:")):
                    found.append("request to " + url)
        return found
