"""Which rows a batch has, as docs/run.md and shoal/learn.h define it, written plainly a second time.

    shape = batch_rows.Shape(rows=1000, rows_per_grain=252, strata=16)
    for rows in shape.batches(seed=0, epoch=2, batch=64): ...       # arrays of numbers of rows, of one epoch
"""
import numpy as np

FOR_PICKS = 19
MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1


def philox(seed, purpose, index, draw):
    """Philox-4x32-10: 128 random bits, as four words."""
    key = [seed & MASK32, seed >> 32]
    counter = [draw, purpose, index & MASK32, index >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & MASK32, a >> 32 ^ counter[3] ^ key[1], a & MASK32]
        key = [key[0] + 0x9E3779B9 & MASK32, key[1] + 0xBB67AE85 & MASK32]
    return counter


def random64(seed, index, draw):
    low, high = philox(seed, FOR_PICKS, index, draw)[:2]
    return high << 32 | low


def epoch_key(seed, epoch):
    return random64(seed, epoch, MASK32)


def mixed(value, key, bits):
    value = (value ^ key) * 0x9E3779B97F4A7C15 & MASK64
    value = (value ^ value >> 32) * 0xD6E8FEB86659FD93 & MASK64
    return value >> 64 - bits


def order(key, stratum, count):
    """A random order of the numbers below `count`."""
    bits = max(10, (count - 1).bit_length())
    low_bits, high_bits = bits // 2, bits - bits // 2
    keys = [random64(key, stratum, step) for step in range(6)]
    numbers = []
    for at in range(count):
        while True:
            low, high = at & (1 << low_bits) - 1, at >> low_bits
            for step in range(0, 6, 2):
                low ^= mixed(high, keys[step], low_bits)
                high ^= mixed(low, keys[step + 1], high_bits)
            at = high << low_bits | low
            if at < count:
                break
        numbers.append(at)
    return numbers


class Shape:

    def __init__(self, rows, rows_per_grain, strata, held=0):
        self.rows, self.held = rows, held
        grains = -(-rows // min(rows_per_grain, rows))
        strata = min(strata, grains)
        ends = [min(rows, s * grains // strata * min(rows_per_grain, rows)) for s in range(strata + 1)]
        self.strata = list(zip(ends, ends[1:]))

    def drawn(self, first, end):
        """Rows of a stratum that are not held out."""
        return end - first - (end * self.held // self.rows - first * self.held // self.rows)

    def orders(self, seed, epoch):
        """For each stratum: its rows in this epoch's order, and how many drawn rows there are up to its end."""
        return self.orders_of(epoch_key(seed, epoch))

    def orders_of(self, key):
        before = 0
        for number, (first, end) in enumerate(self.strata):
            count = self.drawn(first, end)
            before += count
            yield np.array([first + row for row in order(key, number, count)], dtype=np.int64), before

    def at(self, orders, position, to):
        """The rows at positions from `position` up to `to`: a list of one array for each stratum."""
        total = self.rows - self.held
        to = min(to, total)

        def taken(rows, before, position):
            return (position * len(rows) + total - before) // total if len(rows) else 0

        return [rows[taken(rows, before, position):taken(rows, before, to)] for rows, before in orders]

    def batches(self, seed, epoch, batch):
        """The rows of each batch of an epoch."""
        orders = list(self.orders(seed, epoch))
        for position in range(0, self.rows - self.held, batch):
            yield self.at(orders, position, position + batch)
