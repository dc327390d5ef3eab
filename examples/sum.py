"""The sum of every column, for `shoal run --exec 'python3 sum.py' data.npy`: one array in, one array out, a grain at a
time."""
import sys
import types

import numpy as np

# numpy would ask for the position in what looks like a file to it, and pipes have none.
pipes = types.SimpleNamespace(read=sys.stdin.buffer.read, write=sys.stdout.buffer.write)
while sys.stdin.buffer.peek(1):  # until the input ends
    rows = np.lib.format.read_array(pipes)
    np.save(pipes, rows.sum(axis=0))
    sys.stdout.buffer.flush()
