"""Models in files, whichever learner they belong to."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from shoal._model import Model

if TYPE_CHECKING:
    from shoal._estimator import Estimator


def load(path: str | os.PathLike[str]) -> Estimator:
    """The estimator of a model that save() or the program wrote, with the parameters that it was found with.

    >>> import os, shoal, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "two.safetensors")
    >>> shoal.KMeans(2, random_state=0).fit([[1.0], [2], [9]]).save(path)
    >>> shoal.load(path).predict([[8.0], [1]])
    array([0, 1], dtype=int32)
    >>> folder.cleanup()
    """
    from shoal.autoencoder import Autoencoder
    from shoal.bayes import GaussianNB
    from shoal.kmeans import KMeans, MiniBatchKMeans
    from shoal.logistic import LogisticRegression
    from shoal.net import NetClassifier
    name, model = os.fspath(path), Model.open(os.fspath(path))
    batches = model.text("option.batch") not in (None, "0")
    kinds: list[type[Estimator]] = [Autoencoder, GaussianNB, MiniBatchKMeans if batches else KMeans,
                                    LogisticRegression, NetClassifier]
    for kind in kinds:
        if kind._learner == model.learner:
            return kind._of_model(model, name)
    raise ValueError(f"{name} is a model of {model.learner}, which has no estimator in Python")
