# SPDX-License-Identifier: BSD-2-Clause
"""Headless Chromium for tests, driven over its debugging pipe (descriptors 3 and 4, JSON messages that end in NUL)."""
import base64
import json
import os
import select
import subprocess
import time

LIMIT_S = 120
failed = 0


def check(name, good, why=""):
    """Prints a test's line; `failed` counts."""
    global failed
    print(f"ok {name}" if good else f"not ok {name}: {str(why)[:600]}", flush=True)
    failed += not good


class Gone(Exception):
    pass


class Browser:
    def __init__(self, program, profile):
        to_child, self.to = os.pipe()
        self.back, from_child = os.pipe()

        def take_pipes():
            # by way of high numbers: what is to be closed may be 3 or 4 itself
            os.dup2(to_child, 103)
            os.dup2(from_child, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)
            os.closerange(5, 105)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "--window-size=1280,720", "about:blank"],
            close_fds=False, preexec_fn=take_pipes, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []
        self.until = 0

    def read(self):
        while b"\0" not in self.buffer:
            left = self.until - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise Gone(f"the browser did not answer within {LIMIT_S} s")
            more = os.read(self.back, 1 << 16)
            if not more:
                raise Gone("the browser ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        self.until = time.monotonic() + LIMIT_S  # for this answer: a browser has as many minutes as its tests take
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Gone(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open_page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def load(self, path):
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read())

    def js(self, code):
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Gone(f"{code}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def complaints(self):
        """What the console has, exceptions, dialogs, and requests for anything but the page."""
        self.js("1")
        out = []
        for e in self.events:
            method, params = e.get("method"), e.get("params", {})
            if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Log.entryAdded"):
                out.append(json.dumps(params)[:300])
            if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file://"):
                out.append("request: " + params["request"]["url"])
        return out

    def mouse(self, x, y, click=True):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key, text=None, modifiers=0):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (Gone, OSError):
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
