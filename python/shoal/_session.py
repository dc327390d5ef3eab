"""Sessions: a command that is called again and again over the same rows, by workers that stay in between
(include/shoal/run.h)."""
import ctypes
import os
import threading
import weakref

from shoal._library import library
from shoal._request import Request
from shoal._run import in_thread


class Handles:
    """What the library has of a session, and what goes with it.  Closing it ends the workers."""

    def __init__(self, release):
        self.request, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.stop, self.lock, self.release = ctypes.c_int(0), threading.Lock(), release
        self.owner, self.open = os.getpid(), True

    def close(self):
        """Ends what is going on.  A process that was forked since has no part in it."""
        if self.owner != os.getpid():
            return
        self.stop.value = 1 if self.lock.locked() else self.stop.value
        if not self.lock.acquire(timeout=5):
            return  # a call that does not end: its workers end with this process
        try:
            self.close_held()
        finally:
            self.lock.release()

    def close_held(self):
        if self.open:
            self.open = False
            library.shoal_session_close(ctypes.byref(self.session))
            library.shoal_request_free(ctypes.byref(self.request))
            self.release()


class Session(Request):
    """A Request for "exec" whose command is called as often as one likes.

    release: called once the workers have ended
    The rest is as in Request.  It is closed with close(), when it is collected, and when Python ends."""

    def __init__(self, *arguments, release=lambda: None, **more):
        super().__init__(*arguments, **more)
        self._handles = Handles(release)
        self.stop = self._handles.stop
        self._finalizer = weakref.finalize(self, self._handles.close)

    def call(self, params, progress=None):
        """The answers of all programs to these bytes, as bytes.  After a failure the session is closed; `progress` is
        shown what goes on, and see in_thread for what ends a call."""
        return in_thread(lambda: self._call(params), self.stop, progress, lambda: self.doing)

    def close(self):
        self._finalizer()

    @property
    def is_open(self):
        return self._handles.open and self._handles.owner == os.getpid()

    def _call(self, params):
        handles = self._handles
        with handles.lock:
            try:
                if not handles.session:
                    self._open()
                watcher, answers, size = self.watcher(), ctypes.c_void_p(), ctypes.c_size_t()
                library.shoal_request_watch(handles.request, ctypes.byref(watcher))  # which nothing but calls look at
                self._check(library.shoal_session_call(handles.session, params, len(params), ctypes.byref(answers),
                                                       ctypes.byref(size)))
                return ctypes.string_at(answers, size.value)
            except BaseException:
                handles.close_held()
                raise

    def _open(self):
        handles = self._handles
        self._check(library.shoal_request_new(ctypes.byref(handles.request), self.learner.encode()))
        self._fill(handles.request)
        self._check(library.shoal_session_open(ctypes.byref(handles.session), handles.request))
