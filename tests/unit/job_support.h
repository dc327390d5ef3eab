/* What the tests of a job's parts share: a learner that does next to nothing, rows whose values tell where they are,
 * stores, and a folder.  For cmocka: job_setup and job_teardown go with a test. */
#ifndef JOB_SUPPORT_H
#define JOB_SUPPORT_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/job.h>

#include "any_round.h"
#include "base/memory.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_rows.h"
#include "engine/store/job_setup.h"
#include "folder_support.h"
#include "store/store_internal.h"

static char job_folder[64];

static inline int job_setup(void **state)
{
    (void)state;
    strcpy(job_folder, "/tmp/shoal-job-XXXXXX");
    return mkdtemp(job_folder) ? 0 : -1;
}

static inline int job_teardown(void **state)
{
    (void)state;
    return nftw(job_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the test's folder; valid until the eighth call from now. */
static inline const char *at(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", job_folder, name);
    return path;
}

#define EXPECT_OK(call)                                                                                                \
    do {                                                                                                               \
        int status_ = (call);                                                                                          \
        if (status_ != SHOAL_OK)                                                                                       \
            fail_msg("%s: status %d, %s", #call, status_, shoal_error());                                              \
    } while (0)

#define EXPECT_FAIL(call, expected, words)                                                                             \
    do {                                                                                                               \
        int status_ = (call);                                                                                          \
        if (status_ != (expected) || !strstr(shoal_error(), words))                                                    \
            fail_msg("%s: status %d, \"%s\", not %d with \"%s\"", #call, status_, shoal_error(), (int)(expected),      \
                     words);                                                                                           \
    } while (0)

static inline int64_t soon(void)
{
    return shoal_after(20);
}

static inline shoal_store *open_store(const char *url)
{
    shoal_store *store = NULL;
    EXPECT_OK(shoal_store_open(&store, url, &(shoal_store_options){.create = true}, soon()));
    return store;
}

/* The store as if it were far away: it does not wake. */
static inline void make_remote(shoal_store *store)
{
    static struct store_class remote;
    remote = *store->class;
    remote.wakes = false;
    store->class = &remote;
}

/* ---- a learner --------------------------------------------------------------------------------------------------- */

static inline int start_toy(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config;
    if (shape->columns > 100)
        return shoal_fail(SHOAL_USAGE, "toy: no more than 100 columns");
    int status = shoal_round_new(out, 5);
    if (status < 0)
        return status;
    memcpy((*out)->model, "hello", 5);
    (*out)->number = 77; /* set-up must make it 0 */
    snprintf((*out)->phase, sizeof(*out)->phase, "toy");
    (*out)->layout.cells = 1;
    (*out)->layout.cell[0] = (shoal_cell){.name = "sums", .kind = SHOAL_CELL_SUM, .count = 3};
    return SHOAL_OK;
}

static inline size_t scratch_toy(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

/* Jobs of it are looked at, never done. */
static inline int map_toy(shoal_partial *partial, const shoal_round *round, const void *prepared,
                          const shoal_grain *grain, const shoal_scratch *scratch)
{
    (void)partial, (void)round, (void)prepared, (void)grain, (void)scratch;
    return shoal_fail(SHOAL_USAGE, "toy: no map");
}

static inline int update_toy(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                             const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    (void)next, (void)result, (void)round, (void)merged, (void)shape, (void)crew, (void)stop;
    return shoal_fail(SHOAL_USAGE, "toy: no update");
}

static const shoal_algorithm toy = {
    ANY_ROUND,      .name = "toy",        .summary = "a toy", .start = start_toy, .scratch_bytes = scratch_toy,
    .map = map_toy, .update = update_toy, .kernel_free = true};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

enum { ROWS = 1000, COLUMNS = 3 };

static float job_values[ROWS * COLUMNS];
static double job_weights[ROWS];

static inline void fill_values(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        job_values[i] = (float)i / 2;
    for (int i = 0; i < ROWS; i++)
        job_weights[i] = 1 + i / 10.0;
}

static inline shoal_data *wrapped(void)
{
    shoal_data *data = NULL;
    fill_values();
    EXPECT_OK(shoal_data_wrap(&data, job_values, ROWS, COLUMNS, SHOAL_FLOAT32));
    return data;
}

/* ROWS.npy in the test's folder. */
static inline shoal_data *filed(void)
{
    shoal_data *data = NULL;
    fill_values();
    EXPECT_OK(shoal_npy_write(at("rows.npy"), job_values, SHOAL_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS}));
    EXPECT_OK(shoal_data_open(&data, at("rows.npy"), NULL));
    return data;
}

static inline job_spec *spec_of(shoal_store *store, shoal_data *data, const double *weights,
                                const shoal_job_options *options)
{
    job_spec *spec = NULL;
    EXPECT_OK(job_setup_spec(&spec, store, &toy, NULL, data, weights, options));
    return spec;
}

/* As a worker gets it. */
static inline job_spec *announced(shoal_store *store, shoal_data *data, const double *weights, int64_t slices)
{
    job_spec *spec = spec_of(store, data, weights, &(shoal_job_options){.slices = slices, .rows_per_grain = 30}),
             *got = NULL;
    EXPECT_OK(job_setup_announce(store, spec, soon()));
    EXPECT_OK(job_spec_get(&got, store, spec->id, soon()));
    job_spec_free(&spec);
    return got;
}

#endif
