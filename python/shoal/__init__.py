"""shoal: exact machine learning in parallel.

    import shoal
    model = shoal.KMeans(n_clusters=100, random_state=0).fit(X)      # numpy in, numpy out, all cores

    from shoal.qjam import Master, RemoteWorker
    total = Master([RemoteWorker('corn10'), RemoteWorker('corn11')]).run(module, params, X)

docs/python.md has the rest.  KMeans needs libshoal.so, Master the program `shoal` as well; each is looked for when it
is first used."""
from shoal._errors import Error, RemoteError
from shoal._version import version as __version__

__all__ = ["Error", "KMeans", "Master", "NumpyMatrixDataSet", "RemoteError", "RemoteWorker", "__version__"]


def __getattr__(name):
    if name == "KMeans":
        from shoal.kmeans import KMeans
        return KMeans
    if name in ("Master", "NumpyMatrixDataSet", "RemoteWorker"):
        from shoal import qjam
        return getattr(qjam, name)
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__():
    return __all__
