"""A command in a pseudo-terminal of its own, as somebody at a keyboard uses it."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from live_server import SOURCE

CTRL_C = "\x03"
CTRL_D = "\x04"

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# The terminal becomes that of the command, so that Ctrl-C is a signal.
_LAUNCH = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, sys.argv[1:])"


class Terminal:
    """`raw`: all that was written to it; `text`: the same without the codes that move and colour."""

    def __init__(self, *command: str, width: int = 100, height: int = 30) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        environment = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, sys.executable, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**environment, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color"},
        )
        os.close(slave)
        self.raw = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        return _CODES.sub("", self.raw)

    def expect(self, text: str, timeout: float = 15.0) -> None:
        """Waits until this was written."""
        deadline = monotonic() + timeout
        with self._changed:
            while text not in self.text:
                assert monotonic() < deadline, f"{text!r} was not written:\n{self.text[-3000:]}"
                assert self._reader.is_alive(), f"it ended without {text!r}:\n{self.text[-3000:]}"
                self._changed.wait(0.2)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait(self, timeout: float = 15.0) -> int:
        """Waits for the end of the command; its exit status."""
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(5)
        os.close(self._master)

    def _read(self) -> None:
        pending = b""
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                data = b""  # Linux says so when the last process of the terminal has ended
            if not data:
                return
            pending += data
            try:
                text, pending = pending.decode(), b""
            except UnicodeDecodeError as error:
                text, pending = pending[: error.start].decode(), pending[error.start :]
            with self._changed:
                self.raw += text
                self._changed.notify_all()


@contextmanager
def terminal(*command: str, **size: int) -> Iterator[Terminal]:
    """Runs `python *command` in a terminal; it is killed after the block if it has not ended."""
    opened = Terminal(*command, **size)
    try:
        yield opened
    finally:
        opened.close()
