/* The bounds on the error of a score, (6) of docs/learn/kmeans.md, on rows and centres whose products all lose what
 * they can, in one direction: there the bounds are hardly greater than the errors, so that none may be smaller. */
#include "kmeans_support.h"
#include "learn/kmeans/assign.h"

enum { COLUMNS_MOST = 1024, CENTRES = 5, ROWS_MOST = 64, PADDED_MOST = 256 };

static _Alignas(64) float row_panels[ROWS_MOST * COLUMNS_MOST], scores[ROWS_MOST * PADDED_MOST];
static _Alignas(64) float z[COLUMNS_MOST], few_workspace[KERNEL_FEW_WORKSPACE];

/* Centres packed as they are: the origin is 0 and the scale 1. */
typedef struct packed {
    kmeans_pack pack;
    double centres[CENTRES * COLUMNS_MOST];
    double origin[COLUMNS_MOST], travel[CENTRES];
    kmeans_model model;
    kmeans_view view;
    kmeans_rows rows;
    int64_t counters[SHOAL_COUNTERS];
} packed;

static packed all;

/* The first is (1, h, h, ...), h = 2^-12; no other is nearer to what is made from it. */
static void pack_centres(const kernel_set *kernel, int64_t columns)
{
    const shoal_crew crew = {.each = hand_each, .threads = 1, .kernel = kernel->name};
    kmeans_pack_release(&all.pack);
    all.model = (kmeans_model){.columns = columns, .k = CENTRES, .scale = 1, .prescale = 1};
    all.view = (kmeans_view){.model = &all.model, .origin = all.origin, .travel = all.travel, .centres = all.centres};
    all.rows = (kmeans_rows){.kernel = kernel, .view = &all.view};
    for (int64_t k = 0; k < columns; k++) {
        all.centres[k] = k ? 0x1p-12 : 1;
        for (int64_t j = 1; j < CENTRES; j++)
            all.centres[j * columns + k] = (float)(0.5 * unit(3, (uint64_t)j, (uint32_t)k) / sqrt((double)columns));
    }
    hand_check(kmeans_pack_fill(&all.pack, kernel, all.centres, NULL, CENTRES, &all.view, SHOAL_FLOAT32, &crew));
    assert_false(all.pack.bytes || all.pack.far);
}

/* By the kernel that assigns rows of this many columns. */
static float score_of(const kernel_set *kernel, int64_t place, int64_t columns)
{
    const kmeans_pack *pack = &all.pack;
    if (!pack->few) {
        kernel->pack_rows(row_panels, z, 1, columns);
        kernel->score_float(scores, pack->padded, row_panels, 1, pack->panels, pack->bias,
                            (int)(pack->padded / pack->panel), columns);
        return scores[place];
    }
    float best, second, square;
    int32_t index;
    const kernel_nearest out = {.best = &best, .second = &second, .square = &square, .index = &index};
    kernel->nearest_few(&out, z, 1, pack->rows + place * columns, pack->bias + place, 1, columns, few_workspace);
    return best;
}

static long double exact_score(int64_t centre, int64_t columns)
{
    const double *c = all.centres + centre * columns;
    long double sum = 0;
    for (int64_t k = 0; k < columns; k++)
        sum += (long double)c[k] * c[k] / 2 - (long double)z[k] * c[k];
    return sum;
}

/* The error of every centre's score is within its bound; how much of it that of the first uses. */
static double check_scores(const kernel_set *kernel, int64_t columns)
{
    double used = 0;
    const assigning a = assign_begin(&all.rows, &all.pack, all.counters);
    double bound = assign_error(&a, kernel->dot(z, z, columns));
    for (int64_t place = 0; place < all.pack.count; place++) {
        double error = (double)fabsl(score_of(kernel, place, columns) - exact_score(all.pack.id[place], columns));
        if (error > bound)
            fail_msg("%s, %lld columns: a score errs by %g, and its bound is %g", kernel->name, (long long)columns,
                     error, bound);
        if (all.pack.id[place] == 0)
            used = error / bound;
    }
    return used;
}

/* After the first product the sum is at a power of two or a little above, and every other product is a little less than
 * half a unit of its last place: each is lost as a whole. */
static double lose_products(const kernel_set *kernel, int64_t columns, float first)
{
    z[0] = first;
    for (int64_t k = 1; k < columns; k++)
        z[k] = 0x1p-2f * (1 - 0x1p-20f);
    return check_scores(kernel, columns);
}

static void test_products_that_lose_all_they_can(void **state)
{
    static const int64_t columns[] = {2, 16, 32, 33, 64, 128, 129, 500, 1024};
    static const float firsts[] = {1024, 1024.75f, 1025};
    const kernel_set *sets[8];
    int count = kernel_list(sets);
    (void)state;
    for (int s = 0; s < count; s++) {
        double most = 0, most_few = 0;
        for (size_t d = 0; d < sizeof columns / sizeof *columns; d++) {
            pack_centres(sets[s], columns[d]);
            for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
                double used = lose_products(sets[s], columns[d], firsts[f]);
                most = fmax(most, all.pack.few ? 0 : used);
                most_few = fmax(most_few, all.pack.few ? used : 0);
            }
        }
        print_message("%s: scores use %.0f%% of their bounds, those of few columns %.0f%%\n", sets[s]->name, 100 * most,
                      100 * most_few);
        assert_true(most > 0.8 && most_few > 0.55); /* there is little that could be spared */
    }
}

/* Rows at the origin: all that errs is the bias, |c|^2 / 2 in float32. */
static void test_rows_without_products(void **state)
{
    const kernel_set *sets[8];
    int count = kernel_list(sets);
    (void)state;
    memset(z, 0, sizeof z);
    for (int s = 0; s < count; s++)
        for (int64_t columns = 2; columns <= COLUMNS_MOST; columns *= 2) {
            pack_centres(sets[s], columns);
            check_scores(sets[s], columns);
        }
    kmeans_pack_release(&all.pack);
}

/* (7): the computed |z|^2 of rows whose squares are lost, all but those that each lane of a sum begins with. */
static void test_squares_that_lose_all_they_can(void **state)
{
    enum { LANES_MOST = 64 };
    const kernel_set *sets[8];
    int count = kernel_list(sets);
    (void)state;
    for (int s = 0; s < count; s++) {
        pack_centres(sets[s], COLUMNS_MOST);
        long double exact = 0;
        for (int k = 0; k < COLUMNS_MOST; k++) {
            z[k] = k < LANES_MOST ? 1 : 0x1p-12f * (1 - 0x1p-20f);
            exact += (long double)z[k] * z[k];
        }
        const assigning a = assign_begin(&all.rows, &all.pack, all.counters);
        float square = sets[s]->dot(z, z, COLUMNS_MOST);
        assert_true(square < exact); /* something was lost */
        assert_true((long double)square * (1 + a.norm_slack) >= exact);
        assert_true((long double)square * (1 - a.norm_slack) <= exact);
    }
    kmeans_pack_release(&all.pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_that_lose_all_they_can),
                                       cmocka_unit_test(test_rows_without_products),
                                       cmocka_unit_test(test_squares_that_lose_all_they_can)};
    return cmocka_run_group_tests_name("kmeans_pack", tests, NULL, NULL);
}
