/* What a run of k-means will ask for, phase by phase, for plans.
 *
 * Operations are those of the kernels that score rows against centres, a multiplication and an addition each, as if
 * nothing were skipped. Bytes are those of the models and partials of each kind of round, averaged over the rounds of a
 * phase. */
#include <math.h>
#include <string.h>

#include "data/grain.h"
#include "learn/kmeans/batch.h"
#include "learn/kmeans/choose.h"
#include "learn/kmeans/search.h"
#include "learn/kmeans/seed.h"

/* What a round and a partial have around their numbers on the way: names, numbers, a layout, and what fills up sections
 * of a model. */
enum { ROUND_BYTES = 384, PARTIAL_BYTES = 28, RECORD_KEY = sizeof(shoal_key) };

/* What several rounds ask for together. */
typedef struct tally {
    double rounds, operations, model, partial, row;
} tally;

static void add_rounds(tally *sum, double rounds, tally each)
{
    sum->rounds += rounds;
    sum->operations += rounds * each.operations;
    sum->model += rounds * each.model;
    sum->partial += rounds * (each.partial + PARTIAL_BYTES);
    sum->row += rounds * each.row;
}

static void add_cost_phase(shoal_cost *out, const char *name, const tally *sum)
{
    if (!(sum->rounds > 0))
        return;
    out->phase[out->phases++] = (shoal_cost_phase){.name = name,
                                                   .rounds = sum->rounds,
                                                   .operations_per_row = sum->operations / sum->rounds,
                                                   .model_bytes = sum->model / sum->rounds,
                                                   .partial_bytes = sum->partial / sum->rounds,
                                                   .row_bytes = sum->row / sum->rounds};
}

/* What all rounds of one run share. */
typedef struct sizes {
    double k, columns, rows, grains, weighted;
    double vector; /* bytes of one row as float64 */
    double model;  /* of a round without a section of its own */
} sizes;

static double usual_grains(const shoal_shape *shape)
{
    int64_t each = data_rows_per_grain(shape->rows, shape->columns * (int64_t)shoal_type_size(shape->type));
    return ceil((double)shape->rows / (double)each);
}

static sizes sizes_of(int64_t k, int64_t runs, const shoal_shape *shape)
{
    sizes is = {.k = (double)k, .columns = (double)shape->columns, .rows = (double)shape->rows};
    is.grains = shape->grains > 0 ? (double)shape->grains : usual_grains(shape);
    is.weighted = shape->weighted;
    is.vector = is.columns * sizeof(double);
    double centres = is.k * is.vector;
    is.model =
        ROUND_BYTES + sizeof(kmeans_model) + 2 * is.vector + (runs > 1 ? 2 : 1) * centres + 2 * is.k * sizeof(double);
    return is;
}

/* Of a partial with the sums of all clusters. */
static double sum_bytes(const sizes *is)
{
    return is->k * (is->columns + 1 + is->weighted) * sizeof(int64_t);
}

static void add_scan(shoal_cost *out, const sizes *is, bool spread)
{
    tally sum = {0};
    add_rounds(&sum, 1, (tally){.model = is->model, .partial = 2 * is->vector});
    if (spread)
        add_rounds(&sum, 1, (tally){.model = is->model, .partial = 2 * is->vector});
    add_cost_phase(out, "scan", &sum);
}

/* Potentials, the first row, what that saves; then for every other centre a few rows and what each of them would
 * save. */
static void add_greedy(tally *sum, const sizes *is, double runs)
{
    double trials = (double)seed_trials((int64_t)is->k), others = is->k - 1, model = is->model + sizeof(seed_state);
    double words = is->grains * sizeof(int64_t), record = RECORD_KEY + is->vector;
    add_rounds(sum, runs, (tally){.model = model, .partial = words});
    add_rounds(sum, runs, (tally){.model = model + sizeof(seed_draw), .partial = record});
    add_rounds(sum, runs, (tally){.operations = 2 * is->columns, .model = model + is->vector, .partial = words});
    add_rounds(sum, runs * others, (tally){.model = model + trials * sizeof(seed_draw), .partial = trials * record});
    add_rounds(sum, runs * others,
               (tally){.operations = 2 * (trials + 1) * is->columns,
                       .model = model + trials * is->vector,
                       .partial = trials * words});
}

/* Potentials, the first row, its distances; then samples and their distances, a few times over. */
static void add_parallel(tally *sum, const sizes *is, double runs)
{
    double samples = fmin(SEED_SAMPLES_PER_CENTRE * is->k, is->rows), model = is->model + sizeof(seed_state);
    double record = RECORD_KEY + is->vector, word = sizeof(int64_t);
    add_rounds(sum, runs, (tally){.model = model, .partial = is->grains * word});
    add_rounds(sum, runs, (tally){.model = model + sizeof(seed_draw), .partial = record});
    add_rounds(sum, runs, (tally){.operations = 2 * is->columns, .model = model + is->vector, .partial = 2 * word});
    for (int step = 1; step <= SEED_SAMPLING_ROUNDS; step++) {
        double before = fmin(1 + (step - 1) * samples, is->rows), after = fmin(before + samples, is->rows);
        add_rounds(sum, runs, (tally){.model = model + before * is->vector, .partial = (after - before) * record});
        add_rounds(sum, runs,
                   (tally){.operations = 2 * (after - before) * is->columns,
                           .model = model + after * is->vector,
                           .partial = after * word});
    }
}

/* A sample of rows for each run. */
static void add_scatter(tally *sum, const sizes *is, double sample, double runs)
{
    add_rounds(sum, runs, (tally){.model = is->model, .partial = sample * (RECORD_KEY + is->vector + sizeof(int64_t))});
}

/* Looks at a sample of rows: to improve first centres that were not given, and to compare runs. */
static void add_rates(tally *sum, const sizes *is, double sample, int64_t start, double runs)
{
    const double looks = (start == KMEANS_START_GIVEN ? 0 : BATCH_POLISHES) + (runs > 1);
    add_rounds(sum, runs * looks,
               (tally){.operations = 2 * is->k * is->columns * sample / is->rows,
                       .model = is->model + sizeof(batch_state),
                       .partial = sum_bytes(is)});
}

static void add_seeding(shoal_cost *out, const sizes *is, const shoal_kmeans_config *config, int64_t start, double runs)
{
    const double sample = (double)kmeans_init_size(config, (int64_t)is->rows);
    tally sum = {0};
    if (config->batch > 0)
        add_rates(&sum, is, sample, start, runs);
    if (start == KMEANS_START_GREEDY && config->batch > 0)
        add_scatter(&sum, is, sample, runs);
    else if (start == KMEANS_START_GREEDY)
        add_greedy(&sum, is, runs);
    else if (start == KMEANS_START_PARALLEL)
        add_parallel(&sum, is, runs);
    else if (start == KMEANS_START_RANDOM)
        add_rounds(&sum, runs,
                   (tally){.model = is->model + sizeof(seed_state) + is->k * sizeof(seed_draw),
                           .partial = is->k * (RECORD_KEY + is->vector)});
    add_cost_phase(out, "seed", &sum);
}

/* Updates of the centres, and a last round of labels, which has the distance to its own centre for each row. */
static void add_run(shoal_cost *out, const sizes *is, double updates, double labels, double row_bytes)
{
    double scores = 2 * is->k * is->columns, sums = sum_bytes(is);
    tally sum = {0};
    add_rounds(&sum, updates, (tally){.operations = scores, .model = is->model, .partial = sums});
    add_rounds(&sum, labels,
               (tally){.operations = scores + 3 * is->columns,
                       .model = is->model,
                       .partial = is->k * sizeof(int64_t),
                       .row = row_bytes});
    add_cost_phase(out, "run", &sum);
}

/* Batches, of which refilling is no more than a small part, and a last round of labels. */
static void add_batches(shoal_cost *out, const sizes *is, const shoal_kmeans_config *config)
{
    const double rows = fmin((double)config->batch, is->rows), steps = ceil(is->rows / rows);
    const double sums = sum_bytes(is), scores = 2 * is->k * is->columns, model = is->model + sizeof(batch_state);
    tally sum = {0};
    add_rounds(&sum, steps * (double)config->iterations,
               (tally){.operations = (scores + 3 * is->columns) * rows / is->rows, .model = model, .partial = sums});
    add_rounds(&sum, 1,
               (tally){.operations = scores + 3 * is->columns,
                       .model = is->model,
                       .partial = is->k * sizeof(int64_t),
                       .row = sizeof(int32_t)});
    add_cost_phase(out, "run", &sum);
}

/* The flat fields are those of the phase that does the work. */
static void finish_cost(shoal_cost *out)
{
    const shoal_cost_phase *main = &out->phase[out->phases - 1];
    double rounds = 0;
    for (int i = 0; i < out->phases; i++)
        rounds += out->phase[i].rounds;
    out->operations_per_row = main->operations_per_row;
    out->model_bytes = main->model_bytes;
    out->partial_bytes = main->partial_bytes;
    out->memo_row_bytes = KMEANS_MEMO_BYTES;
    out->rounds = (int64_t)fmin(rounds, 0x1p62);
}

/* Of one K. */
static int cost_of_one(shoal_cost *out, const shoal_kmeans_config *config, const shoal_shape *shape)
{
    int64_t start = KMEANS_START_RANDOM;
    int status = kmeans_choose_start(&start, config);
    if (status < 0)
        return status;
    int64_t runs = start == KMEANS_START_GIVEN || config->runs < 1 ? 1 : config->runs;
    sizes is = sizes_of(config->k, runs, shape);
    is.model += config->batch > 0 ? is.k * sizeof(double) : 0;
    *out = (shoal_cost){0};
    add_scan(out, &is, true);
    add_seeding(out, &is, config, start, (double)runs);
    if (config->batch > 0) {
        add_batches(out, &is, config);
        finish_cost(out);
        return SHOAL_OK;
    }
    /* Unless the last run is the best, rows get the labels of the best one at the end. */
    add_run(out, &is, (double)runs * (double)config->iterations, (double)(runs + (runs > 1)), sizeof(int32_t));
    finish_cost(out);
    return SHOAL_OK;
}

/* Whether K starts from a clustering of a sample, and needs no seeding. */
static bool is_searched(const shoal_kmeans_config *config)
{
    return (!config->init || strcmp(config->init, "auto") == 0) && config->runs <= 1 &&
           config->k <= KMEANS_SEARCH_K_MOST;
}

/* Adds the rounds of a phase to those of the same name. */
static void add_phase(shoal_cost *out, const shoal_cost_phase *more)
{
    int i = 0;
    while (i < out->phases && strcmp(out->phase[i].name, more->name) != 0)
        i++;
    if (i == out->phases) {
        out->phase[out->phases++] = *more;
        return;
    }
    shoal_cost_phase *sum = &out->phase[i];
    const double rounds = sum->rounds + more->rounds, old = sum->rounds / rounds, new = more->rounds / rounds;
    sum->operations_per_row = old * sum->operations_per_row + new * more->operations_per_row;
    sum->model_bytes = old * sum->model_bytes + new * more->model_bytes;
    sum->partial_bytes = old * sum->partial_bytes + new * more->partial_bytes;
    sum->row_bytes = old * sum->row_bytes + new * more->row_bytes;
    sum->rounds = rounds;
}

/* Several K are scanned for once; each is as a run of its own, of which the labels of one are sent. */
int kmeans_cost(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    shoal_kmeans_config config = *(const shoal_kmeans_config *)untyped;
    base_counts ks;
    int status = kmeans_read_ks(&ks, &config);
    if (status < 0 || !config.ks || config.k != 0)
        return status < 0 ? status : cost_of_one(out, &config, shape);
    *out = (shoal_cost){0};
    for (int64_t t = 0; t < ks.count && status == SHOAL_OK; t++) {
        shoal_cost one = {0};
        config.k = ks.value[t];
        status = cost_of_one(&one, &config, shape);
        for (int i = 0; i < one.phases && status == SHOAL_OK; i++) {
            const bool seeds = strcmp(one.phase[i].name, "seed") == 0, scans = strcmp(one.phase[i].name, "scan") == 0;
            if (scans ? t == 0 : !(seeds && is_searched(&config)))
                add_phase(out, &one.phase[i]);
        }
    }
    if (status == SHOAL_OK)
        finish_cost(out);
    return status;
}

int kmeans_cost_predict(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    const shoal_predict_config *config = untyped;
    const sizes is = sizes_of(config->k, 1, shape);
    const double word = sizeof(double);
    *out = (shoal_cost){0};
    add_scan(out, &is, false);
    add_run(out, &is, 0, 1,
            sizeof(int32_t) + word * ((config->distances ? 1 : 0) + (config->all_distances ? (double)config->k : 0)));
    finish_cost(out);
    return SHOAL_OK;
}
