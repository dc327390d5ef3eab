"""Puts the library and the program into the wheel: build/ of the source tree has them, or cmake makes them.

All else is in pyproject.toml."""
import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError
from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
# Where the package looks for them, and what cmake calls them.  Those of other machines are made where static libraries
# are installed.
NEEDED = {"libshoal.so": "shoal_shared", "shoal": "shoal"}
FOR_HOSTS = {"portable/shoal": "portable", "portable/shoal-static": "portable"}


def run(*words):
    try:
        subprocess.run(words, cwd=ROOT, check=True)
    except OSError as error:
        raise SetupError(f"libshoal.so is not in {BUILD}, and {words[0]} could not be started to build it: "
                         f"{error.strerror}; ./dev deps build installs what a build needs") from None
    except subprocess.CalledProcessError:
        raise SetupError(f"libshoal.so could not be built: `{' '.join(words)}` in {ROOT} says why") from None


def build_native():
    """Makes what is missing in build/."""
    if not (ROOT / "CMakeLists.txt").is_file():
        raise SetupError(f"{ROOT} is not the source tree of shoal, of which this package is the folder python: "
                         "run pip install on that folder")
    missing = {target for file, target in NEEDED.items() if not (BUILD / file).is_file()}
    if missing:
        run("cmake", "--preset", "release")
        run("cmake", "--build", "--preset", "release", "--target", *sorted(missing | {"shoal"}))
        subprocess.run(["cmake", "--build", "--preset", "release", "--target", "portable"], cwd=ROOT, check=False)


def copy_stripped(source, target):
    """Without what only debuggers read, which is most of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not shutil.which("strip") or subprocess.run(["strip", "--strip-unneeded", "-o", target, source],
                                                   check=False).returncode != 0:
        shutil.copyfile(source, target)
    target.chmod(0o755)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        build_native()
        for file in [*NEEDED, *FOR_HOSTS]:
            if (BUILD / file).is_file():
                copy_stripped((BUILD / file).resolve(), pathlib.Path(self.build_lib) / "shoal" / file)


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


class WheelOfThisMachine(bdist_wheel):
    """For any Python, since nothing is compiled against it, but for this kind of machine."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


def scratch():
    """What setuptools leaves behind goes into build/ as well."""
    folder = BUILD / "python"
    if not (ROOT / "CMakeLists.txt").is_file():
        return {}
    shutil.rmtree(folder, ignore_errors=True)  # files of an earlier version would be taken along
    os.makedirs(folder)
    return {"build": {"build_base": str(folder)}, "egg_info": {"egg_base": str(folder)}}


setup(distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfThisMachine},
      options=scratch())
