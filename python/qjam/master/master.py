"""qjam.master.master by its old name."""
from shoal._errors import RemoteError
from shoal.qjam import Master

__all__ = ["Master", "RemoteError"]
