"""Parameters of estimators that are options of the program: what they may be, and how they are written.

    _parameters = {"max_iter": Whole("iterations"), "tol": Real("tolerance")}

text() makes the option's value of the parameter's, or raises a sentence that names the parameter; value() is the
reverse, for models, which remember their options."""
from __future__ import annotations

import math
import numbers
import re
from typing import Any

import numpy as np

WHOLE_MOST = 2**31 - 1


class Whole:
    """A whole number."""

    def __init__(self, option: str, least: int = 0, most: int = WHOLE_MOST):
        self.option, self.least, self.most = option, least, most

    def text(self, value: Any, name: str) -> object:
        return whole_number(value, name, self.least, self.most)

    def value(self, text: str) -> object:
        return int(text)


class Real:
    """A finite number."""

    def __init__(self, option: str, least: float = 0, most: float = math.inf):
        self.option, self.least, self.most = option, least, most

    def text(self, value: Any, name: str) -> object:
        if is_bool(value) or not isinstance(value, numbers.Real) or not self.least <= float(value) < math.inf or \
                float(value) > self.most:
            limit = f" that is at least {self.least}" if self.least > -math.inf else ""
            limit += f" and at most {self.most}" if self.most < math.inf else ""
            raise ValueError(f"{name} must be a finite number{limit}, not {value!r}")
        return repr(float(value))

    def value(self, text: str) -> object:
        return float(text)


class Choice:
    """One of some words; `words` maps those of Python to the program's where they differ."""

    def __init__(self, option: str, *same: str, **words: str):
        self.option = option
        self.words = {**{word: word for word in same}, **words}

    def text(self, value: Any, name: str) -> object:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, self.words))}, not {value!r}")
        return self.words[value]

    def value(self, text: str) -> object:
        return next((mine for mine, theirs in self.words.items() if theirs == text), text)


class Text:
    """A text that a regular expression describes, and `what` in words."""

    def __init__(self, option: str, pattern: str, what: str):
        self.option, self.pattern, self.what = option, pattern, what

    def text(self, value: Any, name: str) -> object:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise ValueError(f"{name} must be {self.what}, not {value!r}")
        return value

    def value(self, text: str) -> object:
        return text


class Flag:
    """True or False; an option that says the opposite is `negated`."""

    def __init__(self, option: str, negated: bool = False):
        self.option, self.negated = option, negated

    def text(self, value: Any, name: str) -> object:
        if not is_bool(value):
            raise ValueError(f"{name} must be True or False, not {value!r}")
        return bool(value) != self.negated

    def value(self, text: str) -> object:
        return (text == "true") != self.negated


def is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def whole_number(value: Any, name: str, least: int, most: int | None = None) -> int:
    if is_bool(value) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    number = int(value)
    if number < least or (most is not None and number > most):
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise ValueError(f"{name} must be {limit}, not {number}")
    return number


# ---- random numbers --------------------------------------------------------------------------------------------------

SEED_MOST = 2**53


class Seed:
    """random_state, as scikit-learn has it; None draws a seed from numpy.random, so that numpy.random.seed has its
    effect."""

    def __init__(self, option: str = "seed"):
        self.option = option

    def text(self, value: Any, name: str) -> object:
        if value is None:
            value = np.random
        if isinstance(value, numbers.Integral) and not is_bool(value):
            return whole_number(value, name, 0, SEED_MOST)
        if isinstance(value, np.random.RandomState) or value is np.random:
            return int(value.randint(2**31 - 1))
        if isinstance(value, np.random.Generator):
            return int(value.integers(2**31 - 1))
        raise ValueError(f"{name} must be a whole number, a RandomState, a Generator or None, not {value!r}")

    def value(self, text: str) -> object:
        return int(text)
