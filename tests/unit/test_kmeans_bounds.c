/* What every skip of k-means rests on: after each round each row's upper bound is no less than the distance to its
 * centre and its lower bound no more than the distance to any other, in arithmetic more exact than any that made them;
 * and the label is the definition's.  On data made to break it, for every kernel set and both metrics. */
#include "kmeans_support.h"

typedef enum start_kind {
    START_ROWS,
    START_ULPS,   /* pairs of centres that differ by one unit in the last place of one column */
    START_NEAR,   /* pairs apart by about what float32 rounds away */
    START_COPIES, /* some equal to the bit */
    START_SIGNS,  /* equal but for the sign of a zero, and centres far outside */
    START_KINDS
} start_kind;

typedef struct checking {
    const double *rows; /* in the data's own units; by the cosine brought to length 1 */
    bool cosine;
    int64_t skipped, bounds, kept, ties;
} checking;

static double add_lanes(const double lane[8])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static double defined_product(const double *x, const double *c, int64_t columns)
{
    double lane[8] = {0};
    for (int64_t k = 0; k < columns; k++)
        lane[k % 8] += x[k] * c[k];
    return add_lanes(lane);
}

/* The definition, written once more. */
static double defined_distance(const double *x, const double *c, int64_t columns, double prescale)
{
    double lane[8] = {0};
    for (int64_t k = 0; k < columns; k++) {
        double apart = x[k] * prescale - c[k];
        lane[k % 8] += apart * apart;
    }
    return add_lanes(lane);
}

/* Less for a nearer centre: what a label is chosen by. */
static double defined_order(const checking *job, const double *x, const double *c, const kmeans_model *model)
{
    return job->cosine ? -defined_product(x, c, model->columns)
                       : defined_distance(x, c, model->columns, model->prescale);
}

static long double exact_distance(const double *x, const double *c, int64_t columns, double prescale)
{
    long double sum = 0;
    for (int64_t k = 0; k < columns; k++) {
        long double apart = (long double)(x[k] * prescale) - c[k];
        sum += apart * apart;
    }
    return sqrtl(sum);
}

static void check_row(checking *job, const kmeans_view *view, int64_t row, int32_t label, float upper, float lower,
                      const float *bounds)
{
    const kmeans_model *model = view->model;
    int64_t columns = model->columns;
    const double *x = job->rows + row * columns, *own = view->centres + label * columns;
    double best = INFINITY;
    int32_t defined = -1;
    assert_in_range(label, 0, model->k - 1);
    assert_false(isnan(upper) || isnan(lower));
    for (int32_t j = 0; j < model->k; j++) {
        const double *c = view->centres + j * columns;
        double distance = defined_order(job, x, c, model);
        if (distance == best)
            job->ties++;
        if (distance < best) {
            best = distance;
            defined = j;
        }
        long double exact = exact_distance(x, c, columns, model->prescale) * model->scale;
        if (j == label && (long double)upper * (1 + 0x1p-50L) < exact)
            fail_msg("row %lld, centre %d: upper bound %.9g, distance %.21Lg", (long long)row, j, upper, exact);
        if (j != label && memcmp(c, own, (size_t)columns * sizeof *c) != 0 &&
            (long double)lower * (1 - 0x1p-50L) > exact)
            fail_msg("row %lld, label %d, centre %d: lower bound %.9g, distance %.21Lg", (long long)row, label, j,
                     lower, exact);
        if (bounds && (long double)bounds[j] - (long double)view->travel[j] * view->model->scale > exact)
            fail_msg("row %lld, centre %d: stored bound %.9g less %.9g, distance %.21Lg", (long long)row, j, bounds[j],
                     view->travel[j] * view->model->scale, exact);
        job->kept += bounds != NULL;
        job->bounds++;
    }
    if (label != defined)
        fail_msg("row %lld: label %d instead of %d", (long long)row, label, defined);
}

static void check_round(const hand_run *run, const shoal_round *round)
{
    kmeans_view view = kmeans_view_of(round);
    if (view.model->phase != KMEANS_LLOYD && view.model->phase != KMEANS_LABEL)
        return;
    for (int s = 0; s < run->slices; s++)
        for (int64_t g = run->slice[s].first; g < run->slice[s].end; g++) {
            shoal_grain grain = {.rows = hand_grain_rows(&run->shape, g),
                                 .memo = run->slice[s].memo + hand_memo_offset(run, &run->slice[s], g)};
            kmeans_memo memo = kmeans_memo_of(&grain);
            bool keeps = kmeans_keeps_bounds(view.model);
            for (int64_t i = 0; i < grain.rows; i++)
                check_row(run->context, &view, g * run->shape.rows_per_grain + i, memo.label[i], memo.upper[i],
                          memo.lower[i], keeps ? memo.lower + grain.rows + i * view.model->k : NULL);
        }
}

static void make_start(double *start, start_kind kind, int64_t k, int64_t columns)
{
    for (int64_t j = 1; j < k; j++) {
        double *centre = start + j * columns, *before = centre - columns;
        int64_t column = j % columns;
        if (kind == START_ULPS && j % 2) {
            memcpy(centre, before, (size_t)columns * sizeof *centre);
            centre[column] = nextafter(centre[column], j % 4 == 1 ? INFINITY : -INFINITY);
        }
        for (int64_t c = 0; kind == START_NEAR && j % 2 && c < columns; c++) {
            double width = centre[c] - before[c];
            centre[c] = before[c] + width * 1e-7 * (unit(9, (uint64_t)j, (uint32_t)c) - 0.5);
        }
        if (kind == START_COPIES && j % 4 >= 2)
            memcpy(centre, start + j / 2 * columns, (size_t)columns * sizeof *centre);
        if (kind == START_SIGNS && j % 3 == 1) {
            memcpy(centre, before, (size_t)columns * sizeof *centre);
            before[column] = 0.0;
            centre[column] = -0.0;
        }
        for (int64_t c = 0; kind == START_SIGNS && j % 5 == 4 && c < columns; c++)
            centre[c] *= 3000;
    }
}

typedef struct bounds_case {
    data_kind data;
    shoal_type type;
    double factor;
    bool cosine;
} bounds_case;

static const bounds_case cases[] = {
    {DATA_UNIFORM, SHOAL_FLOAT32, 1, false},   {DATA_BLOBS, SHOAL_FLOAT32, 1, false},
    {DATA_GRID, SHOAL_FLOAT32, 1, false},      {DATA_LINE, SHOAL_FLOAT32, 1, false},
    {DATA_OFFSET, SHOAL_FLOAT32, 1, false},    {DATA_UNIFORM, SHOAL_FLOAT32, 3e38, false},
    {DATA_BLOBS, SHOAL_FLOAT32, 1e-38, false}, {DATA_TINY, SHOAL_FLOAT32, 1, false},
    {DATA_NARROW, SHOAL_FLOAT32, 1, false},    {DATA_BLOBS, SHOAL_UINT8, 2, false},
    {DATA_UNIFORM, SHOAL_INT16, 500, false},   {DATA_OFFSET, SHOAL_FLOAT64, 1, false},
    {DATA_BLOBS, SHOAL_FLOAT64, 1e139, false}, {DATA_UNIFORM, SHOAL_FLOAT64, 1e-300, false},
    {DATA_TINY, SHOAL_FLOAT64, 1, false},      {DATA_NARROW, SHOAL_FLOAT64, 1e-30, false},
    {DATA_OFFSET, SHOAL_INT64, 1e6, false},    {DATA_UNIFORM, SHOAL_FLOAT32, 1, true},
    {DATA_GRID, SHOAL_FLOAT32, 1, true},       {DATA_LINE, SHOAL_FLOAT32, 1, true},
    {DATA_OFFSET, SHOAL_FLOAT32, 1, true},     {DATA_NARROW, SHOAL_FLOAT32, 1, true},
    {DATA_BLOBS, SHOAL_UINT8, 2, true},        {DATA_BLOBS, SHOAL_FLOAT64, 1e30, true},
    {DATA_OFFSET, SHOAL_FLOAT64, 1, true},
};

/* Rows and centres of zeros have no direction. */
static void give_direction(void *values, shoal_type type, int64_t rows, int64_t columns)
{
    const size_t size = shoal_type_size(type);
    for (int64_t i = 0; i < rows; i++) {
        unsigned char *row = (unsigned char *)values + (size_t)(i * columns) * size;
        double sum = 0, *copy = malloc((size_t)columns * sizeof *copy);
        shoal_convert_float64(copy, row, type, columns);
        for (int64_t k = 0; k < columns; k++)
            sum += fabs(copy[k]);
        free(copy);
        if (sum == 0 && type == SHOAL_FLOAT32)
            *(float *)row = 1;
        else if (sum == 0 && type == SHOAL_FLOAT64)
            *(double *)row = 1;
        else if (sum == 0)
            *row = 1;
    }
}

static void bring_to_length_one(double *rows, int64_t count, int64_t columns)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * columns, factor = 1 / sqrt(defined_product(row, row, columns));
        for (int64_t k = 0; k < columns; k++)
            row[k] *= factor;
    }
}

static void run_case(const bounds_case *c, start_kind start, int64_t columns, const char *kernel, checking *total)
{
    int64_t rows = columns > 500 ? 48 : 70, k = start == START_ROWS && columns % 2 ? 7 : columns > 500 ? 25 : 33;
    void *values = make_values(c->data, c->type, rows, columns, c->factor, 11 + (uint64_t)columns);
    double *exact = malloc((size_t)(rows * columns) * sizeof *exact),
           *centres = malloc((size_t)(k * columns) * sizeof *centres);
    if (c->cosine)
        give_direction(values, c->type, rows, columns);
    shoal_convert_float64(exact, values, c->type, rows * columns);
    memcpy(centres, exact, (size_t)(k * columns) * sizeof *centres);
    make_start(centres, start, k, columns);
    if (c->cosine) {
        give_direction(centres, SHOAL_FLOAT64, k, columns);
        bring_to_length_one(exact, rows, columns);
    }
    shoal_kmeans_config config = {.k = k,
                                  .init = "file",
                                  .start = centres,
                                  .iterations = columns > 500 ? 4 : 9,
                                  .runs = 1,
                                  .empty = (int)(columns % 3),
                                  .metric = c->cosine ? SHOAL_METRIC_COSINE : SHOAL_METRIC_EUCLIDEAN};
    checking job = {.rows = exact, .cosine = c->cosine};
    shoal_result *result = NULL;
    hand_run run = {.algorithm = &shoal_kmeans,
                    .config = &config,
                    .values = values,
                    .shape = {.rows = rows, .columns = columns, .type = c->type, .rows_per_grain = 31},
                    .slices = 1,
                    .seed = 1,
                    .kernel = kernel,
                    .look = check_round,
                    .context = &job};
    hand_check(hand_run_all(&result, &run));
    total->skipped += run.counters[KMEANS_SKIPPED];
    total->bounds += job.bounds;
    total->kept += job.kept;
    total->ties += job.ties;
    shoal_result_free(&result);
    free(values);
    free(exact);
    free(centres);
}

/* Under a sanitizer, which looks at accesses and not at bounds, every fourth of them: all data, starts and numbers of
 * columns are still met by each kernel set. */
#if defined(UNDER_ADDRESS_SANITIZER) || defined(UNDER_THREAD_SANITIZER)
enum { STRIDE = 4 };
#else
enum { STRIDE = 1 };
#endif

static bool is_tried(size_t c, int start, int set, size_t width, int64_t columns)
{
    size_t number = c + (size_t)start + (size_t)set;
    return columns < 100 ? (number + width) % STRIDE == 0 : number % (columns < 500 ? 2 * STRIDE : 8) == 0;
}

static void test_bounds(void **state)
{
    static const int64_t columns[] = {1, 2, 31, 32, 33, 64, 129, 1000};
    const kernel_set *sets[8];
    int count = kernel_list(sets);
    (void)state;
    for (int s = 0; s < count; s++) {
        checking total = {0};
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int start = 0; start < START_KINDS; start++)
                for (size_t d = 0; d < sizeof columns / sizeof *columns; d++)
                    if (is_tried(c, start, s, d, columns[d]))
                        run_case(&cases[c], (start_kind)start, columns[d], sets[s]->name, &total);
        /* There were bounds to be wrong, and rows that were passed over because of them. */
        assert_true(total.bounds > 1000000 / STRIDE && total.ties > 1000 / STRIDE && total.skipped > 100000 / STRIDE &&
                    total.kept > 100000 / STRIDE);
    }
}

/* Labels of rows and centres that lie as near to each other as their types allow. */
static void test_smallest_subnormals(void **state)
{
    (void)state;
    const kernel_set *sets[8];
    int count = kernel_list(sets);
    float values[60];
    for (int i = 0; i < 60; i++)
        values[i] = (float)(i % 6) * 0x1p-149f;
    for (int s = 0; s < count; s++)
        for (int64_t columns = 1; columns <= 60; columns += 59) {
            shoal_kmeans_config config = {.k = columns == 1 ? 6 : 1, .init = "kmeans++", .iterations = 10, .runs = 1};
            shoal_data *data = NULL;
            shoal_result *result = NULL;
            hand_check(shoal_data_wrap(&data, values, 60 / columns, columns, SHOAL_FLOAT32));
            hand_check(shoal_run(&result, NULL, &shoal_kmeans, &config, data, NULL,
                                 &(shoal_run_options){.threads = 1, .kernel = sets[s]->name}));
            const double *centres = shoal_result_tensor(result, "centres")->values;
            const int32_t *labels = shoal_result_tensor(result, "labels")->values;
            for (int64_t i = 0; i < 60; i++)
                assert_true(centres[labels[i / columns] * columns + i % columns] == values[i]);
            assert_true(shoal_result_number(result, "objective") == 0);
            shoal_result_free(&result);
            shoal_data_free(&data);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds), cmocka_unit_test(test_smallest_subnormals)};
    return cmocka_run_group_tests_name("kmeans_bounds", tests, NULL, NULL);
}
