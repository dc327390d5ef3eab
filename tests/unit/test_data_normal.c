/* Normal deviates against known quantiles, and their symmetry. */
#include "data_support.h"

#include <math.h>

/* Quantiles of ((bits + 1/2) / 2^32) from Python's statistics.NormalDist().inv_cdf. */
static void test_known_quantiles(void **state)
{
    (void)state;
    static const struct {
        uint32_t bits;
        double z;
    } cases[] = {{0u, -6.337957754553789},
                 {1u, -6.166429517819749},
                 {1000u, -5.039851125968711},
                 {123456789u, -1.899573995506065},
                 {322122547u, -1.4395314704450153},
                 {322122548u, -1.4395314688002132},
                 {1000000000u, -0.7295565530758739},
                 {2147483647u, -2.9180993729166234e-10},
                 {2147483648u, 2.9180993729166234e-10},
                 {2500000000u, 0.20720881735285793},
                 {3972844747u, 1.4395314688002132},
                 {3972844748u, 1.4395314704450153},
                 {4000000000u, 1.4857137558957358},
                 {4294966295u, 5.039851125968711},
                 {4294967295u, 6.337957754553789}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double error = fabs(data_normal(cases[i].bits) - cases[i].z);
        if (error > 4e-15 * fmax(1, fabs(cases[i].z)))
            fail_msg("%u: %.17g instead of %.17g", cases[i].bits, data_normal(cases[i].bits), cases[i].z);
    }
}

static void test_symmetry_and_order(void **state)
{
    (void)state;
    double last = -7;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 999983) {
        double z = data_normal((uint32_t)bits);
        assert_true(z > last);
        assert_true(z == -data_normal(UINT32_MAX - (uint32_t)bits));
        last = z;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_quantiles),
                                       cmocka_unit_test(test_symmetry_and_order)};
    return cmocka_run_group_tests_name("data_normal", tests, NULL, NULL);
}
