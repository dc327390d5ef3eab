#!/usr/bin/python3
# L-BFGS beside liblbfgs and SciPy's L-BFGS-B on the classical test functions: the same minima with as few evaluations.
#   test_lbfgs_peers.py PATH_TO_shoal [--table]
# All start at the same points, remember ten pairs and keep their own defaults otherwise. Counted are the evaluations
# until a point was evaluated that is good enough by a rule; their own rules to stop are turned off (lbfgs_peers.c).
# --table prints the table of docs/learn/gradient.md. Prints one line for each failure and "N passed, M failed" at the
# end.
import ctypes
import pathlib
import sys

import nobody  # so that no run is in the history of whoever runs this

try:
    import numpy as np
    from scipy.optimize import fmin_l_bfgs_b
except ImportError as error:
    print(f"{error}: skipped; Debian has python3-numpy and python3-scipy")
    sys.exit(77)

HISTORY = 10
RULES = ["gradient", "value"]
VARIANTS = 5  # starts of each function: the usual one, and some near it
module = pathlib.Path(sys.argv[1]).resolve().parent / "tests" / "system" / "lbfgs_peers.so"
passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


class Enough(Exception):
    pass


def pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def run_shoal(x):
    return peer.peer_run_shoal(pointer(x), HISTORY)


def run_liblbfgs(x):
    return peer.peer_run_liblbfgs(pointer(x), HISTORY)


def run_scipy(x):
    def function(at):
        if peer.peer_enough():
            raise Enough
        at, gradient = np.ascontiguousarray(at), np.zeros(len(at))
        return peer.peer_evaluate(pointer(at), pointer(gradient)), gradient

    try:
        fmin_l_bfgs_b(function, x, m=HISTORY, factr=0, pgtol=0, maxfun=10**6, maxiter=10**6)
    except Enough:
        pass
    return 0


def evaluations(who, function, variant):
    """How many it took by each rule; that ours reaches the minimum is checked, and the peers' from the usual start."""
    x = np.zeros(peer.peer_size(function))
    peer.peer_begin(function, variant, pointer(x))
    status = peers[who](x)
    counts = [peer.peer_reached(rule) for rule in range(len(RULES))]
    minimum = peer.peer_minimum(function)
    above = (peer.peer_lowest() - minimum) / max(1, abs(minimum))  # another start may lead to a lower one
    name = f"{peer.peer_name(function).decode()} ({peer.peer_size(function)}), start {variant}"
    if who == "shoal" or variant == 0:
        check(f"{who}: minimum of {name}", status == 0 and 0 not in counts and above < 1e-9, f"{counts} {above}")
    return counts


def compare(variants):
    """Evaluations of each peer, by function and rule, in sum over the variants."""
    counts = {who: np.zeros((peer.peer_functions(), len(RULES)), int) for who in peers}
    for function in range(peer.peer_functions()):
        for variant in variants:
            each = {who: evaluations(who, function, variant) for who in peers}
            if all(0 not in those
                   for those in each.values()):  # a peer that ended elsewhere tells nothing about this start
                for who, those in each.items():
                    counts[who][function] += those
    return counts


def print_table(counts):
    print("| function | n | " + " | ".join(f"{who}, {rule}" for rule in RULES for who in peers) + " |")
    print("|---|--:|" + "--:|" * (len(RULES) * len(peers)))
    for function in range(peer.peer_functions()):
        cells = [str(counts[who][function, rule]) for rule in range(len(RULES)) for who in peers]
        print(f"| {peer.peer_name(function).decode()} | {peer.peer_size(function)} | " + " | ".join(cells) + " |")
    sums = [f"**{counts[who][:, rule].sum()}**" for rule in range(len(RULES)) for who in peers]
    print("| **sum** | | " + " | ".join(sums) + " |")


def test_no_more_evaluations():
    for name, variants in [("the usual starts", range(1)), ("starts near the usual ones", range(1, VARIANTS + 1))]:
        counts = compare(variants)
        if "--table" in sys.argv:
            print(name)
            print_table(counts)
        for rule, title in enumerate(RULES):
            sums = {who: int(counts[who][:, rule].sum()) for who in peers}
            print(f"{name}, {title}: {sums}")
            for who in peers:
                check(f"as few evaluations as {who}, {name}, {title}", sums["shoal"] <= sums[who], str(sums))


if not module.exists():
    print(f"{module} was not built (./dev test builds it): skipped")
    sys.exit(77)
peer = ctypes.CDLL(str(module))
peer.peer_name.restype = ctypes.c_char_p
for name in ["minimum", "evaluate", "lowest"]:
    getattr(peer, f"peer_{name}").restype = ctypes.c_double
peers = {"shoal": run_shoal, "liblbfgs": run_liblbfgs, "SciPy": run_scipy}
if not peer.peer_has_liblbfgs():
    print("SKIPPED liblbfgs: it was not there when this was built; Debian has liblbfgs-dev")
    del peers["liblbfgs"]
test_no_more_evaluations()
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
