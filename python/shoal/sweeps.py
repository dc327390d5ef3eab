"""Searching the parameters of a function: shoal.sweep, which is `shoal sweep` for functions of Python.

    def train(rate, batch):
        for epoch in range(9):
            ...
            yield {"loss": loss, "accuracy": accuracy}

    found = shoal.sweep(train, {"rate": {"low": 1e-4, "high": 0.1, "scale": "log"}, "batch": [32, 128]},
                        steps=9, stop="asha", workers="ssh:corn10:8,corn11:8")
    print(found.best_value, found.best)

A trial is a process of Python on one of the workers that an Executor has, too (_sweep_trial.py is what runs there)."""
from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
from typing import Any, Callable, Iterable, Mapping

from shoal import _program, _sweep_trial
from shoal._errors import Error
from shoal.executor import pickled_function

TRIAL = "_sweep_trial.py"
SENT = (TRIAL, "function.pickle", "settings.json")


class Sweep:
    """What a sweep has found.

    best: the parameters of the best trial, and best_value what it is worth; None when no trial has a value
    trials: all of them, dicts with trial, state ("done", "paused", "failed", "running"), step, value and parameters
    stopped: why it ended before all trials were there, or None
    name, store: for `shoal sweep show NAME --store STORE`, where the store was given"""

    def __init__(self, found: dict[str, Any], space: dict[str, Any], store: str | None):
        best = found["best"]
        for trial in (*found["trials"], *([best] if best else [])):
            trial["parameters"] = {name: _sweep_trial.value_of(space[name], value if isinstance(value, str)
                                                               else json.dumps(value))
                                   for name, value in trial["parameters"].items()}
        self.best = best and best["parameters"]
        self.best_value = best and best["value"]
        self.trials, self.stopped, self.name, self.store = found["trials"], found["stopped"], found["sweep"], store

    def __repr__(self) -> str:
        return f"Sweep({len(self.trials)} trials, best_value={self.best_value!r}, best={self.best!r})"


def parameter_of(name: str, values: Any) -> Any:
    """As SPACE.json has it: tuples and ranges are ranges, lists are lists."""
    if isinstance(values, range):
        if not values or values.step != 1:
            raise ValueError(f"{name}: a range needs numbers, one after another; a list may have any")
        return {"low": values[0], "high": values[-1], "type": "integer"}
    if isinstance(values, tuple):
        if len(values) != 2:
            raise ValueError(f"{name}: a tuple is the least and the greatest value; choices are a list")
        low, high = values
        return {"low": low, "high": high, "type": "integer" if isinstance(low, int) and isinstance(high, int)
                else "float"}
    return values


def options_of(given: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in given.items():
        if value is not None and value is not False:
            words += ["--" + name] if value is True else ["--" + name, str(value)]
    return words


def run(words: list[str], folder: str, quiet: bool) -> subprocess.CompletedProcess:
    """Ctrl-C ends the trials first."""
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE if quiet else None, start_new_session=True)
    try:
        out, error = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    return subprocess.CompletedProcess(words, process.returncode, out, error or b"")


def sweep(function: Callable[..., Any], space: Mapping[str, Any], *, trials: int = 30, objective: str = "loss",
          steps: int | None = None, stop: str | None = None, sampler: str | None = None, seed: int | None = None,
          order: str | None = None, ahead: int | None = None, reach: float | None = None,
          time: str | float | None = None, timeout: str | float | None = None, price: str | None = None,
          budget: str | None = None,
          workers: str | int | Iterable[str] | None = None, ssh: str | None = None, python: str | None = None,
          send: str | os.PathLike | Iterable[str | os.PathLike] = (), name: str | None = None,
          store: str | os.PathLike | None = None,
          folder: str | os.PathLike | None = None, resume: bool = False, quiet: bool = True) -> Sweep:
    """Searches for the parameters with which `function` is best; function(**parameters) is one trial.

    It returns a number or a dict of numbers, or yields them, one for each step: then `steps` and stop="asha" end bad
    trials early. `objective` is the key that counts, as small as possible unless it is accuracy or score, or ends with
    ":max". The folder that os.environ["SHOAL_FOLDER"] names is the trial's own; what it keeps there it finds again when
    it is taken up later, also on another machine.

    space: as SPACE.json has it (docs/sweep.md), and (low, high) and range(...) for ranges
    workers: as an Executor has them; a number is trials at once on this machine
    python: the Python to use on workers; None is python3, or this very one when all are of this machine
    send: files below the current folder that trials on other machines find below theirs
    name, store: where the sweep is kept, to be resumed and looked at; without either it goes when this returns
    The rest are the options of `shoal sweep` of the same name.

    >>> found = sweep(lambda x: (x - 3) ** 2, {"x": range(1, 6)}, sampler="grid", workers=1)
    >>> found.best, len(found.trials)
    ({'x': 3}, 5)"""
    specs = [] if workers is None else [str(workers)] if isinstance(workers, (str, int)) else [str(w) for w in workers]
    near = all(spec.isdigit() or spec.startswith("local:") for spec in specs)
    sizes = {key: parameter_of(key, values) for key, values in space.items()}
    sent = [os.fspath(file) for file in ([send] if isinstance(send, (str, os.PathLike)) else send)]
    for file in sent:
        if os.path.isabs(file) or ".." in pathlib.PurePath(file).parts:
            raise ValueError(f"send: {file} is not below the current folder")
        if not os.path.isfile(file):
            raise ValueError(f"send: there is no file {file}")
    if resume and name is None and store is None:
        raise ValueError("resume needs the name or the store of the sweep: without either it was not kept")
    with tempfile.TemporaryDirectory(prefix="shoal-sweep-") as own:
        place = pathlib.Path(own)
        (place / "function.pickle").write_bytes(pickled_function(function))
        (place / TRIAL).write_bytes(pathlib.Path(__file__).with_name(TRIAL).read_bytes())
        (place / "settings.json").write_text(json.dumps(
            {"space": sizes, "objective": objective.split(",")[0].split(":")[0], "here": os.getcwd() if near else "",
             "path": [path for path in sys.path if path] if near else []}))
        (place / "space.json").write_text(json.dumps(sizes))
        for file in sent:
            target = place / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.path.abspath(file))
        python = python or (sys.executable if near else "python3")
        command = " ".join(["exec", shlex.quote(python), "-B", TRIAL, *(f"{key}={{{key}}}" for key in sizes)])
        kept = store is not None or name is not None
        where = None if store is None else os.fspath(store)
        if where and ":" not in where:
            where = os.path.abspath(where)
        words = [_program.find(), "sweep", "space.json", "--run", command, "--json", "--name", name or "sweep",
                 *options_of({"trials": trials, "objective": objective, "steps": steps, "stop": stop,
                              "sampler": sampler, "seed": seed, "order": order, "ahead": ahead, "reach": reach,
                              "time": time, "timeout": timeout, "price": price, "budget": budget, "ssh": ssh,
                              "resume": resume,
                              "store": where if kept else str(place / "store"),
                              "folder": os.path.abspath(os.fspath(folder)) if folder is not None
                              else os.path.abspath(f"{name}.trials") if name else str(place / "trials")})]
        for spec in specs:
            words += ["--workers", spec]
        for file in () if near else (*SENT, *sent):
            words += ["--send", file]
        done = run(words, own, quiet)
        if done.returncode != 0:
            said = [line[7:] for line in done.stderr.decode(errors="replace").splitlines() if line[:7] == "shoal: "]
            message = said[-1] if said else f"the sweep ended with exit code {done.returncode}"
            raise (ValueError if done.returncode == 2 else Error)(message)
        return Sweep(json.loads(done.stdout), sizes, where)
