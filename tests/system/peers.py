"""Programs of others that tests talk to: where they are, free ports for them, and waiting until they listen."""
import os
import shutil
import socket
import time

import nobody  # so that no run is in the history of whoever runs this

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def npm_peer(path):
    """The path of a file below node_modules, or None: in $SHOAL_PEERS, or where `./dev deps test` puts them."""
    if not shutil.which("node"):
        return None
    for folder in (os.environ.get("SHOAL_PEERS"), os.path.join(ROOT, "build", "peers")):
        found = folder and os.path.join(folder, "node_modules", path)
        if found and os.path.exists(found):
            return found
    return None


def free_ports(count):
    """So many ports of loopback that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_for_port(port, process, seconds=300):
    """Waits until something listens; fails when the process ends first or the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, f"{process.args[0]} ended with {process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"nobody listens on port {port} after {seconds} s")
