"""The program `shoal`: finding it, and running it with its progress shown and Ctrl-C passed on."""
import ctypes
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from shoal._errors import Error

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)

COLUMNS = 240  # of the terminal that the program believes to write its progress to
SECONDS_TO_STOP = 10.0


def find():
    """$SHOAL_PROGRAM, beside the library that SHOAL_LIBRARY names, beside the package, in build/, in PATH."""
    if os.environ.get("SHOAL_PROGRAM"):
        return os.environ["SHOAL_PROGRAM"]
    here = pathlib.Path(__file__).resolve().parent
    places = [here / "shoal", here.parents[1] / "build" / "shoal"]
    if os.environ.get("SHOAL_LIBRARY"):
        places.insert(0, pathlib.Path(os.environ["SHOAL_LIBRARY"]).absolute().parent / "shoal")
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("shoal")
    if found:
        return found
    raise Error(
        "the program shoal was not found in build/ or in PATH: build it with ./dev build, or set SHOAL_PROGRAM to "
        "its path")


class Outcome:
    def __init__(self, code, output, lines):
        self.code, self.output, self.lines = code, output, lines  # lines: what it said, without its progress


class Talk:
    """What the program writes to standard error, as it comes: lines that stay, and the progress between them."""

    def __init__(self):
        self.pending, self.lines, self.doing = "", [], ""

    def hear(self, data):
        self.pending += data.decode(errors="replace")
        while "\n" in self.pending:
            line, _, self.pending = self.pending.partition("\n")
            line = re.split(r"\r\x1b\[K|\r(?!$)", line)[-1].strip()
            if line:
                self.lines.append(line)
        if "\r\x1b[K" in self.pending:
            self.doing = self.pending.rpartition("\r\x1b[K")[2].strip()


def run(words, folder, progress=None, watch=None, environment=None):
    """Runs the program with `words` in `folder`, and with `environment` besides what it has.  With `progress` it writes
    to what it takes for a terminal, and its progress is
    shown, or what watch() says, which is asked once a second.  When an exception comes up here meanwhile,
    KeyboardInterrupt say, the program is told to stop."""
    reader, writer = open_terminal() if progress else os.pipe()
    talk = Talk()
    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=writer,
                                     start_new_session=True, preexec_fn=end_with_us,
                                     env={**os.environ, **(environment or {})})
        except OSError as error:
            os.close(reader)
            raise Error(f"{words[0]} could not be started: {error.strerror}") from None
        finally:
            os.close(writer)
        try:
            listen(child, reader, talk, progress, watch)
        except BaseException:
            stop(child)
            raise
        finally:
            os.close(reader)
        output.seek(0)
        return Outcome(child.returncode, output.read(), talk.lines)


def end_with_us():
    """Called in the child before it becomes the program: should this process be killed, the program is told to stop."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def open_terminal():
    import fcntl
    import termios
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    return reader, writer


def listen(child, reader, talk, progress, watch):
    """Until the program has ended.  Its children may keep standard error open for longer, and are not waited for."""
    readable, asked, told = True, time.monotonic(), None
    while True:
        ended = child.poll() is not None
        if readable and select.select([reader], [], [], 0 if ended else 0.05)[0]:
            try:
                data = os.read(reader, 65536)
            except OSError:  # a terminal whose other side is closed
                data = b""
            readable = bool(data)
            talk.hear(data)
            continue
        if ended:
            return
        if not readable:
            child.wait()
            continue
        if progress and watch and time.monotonic() - asked > 1:
            told, asked = watch() or told, time.monotonic()
        if progress and (told or talk.doing):  # only when it is silent, so that no half of a line is shown
            progress.show(told or talk.doing)


def stop(child):
    """The first signal asks it to end in order, the second at once; it is in a session of its own, so no other has
    come."""
    for number, seconds in ((signal.SIGINT, SECONDS_TO_STOP), (signal.SIGINT, 2.0), (signal.SIGKILL, None)):
        try:
            child.send_signal(number)
            child.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue
