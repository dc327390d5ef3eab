/* Mapping: what every engine does with the rows a process holds.
 *
 * A *mapper* is what one process computes with: threads, their scratch, and what the learner derived from the round's
 * model. A *slice* is a run of grains with what belongs to it between rounds: its memo and its carried sums.  The
 * threads engine has one slice, the whole data set; a worker of a job has several.
 *
 *     engine_mapper_begin(mapper, round);                  // once a round
 *     engine_slice_map(&partial, mapper, slice);           // for each slice; the partial belongs to the slice
 * */
#ifndef ENGINE_SLICE_H
#define ENGINE_SLICE_H

#include <shoal/learn.h>

#include "base/pool.h"
#include "kernel/kernel.h"

typedef struct engine_mapper engine_mapper;

/* *shape and *algorithm must last as long as the mapper. */
int engine_mapper_new(engine_mapper **out, const shoal_algorithm *algorithm, const shoal_shape *shape, int threads,
                      const kernel_set *kernel);
void engine_mapper_free(engine_mapper **mapper);
/* For update, and anything else that runs on all threads. */
const shoal_crew *engine_mapper_crew(const engine_mapper *mapper);
base_pool *engine_mapper_pool(engine_mapper *mapper);
/* A non-zero *stop ends a map between two grains with SHOAL_STOPPED; NULL, the default, for never. */
void engine_mapper_watch(engine_mapper *mapper, const _Atomic uint32_t *stop);
/* `poll` is called between grains by the thread that called the map; NULL, the default, for never. */
void engine_mapper_poll(engine_mapper *mapper, void (*poll)(void *context), void *context);

/* The scratch of all threads together, and what maps allocate besides, may take this many bytes: a round that needs
 * more fails with SHOAL_MEMORY; 0, the default, for no limit. */
void engine_mapper_limit(engine_mapper *mapper, int64_t bytes);

/* The memo of a slice may take this many bytes: of a learner that spares_memo a larger one is left out; -1, the
 * default, for any number. */
void engine_mapper_memo(engine_mapper *mapper, int64_t bytes);
/* Bytes of the largest memo that was left out; 0 for none. */
int64_t engine_mapper_spared(const engine_mapper *mapper);

/* Bytes of scratch that all threads together have now. */
int64_t engine_mapper_scratch(const engine_mapper *mapper);

/* The folder of the files that the run brings along, which must last as long as the mapper; NULL, the default, for
 * none. */
void engine_mapper_bring(engine_mapper *mapper, const char *code);

/* The blobs that maps get and put, as in shoal_crew; NULL, the default, for none. */
void engine_mapper_blobs(engine_mapper *mapper, const shoal_blobs *from, const shoal_blobs *to);

/* Where the rows of partials go that `into` names, as shoal_run_options.into has it; NULL, the default, for nowhere. */
void engine_mapper_into(engine_mapper *mapper, const shoal_row_memory *into);

/* The device that learners may attach slices to, and that must last as long as the mapper; NULL, the default, for none.
 */
void engine_mapper_device(engine_mapper *mapper, struct kernel_device *device);
/* Why a slice is no longer mapped on the device; "" while none was lost. */
const char *engine_mapper_lost(const engine_mapper *mapper);

/* Readies the mapper for the round, which must last until the next one begins. */
int engine_mapper_begin(engine_mapper *mapper, const shoal_round *round);
/* Adds what maps counted since the last call to counter[SHOAL_COUNTERS]. */
void engine_mapper_counted(engine_mapper *mapper, int64_t *counter);

/* Where a slice's rows come from. */
typedef struct engine_rows {
    /* Sets *out to `rows` rows from `first_row`, of the whole data set, for one thread of the mapper, until its next
     * call. */
    int (*read)(void *context, const void **out, int64_t first_row, int64_t rows, int thread);
    /* Called after a map has read everything: fails if those were not the right rows.  NULL for rows that nothing can
     * change. */
    int (*check)(void *context);
    void *context;
    const void *resident;  /* the slice's first row, behind which all others are; NULL for rows that must be read */
    const double *weights; /* of the slice's first row and so on, or NULL */
} engine_rows;

typedef struct engine_slice engine_slice;

int engine_slice_new(engine_slice **out, int64_t first_grain, int64_t grains, const engine_rows *rows);
void engine_slice_free(engine_slice **slice);
/* Maps all grains of the slice for the round that was begun.  *out is settled, belongs to the slice, and is valid until
 * its next map; its ROW cells may be taken. */
int engine_slice_map(shoal_partial **out, engine_mapper *mapper, engine_slice *slice);

/* The same in `parts` parts, one after another; after each, `done` is called: the grains of that part now have all
 * their ROW cells in *partial.  `done` may be NULL. */
typedef struct engine_parts {
    int64_t parts; /* at least 1 */
    void (*done)(void *context, shoal_partial *partial, int64_t part);
    void *context;
} engine_parts;
int engine_slice_map_parts(shoal_partial **out, engine_mapper *mapper, engine_slice *slice, const engine_parts *parts);
/* The grains of part `part` of a slice: how many come before it; part == parts gives all. */
int64_t engine_part_begin(int64_t grains, int64_t parts, int64_t part);

/* Does several rounds at once, from a round that need not be begun, where the slice has all rows and the learner can:
 * *next is the round after *rounds of them, not numbered; NULL, and 0 rounds, where it can't. */
int engine_slice_leap(shoal_round **next, int64_t *rounds, engine_mapper *mapper, engine_slice *slice,
                      const shoal_round *round, int64_t most);
/* Whether rows of the slice lie on the device. */
bool engine_slice_held(const engine_slice *slice);

/* The rows that `grains` grains from `first_grain` have. */
int64_t engine_rows_of(const shoal_shape *shape, int64_t first_grain, int64_t grains);

#endif
