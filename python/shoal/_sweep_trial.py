"""One trial of shoal.sweep: calls the function with its parameters, and reports what it returns or yields.

    _sweep_trial.py FOLDER NAME=TEXT...

Runs on any worker, with nothing but Python and, for functions that were pickled by it, cloudpickle.  FOLDER holds
function.pickle and settings.json."""
import json
import os
import pathlib
import pickle
import sys


MEASURED = ("seconds", "cost")


def value_of(parameter, text):
    """What a text of the space is in Python; the space is as its JSON has it."""
    if isinstance(parameter, dict) and "values" not in parameter:
        return int(text) if parameter.get("type") == "integer" else float(text)
    values = parameter["values"] if isinstance(parameter, dict) else parameter
    for value in values if isinstance(values, list) else [values]:
        if (value if isinstance(value, str) else json.dumps(value)) == text:
            return value
    try:
        number = float(text)
    except ValueError:
        return text
    matching = [v for v in (values if isinstance(values, list) else [values])
                if isinstance(v, (int, float)) and v == number]
    return matching[0] if matching else number


def parameters_of(space, words):
    """Those whose conditions hold: of the others nothing stands behind the '='."""
    pairs = [word.split("=", 1) for word in words]
    return {name: value_of(space[name], text) for name, text in pairs if text}


def report_of(value, objective, step):
    """A number, or numbers by name, as the line that the sweep reads; nothing need be said where the time counts."""
    if value is None and objective in MEASURED:
        value = {}
    report = {k: v.item() if hasattr(v, "item") else v for k, v in value.items()} if isinstance(value, dict) else {
        objective: float(value)}
    report.setdefault("step", step)
    return json.dumps(report)


def main(words):
    folder = pathlib.Path(words[0])
    settings = json.loads((folder / "settings.json").read_text())
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the function prints is no report
    if os.path.isdir(settings["here"]):
        os.chdir(settings["here"])
    sys.path[:0] = [place for place in settings["path"] if place not in sys.path]
    function = pickle.loads((folder / "function.pickle").read_bytes())
    result = function(**parameters_of(settings["space"], words[1:]))
    if hasattr(result, "__next__"):
        for step, value in enumerate(result, 1):
            reports.write(report_of(value, settings["objective"], step) + "\n")
    else:
        reports.write(report_of(result, settings["objective"], 1) + "\n")


if __name__ == "__main__":
    main([os.path.dirname(os.path.abspath(__file__)), *sys.argv[1:]])
