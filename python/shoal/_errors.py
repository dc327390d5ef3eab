"""The exceptions of the package.  Wrong input is a ValueError, with shoal's own sentence; all else is an Error."""


class Error(Exception):
    """A run that failed for a reason that is not in the input: no memory, a full disk, a host that can't be reached."""


class RemoteError(Error):
    """A function that failed where it ran.

    host: the machine; rows: the first row it was working on and the first one after them; traceback: the text from
    there.
    Attributes are None where nothing is known.  The exception itself is __cause__, when it could be brought here."""

    def __init__(self, message, host=None, rows=None, traceback=None):
        super().__init__(message)
        self.host, self.rows, self.traceback = host, rows, traceback

    def __str__(self):
        message = super().__str__()
        return f"{message}\n\n{self.traceback.rstrip()}" if self.traceback else message

    def __reduce__(self):
        return type(self), (self.args[0], self.host, self.rows, self.traceback)


# What a status of the library (include/shoal/error.h) becomes here.
USAGE, INVALID, SYSTEM, MEMORY, STOPPED = -1, -2, -3, -4, -5


def of_status(status, sentence):
    """The exception for a call that failed."""
    if status in (USAGE, INVALID):
        return ValueError(sentence)
    if status == MEMORY:
        return MemoryError(sentence)
    return Error(sentence)
