"""One line of progress: rewritten in place in a terminal and in a notebook, and a new line now and then
where standard error goes to a file."""
import os
import sys
import time

SECONDS_BETWEEN = {"terminal": 0.1, "notebook": 0.25, "file": 10.0}


def notebook():
    """IPython's shell when it shows output elsewhere than in a terminal; never imports IPython itself."""
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    return None if shell is None or type(shell).__name__ == "TerminalInteractiveShell" else shell


def place():
    """Where a line would be seen: "notebook", "terminal" or "file"."""
    if notebook() is not None:
        return "notebook"
    stream = sys.stderr
    return "terminal" if stream is not None and stream.isatty() else "file"


class Progress:
    """`with Progress() as progress:` and show(text) as often as one likes; what `last` says at the end stays."""

    def __init__(self):
        self.place, self.last = place(), ""
        self.handle, self.dirty = None, False
        self.started = time.monotonic()
        self.shown = self.started if self.place == "file" else float("-inf")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.dirty:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        if self.last:
            self.last += f", {time.monotonic() - self.started:.2f} s"
        if self.place == "notebook" and (self.last or self.handle is not None):
            self.draw_in_notebook(self.last)
        elif self.last and sys.stderr is not None:
            print(self.last, file=sys.stderr, flush=True)

    def show(self, text):
        now = time.monotonic()
        if now - self.shown < SECONDS_BETWEEN[self.place]:
            return
        self.shown = now
        self.draw(text)

    def draw(self, text):
        if self.place == "notebook":
            self.draw_in_notebook(text)
        elif self.place == "terminal":
            self.dirty = True
            sys.stderr.write("\r\033[K" + text[:max(self.width() - 1, 10)])
            sys.stderr.flush()
        elif sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)

    def draw_in_notebook(self, text):
        from IPython.display import display
        bundle = {"text/plain": text}
        if self.handle is None:
            self.handle = display(bundle, raw=True, display_id=True)
        else:
            self.handle.update(bundle, raw=True)

    def width(self):
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            return 80
