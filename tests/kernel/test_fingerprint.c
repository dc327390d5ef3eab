/* The fingerprint of arithmetic: the same for all sets where bits must agree, another one where anything differs. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/kernel.h"

static const kernel_set *sets[8];
static int count_sets;

/* Of every machine with IEEE arithmetic and little-endian numbers, whatever compiled this: should it change, workers of
 * one job that were built from different sources refuse each other, which is right only if bits changed. */
static const uint64_t everywhere = UINT64_C(0xba1e27dbba107a21);

static void test_all_sets_agree_on_what_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < count_sets; i++) {
        uint64_t print = kernel_fingerprint(sets[i], true);
        if (print != everywhere)
            fail_msg("%s: 0x%016llx", sets[i]->name, (unsigned long long)print);
    }
}

/* Sets add up products in different orders, so some differ; equal ones would be no failure of a set, but here the
 * widths of their vectors differ, and with them the order. */
static void test_sets_differ_in_their_products(void **state)
{
    (void)state;
    int different = 0;
    for (int i = 0; i < count_sets; i++) {
        assert_true(kernel_fingerprint(sets[i], false) == kernel_fingerprint(sets[i], false));
        assert_true(kernel_fingerprint(sets[i], false) != kernel_fingerprint(sets[i], true));
        different += kernel_fingerprint(sets[i], false) != kernel_fingerprint(sets[0], false);
        print_message("%s 0x%016llx\n", sets[i]->name, (unsigned long long)kernel_fingerprint(sets[i], false));
    }
    if (count_sets == 1)
        skip();
    assert_int_equal(different, count_sets - 1);
}

static void test_callers_rounding_does_not_matter(void **state)
{
    (void)state;
    fesetround(FE_UPWARD);
    uint64_t print = kernel_fingerprint(sets[0], true);
    int rounding = fegetround();
    fesetround(FE_TONEAREST);
    assert_true(print == everywhere);
    assert_int_equal(rounding, FE_UPWARD); /* and stays the caller's */
}

/* ---- sets that are wrong by little ------------------------------------------------------------------------------- */

static double wrong_distance32(const float *x, const double *centre, int64_t columns)
{
    double sum = 0; /* in one chain, not in eight lanes */
    for (int64_t k = 0; k < columns; k++)
        sum += ((double)x[k] - centre[k]) * ((double)x[k] - centre[k]);
    return sum;
}

static double wrong_distance64(const double *x, const double *centre, int64_t columns)
{
    return nextafter(sets[0]->distance64(x, centre, columns), INFINITY);
}

static double wrong_product64(const double *a, const double *b, int64_t columns)
{
    return nextafter(sets[0]->product64(a, b, columns), INFINITY);
}

static void wrong_distance8(double *out, const uint8_t *x, const double *const *centres, int64_t rows, int64_t columns)
{
    sets[0]->distance8(out, x, centres, rows, columns);
    out[0] = nextafter(out[0], INFINITY);
}

static void wrong_dots8(int32_t *dots, const uint8_t *row, const int8_t *others, int count, int64_t bytes)
{
    sets[0]->dots8(dots, row, others, count, bytes - 1);
}

static void wrong_distances(double *out, int64_t stride, const double *x, int64_t rows, const double *centres,
                            int64_t count, int64_t columns)
{
    sets[0]->distances(out, stride, x, rows, centres, count, columns);
    out[0] = nextafter(out[0], INFINITY);
}

static void wrong_move32(int64_t *to, int64_t *from, const float *x, const double *origin, const double *inverse,
                         double weight, int64_t columns)
{
    sets[0]->move32(to, from, x, origin, inverse, nextafter(weight, 2), columns);
}

static void wrong_centre_row(float *out, const void *row, shoal_type type, const kernel_origin *origin, int64_t columns)
{
    sets[0]->centre_row(out, row, type, origin, columns);
    if (type == SHOAL_UINT16)
        out[columns - 1] = nextafterf(out[columns - 1], INFINITY);
}

static int wrong_least(const float *values, int count)
{
    return (sets[0]->least(values, count) + 1) % count;
}

static void wrong_product32(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_column, const float *b,
                            int64_t b_row, int64_t rows, int64_t columns, int64_t depth)
{
    sets[0]->dense32.product(c, c_row, a, a_row, a_column, b, b_row, rows, columns, depth);
    c[0] = nextafterf(c[0], INFINITY);
}

static void wrong_activate64(double *z, kernel_activation f, int64_t count)
{
    sets[0]->dense64.activate(z, f, count);
    if (f == KERNEL_TANH)
        z[count - 1] = nextafter(z[count - 1], INFINITY);
}

static void wrong_exp32(float *x, int64_t count)
{
    sets[0]->dense32.exp(x, count);
    x[1] = nextafterf(x[1], INFINITY);
}

static float wrong_dot(const float *a, const float *b, int64_t columns)
{
    return nextafterf(sets[0]->dot(a, b, columns), INFINITY);
}

static void test_a_wrong_bit_is_seen(void **state)
{
    (void)state;
    enum { WRONG = 12 };
    kernel_set wrong[WRONG];
    for (int i = 0; i < WRONG; i++)
        wrong[i] = *sets[0];
    wrong[0].distance32 = wrong_distance32;
    wrong[1].distance64 = wrong_distance64;
    wrong[2].move32 = wrong_move32;
    wrong[3].centre_row = wrong_centre_row;
    wrong[4].least = wrong_least;
    wrong[5].dense32.product = wrong_product32;
    wrong[6].dense64.activate = wrong_activate64;
    wrong[7].dense32.exp = wrong_exp32;
    wrong[8].product64 = wrong_product64;
    wrong[9].distances = wrong_distances;
    wrong[10].distance8 = wrong_distance8;
    wrong[11].dots8 = wrong_dots8;
    for (int i = 0; i < WRONG; i++)
        assert_true(kernel_fingerprint(&wrong[i], true) != everywhere);
    kernel_set other = *sets[0];
    other.dot = wrong_dot; /* is each set's own affair */
    assert_true(kernel_fingerprint(&other, true) == everywhere);
    assert_true(kernel_fingerprint(&other, false) != kernel_fingerprint(sets[0], false));
}

int main(void)
{
    count_sets = kernel_list(sets);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_sets_agree_on_what_is_exact), cmocka_unit_test(test_sets_differ_in_their_products),
        cmocka_unit_test(test_callers_rounding_does_not_matter), cmocka_unit_test(test_a_wrong_bit_is_seen)};
    return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
