/* Random numbers: Philox-4x32-10 as published, and what is made of it is uniform and without bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "base/random.h"

/* kat_vectors of Random123 (Salmon et al. 2011), philox4x32 10: counter, key, answer.  The counter's words are draw,
 * purpose, and the low and high half of index; the key's are the low and high half of seed. */
static const struct {
    uint32_t counter[4], key[2], answer[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        const uint32_t *counter = known[i].counter, *key = known[i].key, *answer = known[i].answer;
        uint64_t seed = key[0] | (uint64_t)key[1] << 32, index = counter[2] | (uint64_t)counter[3] << 32;
        base_random(out, seed, (base_purpose)counter[1], index, counter[0]);
        for (int w = 0; w < 4; w++)
            assert_int_equal(out[w], answer[w]);
        uint64_t bits = base_random_u64(seed, (base_purpose)counter[1], index, counter[0]);
        assert_true(bits == (answer[0] | (uint64_t)answer[1] << 32));
        double unit = base_random_unit(seed, (base_purpose)counter[1], index, counter[0]);
        assert_true(unit == (double)(bits >> 11) / 9007199254740992.0);
    }
}

/* Every argument matters, its high half too. */
static void test_every_argument_counts(void **state)
{
    (void)state;
    const uint64_t base = base_random_u64(1, BASE_FOR_DATA, 1, 1);
    assert_true(base == base_random_u64(1, BASE_FOR_DATA, 1, 1));
    for (int bit = 0; bit < 64; bit++) {
        assert_true(base != base_random_u64(UINT64_C(1) ^ UINT64_C(1) << bit, BASE_FOR_DATA, 1, 1));
        assert_true(base != base_random_u64(1, BASE_FOR_DATA, UINT64_C(1) ^ UINT64_C(1) << bit, 1));
        if (bit < 32)
            assert_true(base != base_random_u64(1, BASE_FOR_DATA, 1, UINT32_C(1) ^ UINT32_C(1) << bit));
    }
    for (int purpose = 2; purpose <= 5; purpose++)
        assert_true(base != base_random_u64(1, (base_purpose)purpose, 1, 1));
}

/* The purposes are part of every result. */
static void test_purposes_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(BASE_FOR_DATA, 1);
    assert_int_equal(BASE_FOR_CENTRES, 2);
    assert_int_equal(BASE_FOR_SEEDING, 3);
    assert_int_equal(BASE_FOR_SAMPLING, 4);
    assert_int_equal(BASE_FOR_RECLUSTER, 5);
}

static void test_unit_is_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 100000, BINS = 50 };
    int bins[BINS] = {0};
    double sum = 0, squares = 0, serial = 0, last = 0.5;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double unit = base_random_unit(7, BASE_FOR_DATA, i, 0);
        assert_true(unit >= 0 && unit < 1);
        bins[(int)(unit * BINS)]++;
        sum += unit;
        squares += unit * unit;
        serial += (unit - 0.5) * (last - 0.5);
        last = unit;
    }
    double chi = 0, expected = (double)DRAWS / BINS;
    for (int b = 0; b < BINS; b++)
        chi += (bins[b] - expected) * (bins[b] - expected) / expected;
    /* Five standard deviations each: fixed numbers, so this either holds forever or never did. */
    assert_true(fabs(chi - (BINS - 1)) < 5 * sqrt(2.0 * (BINS - 1)));
    assert_true(fabs(sum / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
    assert_true(fabs(squares / DRAWS - 1.0 / 3) < 5 * sqrt(4.0 / 45 / DRAWS));
    assert_true(fabs(serial / DRAWS) < 5.0 / 12 / sqrt(DRAWS));
}

static void test_below_stays_below_and_is_uniform(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 2, 3, 7, 10};
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        enum { DRAWS = 20000 };
        int64_t seen[10] = {0};
        for (uint64_t i = 0; i < DRAWS; i++) {
            uint64_t value = base_random_below(bounds[b], 3, BASE_FOR_SEEDING, i, 0);
            assert_true(value < bounds[b]);
            seen[value]++;
        }
        double expected = (double)DRAWS / (double)bounds[b];
        for (uint64_t v = 0; v < bounds[b]; v++)
            assert_true(fabs((double)seen[v] - expected) < 5 * sqrt(expected) + 1);
    }
}

/* With a bound of 3/4 of 2^64, plain remainders would give values below 2^62 twice as often as the others. */
static void test_below_has_no_bias(void **state)
{
    (void)state;
    enum { DRAWS = 30000 };
    const uint64_t bound = UINT64_C(3) << 62;
    int64_t low = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t value = base_random_below(bound, 3, BASE_FOR_SEEDING, i, 0);
        assert_true(value < bound);
        low += value < UINT64_C(1) << 62;
    }
    assert_true(fabs((double)low - DRAWS / 3.0) < 5 * sqrt(DRAWS * 2.0 / 9));
}

/* It is the first draw that is small enough, taken as it is. */
static void test_below_goes_on_to_the_next_draw(void **state)
{
    (void)state;
    const uint64_t bound = (UINT64_C(1) << 63) + 1;
    int64_t repeated = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t draw = 5;
        while (base_random_u64(9, BASE_FOR_SEEDING, i, draw) >= bound)
            draw++;
        repeated += draw > 5;
        assert_true(base_random_below(bound, 9, BASE_FOR_SEEDING, i, 5) ==
                    base_random_u64(9, BASE_FOR_SEEDING, i, draw));
    }
    assert_in_range(repeated, 400, 600);
    assert_true(base_random_below(UINT64_MAX, 0, BASE_FOR_DATA, 0, 0) == base_random_u64(0, BASE_FOR_DATA, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers),
                                       cmocka_unit_test(test_every_argument_counts),
                                       cmocka_unit_test(test_purposes_keep_their_numbers),
                                       cmocka_unit_test(test_unit_is_uniform),
                                       cmocka_unit_test(test_below_stays_below_and_is_uniform),
                                       cmocka_unit_test(test_below_has_no_bias),
                                       cmocka_unit_test(test_below_goes_on_to_the_next_draw)};
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
