# SPDX-License-Identifier: Apache-2.0
"""A browser: Debian's chromium, without a window. Tests control it by its DevTools protocol, and act as a user does."""
import asyncio
import base64
import contextlib
import functools
import http.server
import json
import os
import re
import socket
import socketserver
import tempfile
import threading

import websockets

from harness import PATIENCE, UNHURRIED, Process, wait_for

# No window, no keyring, no network except loopback, and a fake microphone.
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--password-store=basic", "--disable-background-networking", "--disable-component-update",
           "--disable-sync", "--remote-debugging-port=0", "--use-fake-ui-for-media-stream",
           "--use-fake-device-for-media-stream")


class Pages:
    """Serves a folder on loopback."""

    def __init__(self, folder):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class PatientPort:
    """A port on loopback that passes requests on to an admin port. That port closes a connection whose request comes 200 ms
    late, as from a busy browser: such a request is repeated."""

    def __init__(self, admin_port):
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self.serve)
        self.server.daemon_threads, self.address = True, ("127.0.0.1", admin_port)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def serve(self, browser, *_):
        request = b""
        with contextlib.suppress(OSError):  # the browser has gone, or there is no service
            while not request.endswith(b"\r\n\r\n"):
                part = browser.recv(1 << 16)
                if not part:
                    return
                request += part
            browser.sendall(wait_for(functools.partial(self.answer_to, request), "an answer"))

    def answer_to(self, request):
        """The whole answer, or nothing if the connection was closed before."""
        answer = b""
        with socket.create_connection(self.address) as admin:
            try:
                admin.sendall(request)
                while part := admin.recv(1 << 16):
                    answer += part
            except (ConnectionResetError, BrokenPipeError):
                return b""
        return answer

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Browser(Process):
    """The input of its microphone is the WAV file `recording`, in a loop. It trusts certificates with the key `pinned`."""

    def __init__(self, recording=None, pinned=None):
        self.folder = tempfile.TemporaryDirectory(prefix="millrace-browser-", ignore_cleanup_errors=True)
        microphone = [f"--use-file-for-fake-audio-capture={recording}"] if recording else []
        trust = [f"--ignore-certificate-errors-spki-list={pinned}"] if pinned else []
        super().__init__("chromium", *OPTIONS, *microphone, *trust, f"--user-data-dir={self.folder.name}", "about:blank",
                         environment={"HOME": self.folder.name, "DBUS_SESSION_BUS_ADDRESS": ""})
        listens = re.compile(r"DevTools listening on (ws://\S+)")
        self.tools = self.await_ready(lambda: next(filter(None, map(listens.search, list(self.errors))), None),
                               "the browser to start")[1]

    @classmethod
    def of_class(cls, tests):
        """One for all tests of a class, because it starts slowly."""
        if "_browser" not in tests.__dict__:
            tests._browser = cls()
            tests.addClassCleanup(tests._browser.close)
        return tests._browser

    def close(self):
        try:
            self.stop()
        finally:
            self.kill()
            self.folder.cleanup()


class Page:
    """A page: `async with Page(browser, url) as page`. Without `size`, its window has the default size of the browser.
    `script` runs before any script of the page."""

    def __init__(self, browser, url, size=None, script=None):
        self.browser, self.url, self.size, self.script = browser, url, size, script
        self.calls, self.events = 0, []

    async def __aenter__(self):
        self.tools = await websockets.connect(self.browser.tools, max_size=None, max_queue=None, **UNHURRIED)
        self.target = (await self.call("Target.createTarget", url="about:blank"))["targetId"]
        self.session = (await self.call("Target.attachToTarget", targetId=self.target, flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        if self.size:
            await self.window(*self.size)
        if self.script:
            await self.call("Page.addScriptToEvaluateOnNewDocument", source=self.script)
        await self.call("Page.navigate", url=self.url)
        await self.until("document.readyState === 'complete'")
        return self

    async def __aexit__(self, *_):
        del self.session
        await self.call("Target.closeTarget", targetId=self.target)
        await self.tools.close()

    async def call(self, method, **parameters):
        """Calls a method of the protocol, and returns its result. Events that arrive meanwhile are added to `events`."""
        self.calls += 1
        session = {"sessionId": self.session} if hasattr(self, "session") else {}
        await self.tools.send(json.dumps({"id": self.calls, "method": method, "params": parameters, **session}))
        while (answer := json.loads(await asyncio.wait_for(self.tools.recv(), PATIENCE))).get("id") != self.calls:
            self.events.append(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    async def value(self, expression):
        """The value of a JavaScript expression in the page, evaluated as after a click of the user."""
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True,
                                 userGesture=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    async def until(self, expression):
        """Waits until the expression is true, and returns its value."""
        for _ in range(PATIENCE * 20):
            if value := await self.value(expression):
                return value
            await asyncio.sleep(0.05)
        raise AssertionError(f"waited in vain for {expression}")

    async def window(self, width, height, dark=False):
        """Shows the page in a window of this size. A window narrower than 600 pixels is that of a phone."""
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                        mobile=width < 600)
        await self.call("Emulation.setEmulatedMedia",
                        features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    async def brightness(self):
        """The brightness of the page's background: 0 is black, 255 is white."""
        colour = await self.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        return sum(colour[:3]) / 3

    async def picture(self, path):
        """Writes a screenshot of the window."""
        shot = await self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def reported(self, method):
        """The parameters of all events of this kind so far."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def errors(self):
        """The errors on the console of the page, and uncaught exceptions."""
        return ([call for call in self.reported("Runtime.consoleAPICalled") if call["type"] == "error"]
                + [entry["entry"] for entry in self.reported("Log.entryAdded") if entry["entry"]["level"] == "error"]
                + self.reported("Runtime.exceptionThrown"))

    def requested(self):
        """The addresses that the page requested."""
        return [request["request"]["url"] for request in self.reported("Network.requestWillBeSent")] + \
            [socket["url"] for socket in self.reported("Network.webSocketCreated")]

    async def click(self, element):
        await self.value(f"document.getElementById('{element}').click()")

    async def choose(self, element, file):
        """Chooses a file in a file input."""
        document = await self.call("DOM.getDocument")
        node = await self.call("DOM.querySelector", nodeId=document["root"]["nodeId"], selector=f"#{element}")
        await self.call("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[os.path.abspath(file)])
