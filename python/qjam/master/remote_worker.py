"""qjam.master.remote_worker by its old name."""
from shoal.qjam import RemoteWorker

__all__ = ["RemoteWorker"]
