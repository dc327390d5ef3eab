"""Nets as an estimator in the manner of scikit-learn.

docs/python.md lists where it differs from sklearn.neural_network.MLPClassifier; docs/learn/train.md defines the
result."""
from __future__ import annotations

import json
import re
import struct
import warnings
from typing import TYPE_CHECKING, Any, Mapping, TypeVar

import numpy as np

from shoal import _sklearn, _validate
from shoal._classifier import Classifier
from shoal._model import Model
from shoal._parameters import Choice, Real, Seed, Whole

if TYPE_CHECKING:
    from shoal._classifier import Data

Self = TypeVar("Self", bound="NetClassifier")

# The columns of a model's history.
CURVES = ("loss", "accuracy", "validation_loss", "validation_accuracy", "rate")


class Maybe:
    """A parameter that may be None, which is the program's default; so is 0, for a model that remembers it."""

    def __init__(self, kind: Any):
        self.kind, self.option = kind, kind.option

    def text(self, value: Any, name: str) -> object:
        return None if value is None else self.kind.text(value, name)

    def value(self, text: str) -> object:
        return self.kind.value(text) or None


class NetClassifier(Classifier):
    """A convolutional or dense net, trained by mini-batches: its weights depend on the data and the parameters alone,
    never on the number of threads, workers or the processor.

    Parameters
    ----------
    net : str, default='dense 100 relu'
        The layers, with semicolons between, as `shoal train -h` lists them: 'conv 20 5x5 relu; pool 2; dense 100 relu'.
        Unless the last one is a softmax, a dense layer with one is added, of as many units as there are classes.
    epochs : int, default=10
    batch_size : int, default=128
    optimizer : {'sgd', 'momentum', 'nesterov', 'adam', 'adamw'}, default='momentum'
    learning_rate : float or None, default=None
        None is 0.001 for 'adam' and 'adamw', else 0.05.
    schedule : {'constant', 'step', 'cosine'}, default='cosine'
    l2 : float, default=0.0
        Weight of half the sum of squared weights; of 'adamw' the decay of weights.
    validation_fraction : float, default=0.0
        The share of the rows that is held out and scored after each epoch; the weights are then those of the epoch with
        the least loss on them.
    n_iter_no_change : int or None, default=None
        Ends the training when that loss has not improved for so many epochs.
    augment : str or None, default=None
        What is done to images at random, such as 'flip,crop:4,shift:2'.
    random_state : int, RandomState, Generator or None, default=None
        Of first weights, batches, dropout and augmentation.
    {common}
    options : dict or None, default=None
        More options of `shoal train` by their names, such as {'group': 32, 'start': 'digits.safetensors', 'freeze': 3}.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_iter_ : int
        Epochs.
    best_iter_ : int
        The epoch that the weights are of; 0 for those of a moment within one.
    history_ : dict of float64 arrays of shape (n_iter_,)
        'loss' and 'accuracy' of the rows that it was trained on, 'validation_loss' and 'validation_accuracy', 'rate'.
    loss_curve_ : float64 array of shape (n_iter_,)
    input_shape_ : tuple of int
        Of a row: (height, width), (height, width, channels) or (n_features,).
    n_features_in_ : int
    feature_names_in_ : array of str; only when the columns of X have names

    >>> import numpy as np, shoal
    >>> X = np.zeros((200, 6, 6), np.uint8)                          # images, whose bytes are divided by 255
    >>> y = np.arange(200) % 2
    >>> X[y == 1, 1:4, 2] = 255
    >>> model = shoal.NetClassifier('conv 4 3x3 relu; pool 2', epochs=5, random_state=0).fit(X, y)
    >>> model.predict(X[:4]), model.input_shape_
    (array([0, 1, 0, 1]), (6, 6))
    """
    _learner, _name = "train", "net"
    _parameters = {"epochs": Whole("epochs", 0, 1 << 20), "batch_size": Whole("batch", 1),
                   "optimizer": Choice("optimiser", "sgd", "momentum", "nesterov", "adam", "adamw"),
                   "learning_rate": Maybe(Real("rate", 0, 1e6)), "schedule": Choice("schedule", "constant", "step",
                                                                                    "cosine"),
                   "l2": Real("l2", 0, 1e6), "validation_fraction": Real("validation", 0, 0.95),
                   "n_iter_no_change": Maybe(Whole("early-stop", 1)), "random_state": Seed()}

    def __init__(self, net: str = "dense 100 relu", *, epochs: int = 10, batch_size: int = 128,
                 optimizer: str = "momentum", learning_rate: float | None = None, schedule: str = "cosine",
                 l2: float = 0.0, validation_fraction: float = 0.0, n_iter_no_change: int | None = None,
                 augment: str | None = None, random_state: Any = None, verbose: int = 0, n_threads: int | None = None,
                 kernel: str | None = None, workers: Any = None, options: Mapping[str, Any] | None = None):
        self.net = net
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.l2 = l2
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.augment = augment
        self.random_state = random_state
        self.verbose = verbose
        self.n_threads = n_threads
        self.kernel = kernel
        self.workers = workers
        self.options = options

    def fit(self: Self, X: Data, y: Data | int | None = None) -> Self:  # type: ignore[override]
        """Learns the classes y of the rows of X.

        X: an array of shape (n_samples, n_features), or of images: (n_samples, height, width) or (n_samples, height,
        width, channels); a data frame; or the name of a file that `shoal data info` reads, whose shape counts. y: as
        LogisticRegression.fit has it."""
        rows, self._shape = flat(X)
        return super().fit(rows, y)

    def _checked_options(self) -> dict[str, Any]:
        if not isinstance(self.net, str):
            raise ValueError(f"net must be a text such as 'dense 100 relu', not {self.net!r}")
        if self.augment is not None and not isinstance(self.augment, str):
            raise ValueError(f"augment must be a text such as 'flip,crop:4' or None, not {self.augment!r}")
        return {**super()._checked_options(), "augment": self.augment}

    def _target(self, y: Any, rows: _validate.Rows) -> tuple[dict[str, Any], _validate.Labels | None]:
        given, labels = super()._target(y, rows)
        net = self.net
        if not re.search(r"softmax\s*(#[^\n]*)?[;\s]*\Z", net):
            if labels is None:
                raise ValueError("net must end with a softmax where y is not in memory, such as 'dense 10 softmax'")
            net += f"{'; ' if net.isprintable() else chr(10)}dense {len(labels.classes)} softmax"
        return {**given, "net": net, "shape": "x".join(map(str, self._shape)) if self._shape else None}, labels

    def _new_rows(self, X: Any) -> _validate.Rows:
        self._check_fitted()
        rows, shape = flat(X)
        if shape and (shape[:2] if shape[2:] == (1,) else shape) != self.input_shape_:
            raise ValueError(f"X has rows of shape {shape}, but {type(self).__name__} was fitted with "
                             f"{self.input_shape_}")
        return super()._new_rows(rows)

    def _set_model(self, model: Model) -> None:
        history = model.tensor("history")
        self.history_ = {name: history[:, place] for place, name in enumerate(CURVES)}
        self.loss_curve_ = self.history_["loss"]
        self.n_iter_, self.best_iter_ = int(model.number("epochs")), int(model.number("epoch"))
        sides = tuple(int(model.number(name)) for name in ("height", "width", "channels"))
        self.input_shape_: tuple[int, ...] = sides[:2] if sides[2] == 1 else sides
        if model.text("flat") == "true":
            self.input_shape_ = (model.columns,)
        self._set_classes(model)

    @classmethod
    def _parameters_of(cls, model: Model) -> dict[str, Any]:
        found = super()._parameters_of(model)
        found["net"] = "; ".join(layer.strip() for layer in (model.text("net") or "").strip(";").split(";"))
        found["augment"] = model.text("option.augment")
        return found

    def _say(self, sentence: str) -> str:
        return super()._say(sentence).replace("--net", "net").replace("--augment", "augment")

    def _warn_of(self, model: Model) -> None:
        if model.text("diverged") == "true":
            warnings.warn(f"{type(self).__name__}: the loss is no longer finite after epoch {self.n_iter_}; the "
                          f"weights are those of epoch {self.best_iter_}: lower learning_rate",
                          _sklearn.ConvergenceWarning, stacklevel=3)

    def _end_of(self, model: Model) -> str:
        line = f"{self._name}: {model.number('epochs'):.0f} epochs, loss {model.number('loss'):.4g}"
        held = model.number("validation_accuracy")
        return line if np.isnan(held) else f"{line}, validation accuracy {100 * held:.2f}%"

    def state_dict(self) -> dict[str, np.ndarray]:
        """The weights by the names that torch.nn.Sequential gives them: load_state_dict takes them as tensors."""
        self._check_fitted()
        content = self._model.bytes()
        header = json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])
        return {name: self._model.tensor(name).copy() for name in header
                if name not in ("__metadata__", "classes", "history")}


def flat(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Images as rows, and their shape; anything else as it is."""
    images = np.asarray(X) if isinstance(X, (list, tuple)) else X
    if getattr(images, "ndim", 0) not in (3, 4):
        return X, None
    images = np.asarray(images)
    return np.ascontiguousarray(images).reshape(len(images), -1), images.shape[1:]
