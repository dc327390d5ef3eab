/* Philox-4x32-10.  See random.h. */
#include "random.h"

void base_random(uint32_t out[4], uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {draw, (uint32_t)purpose, (uint32_t)index, (uint32_t)(index >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * counter[0];
        uint64_t b = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ counter[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ counter[3] ^ key[1], (uint32_t)a};
        for (int i = 0; i < 4; i++)
            counter[i] = next[i];
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = counter[i];
}

uint64_t base_random_u64(uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw)
{
    uint32_t bits[4];
    base_random(bits, seed, purpose, index, draw);
    return bits[0] | (uint64_t)bits[1] << 32;
}

double base_random_unit(uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw)
{
    return (double)(base_random_u64(seed, purpose, index, draw) >> 11) * 0x1p-53;
}

uint64_t base_random_below(uint64_t bound, uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw)
{
    uint64_t limit =
        UINT64_MAX - UINT64_MAX % bound; /* the greatest multiple of bound that fits, so no value is favoured */
    uint64_t value;
    do
        value = base_random_u64(seed, purpose, index, draw++);
    while (value >= limit);
    return value % bound;
}
