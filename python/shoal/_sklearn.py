"""What estimators inherit: scikit-learn's base classes where it is installed, small stand-ins where it is not.

The stand-ins have what a program uses of an estimator (parameters by name, a repr), not what scikit-learn's own tools
need."""
try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, TransformerMixin
    from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
    try:
        from sklearn.base import ClassNamePrefixFeaturesOutMixin
    except ImportError:  # before 1.1
        from sklearn.base import _ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
    INSTALLED = True
except ImportError:
    import inspect

    INSTALLED = False

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A method that needs fit was called before it."""

    class ConvergenceWarning(UserWarning):  # type: ignore[no-redef]
        """The result is usable, but not all that was asked for."""

    class DataConversionWarning(UserWarning):  # type: ignore[no-redef]
        """What was handed over had another shape than was asked for."""

    class BaseEstimator:  # type: ignore[no-redef]
        @classmethod
        def _get_param_names(cls):
            return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

        def get_params(self, deep=True):
            return {name: getattr(self, name) for name in self._get_param_names()}

        def set_params(self, **params):
            known = self._get_param_names()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(
                        f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.")
                setattr(self, name, value)
            return self

        def __repr__(self):
            defaults = inspect.signature(type(self).__init__).parameters
            given = [
                f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name].default
            ]
            return f"{type(self).__name__}({', '.join(given)})"

    class ClusterMixin:  # type: ignore[no-redef]
        _estimator_type = "clusterer"

        def fit_predict(self, X, y=None, **more):
            return self.fit(X, **more).labels_

    class ClassifierMixin:  # type: ignore[no-redef]
        _estimator_type = "classifier"

    class TransformerMixin:  # type: ignore[no-redef]
        def fit_transform(self, X, y=None, **more):
            return self.fit(X, y, **more).transform(X)

    class ClassNamePrefixFeaturesOutMixin:  # type: ignore[no-redef]
        def get_feature_names_out(self, input_features=None):
            import numpy as np
            prefix = type(self).__name__.lower()
            return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)
