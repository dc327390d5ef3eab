/* Every entry of the dense tables of every kernel set against its definition, bit for bit, and exp, log and their like
 * against long double.
 *
 *     test_dense                    each set, each entry, float and double
 *     test_dense --bench [WORD]     how fast each entry (whose name has WORD in it) of each set is, beside the rate of
 *                                   multiply-adds measured between the runs on the same thread
 *
 * Buffers end at a page that can't be touched, so that reading or writing one value too many is a crash. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <shoal/data.h>
#include "kernel/kernel.h"

#include "buffers.h"
#include "rates.h"

static const kernel_set *sets[8];
static int count_sets;

enum { SIMILAR, OF_ALL_SIZES, SUBNORMAL, NOT_FINITE, KINDS };
enum { ROW_MAJOR, COLUMN_MAJOR }; /* the orders of a; another one is neither */
enum { EXP, LOGISTIC, TANH };

static bool same_double(double a, double b)
{
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}

/* Fractions, halves and a few of great size, zeros of both signs. */
static float random_float(void)
{
    float unit = (float)(random_unit() * 2 - 1);
    switch (random_bits() % 4) {
    case 0: return unit * 0x1p60F;
    case 1: return random_bits() & 1 ? 0.0F : -0.0F;
    default: return unit;
    }
}

#define T(name) name##32
#define REAL float
#define TABLE dense32
#define FMA fmaf
#define DIGITS 24
#define EXPONENT_LEAST (-149)
#define EXPONENT_MOST 128
#include "dense_cases.h"

#define T(name) name##64
#define REAL double
#define TABLE dense64
#define FMA fma
#define DIGITS 53
#define EXPONENT_LEAST (-1074)
#define EXPONENT_MOST 1024
#include "dense_cases.h"

/* ---- single values ----------------------------------------------------------------------------------------------- */

static void expect_within(const char *name, double x, double got, long double truth, double most)
{
    double off = ulps64(got, truth);
    if (off > most)
        fail_msg("%s(%a) is %a, %g units off", name, x, got, off);
}

static void test_single_log(void **state)
{
    (void)state;
    static const double special[] = {1,
                                     2,
                                     0.5,
                                     0x1p-1074,
                                     0x1.fffffffffffffp-1023,
                                     0x1p-1022,
                                     0x1.fffffffffffffp1023,
                                     0x1.6a09e667f3bcdp0,
                                     0x1.6a09e667f3bccp0,
                                     0x1.6a09e667f3bcdp-1,
                                     0x1.6a09e667f3bccp-1,
                                     0x1.fffffffffffffp-1,
                                     0x1.0000000000001p0};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        expect_within("log", special[i], kernel_log(special[i]), logl((long double)special[i]), 1);
    for (int i = 0; i < 200000; i++) {
        double near = 1 + ldexp(random_unit() - 0.5, -(i % 50));
        double any = ldexp(random_unit() + 0x1p-60, i % 2000 - 1050);
        expect_within("log", near, kernel_log(near), logl((long double)near), 1);
        if (any > 0)
            expect_within("log", any, kernel_log(any), logl((long double)any), 1);
    }
    assert_true(kernel_log(1) == 0);
    assert_true(kernel_log(0.0) == -INFINITY && kernel_log(-0.0) == -INFINITY);
    assert_true(kernel_log(INFINITY) == INFINITY);
    assert_true(isnan(kernel_log(-1)) && isnan(kernel_log(-INFINITY)) && isnan(kernel_log(-0x1p-1074)));
    assert_true(isnan(kernel_log(NAN)));
}

static void test_single_log_one_plus(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        double x = ldexp(random_unit(), i % 100 - 70);
        expect_within("log_one_plus", x, kernel_log_one_plus(x), log1pl((long double)x), 2);
    }
    assert_true(kernel_log_one_plus(0) == 0 && kernel_log_one_plus(0x1p-1074) == 0x1p-1074);
    assert_true(isnan(kernel_log_one_plus(NAN)));
}

static void test_lanes_sum(void **state)
{
    (void)state;
    double lanes[KERNEL_LANES] = {[0] = 0x1p53, [4] = 1, [8] = 1}; /* both ones are lost one after the other */
    assert_true(kernel_lanes_sum(lanes) == 0x1p53);
    lanes[12] = 1; /* 4 and 12 are added before they meet 0 */
    assert_true(kernel_lanes_sum(lanes) == 0x1p53 + 2);
}

/* ---- bench ------------------------------------------------------------------------------------------------------- */

/* A block of rows of the autoencoders 64-30-64 and 784-196-784, and of logistic regressions. */
enum { BENCH_ROWS = 512, BENCH_VALUES = 16384 };

typedef struct bench {
    const kernel_set *set;
    const struct bench_entry *entry;
    void *a, *b, *c;
    int64_t *sums;
} bench;

/* A product of `rows` x `columns` over `depth`, a transposed or not; or, where rows is 0, an entry over BENCH_VALUES
 * values. */
typedef struct bench_entry {
    const char *name;
    void (*run)(bench *);
    int64_t rows, columns, depth;
    bool transposed;
} bench_entry;

static volatile double sink;

#define BENCH_TYPE(ending, type)                                                                                       \
    static void product_##ending(bench *b)                                                                             \
    {                                                                                                                  \
        const bench_entry *e = b->entry;                                                                               \
        b->set->dense##ending.product(b->c, e->columns, b->a, e->transposed ? 1 : e->depth,                            \
                                      e->transposed ? e->rows : 1, b->b, e->columns, e->rows, e->columns, e->depth);   \
    }                                                                                                                  \
    static void logistic_##ending(bench *b)                                                                            \
    {                                                                                                                  \
        memcpy(b->c, b->a, BENCH_VALUES * sizeof(type));                                                               \
        b->set->dense##ending.activate(b->c, KERNEL_LOGISTIC, BENCH_VALUES);                                           \
    }                                                                                                                  \
    static void tanh_##ending(bench *b)                                                                                \
    {                                                                                                                  \
        memcpy(b->c, b->a, BENCH_VALUES * sizeof(type));                                                               \
        b->set->dense##ending.activate(b->c, KERNEL_TANH, BENCH_VALUES);                                               \
    }                                                                                                                  \
    static void exp_##ending(bench *b)                                                                                 \
    {                                                                                                                  \
        memcpy(b->c, b->a, BENCH_VALUES * sizeof(type));                                                               \
        b->set->dense##ending.exp(b->c, BENCH_VALUES);                                                                 \
    }                                                                                                                  \
    static void slope_##ending(bench *b)                                                                               \
    {                                                                                                                  \
        b->set->dense##ending.slope(b->c, b->a, KERNEL_LOGISTIC, BENCH_VALUES);                                        \
    }                                                                                                                  \
    static void miss_##ending(bench *b)                                                                                \
    {                                                                                                                  \
        double lanes[KERNEL_LANES] = {0};                                                                              \
        memcpy(b->c, b->a, BENCH_VALUES * sizeof(type));                                                               \
        b->set->dense##ending.miss(b->c, b->b, KERNEL_LOGISTIC, lanes, BENCH_VALUES);                                  \
    }                                                                                                                  \
    static void multiply_##ending(bench *b)                                                                            \
    {                                                                                                                  \
        b->set->dense##ending.multiply(b->c, b->b, BENCH_VALUES);                                                      \
    }                                                                                                                  \
    static void quantise_##ending(bench *b)                                                                            \
    {                                                                                                                  \
        b->set->dense##ending.quantise(b->sums, b->a, 0x1p40, BENCH_VALUES);                                           \
    }                                                                                                                  \
    static void greatest_##ending(bench *b)                                                                            \
    {                                                                                                                  \
        sink = b->set->dense##ending.greatest(b->a, BENCH_VALUES);                                                     \
    }                                                                                                                  \
    static void add_rows_##ending(bench *b)                                                                            \
    {                                                                                                                  \
        b->set->dense##ending.add_rows(b->c, b->a, 64, BENCH_VALUES / 64, 64);                                         \
    }                                                                                                                  \
    static void convert_##ending(bench *b)                                                                             \
    {                                                                                                                  \
        b->set->dense##ending.convert(b->c, b->a, SHOAL_UINT8, (type)(1 / 255.0), 0, BENCH_VALUES);                    \
    }
BENCH_TYPE(32, float)
BENCH_TYPE(64, double)

#define BENCH_ENTRIES(ending)                                                                                          \
    {"product" #ending, product_##ending, BENCH_ROWS, 30, 64, false},                                                  \
        {"product" #ending, product_##ending, BENCH_ROWS, 64, 30, false},                                              \
        {"product" #ending, product_##ending, 30, 64, BENCH_ROWS, true},                                               \
        {"product" #ending, product_##ending, 60, 64, BENCH_ROWS, true},                                               \
        {"product" #ending, product_##ending, BENCH_ROWS, 196, 784, false},                                            \
        {"product" #ending, product_##ending, BENCH_ROWS, 784, 196, false},                                            \
        {"product" #ending, product_##ending, 196, 784, BENCH_ROWS, true},                                             \
        {"product" #ending, product_##ending, BENCH_ROWS, 1, 100, false},                                              \
        {"product" #ending, product_##ending, BENCH_ROWS, 10, 784, false},                                             \
        {"product" #ending, product_##ending, 1, 100, BENCH_ROWS, true},                                               \
        {"product" #ending, product_##ending, 10, 784, BENCH_ROWS, true},                                              \
        {"logistic" #ending, logistic_##ending, 0, 0, 0, false}, {"tanh" #ending, tanh_##ending, 0, 0, 0, false},      \
        {"exp" #ending, exp_##ending, 0, 0, 0, false}, {"slope" #ending, slope_##ending, 0, 0, 0, false},              \
        {"miss" #ending, miss_##ending, 0, 0, 0, false}, {"multiply" #ending, multiply_##ending, 0, 0, 0, false},      \
        {"quantise" #ending, quantise_##ending, 0, 0, 0, false},                                                       \
        {"greatest" #ending, greatest_##ending, 0, 0, 0, false},                                                       \
        {"add_rows" #ending, add_rows_##ending, 0, 0, 0, false},                                                       \
    {                                                                                                                  \
        "convert" #ending " uint8", convert_##ending, 0, 0, 0, false                                                   \
    }
static const bench_entry bench_entries[] = {BENCH_ENTRIES(32), BENCH_ENTRIES(64)};

static void *bench_values(int64_t count, bool wide)
{
    return wide ? (void *)values64(count, SIMILAR) : (void *)values32(count, SIMILAR);
}

/* The least time of one run, and the FMA rate measured between the runs: both are minima over the same while. */
static double time_entry(bench *b, double *best_peak)
{
    double best = INFINITY, end = now() + 0.12;
    int repeats = 1;
    *best_peak = 0;
    while (now() < end) {
        double rate = peak(b->set), start = now();
        for (int i = 0; i < repeats; i++)
            b->entry->run(b);
        double seconds = now() - start;
        *best_peak = rate > *best_peak ? rate : *best_peak;
        best = seconds / repeats < best ? seconds / repeats : best;
        if (seconds < 5e-4)
            repeats *= 2;
    }
    return best;
}

static void bench_print(const bench_entry *e, const kernel_set *set)
{
    bool wide = strstr(e->name, "64") != NULL;
    int64_t least = e->rows ? 0 : BENCH_VALUES;
    bench b = {.set = set, .entry = e};
    double best_peak;
    b.a = bench_values(e->rows * e->depth + least, wide);
    b.b = bench_values(e->depth * e->columns + least, wide);
    b.c = bench_values(e->rows * e->columns + least, wide);
    b.sums = memset(fence(BENCH_VALUES * sizeof *b.sums), 0, BENCH_VALUES * sizeof *b.sums);
    double seconds = time_entry(&b, &best_peak);
    if (e->rows) {
        double rate = 2e-9 * (double)(e->rows * e->columns * e->depth) / seconds;
        best_peak /= wide ? 2 : 1;
        printf("%-16s %4d x %3d x %3d  %-9s %9.2f  %8.1f GFLOP/s  %4.0f%% of %.0f\n", e->name, (int)e->rows,
               (int)e->columns, (int)e->depth, set->name, 1e6 * seconds, rate, 100 * rate / best_peak, best_peak);
    } else
        printf("%-16s %16s  %-9s %9.2f  %8.3f ns a value\n", e->name, "", set->name, 1e6 * seconds,
               1e9 * seconds / BENCH_VALUES);
    drop_fences();
}

static int run_bench(const char *only)
{
    printf("%-16s %16s  %-9s %9s\n", "entry", "rows cols depth", "set", "us");
    for (size_t i = 0; i < sizeof bench_entries / sizeof *bench_entries; i++)
        for (int set = 0; set < count_sets; set++)
            if (!only || strstr(bench_entries[i].name, only))
                bench_print(&bench_entries[i], sets[set]);
    return 0;
}

#define TESTS(ending)                                                                                                  \
    cmocka_unit_test(test_product##ending), cmocka_unit_test(test_product_large##ending),                              \
        cmocka_unit_test(test_functions##ending), cmocka_unit_test(test_elements##ending),                             \
        cmocka_unit_test(test_greatest##ending), cmocka_unit_test(test_add_rows##ending),                              \
        cmocka_unit_test(test_quantise##ending), cmocka_unit_test(test_convert##ending)

int main(int count, char **arguments)
{
    count_sets = kernel_list(sets);
    if (count > 1 && !strcmp(arguments[1], "--bench"))
        return run_bench(count > 2 ? arguments[2] : NULL);
    const struct CMUnitTest tests[] = {
        TESTS(32),
        TESTS(64),
        cmocka_unit_test(test_single_log),
        cmocka_unit_test(test_single_log_one_plus),
        cmocka_unit_test(test_lanes_sum),
    };
    return cmocka_run_group_tests_name("dense", tests, NULL, NULL);
}
