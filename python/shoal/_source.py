"""From a module or a function to the files that a worker needs to call it.

A module travels as its source file, and so does a function's module.  What stands in a program's main file or in a
notebook can't be sent whole, since loading it would run the program: from there only the function's own source is
taken, and that of the functions and classes it uses, with the values of the global variables it reads."""
import ast
import builtins
import inspect
import pathlib
import pickle
import textwrap
import types

from shoal._far import MAIN, PROTOCOL


class Source:
    """Which function of which module to call, and the files it needs: their names there, and their bytes."""

    def __init__(self, module, function, files):
        self.module, self.function, self.files = module, function, files

    @property
    def file(self):
        """The module's own file."""
        return next(iter(self.files))


def of(thing):
    """The Source of a module that has a mapfunc, or of a function."""
    if isinstance(thing, types.ModuleType):
        function = getattr(thing, "mapfunc", None)
        if not callable(function):
            raise ValueError(f"module {thing.__name__} has no function called mapfunc")
        if thing.__name__ == "__main__":
            return of_function(function)
        name, data = module_file(thing)
        return Source(thing.__name__, "mapfunc", {name: data})
    if isinstance(thing, types.FunctionType):
        return of_function(thing)
    if callable(getattr(thing, "mapfunc", None)):  # a class or an object that holds functions
        return of_function(thing.mapfunc)
    raise ValueError(f"a module that has a mapfunc is needed, or a function, not {thing!r}")


def of_function(function):
    if not isinstance(function, types.FunctionType):
        raise ValueError(f"{function!r} can't be sent to workers: a function written in Python is needed")
    if "<" in function.__qualname__:  # <lambda>, <locals>
        raise ValueError(
            f"{function.__qualname__} can't be sent to workers: a function is needed that was defined by def, "
            "and not inside another one")
    module = inspect.getmodule(function)
    if module is not None and module.__name__ != "__main__" and getattr(module, "__file__", None):
        name, data = module_file(module)
        return Source(module.__name__, function.__qualname__, {name: data})
    pieces = Pieces()
    pieces.add(function, function.__name__)
    return Source(MAIN, function.__name__, pieces.files())


def module_file(module):
    """Where the module goes, by its dotted name, and its source."""
    try:
        path = inspect.getsourcefile(module)
    except TypeError:  # compiled into Python itself
        path = None
    if not path or not pathlib.Path(path).is_file():
        raise ValueError(f"module {module.__name__} has no source file that could be sent to workers")
    name = module.__name__.replace(".", "/")
    return name + ("/__init__.py"
                   if pathlib.Path(path).name == "__init__.py" else ".py"), pathlib.Path(path).read_bytes()


def more_file(thing):
    """What Master's `send` names: a module, or a file, which keeps its last name."""
    if isinstance(thing, types.ModuleType):
        return module_file(thing)
    path = pathlib.Path(thing)
    if not path.is_file():
        raise ValueError(f"send: {thing} is not a file")
    return path.name, path.read_bytes()


class Pieces:
    """Functions and classes of a main program, with what they need of its global variables."""

    def __init__(self):
        self.imports, self.values, self.sources = {}, {}, {}

    def add(self, thing, name):
        if name in self.sources:
            return
        self.sources[name] = None  # it may call itself
        text = source_text(thing, name)
        variables = thing.__globals__ if isinstance(thing, types.FunctionType) else vars(inspect.getmodule(thing))
        for used in names_in(text):
            if used != name and used in variables:
                self.add_variable(used, variables[used], name)
        del self.sources[name]
        self.sources[name] = text  # behind what it needs while it is being defined

    def add_variable(self, name, value, user):
        if isinstance(value, types.ModuleType):
            self.imports[name] = value.__name__
        elif isinstance(value, (types.FunctionType, type)) and value.__module__ == "__main__":
            if value.__name__ != name:
                raise ValueError(f"{user} uses {name}, another name of {value.__name__}: use that name")
            self.add(value, name)
        else:
            try:
                pickle.dumps(value, PROTOCOL)
            except Exception as error:
                raise ValueError(
                    f"{user} uses the global variable {name}, which can't be sent to workers: {error}") from None
            self.values[name] = value

    def files(self):
        lines = [f"import {module} as {name}" if module != name else f"import {name}"
                 for name, module in sorted(self.imports.items())]
        text = "\n".join(lines) + "\n\n\n" + "\n\n".join(self.sources.values())
        return {f"{MAIN}.py": text.encode(), "globals.pickle": pickle.dumps(self.values, PROTOCOL)}


def source_text(thing, name):
    if getattr(thing, "__closure__", None):
        raise ValueError(f"{name} uses variables of the function around it, which can't be sent to workers: use params")
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        raise ValueError(
            f"the source of {name} is not known, so it can't be sent to workers: write it into a file") from None


def names_in(text):
    """Names that the source may look up among global variables, in a fixed order."""
    found = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return sorted(name for name in found if not hasattr(builtins, name))
