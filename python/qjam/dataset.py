"""qjam.dataset by its old name."""
from shoal.qjam import NumpyMatrixDataSet

__all__ = ["NumpyMatrixDataSet"]
