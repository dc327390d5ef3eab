"""The program `shoal`: finding it, and asking it."""
import errno
import os
import pathlib
import shutil
import subprocess

from shoal._errors import Error


def find():
    """$SHOAL_PROGRAM, beside the library that SHOAL_LIBRARY names, beside the package, in build/, in PATH."""
    named = os.environ.get("SHOAL_PROGRAM")
    if named:
        found = shutil.which(named)
        if not found:
            reason = os.strerror(errno.EACCES if os.path.exists(named) else errno.ENOENT)
            raise Error(f"{named} could not be started: {reason}")
        return os.path.abspath(found)
    here = pathlib.Path(__file__).resolve().parent
    places = [here / "shoal", here.parents[1] / "build" / "shoal"]
    if os.environ.get("SHOAL_LIBRARY"):
        places.insert(0, pathlib.Path(os.environ["SHOAL_LIBRARY"]).absolute().parent / "shoal")
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("shoal")
    if found:
        return os.path.abspath(found)
    raise Error(
        "the program shoal was not found beside the package, in build/ or in PATH: pip install ./python in the source "
        "tree makes a package that has it, and SHOAL_PROGRAM names one that is elsewhere")


def ask(*words, timeout=None):
    """Runs the program with these words, apart from this process's terminal: what it wrote, and how it ended."""
    program = find()
    try:
        return subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
                              start_new_session=True)
    except OSError as error:
        raise Error(f"{program} could not be started: {error.strerror}") from None
