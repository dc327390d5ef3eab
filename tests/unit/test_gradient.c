/* Labels: threads The gradient layer with a small learner: sums whose size was guessed wrong, values that are not
 * finite, stopping, rounds that travel, and models that nobody made. */
#include "unit/slice_support.h"

#include <float.h>
#include <shoal/autoencoder.h>
#include <shoal/logistic.h>

#include "engine/engine_internal.h"
#include "learn/gradient/gradient_internal.h"

enum { ROWS = 500, COLUMNS = 4, GRAIN = 30 };

/* Least squares: value = scale / 2 * sum over rows of (row . p - target)^2, where the last column is the target; NaN
 * where p[0] > wall. */
typedef struct own {
    double scale, start, wall;
    double guess; /* of the sums' size */
    int64_t iterations;
} own;

static own now;             /* what start makes a learner of */
static int64_t values_left; /* this many points have a finite value, and those after them none */

static void scan_layout(shoal_layout *layout, const void *mine, const shoal_shape *shape)
{
    (void)mine, (void)shape;
    layout->cells = 1;
    layout->cell[0] = (shoal_cell){.name = "rows", .kind = SHOAL_CELL_SUM, .count = 1};
}

static int scan(shoal_partial *partial, const void *mine, const shoal_grain *grain, const shoal_scratch *scratch)
{
    (void)mine, (void)scratch;
    shoal_partial_values(partial, 0)[0] += grain->rows;
    return SHOAL_OK;
}

static void fill_plan(gradient_plan *out, const own *asked, const shoal_shape *shape)
{
    *out = (gradient_plan){0};
    out->sums = shape->columns;
    out->groups = 2;
    out->group[0] = (gradient_group){.first = 0, .count = 1, .size = asked->guess};
    out->group[1] = (gradient_group){.first = 1, .count = shape->columns - 1, .size = asked->guess};
    out->notes = shape->columns - 1;
    out->search = (learn_lbfgs_options){.parameters = shape->columns - 1,
                                        .history = 3,
                                        .iterations = asked->iterations,
                                        .gradient_tolerance = 1e-9 * asked->scale};
}

static int plan(gradient_plan *out, void **mine, size_t *bytes, const shoal_partial *merged, const shoal_shape *shape)
{
    assert_int_equal(*bytes, sizeof(own));
    assert_int_equal(shoal_partial_values_const(merged, 0)[0], shape->rows);
    fill_plan(out, *mine, shape);
    return SHOAL_OK;
}

static int first(double *x, void *mine, size_t *bytes, const shoal_shape *shape)
{
    (void)bytes;
    for (int64_t i = 0; i < shape->columns - 1; i++)
        x[i] = ((const own *)mine)->start;
    return SHOAL_OK;
}

static int prepare(void **prepared, const void *mine, const double *x, const shoal_shape *shape, const shoal_crew *crew)
{
    (void)mine, (void)crew;
    if (!*prepared)
        hand_check(base_alloc(prepared, (size_t)shape->columns, sizeof *x, "a point"));
    memcpy(*prepared, x, (size_t)(shape->columns - 1) * sizeof *x);
    return SHOAL_OK;
}

static void forget(void **prepared)
{
    base_free(prepared);
}

static size_t scratch_bytes(const void *mine, const void *prepared, const shoal_shape *shape)
{
    (void)mine, (void)prepared, (void)shape;
    return 0;
}

static int map(gradient_sums *sums, const void *mine, const void *prepared, const shoal_grain *grain,
               const shoal_scratch *scratch)
{
    const own *asked = mine;
    const double *p = prepared, *row = grain->values;
    double sum[COLUMNS] = {0};
    (void)scratch;
    for (int64_t r = 0; r < grain->rows; r++, row += COLUMNS) {
        double miss = -row[COLUMNS - 1];
        for (int j = 0; j < COLUMNS - 1; j++)
            miss += row[j] * p[j];
        sum[0] += asked->scale / 2 * miss * miss;
        for (int j = 0; j < COLUMNS - 1; j++)
            sum[1 + j] += asked->scale * miss * row[j];
    }
    if (p[0] > asked->wall || values_left <= 0)
        sum[0] = NAN;
    gradient_add64(sums, 0, sum);
    gradient_add64(sums, 1, sum + 1);
    return SHOAL_OK;
}

static int combine(double *value, double *gradient, const double *sums, const void *mine, const double *x,
                   const shoal_shape *shape)
{
    (void)mine, (void)x;
    *value = sums[0];
    values_left--;
    memcpy(gradient, sums + 1, (size_t)(shape->columns - 1) * sizeof *gradient);
    return SHOAL_OK;
}

static int make_result(shoal_result *result, const void *mine, size_t bytes, const double *x, const shoal_shape *shape)
{
    int64_t count = shape->columns - 1;
    (void)mine, (void)bytes;
    double *copy = shoal_result_add(result, "p", SHOAL_FLOAT64, 1, &count);
    assert_non_null(copy);
    memcpy(copy, x, (size_t)count * sizeof *x);
    return SHOAL_OK;
}

/* A note of a point is the point. */
static int note(double *notes, const double *sums, const void *mine, const double *x, const shoal_shape *shape)
{
    (void)sums, (void)mine;
    memcpy(notes, x, (size_t)(shape->columns - 1) * sizeof *x);
    return SHOAL_OK;
}

static int tell(shoal_result *result, const double *notes, const void *mine, const shoal_shape *shape)
{
    int64_t count = shape->columns - 1;
    (void)mine;
    double *copy = shoal_result_add(result, "noted", SHOAL_FLOAT64, 1, &count);
    assert_non_null(copy);
    memcpy(copy, notes, (size_t)count * sizeof *notes);
    return SHOAL_OK;
}

static bool good(const void *mine, size_t bytes, const gradient_plan *has, const shoal_shape *shape)
{
    gradient_plan expected;
    if (bytes != sizeof(own) || shape->columns != COLUMNS)
        return false;
    fill_plan(&expected, mine, shape);
    return !has || gradient_plan_alike(has, &expected);
}

static const gradient_class class = {.scan_layout = scan_layout,
                                     .scan = scan,
                                     .plan = plan,
                                     .first = first,
                                     .prepare = prepare,
                                     .forget = forget,
                                     .scratch_bytes = scratch_bytes,
                                     .map = map,
                                     .combine = combine,
                                     .result = make_result,
                                     .good = good,
                                     .note = note,
                                     .tell = tell};

/* ---- the learner ------------------------------------------------------------------------------------------------- */

static int start_it(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config;
    return gradient_start(out, &class, &now, sizeof now, shape);
}

static int check_it(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return gradient_check(&class, round, shape);
}

static int prepare_it(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    return gradient_prepare(prepared, &class, round, shape, crew);
}

static void forget_it(void **prepared)
{
    gradient_forget(prepared, &class);
}

static size_t scratch_it(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    return gradient_scratch_bytes(&class, round, prepared, shape);
}

static int map_it(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                  const shoal_scratch *scratch)
{
    return gradient_map(partial, &class, round, prepared, grain, scratch);
}

static int update_it(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                     const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    return gradient_update(next, result, &class, round, merged, shape, crew, stop);
}

static const shoal_algorithm learner = {.version = SHOAL_ALGORITHM_VERSION,
                                        .bytes = sizeof(shoal_algorithm),
                                        .check = check_it,
                                        .name = "squares",
                                        .kernel_free = true,
                                        .start = start_it,
                                        .prepare = prepare_it,
                                        .forget = forget_it,
                                        .scratch_bytes = scratch_it,
                                        .map = map_it,
                                        .update = update_it};

/* Rows of noise around 1 x - 2 y + 3 z. */
static double *make_rows(void)
{
    double *rows = NULL;
    hand_check(base_alloc(&rows, ROWS * COLUMNS, sizeof *rows, "rows"));
    for (int r = 0; r < ROWS; r++) {
        double *row = rows + r * COLUMNS;
        for (int j = 0; j < COLUMNS; j++)
            row[j] = (double)base_random_below(1000, 7, BASE_FOR_DATA, (uint64_t)r, (uint64_t)j) / 500 - 1;
        row[3] = row[0] - 2 * row[1] + 3 * row[2] + 0.1 * row[3];
    }
    return rows;
}

static int run_it(shoal_result **out, shoal_report *report, const double *rows, int threads, const char *kernel)
{
    shoal_data *data = NULL;
    shoal_run_options options = {.threads = threads, .rows_per_grain = GRAIN, .kernel = kernel};
    hand_check(shoal_data_wrap(&data, rows, ROWS, COLUMNS, SHOAL_FLOAT64));
    int status = shoal_run(out, report, &learner, NULL, data, NULL, &options);
    shoal_data_free(&data);
    return status;
}

static void expect_found(const shoal_result *result)
{
    const double *p = shoal_result_tensor(result, "p")->values;
    assert_true(shoal_result_number(result, "converged") == 1);
    assert_true(fabs(p[0] - 1) < 0.02 && fabs(p[1] + 2) < 0.02 && fabs(p[2] - 3) < 0.02);
}

static void set_up(void)
{
    now = (own){.scale = 1, .wall = INFINITY, .guess = 10, .iterations = 100};
    values_left = INT64_MAX;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Whatever was guessed: a wrong guess costs one more round, and a value that falls to a thousandth another. */
static void guesses(void **state)
{
    static const double guess[] = {10, 1e-30, 1e30, 0, INFINITY, 1e300, 1e10};
    double *rows = make_rows();
    double expected[COLUMNS - 1];
    (void)state;
    for (size_t i = 0; i < sizeof guess / sizeof *guess; i++) {
        shoal_result *result = NULL;
        shoal_report report;
        set_up();
        now.guess = guess[i];
        hand_check(run_it(&result, &report, rows, 1, NULL));
        expect_found(result);
        int64_t again = report.rounds - 1 - (int64_t)shoal_result_number(result, "evaluations");
        assert_in_range(again, guess[i] == 1e-30 || (guess[i] >= 1e10 && isfinite(guess[i])), 3);
        double *p = shoal_result_tensor(result, "p")->values;
        if (i == 0)
            memcpy(expected, p, sizeof expected);
        for (int j = 0; j < COLUMNS - 1; j++) /* the first round's quantum may differ by what is allowed */
            assert_true(fabs(p[j] - expected[j]) < 1e-9);
        shoal_result_free(&result);
    }
    base_free(&rows);
}

static void any_size(void **state)
{
    static const double scale[] = {1e-6, 1e6, 1e30, 1e100};
    double *rows = make_rows();
    (void)state;
    for (size_t i = 0; i < sizeof scale / sizeof *scale; i++) {
        shoal_result *result = NULL;
        set_up();
        now.scale = scale[i];
        hand_check(run_it(&result, NULL, rows, 2, NULL));
        expect_found(result);
        shoal_result_free(&result);
    }
    base_free(&rows);
}

/* A point without a value is only a step that was too long. */
static void walls(void **state)
{
    double *rows = make_rows();
    shoal_result *result = NULL;
    (void)state;
    set_up();
    now.wall = 1.2;
    now.start = -50;
    hand_check(run_it(&result, NULL, rows, 2, NULL));
    expect_found(result);
    shoal_result_free(&result);
    now.start = 2; /* behind the wall */
    assert_int_equal(run_it(&result, NULL, rows, 2, NULL), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "not a finite number"));
    assert_null(result);
    set_up();
    /* The sums of grains are finite, but no quantum has room for all of them: not asked for again without end. */
    now.scale = 1e305;
    assert_int_equal(run_it(&result, NULL, rows, 2, NULL), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "not a finite number"));
    base_free(&rows);
}

/* Notes are those of the result's point, also where the search went back to it once more and found nothing lower. */
static void notes(void **state)
{
    double *rows = make_rows();
    (void)state;
    for (int64_t finite = 1; finite <= 10; finite++) {
        shoal_result *result = NULL;
        set_up();
        values_left = finite;
        hand_check(run_it(&result, NULL, rows, 1, NULL));
        assert_true(finite == 10 || shoal_result_number(result, "diverged") == 1);
        assert_memory_equal(shoal_result_tensor(result, "p")->values, shoal_result_tensor(result, "noted")->values,
                            (COLUMNS - 1) * sizeof(double));
        shoal_result_free(&result);
    }
    base_free(&rows);
}

static void same_bits(void **state)
{
    const kernel_set *sets[8];
    int count = kernel_list(sets);
    double *rows = make_rows();
    encoded expected = {0};
    (void)state;
    set_up();
    for (int i = 0; i < count; i++)
        for (int threads = 1; threads <= 3; threads++) {
            shoal_result *result = NULL;
            hand_check(run_it(&result, NULL, rows, threads, sets[i]->name));
            encoded bytes = encode_result(result);
            if (expected.bytes)
                expect_same_bytes(expected, bytes);
            else
                expected = bytes;
            if (expected.bytes != bytes.bytes)
                base_free(&bytes.bytes);
            shoal_result_free(&result);
        }
    base_free(&expected.bytes);
    base_free(&rows);
}

/* ---- rounds that travel ------------------------------------------------------------------------------------------ */

/* As an engine whose workers are processes does: the round goes as bytes, what it keeps beside it. */
static void travel(shoal_round **inout)
{
    shoal_round *round = *inout, *there = NULL;
    encoded bytes = encode_round(round);
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    hand_check(learn_round_read(&there, &in));
    for (int i = 0; i < round->keeps; i++) {
        hand_check(base_alloc(&there->kept[i]->values, round->kept[i]->bytes, 1, "kept"));
        memcpy(there->kept[i]->values, round->kept[i]->values, round->kept[i]->bytes);
    }
    base_free(&bytes.bytes);
    shoal_round_free(inout);
    *inout = there;
}

typedef struct journey {
    sliced run;
    shoal_round *round;
} journey;

static int go(journey *self, shoal_result **result, bool stop)
{
    shoal_round *next = NULL;
    shoal_partial *merged = NULL;
    hand_check(engine_mapper_begin(self->run.mapper, self->round));
    hand_check(engine_slice_map(&merged, self->run.mapper, self->run.slice[0]));
    int status = self->run.algorithm->update(&next, result, self->round, merged, &self->run.shape,
                                             engine_mapper_crew(self->run.mapper), stop);
    if (status < 0)
        return status;
    if (next)
        engine_number_round(next, self->round->number + 1);
    shoal_round_free(&self->round);
    self->round = next;
    return SHOAL_OK;
}

static void begin_journey_of(journey *self, const shoal_algorithm *algorithm, const void *config, const double *rows,
                             int64_t count)
{
    *self =
        (journey){.run = {.algorithm = algorithm,
                          .values = rows,
                          .shape = {.rows = count, .columns = COLUMNS, .type = SHOAL_FLOAT64, .rows_per_grain = GRAIN},
                          .slices = 1,
                          .threads = 1}};
    sliced_begin(&self->run);
    hand_check(algorithm->start(&self->round, config, &self->run.shape));
}

static void begin_journey(journey *self, const double *rows)
{
    begin_journey_of(self, &learner, NULL, rows, ROWS);
}

static void end_journey(journey *self)
{
    shoal_round_free(&self->round);
    sliced_end(&self->run);
}

static void rounds_travel(void **state)
{
    double *rows = make_rows();
    shoal_result *stayed = NULL, *travelled = NULL;
    journey self;
    (void)state;
    set_up();
    hand_check(run_it(&stayed, NULL, rows, 2, NULL));
    begin_journey(&self, rows);
    while (!travelled) {
        travel(&self.round);
        hand_check(go(&self, &travelled, false));
        assert_true(!self.round || self.round->keeps <= 4); /* the history and the newest */
    }
    encoded a = encode_result(stayed), b = encode_result(travelled);
    expect_same_bytes(a, b);
    base_free(&a.bytes);
    base_free(&b.bytes);
    shoal_result_free(&stayed);
    shoal_result_free(&travelled);
    end_journey(&self);
    base_free(&rows);
}

/* Stopped at any moment it returns the best point so far, and before there is one it says so. */
static void stopping(void **state)
{
    double *rows = make_rows(), before = INFINITY;
    (void)state;
    set_up();
    now.guess = 1e-30; /* so that a round is asked for again */
    for (int stop_at = 0; stop_at < 8; stop_at++) {
        shoal_result *result = NULL;
        journey self;
        int status = SHOAL_OK;
        begin_journey(&self, rows);
        for (int i = 0; status == SHOAL_OK && !result && i <= stop_at; i++)
            status = go(&self, &result, i == stop_at);
        assert_int_equal(status, stop_at < 2 ? SHOAL_STOPPED : SHOAL_OK);
        if (result) {
            assert_true(shoal_result_number(result, "objective") <= before);
            before = shoal_result_number(result, "objective");
        }
        shoal_result_free(&result);
        end_journey(&self);
    }
    base_free(&rows);
}

/* Does a round whose model may be anything; whether it was refused. */
static bool suffer(journey *self)
{
    shoal_partial *merged = NULL;
    shoal_round *next = NULL;
    shoal_result *result = NULL;
    if (self->run.algorithm->check(self->run.algorithm, self->round, &self->run.shape) < 0)
        return true;
    hand_check(engine_mapper_begin(self->run.mapper, self->round));
    hand_check(engine_slice_map(&merged, self->run.mapper, self->run.slice[0]));
    self->run.algorithm->update(&next, &result, self->round, merged, &self->run.shape,
                                engine_mapper_crew(self->run.mapper), false);
    shoal_round_free(&next);
    shoal_result_free(&result);
    return false;
}

/* A model with any byte changed is refused, or has another number somewhere that is harmless: it never leads out of
 * memory. */
static void foreign_models(void **state)
{
    double *rows = make_rows();
    shoal_result *result = NULL;
    journey self;
    int refused = 0, tried = 0;
    (void)state;
    set_up();
    begin_journey(&self, rows);
    for (int i = 0; i < 5; i++)
        hand_check(go(&self, &result, false));
    unsigned char *model = self.round->model;
    for (size_t at = 0; at < self.round->model_bytes; at++) {
        model[at] ^= 0x81;
        tried++;
        refused += suffer(&self);
        model[at] ^= 0x81;
    }
    assert_true(refused > tried / 8);
    self.round->model_bytes -= 8;
    assert_int_equal(learner.check(&learner, self.round, &self.run.shape), SHOAL_BROKEN);
    self.round->model_bytes += 8;
    self.round->kept[0]->bytes -= 8;
    assert_int_equal(learner.check(&learner, self.round, &self.run.shape), SHOAL_BROKEN);
    self.round->kept[0]->bytes += 8;
    end_journey(&self);
    base_free(&rows);
}

/* The same for whole numbers, each with those around it and with extreme ones, in one of the first rounds. */
static void expect_harmless(journey *self, int rounds)
{
    static const int64_t lies[] = {0,         1,        2, 3, 4, 5, 8, 60, 61, -1, INT64_C(1) << 31, INT64_C(1) << 40,
                                   INT64_MAX, INT64_MIN};
    enum { LIES = sizeof lies / sizeof *lies };
    shoal_result *result = NULL;
    for (int i = 0; i < rounds; i++)
        hand_check(go(self, &result, false));
    int64_t *words = self->round->model;
    for (size_t at = 0; at < self->round->model_bytes / sizeof *words; at++)
        for (int lie = 0; lie < LIES + 2; lie++) {
            int64_t truth = words[at];
            words[at] = lie < LIES ? lies[lie] : (int64_t)((uint64_t)truth + (lie == LIES ? 1 : UINT64_MAX));
            suffer(self);
            words[at] = truth;
        }
    end_journey(self);
}

static void foreign_numbers(void **state)
{
    double *rows = make_rows();
    (void)state;
    for (int rounds = 0; rounds <= 6; rounds++) {
        journey self;
        set_up();
        begin_journey(&self, rows);
        expect_harmless(&self, rounds);
    }
    base_free(&rows);
}

static void foreign_learners(void **state)
{
    enum { FEW = 2 * GRAIN + 1 };
    double *rows = make_rows();
    shoal_autoencoder_config autoencoder = {0};
    shoal_logistic_config logistic = {0};
    (void)state;
    shoal_options_default(&autoencoder, shoal_autoencoder.options);
    shoal_options_default(&logistic, shoal_logistic.options);
    autoencoder.hidden = 2;
    autoencoder.output = SHOAL_OUTPUT_LINEAR;
    for (int i = 0; i < FEW; i++)
        rows[i * COLUMNS + COLUMNS - 1] = i % 3;
    const double weights[3 * COLUMNS] = {1, -1, 2}, zeros[3] = {0};
    shoal_features_config features = {
        .encoder = weights, .bias = zeros, .hidden = 3, .columns = COLUMNS, .scale = 1, .precision = 2};
    shoal_logistic_predict_config predict = {.weights = weights,
                                             .intercept = zeros,
                                             .classes = weights,
                                             .outputs = 3,
                                             .classes_count = 3,
                                             .columns = COLUMNS,
                                             .probabilities = true};
    journey once;
    begin_journey_of(&once, &shoal_features, &features, rows, FEW);
    expect_harmless(&once, 0);
    begin_journey_of(&once, &shoal_logistic_predict, &predict, rows, FEW);
    expect_harmless(&once, 0);
    for (int rounds = 0; rounds <= 3; rounds += 3)
        for (int flag = 0; flag < 2; flag++) {
            journey self;
            autoencoder.tied = logistic.no_intercept = flag;
            begin_journey_of(&self, &shoal_autoencoder, &autoencoder, rows, FEW);
            expect_harmless(&self, rounds);
            begin_journey_of(&self, &shoal_logistic, &logistic, rows, FEW);
            expect_harmless(&self, rounds);
        }
    base_free(&rows);
}

static void quanta(void **state)
{
    (void)state;
    for (int grains = 1; grains < 3000; grains += 1 + grains / 3)
        for (double size = 1e-250; size < 1e250; size *= 317) {
            double quantum = gradient_quantum(size, grains), total = size * grains;
            assert_true(total <= 0x1p56 * quantum && total > 0x1p54 * quantum);
        }
    assert_true(gradient_quantum(DBL_MAX, 1000) > 0 && gradient_quantum(5e-324, 1) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quanta),
        cmocka_unit_test(guesses),
        cmocka_unit_test(any_size),
        cmocka_unit_test(walls),
        cmocka_unit_test(notes),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(rounds_travel),
        cmocka_unit_test(stopping),
        cmocka_unit_test(foreign_models),
        cmocka_unit_test(foreign_numbers),
        cmocka_unit_test(foreign_learners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
