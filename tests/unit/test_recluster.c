/* Greedy k-means++ among samples: distances in float32 spare work and change no choice.
 *
 * Points times 2^450 are too large for them, so that every distance is the definition's; all else is the same but for
 * that power of two. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "learn/kmeans/seed.h"

enum { POINTS = 700, COLUMNS = 37, K = 40 };

static int each_in_turn(const shoal_crew *self, int64_t items, int (*task)(void *context, int64_t item, int thread),
                        void *context)
{
    int status = SHOAL_OK;
    (void)self;
    for (int64_t i = 0; status == SHOAL_OK && i < items; i++)
        status = task(context, i, 0);
    return status;
}

static double centres[2][K * COLUMNS], points[2][POINTS * COLUMNS];
static int64_t weights[POINTS];

/* The same choices with and without; how many centres were found. */
static int64_t compare(const kmeans_model *model, const char *kernel, int64_t count)
{
    const shoal_crew crew = {.each = each_in_turn, .threads = 1, .kernel = kernel};
    int64_t found[2] = {0};
    for (int64_t i = 0; i < count * COLUMNS; i++)
        points[1][i] = ldexp(points[0][i], 450);
    for (int i = 0; i < 2; i++)
        assert_int_equal(seed_recluster(centres[i], &found[i], model, points[i], weights, count, &crew), SHOAL_OK);
    assert_int_equal(found[0], found[1]);
    for (int64_t i = 0; i < found[0] * COLUMNS; i++)
        assert_true(ldexp(centres[0][i], 450) == centres[1][i]);
    return found[0];
}

/* Clusters of points that differ in their last digits alone, far from the origin and from each other. */
static void test_choices_are_the_definitions(void **state)
{
    static const char *const kernels[] = {"portable", NULL};
    static const double offsets[] = {0, 1e3, 1e9}, spreads[] = {1, 1e-3, 1e-7};
    kmeans_model model = {.k = K, .columns = COLUMNS};
    (void)state;
    for (int round = 0; round < 36; round++) {
        const double offset = offsets[round % 3], spread = spreads[round / 3 % 3];
        uint64_t noise = (uint64_t)round + 1;
        model.seed = round;
        for (int64_t p = 0; p < POINTS; p++) {
            weights[p] = 1 + p % 3;
            for (int64_t k = 0; k < COLUMNS; k++) {
                noise = noise * 6364136223846793005u + 1442695040888963407u;
                const double small = (double)(noise >> 40) * 0x1p-24 - 0.5;
                points[0][p * COLUMNS + k] = offset + (double)((p * 7 + k) % 11) + spread * small;
            }
        }
        assert_true(compare(&model, kernels[round % 2], POINTS - round) >= 11); /* digits may be lost */
    }
}

/* Points that are bytes have whole distances, found another way; one that is none, even the last, and all do not. */
static void test_points_that_are_bytes(void **state)
{
    static const char *const kernels[] = {"portable", NULL};
    kmeans_model model = {.k = K, .columns = COLUMNS};
    uint64_t noise = 1;
    (void)state;
    for (int round = 0; round < 8; round++) {
        model.seed = round;
        for (int64_t p = 0; p < POINTS; p++) {
            weights[p] = 1 + p % 5;
            for (int64_t k = 0; k < COLUMNS; k++) {
                noise = noise * 6364136223846793005u + 1442695040888963407u;
                points[0][p * COLUMNS + k] =
                    round == 7 ? (double)(p % 2 * 255) : (double)((noise >> 40 & 31) + (uint64_t)(p * 7 % 224));
            }
        }
        if (round == 6)
            points[0][POINTS * COLUMNS - 1] = 12.5;
        assert_int_equal(compare(&model, kernels[round % 2], POINTS), round == 7 ? 2 : K);
    }
}

static void test_few_different_points(void **state)
{
    kmeans_model model = {.k = K, .columns = COLUMNS};
    (void)state;
    for (int64_t p = 0; p < POINTS; p++)
        for (int64_t k = 0; k < COLUMNS; k++)
            points[0][p * COLUMNS + k] = 5 + (double)(p % 3 == k);
    assert_int_equal(compare(&model, NULL, POINTS), 3);
    assert_int_equal(compare(&model, NULL, 1), 1);
    for (int64_t i = 0; i < POINTS * COLUMNS; i++)
        points[0][i] = 0.1;
    assert_int_equal(compare(&model, NULL, POINTS), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices_are_the_definitions),
        cmocka_unit_test(test_points_that_are_bytes),
        cmocka_unit_test(test_few_different_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
