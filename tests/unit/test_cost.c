/* cost() of every learner tells what a run does: rounds by phase as reports count them, bytes of models and partials as
 * they travel.
 *
 * Each case is run round by round, as an engine would without a memo, and what comes out is weighed; and once more by
 * shoal_run, whose report counts the rounds. Labels: threads */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/autoencoder.h>
#include <shoal/engine.h>
#include <shoal/exec.h>
#include <shoal/kmeans.h>
#include <shoal/logistic.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "learn/bayes/bayes_internal.h"
#include "learn/module.h"
#include "learn/partial.h"
#include "learn/pick.h"
#include "learn/wire.h"

/* ---- data -------------------------------------------------------------------------------------------------------- */

static double any(int64_t index)
{
    return base_random_unit(5, BASE_FOR_DATA, (uint64_t)index, 0);
}

/* Values between 0 and 1; with `classes` the last column has as many labels, which the others tell of but not well. */
static double *make_values(int64_t rows, int64_t columns, int classes)
{
    double *values = NULL;
    assert_int_equal(base_alloc(&values, (size_t)(rows * columns), sizeof *values, "rows"), SHOAL_OK);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = 0.1 + 0.8 * any(i);
    for (int64_t i = 0; classes && i < rows; i++)
        values[(i + 1) * columns - 1] = (double)(int)((values[i * columns] + any(-i - 1)) / 2 * classes);
    return values;
}

/* ---- running by hand --------------------------------------------------------------------------------------------- */

static int each_alone(const shoal_crew *self, int64_t items, int (*task)(void *context, int64_t item, int thread),
                      void *context)
{
    int status = SHOAL_OK;
    (void)self;
    for (int64_t i = 0; status == SHOAL_OK && i < items; i++)
        status = task(context, i, 0);
    return status;
}

static const shoal_crew alone = {.each = each_alone, .threads = 1, .kernel = "auto"};

/* What all rounds of one phase were. */
typedef struct weighed {
    char name[24];
    double rounds, model, partial, row, kept;
} weighed;

typedef struct measured {
    int phases;
    weighed phase[SHOAL_COST_PHASES];
    double rounds;
} measured;

static weighed *phase_of(measured *found, const char *name)
{
    int i = 0;
    while (i < found->phases && strcmp(found->phase[i].name, name) != 0)
        i++;
    if (i == found->phases) {
        assert_true(i < SHOAL_COST_PHASES);
        snprintf(found->phase[i].name, sizeof found->phase[i].name, "%s", name);
        found->phases++;
    }
    return &found->phase[i];
}

static size_t encoded_partial(const shoal_partial *partial)
{
    base_writer out = {0};
    learn_partial_write(&out, partial);
    assert_int_equal(out.status, SHOAL_OK);
    size_t size = out.size;
    base_writer_release(&out);
    return size;
}

static size_t encoded_round(const shoal_round *round)
{
    base_writer out = {0};
    learn_round_write(&out, round);
    assert_int_equal(out.status, SHOAL_OK);
    size_t size = out.size;
    base_writer_release(&out);
    return size;
}

static void weigh(measured *found, const shoal_round *round, const shoal_partial *partial, int64_t rows)
{
    weighed *phase = phase_of(found, round->phase);
    double row = 0;
    for (int i = 0; i < round->layout.cells; i++)
        row += round->layout.cell[i].kind == SHOAL_CELL_ROW ? (double)round->layout.cell[i].bytes : 0;
    phase->rounds++;
    found->rounds++;
    phase->model += (double)encoded_round(round);
    phase->partial += (double)encoded_partial(partial) - row * (double)rows;
    phase->row += row;
    if (round->keeps && round->kept[round->keeps - 1]->born == round->number)
        phase->kept = (double)round->kept[round->keeps - 1]->bytes;
}

/* What a map is given, and what it may write to. */
typedef struct mapping {
    const shoal_algorithm *of;
    const shoal_round *round;
    const void *prepared;
    const shoal_scratch *scratch;
    shoal_partial *partial;
} mapping;

/* The rows of a batch, in groups as an engine gathers them. */
static void map_batch(const mapping *job, const shoal_shape *shape, const double *values, const double *weights)
{
    const shoal_pick *pick = &job->round->layout.pick;
    double *gathered = calloc((size_t)(pick->group * shape->columns), sizeof *gathered);
    double *weight = calloc((size_t)pick->group, sizeof *weight);
    int64_t *row = calloc((size_t)pick->group, sizeof *row);
    for (int64_t s = 0; s < shape->strata; s++) {
        const learn_stratum of = learn_stratum_at(shape, s);
        const learn_places places = learn_pick_places(pick, shape, &of);
        const learn_order order = learn_order_of(pick->key, s, of.drawn);
        for (int64_t from = 0; from < places.count; from += pick->group) {
            const int64_t rows = places.count - from < pick->group ? places.count - from : pick->group;
            for (int64_t i = 0; i < rows; i++) {
                row[i] = of.first + learn_order_row(&order, places.from + from + i);
                memcpy(gathered + i * shape->columns, values + row[i] * shape->columns,
                       (size_t)shape->columns * sizeof *gathered);
                weight[i] = weights ? weights[row[i]] : 0;
            }
            const shoal_grain grain = {.shape = shape,
                                       .first_row = -1,
                                       .rows = rows,
                                       .row = row,
                                       .values = gathered,
                                       .weights = weights ? weight : NULL};
            assert_int_equal(job->of->map(job->partial, job->round, job->prepared, &grain, job->scratch), SHOAL_OK);
        }
    }
    free(gathered);
    free(weight);
    free(row);
}

/* The grains of one round into a fresh partial; the memo is lost each time. */
static shoal_partial *map_all(const shoal_algorithm *of, void **prepared, const shoal_round *round,
                              const shoal_shape *shape, const double *values, const double *weights)
{
    shoal_partial *partial = NULL;
    int64_t counters[SHOAL_COUNTERS] = {0};
    shoal_scratch scratch = {.counters = counters};
    void *memo = NULL;
    assert_int_equal(learn_partial_new(&partial, &round->layout, 0, shape->rows, NULL), SHOAL_OK);
    if (of->prepare)
        assert_int_equal(of->prepare(prepared, round, shape, &alone), SHOAL_OK);
    scratch.bytes = of->scratch_bytes(round, *prepared, shape);
    assert_int_equal(base_alloc(&scratch.memory, scratch.bytes + 1, 1, "scratch"), SHOAL_OK);
    assert_int_equal(base_alloc(&memo, (size_t)shape->rows_per_grain, round->layout.memo_row_bytes + 1, "memo"),
                     SHOAL_OK);
    if (round->layout.pick.count > 0)
        map_batch(&(mapping){of, round, *prepared, &scratch, partial}, shape, values, weights);
    for (int64_t i = 0; i < shape->grains && round->layout.pick.count == 0; i++) {
        int64_t first = i * shape->rows_per_grain, left = shape->rows - first;
        shoal_grain grain = {.shape = shape,
                             .index = i,
                             .first_row = first,
                             .rows = left < shape->rows_per_grain ? left : shape->rows_per_grain,
                             .values = values + first * shape->columns,
                             .weights = weights ? weights + first : NULL,
                             .memo = round->layout.memo_row_bytes ? memo : NULL};
        assert_int_equal(of->map(partial, round, *prepared, &grain, &scratch), SHOAL_OK);
    }
    assert_int_equal(learn_partial_settle(partial), SHOAL_OK);
    base_free(&memo);
    base_free(&scratch.memory);
    return partial;
}

static void number(shoal_round *round, int64_t as)
{
    round->number = as;
    for (int i = 0; i < round->keeps; i++)
        if (round->kept[i]->born < 0)
            round->kept[i]->born = as;
}

static void run_by_hand(measured *found, const shoal_algorithm *of, const void *config, const shoal_shape *shape,
                        const double *values, const double *weights)
{
    shoal_round *round = NULL;
    shoal_result *result = NULL;
    void *prepared = NULL;
    assert_int_equal(of->start(&round, config, shape), SHOAL_OK);
    for (int64_t at = 0; round; at++) {
        shoal_round *next = NULL;
        number(round, at);
        shoal_partial *partial = map_all(of, &prepared, round, shape, values, weights);
        weigh(found, round, partial, shape->rows);
        assert_int_equal(of->update(&next, &result, round, partial, shape, &alone, false), SHOAL_OK);
        learn_partial_free(&partial);
        shoal_round_free(&round);
        round = next;
    }
    if (of->forget)
        of->forget(&prepared);
    shoal_result_free(&result);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

enum rounds { EXACTLY, AT_MOST };

typedef struct known {
    const char *name;
    const shoal_algorithm *of;
    const void *config;
    int64_t rows, columns;
    int classes;
    bool weighted, grains_unknown;
    bool sampled;    /* how many rows seeding samples is left to chance */
    enum rounds run; /* how the rounds of "run" are known; of other phases always exactly */
} known;

static void expect_near(const char *name, const char *phase, const char *what, double expected, double found,
                        double share, double room)
{
    if (!(fabs(expected - found) <= share * found + room))
        fail_msg("%s, %s: cost() says %g %s, but they are %g", name, phase, expected, what, found);
}

static void expect_phase(const known *about, const shoal_cost_phase *cost, const weighed *found)
{
    double n = found->rounds, share = about->sampled && strcmp(cost->name, "seed") == 0 ? 0.15 : 0.04;
    bool loose = about->run == AT_MOST && strcmp(cost->name, "run") == 0;
    if (loose ? !(cost->rounds >= n && cost->rounds < 2 * n + 4) : cost->rounds != n)
        fail_msg("%s, %s: cost() says %g rounds, but there were %g", about->name, cost->name, cost->rounds, n);
    expect_near(about->name, cost->name, "bytes of a model", cost->model_bytes, found->model / n, share, 160);
    expect_near(about->name, cost->name, "bytes of a partial", cost->partial_bytes, found->partial / n, share, 32);
    expect_near(about->name, cost->name, "bytes a row", cost->row_bytes * cost->rounds, found->row, 1e-9, 0);
    expect_near(about->name, cost->name, "bytes kept", cost->kept_bytes, found->kept, 1e-9, 0);
}

/* Reports count as we do. */
static void expect_report(const known *about, const measured *found, const shoal_shape *shape, double *values,
                          const double *weights)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_report report;
    shoal_run_options options = {.threads = 1, .rows_per_grain = shape->rows_per_grain};
    assert_int_equal(shoal_data_wrap(&data, values, shape->rows, shape->columns, shape->type), SHOAL_OK);
    assert_int_equal(shoal_run(&result, &report, about->of, about->config, data, weights, &options), SHOAL_OK);
    int at = 0;
    for (int i = 0; i < report.phases; i++) {
        if (strcmp(report.phase[i].name, "load") == 0)
            continue;
        assert_true(at < found->phases);
        assert_string_equal(report.phase[i].name, found->phase[at].name);
        assert_int_equal(report.phase[i].rounds, (int64_t)found->phase[at++].rounds);
    }
    assert_int_equal(at, found->phases);
    shoal_result_free(&result);
    shoal_data_free(&data);
}

static void expect_flat(const known *about, const shoal_cost *cost)
{
    double rounds = 0;
    const shoal_cost_phase *main = &cost->phase[cost->phases - 1];
    for (int i = 0; i < cost->phases; i++)
        rounds += cost->phase[i].rounds;
    assert_string_equal(main->name, "run");
    if (cost->operations_per_row != main->operations_per_row || cost->model_bytes != main->model_bytes ||
        cost->partial_bytes != main->partial_bytes || cost->rounds != (int64_t)ceil(rounds))
        fail_msg("%s: the flat fields are not those of the main phase", about->name);
}

static void expect(const known *about)
{
    double *values = make_values(about->rows, about->columns, about->classes), *weights = NULL;
    int64_t grain = 96;
    shoal_shape shape = {
        .rows = about->rows, .columns = about->columns, .type = SHOAL_FLOAT64, .weighted = about->weighted};
    if (about->grains_unknown) /* as engine.c chooses them */
        grain = 252;
    shape.rows_per_grain = grain;
    shape.grains = (about->rows + grain - 1) / grain;
    if (about->weighted) {
        assert_int_equal(base_alloc(&weights, (size_t)about->rows, sizeof *weights, "weights"), SHOAL_OK);
        for (int64_t i = 0; i < about->rows; i++)
            weights[i] = 1 + (double)(i % 3);
    }
    if (about->of->strata)
        assert_int_equal(about->of->strata(about->config, &shape), SHOAL_OK);
    shape.strata = shape.strata < shape.grains ? shape.strata : shape.grains;
    measured found = {0};
    run_by_hand(&found, about->of, about->config, &shape, values, weights);
    expect_report(about, &found, &shape, values, weights);
    shoal_shape asked = shape;
    shoal_cost cost = {0};
    if (about->grains_unknown)
        asked.grains = asked.rows_per_grain = 0;
    assert_int_equal(about->of->cost(&cost, about->config, &asked), SHOAL_OK);
    if (cost.phases != found.phases)
        fail_msg("%s: cost() knows %d phases, but there were %d", about->name, cost.phases, found.phases);
    for (int i = 0; i < cost.phases; i++) {
        assert_string_equal(cost.phase[i].name, found.phase[i].name);
        expect_phase(about, &cost.phase[i], &found.phase[i]);
    }
    expect_flat(about, &cost);
    base_free(&values);
    base_free(&weights);
}

/* ---- k-means ----------------------------------------------------------------------------------------------------- */

/* Few iterations and no tolerance: none of these converges before. */
static const shoal_kmeans_config usual = {.k = 12, .iterations = 4, .runs = 1, .seed = 3};

static shoal_kmeans_config with_start(const char *init, int64_t k, int64_t runs)
{
    shoal_kmeans_config config = usual;
    config.init = init;
    config.k = k;
    config.runs = runs;
    return config;
}

static void test_kmeans_seeding(void **state)
{
    (void)state;
    const shoal_kmeans_config greedy = with_start("kmeans++", 12, 1), many = with_start("kmeans++", 40, 1);
    const shoal_kmeans_config parallel = with_start("parallel", 60, 1), random = with_start("random", 30, 1);
    const shoal_kmeans_config automatic = with_start("auto", 50, 1), more = with_start("auto", 51, 1);
    expect(&(known){"kmeans++", &shoal_kmeans, &greedy, 900, 20, .run = EXACTLY});
    expect(&(known){"kmeans++ of 40", &shoal_kmeans, &many, 2000, 9, .run = EXACTLY, .grains_unknown = true});
    expect(&(known){"k-means||", &shoal_kmeans, &parallel, 2500, 16, .sampled = true, .run = EXACTLY});
    expect(&(known){"random", &shoal_kmeans, &random, 900, 20, .run = EXACTLY});
    expect(&(known){"auto up to 50", &shoal_kmeans, &automatic, 2000, 8, .run = EXACTLY});
    expect(&(known){"auto above 50", &shoal_kmeans, &more, 2000, 8, .sampled = true, .run = EXACTLY});
}

static void test_kmeans_given(void **state)
{
    double *centres = make_values(12, 20, 0);
    shoal_kmeans_config given = usual;
    (void)state;
    given.start = centres;
    given.runs = 5; /* there is only one run then */
    expect(&(known){"given", &shoal_kmeans, &given, 900, 20, .run = EXACTLY});
    base_free(&centres);
}

static void test_kmeans_runs(void **state)
{
    shoal_kmeans_config none = with_start("random", 10, 1);
    const shoal_kmeans_config several = with_start("kmeans++", 10, 3), one = with_start("kmeans++", 1, 1);
    (void)state;
    none.iterations = 0;
    expect(&(known){"no iterations", &shoal_kmeans, &none, 500, 12, .run = EXACTLY});
    expect(&(known){"weighted", &shoal_kmeans, &none, 500, 12, .weighted = true, .run = EXACTLY});
    expect(&(known){"weighted run", &shoal_kmeans, &usual, 500, 12, .weighted = true, .run = EXACTLY});
    expect(&(known){"one centre", &shoal_kmeans, &one, 500, 12, .run = AT_MOST}); /* it is there after one update */
    shoal_cost cost = {0};
    const shoal_shape shape = {.rows = 500, .columns = 12, .type = SHOAL_FLOAT32};
    assert_int_equal(shoal_kmeans.cost(&cost, &several, &shape), SHOAL_OK);
    assert_int_equal(cost.phases, 3);
    assert_true(cost.phase[1].rounds == 3 * 21 && cost.phase[2].rounds == 3 * 5 + 1);
}

/* Rounds of "run" are bounded, and all others as told, when runs end by themselves. */
/* Batches that end neither for want of improvement nor to refill a cluster: those come on top. */
static void test_kmeans_batches(void **state)
{
    (void)state;
    shoal_kmeans_config batches = usual, several = with_start("random", 9, 3), scattered = with_start("auto", 9, 2);
    batches.batch = several.batch = scattered.batch = 128;
    scattered.init_size = 500;
    expect(&(known){"batches", &shoal_kmeans, &batches, 900, 20, .run = EXACTLY});
    expect(&(known){"weighted batches", &shoal_kmeans, &batches, 900, 20, .weighted = true, .run = EXACTLY});
    expect(&(known){"batches, random", &shoal_kmeans, &several, 900, 20, .run = EXACTLY});
    expect(&(known){"batches, two samples", &shoal_kmeans, &scattered, 2000, 20, .run = EXACTLY});
    batches.batch = 10000;
    expect(&(known){"batches of all", &shoal_kmeans, &batches, 900, 20, .run = EXACTLY});
}

static void test_kmeans_converges(void **state)
{
    shoal_kmeans_config config = with_start("kmeans++", 3, 2);
    (void)state;
    config.iterations = 100;
    config.tolerance = 1e-3;
    known about = {"converges", &shoal_kmeans, &config, 300, 2, .run = AT_MOST};
    double *values = make_values(about.rows, about.columns, 0);
    shoal_shape shape = {.rows = 300, .columns = 2, .type = SHOAL_FLOAT64, .rows_per_grain = 96, .grains = 4};
    measured found = {0};
    run_by_hand(&found, about.of, about.config, &shape, values, NULL);
    shoal_cost cost = {0};
    assert_int_equal(about.of->cost(&cost, about.config, &shape), SHOAL_OK);
    assert_true(cost.phases == 3 && cost.phase[2].rounds >= found.phase[2].rounds && found.phase[2].rounds < 100);
    assert_true(cost.phase[0].rounds == found.phase[0].rounds && cost.phase[1].rounds == found.phase[1].rounds);
    base_free(&values);
}

/* Twice the columns or centres, twice the operations. */
static void test_kmeans_operations(void **state)
{
    shoal_cost cost[3] = {0};
    const shoal_kmeans_config config = with_start("random", 100, 1), twice = with_start("random", 200, 1);
    shoal_shape shape = {.rows = 100000, .columns = 64, .type = SHOAL_FLOAT32};
    (void)state;
    assert_int_equal(shoal_kmeans.cost(&cost[0], &config, &shape), SHOAL_OK);
    assert_int_equal(shoal_kmeans.cost(&cost[1], &twice, &shape), SHOAL_OK);
    shape.columns = 128;
    assert_int_equal(shoal_kmeans.cost(&cost[2], &config, &shape), SHOAL_OK);
    expect_near("operations", "run", "operations", cost[0].operations_per_row, 2.0 * 100 * 64, 0.01, 0);
    expect_near("operations", "run", "operations", cost[1].operations_per_row, 2.0 * 200 * 64, 0.01, 0);
    expect_near("operations", "run", "operations", cost[2].operations_per_row, 2.0 * 100 * 128, 0.01, 0);
    assert_true(cost[0].phase[0].operations_per_row == 0);
}

static void test_kmeans_predict(void **state)
{
    double *centres = make_values(12, 20, 0);
    shoal_predict_config config = {.k = 12, .columns = 20, .centres = centres};
    (void)state;
    expect(&(known){"predict", &shoal_kmeans_predict, &config, 900, 20, .run = EXACTLY});
    config.distances = true;
    expect(&(known){"predict with distances", &shoal_kmeans_predict, &config, 900, 20, .run = EXACTLY});
    base_free(&centres);
}

/* A start that is none is refused, as by start. */
static void test_kmeans_refuses(void **state)
{
    const shoal_kmeans_config config = with_start("nowhere", 3, 1);
    const shoal_shape shape = {.rows = 10, .columns = 2, .type = SHOAL_FLOAT32};
    shoal_cost cost = {0};
    (void)state;
    assert_int_equal(shoal_kmeans.cost(&cost, &config, &shape), SHOAL_USAGE);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void test_logistic(void **state)
{
    shoal_logistic_config config = {.l2 = 1, .iterations = 8, .history = 5, .tolerance = 0};
    (void)state;
    expect(&(known){"two classes", &shoal_logistic, &config, 700, 15, .classes = 2, .run = AT_MOST});
    config.expected_classes = 6;
    expect(&(known){"six classes", &shoal_logistic, &config, 700, 15, .classes = 6, .run = AT_MOST});
    config.no_intercept = true;
    expect(&(known){"no intercept", &shoal_logistic, &config, 700, 15, .classes = 6, .run = AT_MOST});
    config.iterations = 0;
    expect(&(known){"no iterations", &shoal_logistic, &config, 700, 15, .classes = 6, .run = EXACTLY});
}

static void test_logistic_start(void **state)
{
    double weights[3 * 14] = {0}, intercept[3] = {0}, classes[3] = {0, 1, 2};
    const shoal_logistic_config config = {.l2 = 1,
                                          .iterations = 3,
                                          .history = 5,
                                          .start_weights = weights,
                                          .start_intercept = intercept,
                                          .start_classes = classes,
                                          .start_outputs = 3,
                                          .start_classes_count = 3,
                                          .start_columns = 14};
    const shoal_logistic_predict_config predict = {.weights = weights,
                                                   .intercept = intercept,
                                                   .classes = classes,
                                                   .outputs = 3,
                                                   .classes_count = 3,
                                                   .columns = 14};
    shoal_logistic_predict_config shares = predict;
    (void)state;
    shares.probabilities = true;
    expect(&(known){"a start", &shoal_logistic, &config, 700, 15, .classes = 3, .run = AT_MOST});
    expect(&(known){"logistic-predict", &shoal_logistic_predict, &predict, 700, 14, .run = EXACTLY});
    expect(&(known){"probabilities", &shoal_logistic_predict, &shares, 700, 14, .run = EXACTLY});
}

static void test_bayes(void **state)
{
    double means[5 * 14] = {0}, ones[5 * 14], classes[5] = {0, 1, 2, 3, 4};
    bayes_config config = {.smoothing = 1e-9};
    bayes_predict_config predict = {
        .classes = classes, .means = means, .variances = ones, .priors = ones, .classes_count = 5, .columns = 14};
    (void)state;
    for (int i = 0; i < 5 * 14; i++)
        ones[i] = 1;
    expect(&(known){"bayes, two classes", &bayes_algorithm, &config, 700, 15, .classes = 2, .run = EXACTLY});
    config.expected_classes = 6;
    expect(&(known){"bayes, six classes", &bayes_algorithm, &config, 700, 15, .classes = 6, .run = EXACTLY});
    expect(&(known){"bayes, weighted", &bayes_algorithm, &config, 700, 15, .classes = 6, .weighted = true,
                    .run = EXACTLY});
    expect(&(known){"bayes-predict", &bayes_predict_algorithm, &predict, 700, 14, .run = EXACTLY});
    predict.probabilities = true;
    expect(&(known){"bayes' probabilities", &bayes_predict_algorithm, &predict, 700, 14, .run = EXACTLY});
}

static void test_autoencoder(void **state)
{
    shoal_autoencoder_config config = {
        .hidden = 7, .sparsity = 0.1, .sparsity_weight = 3, .weight_decay = 1e-4, .iterations = 9, .history = 4};
    (void)state;
    expect(&(known){"sparse", &shoal_autoencoder, &config, 600, 18, .run = AT_MOST});
    config.tied = true;
    expect(&(known){"tied", &shoal_autoencoder, &config, 600, 18, .run = AT_MOST});
    config.sparsity_weight = 0;
    expect(&(known){"tied, not sparse", &shoal_autoencoder, &config, 600, 18, .run = AT_MOST});
    config.tied = false;
    expect(&(known){"not sparse", &shoal_autoencoder, &config, 600, 18, .run = AT_MOST});
}

static void test_features(void **state)
{
    double *encoder = make_values(7, 18, 0), bias[7] = {0};
    shoal_features_config config = {
        .encoder = encoder, .bias = bias, .hidden = 7, .columns = 18, .scale = 1, .precision = 2};
    (void)state;
    expect(&(known){"features", &shoal_features, &config, 600, 18, .run = EXACTLY});
    config.precision = 1;
    expect(&(known){"narrow features", &shoal_features, &config, 600, 18, .run = EXACTLY});
    base_free(&encoder);
}

/* ---- what others wrote ------------------------------------------------------------------------------------------- */

static void test_unknown(void **state)
{
    const shoal_exec_config exec = {.timeout = 1};
    const learn_module_config module = {0};
    const shoal_shape shape = {.rows = 100, .columns = 4, .type = SHOAL_FLOAT64};
    shoal_cost cost = {0};
    (void)state;
    assert_int_equal(shoal_exec.cost(&cost, &exec, &shape), SHOAL_OK);
    assert_true(cost.phases == 0 && cost.rounds == 0 && cost.operations_per_row == 0);
    /* No module is loaded. */
    assert_int_equal(learn_module.cost(&cost, &module, &shape), SHOAL_OK);
    assert_true(cost.phases == 0 && cost.rounds == 0 && cost.operations_per_row == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kmeans_seeding),
        cmocka_unit_test(test_kmeans_given),
        cmocka_unit_test(test_kmeans_runs),
        cmocka_unit_test(test_kmeans_batches),
        cmocka_unit_test(test_kmeans_converges),
        cmocka_unit_test(test_kmeans_operations),
        cmocka_unit_test(test_kmeans_predict),
        cmocka_unit_test(test_kmeans_refuses),
        cmocka_unit_test(test_logistic),
        cmocka_unit_test(test_logistic_start),
        cmocka_unit_test(test_bayes),
        cmocka_unit_test(test_autoencoder),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
