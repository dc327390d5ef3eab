"""shoal: exact machine learning in parallel.

    import shoal
    model = shoal.KMeans(n_clusters=100, random_state=0).fit(X)      # numpy in, numpy out, all cores
    model = shoal.LogisticRegression().fit("train.csv", "species")   # files and their columns by name
    model.save("species.safetensors")                                # the file that the program writes
    shoal.load("species.safetensors").predict("new.csv")

    from shoal.qjam import Master, RemoteWorker
    total = Master([RemoteWorker('corn10'), RemoteWorker('corn11')]).run(module, params, X)

    with shoal.Executor("ssh:corn10:8,corn11:8") as executor:        # a concurrent.futures.Executor
        results = list(executor.map(function, arguments))

docs/python.md has the rest.  Estimators need libshoal.so, Master and workers= the program `shoal` as well; each is
looked for when it is first used."""
from shoal._errors import Error, RemoteError
from shoal._version import version as __version__

TYPE_CHECKING = False  # but for type checkers: typing takes its time
if TYPE_CHECKING:
    from shoal.autoencoder import Autoencoder
    from shoal.bayes import GaussianNB
    from shoal.choose import ChosenK, choose_k
    from shoal.executor import Executor
    from shoal.kmeans import KMeans, MiniBatchKMeans
    from shoal.logistic import LogisticRegression
    from shoal.models import load
    from shoal.net import NetClassifier
    from shoal.qjam import Master, NumpyMatrixDataSet, RemoteWorker
    from shoal.sweeps import Sweep, sweep

# The module that each lies in: what is never used is never loaded.
PLACES = {"Autoencoder": "autoencoder", "ChosenK": "choose", "Executor": "executor", "GaussianNB": "bayes",
          "KMeans": "kmeans", "LogisticRegression": "logistic", "Master": "qjam", "MiniBatchKMeans": "kmeans",
          "NetClassifier": "net", "NumpyMatrixDataSet": "qjam", "RemoteWorker": "qjam", "choose_k": "choose",
          "Sweep": "sweeps", "load": "models", "sweep": "sweeps"}

__all__ = ["Autoencoder", "ChosenK", "Error", "Executor", "GaussianNB", "KMeans", "LogisticRegression", "Master",
           "MiniBatchKMeans", "NetClassifier", "NumpyMatrixDataSet", "RemoteError", "RemoteWorker", "Sweep",
           "__version__", "choose_k", "load", "sweep"]


def __getattr__(name: str) -> "object":
    if name not in PLACES:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module(f"shoal.{PLACES[name]}"), name)


def __dir__() -> "list[str]":
    return __all__
