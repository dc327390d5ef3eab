/* Rounds and partials as somebody who can write to a store would forge them, and what learners do with them: what
 * passes their check goes on through prepare, map and update.  For the sanitizers to look at; used by
 * fuzz/fuzz_rounds.c and unit/test_forged.c.
 *
 * At first every learner runs once over a few rows, with options that lead it through all its phases, and each round
 * and merged partial of that is kept as bytes; one that none are named for here runs with those of its probe.  Then
 * numbers in them are changed: eight bytes each, at a place and to a value that the caller chooses. Frames and
 * checksums are not in the way, since whoever forges a blob makes new ones. */
#ifndef TESTS_FORGED_H
#define TESTS_FORGED_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shoal/autoencoder.h>
#include <shoal/kmeans.h>
#include <shoal/logistic.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/random.h"
#include "engine/engine_internal.h"
#include "engine/slice.h"
#include "kernel/kernel.h"
#include "learn/check.h"
#include "learn/face.h"
#include "learn/partial.h"
#include "learn/train/train_internal.h"
#include "learn/wire.h"

enum { ROWS = 96, COLUMNS = 4, GRAIN = 20, ROUNDS_MOST = 64, RUNS_MOST = 33 };

/* ---- honest runs ------------------------------------------------------------------------------------------------- */

typedef struct moment {
    void *round, *partial; /* as they travel */
    size_t round_bytes, partial_bytes;
    int64_t number;
    int keeps;
    void *kept[SHOAL_KEPT_MOST];
    size_t kept_bytes[SHOAL_KEPT_MOST];
} moment;

typedef struct run {
    const shoal_algorithm *algorithm;
    shoal_shape shape;
    shoal_round *first;
    engine_mapper *mapper;
    int moments;
    moment moment[ROUNDS_MOST];
} run;

static run runs[RUNS_MOST];
static int runs_made;
static float rows32[ROWS * COLUMNS];
static uint8_t rows8[ROWS * COLUMNS];
static double weights[ROWS];
static const kernel_set *kernel;

static inline void must(int status)
{
    if (status < 0)
        abort();
}

static inline int read_here(void *context, const void **out, int64_t first_row, int64_t count, int thread)
{
    const run *of = context;
    (void)count, (void)thread;
    const int64_t at = first_row * of->shape.columns;
    *out = of->shape.type == SHOAL_UINT8 ? (const void *)(rows8 + at) : (const void *)(rows32 + at);
    return SHOAL_OK;
}

static inline engine_slice *new_slice(run *of)
{
    engine_slice *slice = NULL;
    const engine_rows rows = {.read = read_here, .context = of, .weights = of->shape.weighted ? weights : NULL};
    must(engine_slice_new(&slice, 0, of->shape.grains, &rows));
    return slice;
}

static inline void remember(moment *out, const shoal_round *round, const shoal_partial *partial)
{
    base_writer to_round = {0}, to_partial = {0};
    learn_round_write(&to_round, round);
    learn_partial_write(&to_partial, partial);
    must(base_writer_take(&to_round, &out->round, &out->round_bytes));
    must(base_writer_take(&to_partial, &out->partial, &out->partial_bytes));
    out->number = round->number;
    out->keeps = round->keeps;
    for (int i = 0; i < round->keeps; i++) {
        out->kept_bytes[i] = round->kept[i]->bytes;
        must(base_alloc_unset(&out->kept[i], round->kept[i]->bytes, 1, "kept"));
        memcpy(out->kept[i], round->kept[i]->values, round->kept[i]->bytes);
    }
}

/* Runs a learner to its end; what it makes of honest rows must pass its own checks.  The caller frees the result. */
static inline shoal_result *run_to_end(const shoal_algorithm *algorithm, const void *config, int64_t columns,
                                       shoal_type type, bool weighted)
{
    if (runs_made == RUNS_MOST)
        abort();
    run *of = &runs[runs_made++];
    shoal_round *round = NULL;
    shoal_result *result = NULL;
    engine_mapper *mapper = NULL;
    *of = (run){.algorithm = algorithm,
                .shape = {.rows = ROWS,
                          .columns = columns,
                          .type = type,
                          .weighted = weighted,
                          .rows_per_grain = GRAIN,
                          .grains = (ROWS + GRAIN - 1) / GRAIN}};
    if (algorithm->strata)
        must(algorithm->strata(config, &of->shape));
    of->shape.strata = of->shape.strata < of->shape.grains ? of->shape.strata : of->shape.grains;
    engine_slice *slice = new_slice(of);
    must(engine_mapper_new(&mapper, algorithm, &of->shape, 1, kernel));
    must(algorithm->start(&of->first, config, &of->shape));
    must(algorithm->start(&round, config, &of->shape));
    while (!result) {
        shoal_partial *merged = NULL;
        shoal_round *next = NULL;
        must(learn_round_check(algorithm, round, &of->shape));
        must(engine_mapper_begin(mapper, round));
        must(engine_slice_map(&merged, mapper, slice));
        if (of->moments < ROUNDS_MOST)
            remember(&of->moment[of->moments++], round, merged);
        must(algorithm->update(&next, &result, round, merged, &of->shape, engine_mapper_crew(mapper), false));
        if (next)
            engine_number_round(next, round->number + 1);
        shoal_round_free(&round);
        round = next;
    }
    must(learn_result_check(algorithm, result, of->first, &of->shape));
    engine_slice_free(&slice);
    of->mapper = mapper;
    return result;
}

static inline void make_run(const shoal_algorithm *algorithm, const void *config, shoal_type type, bool weighted)
{
    shoal_result *result = run_to_end(algorithm, config, COLUMNS, type, weighted);
    shoal_result_free(&result);
}

static inline void make_kmeans(const char *init, int64_t k, int64_t count, int empty, shoal_type type, bool weighted)
{
    static const double far[3 * COLUMNS] = {1e3, 1e3, 1e3, 1e3, 2e3, 2e3, 2e3, 2e3}; /* two that nothing is near */
    shoal_kmeans_config config = {0};
    must(shoal_options_default(&config, shoal_kmeans.options));
    config.k = k;
    config.init = init;
    config.start = strcmp(init, "given") == 0 ? far : NULL;
    config.iterations = 6;
    config.tolerance = 0;
    config.runs = count;
    config.empty = empty;
    make_run(&shoal_kmeans, &config, type, weighted);
}

static inline void make_several_kmeans(const char *init, const char *ks, int64_t count, shoal_type type, bool weighted,
                                       shoal_kmeans_metric metric)
{
    shoal_kmeans_config config = {0};
    must(shoal_options_default(&config, shoal_kmeans.options));
    config.metric = metric;
    config.ks = ks;
    config.init = init;
    config.iterations = 3;
    config.runs = count;
    config.sample = 40;
    make_run(&shoal_kmeans, &config, type, weighted);
}

static inline void make_batch_kmeans(const char *init, int64_t k, int64_t count, shoal_type type, bool weighted,
                                     shoal_kmeans_metric metric)
{
    shoal_kmeans_config config = {0};
    must(shoal_options_default(&config, shoal_kmeans.options));
    config.metric = metric;
    config.k = k;
    config.init = init;
    config.iterations = 3;
    config.runs = count;
    config.batch = 20;
    config.init_size = 24;
    config.reassignment_ratio = 0.6; /* some clusters are always to be moved */
    make_run(&shoal_kmeans, &config, type, weighted);
}

static inline void make_kmeans_runs(void)
{
    static const double centres[2 * COLUMNS] = {0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75};
    const shoal_predict_config predict = {.centres = centres, .k = 2, .columns = COLUMNS, .distances = true};
    make_kmeans("kmeans++", 5, 1, SHOAL_EMPTY_FARTHEST, SHOAL_FLOAT32, false);
    make_kmeans("kmeans++", 4, 2, SHOAL_EMPTY_SPLIT, SHOAL_UINT8, true);
    make_kmeans("parallel", 6, 1, SHOAL_EMPTY_KEEP, SHOAL_FLOAT32, true);
    make_kmeans("parallel", 6, 2, SHOAL_EMPTY_FARTHEST, SHOAL_UINT8, false);
    make_kmeans("random", 7, 3, SHOAL_EMPTY_FARTHEST, SHOAL_FLOAT32, false);
    make_kmeans("given", 3, 1, SHOAL_EMPTY_FARTHEST, SHOAL_FLOAT32, true);
    make_kmeans("given", 3, 1, SHOAL_EMPTY_SPLIT, SHOAL_UINT8, false);
    make_several_kmeans("auto", "2..4", 1, SHOAL_FLOAT32, true, SHOAL_METRIC_EUCLIDEAN);
    make_several_kmeans("random", "1,5", 2, SHOAL_UINT8, false, SHOAL_METRIC_EUCLIDEAN);
    make_several_kmeans("auto", "2,3", 1, SHOAL_FLOAT32, false, SHOAL_METRIC_COSINE);
    make_batch_kmeans("auto", 7, 1, SHOAL_FLOAT32, true, SHOAL_METRIC_EUCLIDEAN);
    make_batch_kmeans("auto", 3, 2, SHOAL_UINT8, false, SHOAL_METRIC_EUCLIDEAN);
    make_batch_kmeans("random", 4, 1, SHOAL_FLOAT32, false, SHOAL_METRIC_COSINE);
    make_run(&shoal_kmeans_predict, &predict, SHOAL_FLOAT32, false);
}

/* The last column is the label. */
static inline void make_logistic(double l1, bool softmax)
{
    shoal_logistic_config config = {0};
    must(shoal_options_default(&config, shoal_logistic.options));
    config.l1 = l1;
    config.iterations = 5;
    for (int i = 0; i < ROWS; i++)
        rows32[i * COLUMNS + COLUMNS - 1] = (float)(softmax ? i % 3 : i % 2);
    make_run(&shoal_logistic, &config, SHOAL_FLOAT32, softmax);
}

static inline void make_gradient_runs(void)
{
    static const double model[3 * COLUMNS + 3] = {1, 2, 3}, classes[3] = {0, 1, 2};
    const shoal_logistic_predict_config predict = {.weights = model,
                                                   .intercept = model,
                                                   .classes = classes,
                                                   .columns = COLUMNS,
                                                   .outputs = 3,
                                                   .classes_count = 3,
                                                   .probabilities = true};
    const shoal_features_config features = {
        .encoder = model, .bias = model, .hidden = 2, .columns = COLUMNS, .precision = 1, .scale = 1};
    shoal_autoencoder_config config = {0};
    make_run(&shoal_logistic_predict, &predict, SHOAL_FLOAT32, false);
    make_run(&shoal_features, &features, SHOAL_FLOAT32, false);
    must(shoal_options_default(&config, shoal_autoencoder.options));
    config.hidden = 2;
    config.iterations = 4;
    config.sparsity_weight = 1;
    make_run(&shoal_autoencoder, &config, SHOAL_FLOAT32, false);
    config.tied = true;
    config.sparsity_weight = 0;
    config.precision = 2;
    make_run(&shoal_autoencoder, &config, SHOAL_FLOAT32, false);
    make_logistic(0, false);
    make_logistic(0.1, true);
}

/* ---- every other learner ----------------------------------------------------------------------------------------- */

static inline bool is_run(const shoal_algorithm *algorithm)
{
    for (int r = 0; r < runs_made; r++)
        if (runs[r].algorithm == algorithm)
            return true;
    return false;
}

/* Applies what was found, as a file, to rows. */
static inline void make_predictor_run(const learn_face *face, const learn_ended *ended)
{
    const shoal_algorithm *algorithm = face->predictor->algorithm;
    char path[] = "/tmp/shoal-forged-XXXXXX";
    int file = mkstemp(path);
    learn_applied applied = {0};
    learn_model_file model = {0};
    must(file);
    close(file);
    must(learn_model_file_write(path, face, ended));
    must(learn_model_file_open(&model, path));
    must(base_alloc(&applied.config, 1, algorithm->config_size, "a model"));
    for (int i = 0; face->predictor->outputs[i].name; i++)
        applied.wanted[i] = true;
    must(face->predictor->load(&applied, &model, path));
    if (face->predictor->settle)
        face->predictor->settle(&applied, &(learn_rows){.columns = applied.columns, .type = SHOAL_FLOAT32});
    shoal_result *result = run_to_end(algorithm, applied.config, applied.columns, SHOAL_FLOAT32, false);
    shoal_result_free(&result);
    learn_model_file_close(&model);
    unlink(path);
    for (int i = 0; i < LEARN_VALUES_MOST; i++)
        base_free(&applied.values[i]);
    base_free(&applied.config);
}

/* A learner by what its face says of a probe: the labels of classes are in the last column. */
static inline void make_face_run(const learn_face *face)
{
    const shoal_algorithm *algorithm = face->algorithm;
    void *config = NULL;
    must(base_alloc(&config, 1, algorithm->config_size, "options"));
    must(shoal_options_default(config, algorithm->options));
    for (int i = 0; face->probe->set[i][0]; i++)
        must(shoal_options_set(config, algorithm->options, face->probe->set[i][0], face->probe->set[i][1]));
    if (face->probe->size_option)
        must(shoal_options_set(config, algorithm->options, face->probe->size_option, "2"));
    shoal_result *result = run_to_end(algorithm, config, COLUMNS, SHOAL_FLOAT32, true);
    const learn_ended ended = {
        .config = config, .result = result, .rows = {.rows = ROWS, .columns = COLUMNS, .type = SHOAL_FLOAT32}};
    if (face->predictor && !is_run(face->predictor->algorithm))
        make_predictor_run(face, &ended);
    shoal_result_free(&result);
    base_free(&config);
}

/* The same net with a part that is frozen, whose outputs are kept with the rows: of its weights only the number matters
 * to who forges rounds. */
static inline void make_frozen_run(const learn_face *face, void *untyped)
{
    train_config *config = untyped;
    double *weights_of = NULL;
    must(base_alloc(&weights_of, 1000, sizeof *weights_of, "weights"));
    config->freeze = "2";
    config->start = weights_of;
    for (int i = 0; i < TRAIN_LAYERS_MOST; i++)
        config->started[i] = true;
    shoal_result *result = run_to_end(face->algorithm, config, COLUMNS, SHOAL_FLOAT32, false);
    shoal_result_free(&result);
    base_free(&weights_of);
}

/* A net with every kind of layer that has something to go wrong, some rows held out; labels are in the last column. */
static inline void make_train_runs(void)
{
    static const char *const set[][2] = {{"net", "batch norm; dense 6 relu; dropout 0.5; save a; dense 6; "
                                                 "batch norm; add a; dense 3 softmax"},
                                         {"batch", "32"},
                                         {"epochs", "2"},
                                         {"group", "5"},
                                         {"optimiser", "adam"},
                                         {"validation", "0.2"}};
    const learn_face *face = learn_face_find("train");
    void *config = NULL;
    must(base_alloc(&config, 1, face->algorithm->config_size, "options"));
    must(shoal_options_default(config, face->algorithm->options));
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        must(shoal_options_set(config, face->algorithm->options, set[i][0], set[i][1]));
    for (int i = 0; i < ROWS; i++)
        rows32[i * COLUMNS + COLUMNS - 1] = (float)(i % 3);
    shoal_result *result = run_to_end(face->algorithm, config, COLUMNS, SHOAL_FLOAT32, false);
    const learn_ended ended = {
        .config = config, .result = result, .rows = {.rows = ROWS, .columns = COLUMNS, .type = SHOAL_FLOAT32}};
    make_predictor_run(face, &ended);
    shoal_result_free(&result);
    make_frozen_run(face, config);
    base_free(&config);
}

/* Learners that no run above is of, and that rows of numbers are enough for: tests/unit/test_pack.c has the other. */
static inline void make_other_runs(void)
{
    for (const learn_face *const *face = learn_faces; *face; face++)
        if ((*face)->probe && !is_run((*face)->algorithm))
            make_face_run(*face);
}

static inline void forget_runs(void)
{
    for (int r = 0; r < runs_made; r++) {
        run *of = &runs[r];
        for (int m = 0; m < of->moments; m++) {
            base_free(&of->moment[m].round);
            base_free(&of->moment[m].partial);
            for (int i = 0; i < of->moment[m].keeps; i++)
                base_free(&of->moment[m].kept[i]);
        }
        shoal_round_free(&of->first);
        engine_mapper_free(&of->mapper);
    }
    runs_made = 0;
}

static inline void make_runs(void)
{
    must(kernel_choose(&kernel, NULL));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        rows32[i] = (float)base_random_unit(1, BASE_FOR_DATA, (uint64_t)i, 0);
        rows8[i] = (uint8_t)(rows32[i] * 255);
    }
    for (int i = 0; i < ROWS; i++)
        weights[i] = i % 7 == 0 ? 0 : 1 + i % 3;
    make_kmeans_runs();
    make_gradient_runs();
    make_train_runs();
    make_other_runs();
}

/* ---- forged rounds ----------------------------------------------------------------------------------------------- */

/* Numbers that ask whether anybody looked. */
static inline uint64_t forged_word(uint64_t was, uint8_t which, uint16_t number)
{
    static const double reals[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 1e-320, -1, 0.5};
    uint64_t bits;
    switch (which % 8) {
    case 0: return number;
    case 1: return -(uint64_t)number;
    case 2: return was + number;
    case 3: return was - number;
    case 4: return UINT64_C(1) << number % 64;
    case 5: return (UINT64_C(1) << number % 64) - 1;
    case 6: memcpy(&bits, &reals[number % (sizeof reals / sizeof *reals)], sizeof bits); return bits;
    default: return was ^ UINT64_C(1) << number % 64;
    }
}

/* A word to be changed: counted from the end, where a round has its model, since words of a model need not lie at
 * multiples of 8 on the way. */
typedef struct forgery {
    bool partial; /* in the partial rather than in the round */
    uint16_t where;
    uint8_t which;
    uint16_t number;
} forgery;

static inline size_t forged_place(size_t size, uint16_t where)
{
    return size - sizeof(uint64_t) - (size_t)where * 8 % (size - sizeof(uint64_t) + 1);
}

static inline void forge(unsigned char *bytes, size_t size, const forgery *change, int changes, bool partial)
{
    for (int i = 0; i < changes; i++) {
        uint64_t word;
        if (change[i].partial != partial || size < sizeof word)
            continue;
        unsigned char *at = bytes + forged_place(size, change[i].where);
        memcpy(&word, at, sizeof word);
        word = forged_word(word, change[i].which, change[i].number);
        memcpy(at, &word, sizeof word);
    }
}

static inline shoal_round *read_forged_round(const moment *of, const forgery *change, int changes)
{
    shoal_round *round = NULL;
    unsigned char *copy = malloc(of->round_bytes);
    memcpy(copy, of->round, of->round_bytes);
    forge(copy, of->round_bytes, change, changes, false);
    base_reader in = base_reader_of(copy, of->round_bytes);
    if (learn_round_read(&round, &in) == SHOAL_OK && round->number != of->number)
        shoal_round_free(&round); /* as engines do */
    free(copy);
    return round;
}

/* What a round keeps is fetched by who leads, and has the length that the round says. */
static inline bool fetch_kept(shoal_round *round, const moment *of)
{
    for (int i = 0; i < round->keeps; i++) {
        if (i >= of->keeps || round->kept[i]->bytes != of->kept_bytes[i])
            return false;
        must(base_alloc_unset(&round->kept[i]->values, of->kept_bytes[i], 1, "kept"));
        memcpy(round->kept[i]->values, of->kept[i], of->kept_bytes[i]);
    }
    return true;
}

/* A partial of the round's layout with the forged bytes of the honest one added. */
static inline shoal_partial *read_forged_partial(const shoal_round *round, const moment *of, const forgery *change,
                                                 int changes)
{
    shoal_partial *into = NULL;
    unsigned char *copy = malloc(of->partial_bytes);
    uint32_t hash = learn_layout_hash(&round->layout);
    memcpy(copy, of->partial, of->partial_bytes);
    forge(copy, of->partial_bytes, change, changes, true);
    memcpy(copy, &hash, sizeof hash);
    must(learn_partial_new(&into, &round->layout, 0, ROWS, NULL));
    base_reader in = base_reader_of(copy, of->partial_bytes);
    if (learn_partial_merge_read(into, &in) < 0 || learn_partial_settle(into) < 0)
        learn_partial_free(&into);
    free(copy);
    return into;
}

static inline void update_with(run *of, const shoal_round *round, shoal_partial *merged, engine_mapper *mapper,
                               bool stop)
{
    shoal_round *next = NULL;
    shoal_result *result = NULL;
    int status = of->algorithm->update(&next, &result, round, merged, &of->shape, engine_mapper_crew(mapper), stop);
    if (status == SHOAL_OK && !next == !result)
        abort();
    if (status < 0 && shoal_error()[0] == '\0')
        abort();
    if (next) {
        engine_number_round(next, round->number + 1);
        learn_round_check(of->algorithm, next, &of->shape); /* may say no, as engines ask before they put it */
    }
    if (status == SHOAL_OK && result)
        learn_result_check(of->algorithm, result, of->first, &of->shape);
    shoal_round_free(&next);
    shoal_result_free(&result);
}

/* As a worker that has just mapped the honest round before, whose memo is still there. */
static inline void map_honest(run *of, int before, engine_mapper *mapper, engine_slice *slice)
{
    shoal_round *round = NULL;
    shoal_partial *merged = NULL;
    base_reader in = base_reader_of(of->moment[before].round, of->moment[before].round_bytes);
    must(learn_round_read(&round, &in));
    must(engine_mapper_begin(mapper, round));
    must(engine_slice_map(&merged, mapper, slice));
    shoal_round_free(&round);
}

static inline bool changes_round(const forgery *change, int changes)
{
    for (int i = 0; i < changes; i++)
        if (!change[i].partial)
            return true;
    return false;
}

/* Whether the forged round passed the learner's check. */
static inline bool try_forged(run *of, int index, const forgery *change, int changes, bool stop)
{
    const moment *at = &of->moment[index];
    engine_mapper *mapper = of->mapper;
    shoal_partial *merged = NULL, *forged = NULL;
    shoal_round *round = read_forged_round(at, change, changes);
    if (!round || learn_round_check(of->algorithm, round, &of->shape) < 0) {
        shoal_round_free(&round);
        return false;
    }
    engine_slice *slice = NULL;
    bool can_lead = fetch_kept(round, at);
    if (changes_round(change, changes)) { /* an honest one was mapped when the run was made */
        slice = new_slice(of);
        if (index > 0)
            map_honest(of, index - 1, mapper, slice);
        if (engine_mapper_begin(mapper, round) == SHOAL_OK && engine_slice_map(&merged, mapper, slice) == SHOAL_OK &&
            can_lead)
            update_with(of, round, merged, mapper, false);
    }
    if (can_lead && (forged = read_forged_partial(round, at, change, changes)))
        update_with(of, round, forged, mapper, stop);
    learn_partial_free(&forged);
    engine_slice_free(&slice);
    shoal_round_free(&round);
    return true;
}

/* ---- a round of any shape ---------------------------------------------------------------------------------------- */

static inline int read_zeros(void *zeros, const void **out, int64_t first_row, int64_t count, int thread)
{
    (void)first_row, (void)count, (void)thread;
    *out = zeros;
    return SHOAL_OK;
}

/* Maps and updates a round that was checked, if its rows are few enough to be made here. */
static inline void do_round(const shoal_algorithm *algorithm, const shoal_round *round, const shoal_shape *shape)
{
    enum { BYTES_MOST = 1 << 16 };
    static double zeros[BYTES_MOST / 8];
    const kernel_set *set = NULL;
    engine_mapper *mapper = NULL;
    engine_slice *slice = NULL;
    shoal_partial *merged = NULL;
    shoal_round *next = NULL;
    shoal_result *result = NULL;
    const engine_rows rows = {.read = read_zeros, .context = zeros, .weights = shape->weighted ? zeros : NULL};
    if (shape->rows > BYTES_MOST / 8 / shape->columns || shape->grains > 1024)
        return;
    must(kernel_choose(&set, NULL));
    must(engine_slice_new(&slice, 0, shape->grains, &rows));
    must(engine_mapper_new(&mapper, algorithm, shape, 1, set));
    if (engine_mapper_begin(mapper, round) == SHOAL_OK && engine_slice_map(&merged, mapper, slice) == SHOAL_OK)
        (void)algorithm->update(&next, &result, round, merged, shape, engine_mapper_crew(mapper), false);
    shoal_round_free(&next);
    shoal_result_free(&result);
    engine_mapper_free(&mapper);
    engine_slice_free(&slice);
}

#endif
