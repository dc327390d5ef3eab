"""Sparse autoencoders as a transformer in the manner of scikit-learn; docs/learn/autoencoder.md defines the result."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from shoal import _sklearn, _validate
from shoal._estimator import Estimator
from shoal._model import Model
from shoal._parameters import Choice, Flag, Real, Seed, Text, Whole

if TYPE_CHECKING:
    from shoal._classifier import Data


class Autoencoder(_sklearn.ClassNamePrefixFeaturesOutMixin, _sklearn.TransformerMixin, Estimator):
    """A network with one hidden layer that learns to reproduce its rows; what its hidden units say of a row are
    features. The result depends on the data and the parameters alone, never on the number of threads, workers or the
    processor.

    Parameters
    ----------
    n_hidden : int, default=25
        The number of hidden units, and so of features.
    sparsity : float, default=0.01
        The mean activation that each hidden unit should have; not for 'relu'.
    sparsity_weight : float, default=3.0
        The weight of the divergence from it; for 'relu', of the sum of the mean activations.
    weight_decay : float, default=1e-4
        The weight of half the sum of squared weights.
    activation : {'logistic', 'tanh', 'relu'}, default='logistic'
    output : {'auto', 'same', 'linear'}, default='auto'
        The activation of the outputs: that of the hidden units or none; 'auto' is the same, but linear for 'relu'.
    tied : bool, default=False
        Whether the decoder is the encoder transposed.
    rescale : 'auto', 'none' or 'LOW:HIGH', default='auto'
        The values of X that become the ends of the outputs' range; 'auto' is the least and the greatest. Nothing is
        rescaled where the outputs are linear.
    max_iter : int, default=400
        The most iterations of L-BFGS.
    tol : float, default=1e-5
        It ends when no component of the gradient is greater.
    change : float, default=1e-9
        It ends when an iteration lowers the cost by no more than this times the cost.
    history : int, default=10
        Iterations that L-BFGS remembers.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None, default=None
        An int gives the same result each time; None takes a new seed each time.
    precision : {'auto', 'float32', 'float64'}, default='auto'
        Of the arithmetic; 'auto' is that of X, and float32 for whole numbers.
    {common}
    options : dict or None, default=None
        More options of `shoal autoencoder` by their names, such as {'start': 'model.safetensors'}.

    Attributes
    ----------
    encoder_ : float64 array of shape (n_hidden, n_features)
    encoder_bias_ : float64 array of shape (n_hidden,)
    decoder_ : float64 array of shape (n_features, n_hidden)
    decoder_bias_ : float64 array of shape (n_features,)
    activity_ : float64 array of shape (n_hidden,)
        The mean activation of each hidden unit over all rows.
    scale_, shift_ : float
        A value v of X is v * scale_ + shift_ to the network.
    loss_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str; only when the columns of X have names

    >>> import numpy as np, shoal
    >>> X = np.random.default_rng(0).random((200, 6))
    >>> model = shoal.Autoencoder(n_hidden=3, random_state=0).fit(X)
    >>> model.transform(X).shape, model.inverse_transform(model.transform(X)).shape
    ((200, 3), (200, 6))
    """
    _learner, _name = "autoencoder", "autoencoder"
    _parameters = {
        "n_hidden": Whole("hidden", 1), "sparsity": Real("sparsity", -np.inf),
        "sparsity_weight": Real("sparsity-weight"), "weight_decay": Real("weight-decay"),
        "activation": Choice("activation", "logistic", "tanh", "relu"),
        "output": Choice("output", "auto", "same", "linear"), "tied": Flag("tied"),
        "rescale": Text("rescale", "none|auto|[^:]+:[^:]+", "'auto', 'none' or 'LOW:HIGH'"),
        "max_iter": Whole("iterations"),
        "tol": Real("tolerance"), "change": Real("change"), "history": Whole("history", 1, 1000),
        "random_state": Seed(), "precision": Choice("precision", "auto", "float32", "float64")
    }

    def __init__(self, n_hidden: int = 25, *, sparsity: float = 0.01, sparsity_weight: float = 3.0,
                 weight_decay: float = 1e-4, activation: str = "logistic", output: str = "auto", tied: bool = False,
                 rescale: str = "auto", max_iter: int = 400, tol: float = 1e-5, change: float = 1e-9,
                 history: int = 10, random_state: Any = None, precision: str = "auto", verbose: int = 0,
                 n_threads: int | None = None, kernel: str | None = None, workers: Any = None,
                 options: Mapping[str, Any] | None = None):
        self.n_hidden = n_hidden
        self.sparsity = sparsity
        self.sparsity_weight = sparsity_weight
        self.weight_decay = weight_decay
        self.activation = activation
        self.output = output
        self.tied = tied
        self.rescale = rescale
        self.max_iter = max_iter
        self.tol = tol
        self.change = change
        self.history = history
        self.random_state = random_state
        self.precision = precision
        self.verbose = verbose
        self.n_threads = n_threads
        self.kernel = kernel
        self.workers = workers
        self.options = options

    def _checked_options(self) -> dict[str, Any]:
        options = super()._checked_options()
        if self.activation == "relu":
            options["sparsity"] = None  # units without a greatest value have no share of it
        if self.rescale == "auto" and self._is_linear():
            options["rescale"] = "none"
        return options

    def _is_linear(self) -> bool:
        return self.output == "linear" or (self.output == "auto" and self.activation == "relu")

    def fit(self, X: Data, y: Any = None) -> Autoencoder:
        """Learns features of the rows of X, an array, a data frame or the name of a file. y is ignored."""
        options = self._checked_options()
        rows = _validate.rows_of(X)
        with self._progress() as progress:
            model = self._learn(rows, options, Model.of, progress=progress)
            if progress:
                progress.last = self._end_of(model)
        self._set_learned(model, model.names() if rows.array is None else rows.names)
        if model.text("diverged") == "true":
            warnings.warn("the cost had no finite value any more, so that the model is the last good one: try other "
                          "values of sparsity_weight and weight_decay", _sklearn.ConvergenceWarning, stacklevel=2)
        elif model.text("converged") == "false":
            warnings.warn(f"Autoencoder has not converged after {self.n_iter_} iterations: raise max_iter or tol",
                          _sklearn.ConvergenceWarning, stacklevel=2)
        return self

    def _set_model(self, model: Model) -> None:
        self.encoder_, self.encoder_bias_ = model.tensor("encoder.weight"), model.tensor("encoder.bias")
        self.decoder_ = model.tensor("decoder.weight") if model.has("decoder.weight") else self.encoder_.T
        self.decoder_bias_, self.activity_ = model.tensor("decoder.bias"), model.tensor("activity")
        self.scale_, self.shift_ = model.number("scale"), model.number("shift")
        self.loss_, self.n_iter_ = model.number("objective"), int(model.number("iterations"))
        self._n_features_out = len(self.encoder_)

    # ---- using it ----------------------------------------------------------------------------------------------------

    def transform(self, X: Data) -> np.ndarray:
        """The activations of the hidden units: shape (n_samples, n_hidden), in the precision of the model."""
        return self._apply(X, "features").arrays["features"]

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The rows that the network makes of features: shape (n_samples, n_features). numpy computes it, whose last
        digits may differ from one machine to the next."""
        self._check_fitted()
        features = _validate.as_rows(X).astype(np.float64, copy=False)
        if features.shape[1] != len(self.encoder_):
            raise ValueError(f"X has {features.shape[1]} columns, but there are {len(self.encoder_)} hidden units")
        out = features @ self.decoder_.T + self.decoder_bias_
        if not self._is_linear():
            out = np.tanh(out) if self.activation == "tanh" else np.maximum(out, 0) if self.activation == "relu" \
                else 0.5 + 0.5 * np.tanh(out / 2)
        out = (out - self.shift_) / self.scale_
        scaling = self._model.scaling()
        return out * scaling[1] + scaling[0] if scaling else out

    def score(self, X: Data, y: Any = None) -> float:
        """Minus the reconstruction error: half the mean squared error of a row, as the network sees it."""
        return -self._apply(X, options={"score": True}).score["error"]
