#!/usr/bin/python3
# Seconds: 10
# The Python package: shoal.sweep, the parameters of functions of Python.
#   test_python_sweep.py PATH_TO_shoal [TEST...]
# Prints one line for each failure and "N passed, M failed" at the end.
import pathlib
import subprocess

from scripts import check, folder, main, make_ssh, program, raises

import shoal
from shoal import _sweep_trial

STORE = str(folder / "store")


def learn(rate, kind, momentum=None):
    for epoch in range(9):
        loss = (rate - 0.3)**2 + 1 / (epoch + 1) + (kind == "a b")
        yield {"loss": loss + (momentum or 0), "size": epoch}


def test_functions_and_spaces():
    found = shoal.sweep(lambda x: (x - 3)**2, {"x": range(1, 6)}, sampler="grid", workers=1)
    check("the best of a grid", found.best == {"x": 3} and found.best_value == 0, found)
    check("all of it", [t["parameters"]["x"] for t in found.trials] == [1, 2, 3, 4, 5], found.trials)
    found = shoal.sweep(lambda a, b, c: (a, print('{"loss": -1}'))[0] + (b is True) + (c == "x y"),
                        {"a": [1, 2.5], "b": [True, False], "c": ["x y", "z"]}, sampler="grid", workers=2)
    check("values come as they were given", found.best == {"a": 1, "b": False, "c": "z"} and found.best_value == 1,
          found)


def test_reports():
    check("nothing need be said where the time counts", _sweep_trial.report_of(None, "seconds", 1) == '{"step": 1}')


def test_workers_and_early_stopping():
    space = {"rate": (0.0, 1.0), "kind": ["a b", "c"], "momentum": {"low": 0.5, "high": 0.9, "when": {"kind": "c"}}}
    found = shoal.sweep(learn, space, steps=9, stop="asha", trials=9, workers="local:2", objective="loss,size:max",
                        store=STORE, name="kept", folder=folder / "trials")
    states = {t["state"] for t in found.trials}
    check("most are paused early", len(found.trials) == 9 and states == {"done", "paused"}, found.trials)
    check("conditions hold", all(("momentum" in t["parameters"]) == (t["parameters"]["kind"] == "c")
                                 for t in found.trials), found.trials)
    shown = subprocess.run([program, "sweep", "best", found.name, "--store", found.store], capture_output=True,
                           text=True).stdout
    check("the program knows it", "kind=" in shown, shown)
    how = {"steps": 9, "stop": "asha", "objective": "loss,size:max", "store": STORE, "name": "kept",
           "folder": folder / "trials", "workers": 1}
    raises("two of one name", ValueError, "there is a sweep 'kept' already", lambda: shoal.sweep(learn, space, **how))
    more = shoal.sweep(learn, space, trials=11, resume=True, **how)
    check("it goes on", len(more.trials) == 11, more)


def test_hosts():
    (folder / "beside.txt").write_text("4")
    found = shoal.sweep(lambda x: abs(x - 4), {"x": [3, 4]}, sampler="grid", workers="ssh:corn10", ssh=make_ssh(),
                        python="/usr/bin/python3")
    check("a host", found.best == {"x": 4}, found)


def test_wrong_input():
    raises("a tuple of one", ValueError, "a tuple is the least and the greatest", lambda: shoal.sweep(abs, {"x": (1,)}))
    raises("an empty range", ValueError, "a range needs numbers", lambda: shoal.sweep(abs, {"x": range(0)}))
    raises("no sampler", ValueError, "--sampler", lambda: shoal.sweep(abs, {"x": [1]}, sampler="none"))
    raises("a file that is not there", ValueError, "there is no file nosuch.csv",
           lambda: shoal.sweep(abs, {"x": [1]}, send="nosuch.csv"))
    raises("nothing to resume", ValueError, "resume needs the name", lambda: shoal.sweep(abs, {"x": [1]}, resume=True))
    raises("a function that fails", shoal.Error, "division by zero",
           lambda: shoal.sweep(lambda x: 1 / 0, {"x": [1, 2]}, sampler="grid", workers=1))


main(dict(globals()))
