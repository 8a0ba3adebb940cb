# Drives a headless Chromium over a pipe (Chrome DevTools Protocol), with Python's standard library alone.
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']


def find():
    """The path of a Chromium, or None. HEED_CHROMIUM names one."""
    named = os.environ.get('HEED_CHROMIUM')
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page in one browser. Every request and every error of its scripts is kept."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix='heed-chromium-', ignore_cleanup_errors=True)
        their_in, self.out = os.pipe()
        self.incoming, their_out = os.pipe()
        flags = [
            '--headless=new',
            '--no-sandbox',
            '--disable-gpu',
            '--disable-dev-shm-usage',
            '--no-first-run',
            '--disable-background-networking',
            '--disable-component-update',
            '--disable-sync',
            '--mute-audio',
            '--hide-scrollbars',
            '--force-device-scale-factor=1',
            '--remote-debugging-pipe',
            f'--user-data-dir={self.profile.name}',
            f'--window-size={width},{height}',
            'about:blank',
        ]

        # The browser reads commands from descriptor 3 and answers on 4.
        def at_three_and_four():
            ours = os.dup(their_in), os.dup(their_out)
            os.dup2(ours[0], 3)
            os.dup2(ours[1], 4)

        self.process = subprocess.Popen(
            [find(), *flags],
            preexec_fn=at_three_and_four,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self.buffer, self.number, self.events = b'', 0, []
        self.requests, self.errors, self.session = [], [], None
        targets = self.send('Target.getTargets')['targetInfos']
        page = next(one for one in targets if one['type'] == 'page')
        self.session = self.send('Target.attachToTarget', targetId=page['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.send(f'{domain}.enable')
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.incoming)
        self.profile.cleanup()

    def read(self, seconds):
        """The next message; None when none came in time."""
        end = time.monotonic() + seconds
        while b'\0' not in self.buffer:
            if not select.select([self.incoming], [], [], max(0, end - time.monotonic()))[0]:
                return None
            chunk = os.read(self.incoming, 1 << 20)
            if not chunk:
                raise RuntimeError(f'the browser ended with {self.process.wait()}')
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def note(self, message):
        method, details = message.get('method'), message.get('params', {})
        if method == 'Network.requestWillBeSent':
            self.requests.append(details['request']['url'])
        elif method == 'Runtime.exceptionThrown':
            what = details['exceptionDetails']
            self.errors.append(what.get('exception', {}).get('description', what['text']))
        elif method == 'Log.entryAdded' and details['entry']['level'] == 'error':
            self.errors.append(details['entry']['text'])
        if method:
            self.events.append(method)

    def send(self, method, seconds=60, **arguments):
        self.number += 1
        call = {'id': self.number, 'method': method, 'params': arguments}
        if self.session:
            call['sessionId'] = self.session
        os.write(self.out, json.dumps(call).encode() + b'\0')
        while True:
            message = self.read(seconds)
            if message is None:
                raise RuntimeError(f'{method}: no answer within {seconds} s')
            if message.get('id') == self.number:
                if 'error' in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message['result']
            self.note(message)

    def open(self, url, seconds=60):
        """Opens a page and gives the seconds until its scripts had run and it was painted."""
        self.send('Page.navigate', url='about:blank')
        self.drain(0.3)
        self.events.clear()
        begin = time.monotonic()
        self.send('Page.navigate', url=url)
        while 'Page.loadEventFired' not in self.events:
            message = self.read(seconds)
            if message is None:
                raise RuntimeError(f'{url}: not loaded within {seconds} s')
            self.note(message)
        self.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
        return time.monotonic() - begin

    def drain(self, seconds):
        while (message := self.read(seconds)) is not None:
            self.note(message)

    def evaluate(self, script):
        """The value of a script, awaited where it is a promise."""
        result = self.send('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result['result'].get('value')

    def key(self, name, text=None):
        """Presses a key: a letter or sign, or 'ArrowDown', 'Enter', 'Escape', 'Tab'."""
        codes = {'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40, 'Enter': 13, 'Escape': 27, 'Tab': 9}
        text = text if text is not None else name if len(name) == 1 else {'Enter': '\r'}.get(name)
        details = {'key': name, 'windowsVirtualKeyCode': codes.get(name, ord(name[0].upper()))}
        self.send('Input.dispatchKeyEvent', type='keyDown', **details, **({'text': text} if text else {}))
        self.send('Input.dispatchKeyEvent', type='keyUp', **details)

    def point(self, x, y):
        self.send('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)

    def click(self, x, y):
        self.point(x, y)
        for kind in ('mousePressed', 'mouseReleased'):
            self.send('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left', clickCount=1)

    def media(self, **features):
        """Emulates a reader's preferences: media(scheme='dark'), media(media='print')."""
        self.send(
            'Emulation.setEmulatedMedia',
            media=features.get('media', ''),
            features=[{'name': 'prefers-color-scheme', 'value': features.get('scheme', 'light')}],
        )

    def screenshot(self, path, whole=True):
        picture = self.send('Page.captureScreenshot', format='png', captureBeyondViewport=whole)
        with open(path, 'wb') as file:
            file.write(base64.b64decode(picture['data']))
