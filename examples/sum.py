"""The sum of every column, for `shoal run --exec 'python3 sum.py' data.npy`: one array in, one array out, a grain at a time."""
import sys
import types

import numpy as np

source = types.SimpleNamespace(read=sys.stdin.buffer.read)  # numpy would seek in what looks like a file
while sys.stdin.buffer.peek(1):  # until the input ends
    rows = np.lib.format.read_array(source)
    np.save(sys.stdout.buffer, rows.sum(axis=0))
    sys.stdout.buffer.flush()
