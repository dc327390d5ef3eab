/* What a learner is: rounds of map, exact merge, and update.
 *
 * A learner never sees an engine, a thread or a network.  It says what one round asks of each *grain* (a fixed
 * run of rows), and what to do with the merged answer:
 *
 *     start(config, shape)            -> round 0: a model and the layout of its partial
 *     map(round, grain)               -> adds to the partial; pure, so any thread on any machine may do it, twice
 *     update(round, merged partial)   -> the next round, or the result
 *
 * The engine does the rest: it gives grains to threads, ranks or workers, merges what they add, and asks for the next
 * round, until there is a result.  Three rules make that result the same bytes everywhere, whoever dies on the way:
 *
 * - Merging is exact: integers are added, maxima taken, sets united.  So neither the order of grains nor the number of
 *   workers can change a bit.  Who sums floating-point numbers rounds each to a *quantum* and adds whole numbers of it.
 * - Floating point stays inside one map or one update, in a fixed order.
 * - A round is plain bytes that hold all its maps need.  It may be written to a file, sent to another machine, and
 *   mapped again, so `check` is asked before anything else sees one that came from elsewhere.
 *
 * A round sees all rows, or a *batch* of them, drawn at random (shoal_pick).  Memos, kept bytes and carried sums save
 * time where rounds repeat what the last one did; a learner works without them.
 *
 * examples/least_squares.c is a whole learner in a hundred lines.  In this file: partials, layouts and batches; rounds;
 * results; and at the end the contract itself, shoal_algorithm. */
#ifndef SHOAL_LEARN_H
#define SHOAL_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/data.h>
#include <shoal/error.h>
#include <shoal/option.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- partials ---------------------------------------------------------------------------------------------------- */

typedef enum shoal_cell_kind {
    SHOAL_CELL_SUM,    /* int64, merged by addition */
    SHOAL_CELL_WIDE,   /* 128-bit sums as two int64 digits that are added independently; see shoal_wide_add */
    SHOAL_CELL_MAX,    /* double, merged by maximum; kept as an order-preserving int64, starts at -infinity */
    SHOAL_CELL_RECORD, /* key and bytes, merged by union, sorted by key */
    SHOAL_CELL_ROW     /* bytes for each row, placed by the row's number: labels, say */
} shoal_cell_kind;

/* One named array of cells in a partial. */
typedef struct shoal_cell {
    char name[24]; /* ends with a NUL: layouts travel */
    shoal_cell_kind kind;
    int64_t count; /* SUM, WIDE, MAX: how many; RECORD: keep only this many of the greatest keys, 0 keeps all */
    size_t bytes;  /* RECORD: payload of each; ROW: bytes per row */
    bool carried;  /* SUM, WIDE: map adds only the change since the round `carry_from`, when the grain says so */
} shoal_cell;

enum { SHOAL_CELLS_MOST = 12 };

/* A batch: a round whose maps see a random sample of the rows, as stochastic gradients and mini-batch k-means
 * want it.
 *
 * Rows are drawn from *strata*, the runs of grains that shoal_shape.strata counts; who holds a stratum needs no other
 * rows.  In an *epoch* every row that is not held out has one position, and a batch is a run of positions.  They go
 * round the strata, to each in proportion to its rows; within a stratum the order is a random one of `key` and the
 * stratum.  So a run of E positions, an epoch's, is every row once; another key is another epoch.
 *
 * The rows of a batch that lie in one stratum are mapped in groups: a map sees `group` of them, the last one fewer.
 * What a batch is depends on the pick and the shape alone, never on threads, ranks or workers. */
typedef struct shoal_pick {
    uint64_t key;
    int64_t from, count; /* positions [from, from + count); count 0: this round is no batch.  Past the end: no rows */
    int64_t group;       /* at least 1 where count is not 0 */
} shoal_pick;

/* Which rows the maps of a round that is no batch see. */
typedef enum shoal_part {
    SHOAL_ALL,
    SHOAL_DRAWN, /* those that batches are drawn from: for training */
    SHOAL_HELD   /* those that are held out, shoal_shape.held of them: for validation */
} shoal_part;

/* What a round's partial holds, which rows add to it, and what is kept with each row between rounds. */
typedef struct shoal_layout {
    int cells;
    shoal_cell cell[SHOAL_CELLS_MOST];
    /* The memo: scratch an engine keeps with the rows from round to round.  It may vanish at any moment and must
     * only save time.  It belongs to the process and the kernel set, or device, that wrote it: an engine that changes
     * one of them drops it.  When it is still that of round `carry_from`, grain->carried is true, and then carried
     * cells start from that round's sums instead of zero; it is so for all grains that share those sums, or for none.
     */
    size_t memo_row_bytes;
    int64_t carry_from; /* round whose memo this round can use; -1 for none */
    bool writes_memo;   /* map changes the memo in place: once a grain was mapped its old memo is gone, so mapping the
                         * grain again needs carried = false */
    /* Need strata.  A batch has no ROW and no carried cells, does not write the memo, and has the part SHOAL_ALL. */
    shoal_pick pick;
    shoal_part part;
} shoal_layout;

/* Whether two layouts are the same in everything: what `check` compares a round's layout by. */
SHOAL_API bool shoal_layout_same(const shoal_layout *a, const shoal_layout *b);

/* A record's key: two numbers, the first more significant. */
typedef struct shoal_key {
    uint64_t high, low;
} shoal_key;

typedef struct shoal_partial shoal_partial;

SHOAL_API const shoal_layout *shoal_partial_layout(const shoal_partial *partial);
/* count values of a SUM cell, 2 * count digits of a WIDE cell (low digits first, then high), count keys of a MAX
 * cell. */
SHOAL_API int64_t *shoal_partial_values(shoal_partial *partial, int cell);
SHOAL_API const int64_t *shoal_partial_values_const(const shoal_partial *partial, int cell);
/* Memory of a ROW cell for row `row`, counted in the whole data set; the rows of one grain are contiguous. */
SHOAL_API void *shoal_partial_row(shoal_partial *partial, int cell, int64_t row);
/* Adds a record.  Equal keys with equal bytes are one record. */
SHOAL_API int shoal_partial_record(shoal_partial *partial, int cell, shoal_key key, const void *bytes);
/* The records of a merged partial, sorted by key, greatest last. */
SHOAL_API int64_t shoal_partial_records(const shoal_partial *partial, int cell);
SHOAL_API const void *shoal_partial_record_at(const shoal_partial *partial, int cell, int64_t index, shoal_key *key);

/* Raises entry `index` of a MAX cell to at least `value`; NaN is a bug. */
SHOAL_API void shoal_max_raise(int64_t *values, int64_t index, double value);
SHOAL_API double shoal_max_value(int64_t key);

/* Order-preserving integer of a double (-0 counts as +0): a < b if and only if its key is less. */
SHOAL_API int64_t shoal_order_key(double value);

/* Digits of WIDE cells have base 2^shoal_wide_bits(rows), so that `rows` of them can't overflow an int64. */
SHOAL_API int shoal_wide_bits(int64_t rows);
/* Adds the whole number `value` (a double below 2^(2 * bits) in size) to entry `index` of `count`. */
SHOAL_API void shoal_wide_add(int64_t *digits, int64_t count, int64_t index, double value, int bits);
/* The sum as a double, rounded once. */
SHOAL_API double shoal_wide_value(const int64_t *digits, int64_t count, int64_t index, int bits);

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

typedef struct shoal_shape {
    int64_t rows, columns;
    shoal_type type;
    bool weighted;
    int64_t rows_per_grain, grains;
    /* What batches are drawn from; see shoal_pick.  Stratum s has the grains from s * grains / strata up to (s + 1) *
     * grains / strata; its last rows are held out, in proportion to its rows. */
    int64_t strata; /* 0: there are no batches */
    int64_t held;   /* rows held out in all strata together */
} shoal_shape;

/* The key of an epoch, counted from 0, for the run with this seed. */
SHOAL_API uint64_t shoal_epoch_key(uint64_t seed, int64_t epoch);
/* How many rows a batch has: count, but for the end of the epoch and for strata of different sizes, each of which adds
 * or takes less than one row. */
SHOAL_API int64_t shoal_pick_rows(const shoal_pick *pick, const shoal_shape *shape);

/* Bytes that only `update` needs: an optimiser's history, say.  They never change, so the rounds that hold them share
 * them, and an engine writes them once.  Maps never see them: they are not sent to workers that only map. */
typedef struct shoal_kept {
    int64_t born; /* the round that held them first; -1 while that has no number */
    size_t bytes;
    void *values;    /* aligned to 64; NULL within an engine that has not fetched them */
    uint32_t check;  /* CRC32C of the values, once an engine has needed it */
    int32_t holders; /* rounds that hold them; changed atomically */
} shoal_kept;

enum { SHOAL_KEPT_MOST = 64 };

/* One round: its number, what its maps need to know (the model, flat bytes without pointers), what else the next update
 * needs, and the layout of its partial, which is sent with the model.  The rest is for people. */
typedef struct shoal_round {
    int64_t number;
    void *model;
    size_t model_bytes;
    int keeps;
    shoal_kept *kept[SHOAL_KEPT_MOST]; /* oldest first */
    shoal_layout layout;
    char phase[24];      /* "run" at first; or "scan", "seed", ...: seconds are reported by phase, at most 7 of them */
    int64_t step, steps; /* position in the phase; steps 0 when unknown */
    int64_t k;           /* of a learner that tries several numbers of clusters: the one at hand; else 0 */
    double objective;    /* of the last step; NaN when there is none */
    double change;       /* how far from converged; NaN when there is none */
} shoal_round;

SHOAL_API int shoal_round_new(shoal_round **out, size_t model_bytes);
/* The same for who writes every byte of the model: it holds anything at first. */
SHOAL_API int shoal_round_new_unset(shoal_round **out, size_t model_bytes);
SHOAL_API void shoal_round_free(shoal_round **round);
/* Makes a round keep `bytes` new bytes from now on, and returns them to be filled; NULL with a message.  Once a round,
 * in `update` alone: round 0 keeps nothing. */
SHOAL_API void *shoal_round_keep(shoal_round *round, size_t bytes);
/* Makes `next` also keep number `index` of what `round` keeps. */
SHOAL_API void shoal_round_keep_on(shoal_round *next, const shoal_round *round, int index);

/* What a map sees of the data: a grain, the rows of one that the round's part has, or a group of a batch. */
typedef struct shoal_grain {
    const shoal_shape *shape;
    int64_t index;     /* of the grain; of a batch: of the group, the same whoever maps it */
    int64_t first_row; /* the number of the first row; of a batch: -1 */
    int64_t rows;
    const int64_t *row;    /* of a batch: the number of each row; otherwise NULL */
    const void *values;    /* rows * columns in shape->type */
    const double *weights; /* one per row, or NULL if unweighted */
    void *memo;            /* memo_row_bytes for each row, aligned as memo_row_bytes allows; NULL only if that is 0, or
                            * the learner spares_memo;
                            * of a batch: a copy, to be read only */
    bool carried;          /* memo and carried sums are those of round layout.carry_from */
} shoal_grain;

/* What a thread lends a map. */
typedef struct shoal_scratch {
    void *memory; /* as many bytes as scratch_bytes asked for, aligned to 64; contents undefined */
    size_t bytes;
    int64_t *counters; /* SHOAL_COUNTERS of them: what was done, for reports; never part of a result */
    /* Bytes that a map may allocate besides, where a worker's memory is bounded; 0: any number.  A map that allocates
     * as its rows ask compares before it does, and fails with SHOAL_MEMORY and a sentence about what to change. */
    int64_t spare;
} shoal_scratch;

enum { SHOAL_COUNTERS = 4 };

/* Blobs that maps read and write beside the rows, by name: photographs, and the shards that they are packed into.  They
 * lie in a folder or in a store; a name is a path below it ("roses/a.jpg") whose segments are not empty, "." or "..".
 * What is put must be a function of the round and the grain, since a grain may be mapped twice, also by two processes
 * at once.  Every function may be called from any thread. */
typedef struct shoal_blobs {
    /* Gets a whole blob, which `release` frees.  SHOAL_ABSENT when there is none, SHOAL_MEMORY when it has more than
     * `most` bytes, before they are read; other failures say nothing about the blob. */
    int (*get)(const struct shoal_blobs *self, const char *name, int64_t most, void **bytes, size_t *size);
    void (*release)(const struct shoal_blobs *self, void **bytes); /* accepts a NULL inside */
    /* Puts one, which others see whole or not at all.  One of that name is replaced. */
    int (*put)(const struct shoal_blobs *self, const char *name, const void *bytes, size_t size);
    /* How many bytes a blob has.  SHOAL_ABSENT when there is none. */
    int (*has)(const struct shoal_blobs *self, const char *name, int64_t *size);
    int (*remove)(const struct shoal_blobs *self, const char *name); /* SHOAL_OK also when there is none */
    /* Gets `size` bytes from byte `first` on into memory of the caller.  SHOAL_ABSENT when there is no such blob,
     * SHOAL_INVALID when it ends before. */
    int (*get_part)(const struct shoal_blobs *self, const char *name, int64_t first, void *into, size_t size);
} shoal_blobs;

/* Runs task(context, item, thread) for every item, in any order, on the threads the engine has. */
typedef struct shoal_crew {
    int (*each)(const struct shoal_crew *self, int64_t items, int (*task)(void *context, int64_t item, int thread),
                void *context);
    int threads;
    const char *kernel; /* the kernel set to compute with: "avx2", say; never NULL */
    const char *code;   /* the folder with the files that the run brings along (shoal_code); NULL when it brings none */
    /* Blobs that maps may get, and where those go that they put; NULL when the run has none.  They last as long as the
     * crew, so `prepare` may keep them for maps. */
    const shoal_blobs *from, *to;
    struct kernel_device *device; /* what `attach` may put rows on, a GPU; NULL for none */
    /* Whether the map at hand is to end, with SHOAL_STOPPED.  NULL: nobody will ask that. */
    bool (*asked)(const struct shoal_crew *self);
} shoal_crew;

/* The rows of a slice, for `attach`. */
typedef struct shoal_slice_rows {
    const shoal_shape *shape;
    int64_t first_row, rows;
    const double *weights; /* one a row, or NULL */
    /* Sets *out to `rows` rows from `first_row`, of one grain and of the whole data set, until the thread's next call.
     */
    int (*read)(const struct shoal_slice_rows *self, const void **out, int64_t first_row, int64_t rows, int thread);
} shoal_slice_rows;

/* ---- results ----------------------------------------------------------------------------------------------------- */

typedef struct shoal_tensor {
    char name[32];
    shoal_type type;
    int rank;
    int64_t shape[4];
    void *values;
    bool lent; /* the values are the caller's, who gave memory for them (shoal_run_options.into) */
} shoal_tensor;

/* Memory of the caller for a tensor of the result that has values for each row. */
typedef struct shoal_row_memory {
    const char *name; /* of the tensor: "labels" */
    void *values;
    size_t bytes; /* what all rows take, no more and no less */
} shoal_row_memory;

typedef struct shoal_number {
    char name[32];
    double value;
    bool whole, truth; /* print as an integer; print as true or false */
} shoal_number;

/* As many tensors and numbers as a learner likes.  What is added may move the others; the values of a tensor stay where
 * they are. */
typedef struct shoal_result {
    int tensors, numbers;
    bool incomplete; /* the learner was asked to stop and returned what it had */
    shoal_tensor *tensor;
    shoal_number *number;
    int status; /* of all that was added; see shoal_result_check */
} shoal_result;

SHOAL_API int shoal_result_new(shoal_result **out);
SHOAL_API void shoal_result_free(shoal_result **result);
/* Adds a zeroed tensor and returns its values, or NULL with a message. */
SHOAL_API void *shoal_result_add(shoal_result *result, const char *name, shoal_type type, int rank,
                                 const int64_t *shape);
SHOAL_API void shoal_result_set(shoal_result *result, const char *name, double value);
SHOAL_API void shoal_result_set_whole(shoal_result *result, const char *name, int64_t value);
SHOAL_API void shoal_result_set_truth(shoal_result *result, const char *name, bool value);
/* SHOAL_MEMORY if there was no memory for one of the numbers, which are set without a word.  Engines ask this of what
 * `update` returns. */
SHOAL_API int shoal_result_check(const shoal_result *result);
/* A tensor or number by its name; NULL or NaN if there is none, or no result. */
SHOAL_API const shoal_tensor *shoal_result_tensor(const shoal_result *result, const char *name);
SHOAL_API double shoal_result_number(const shoal_result *result, const char *name);
/* Moves a ROW cell of the merged partial into a tensor of the result without copying.  SHOAL_BROKEN when it has another
 * number of rows. */
SHOAL_API int shoal_result_take_rows(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial,
                                     int cell, int64_t rows);
/* The same where a row has `columns` values: a tensor of rank 2. */
SHOAL_API int shoal_result_take_table(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial,
                                      int cell, int64_t rows, int64_t columns);

/* ---- the contract ------------------------------------------------------------------------------------------------ */

/* What a run will need: read by the planner. */
enum { SHOAL_COST_PHASES = 8 };

/* One phase of a run, as reports name it. */
typedef struct shoal_cost_phase {
    const char *name;
    double rounds;             /* expected, and an upper bound where convergence may end it earlier */
    double operations_per_row; /* floating-point operations per round, on average; 0 if rows are only read */
    /* Bytes sent in a round, as encoded, not counting what a partial has for each row. */
    double model_bytes, partial_bytes;
    double row_bytes;  /* bytes per row sent in partials in a round, on average: labels */
    double kept_bytes; /* bytes newly kept by a round: written once, read only by a worker that takes over */
} shoal_cost_phase;

/* A learner that does not know, because it runs other people's code, leaves operations_per_row, rounds and phases at 0:
 * it can't be planned.  One that only does not know when it will end leaves its rounds at 0. */
typedef struct shoal_cost {
    /* Of the main phase. */
    double operations_per_row; /* floating-point operations per round if none were skipped */
    double model_bytes, partial_bytes, memo_row_bytes;
    int64_t rounds; /* expected, of all phases together */
    int phases;     /* 0: all rounds are alike, and called "run" */
    shoal_cost_phase phase[SHOAL_COST_PHASES];
} shoal_cost;

enum { SHOAL_ALGORITHM_VERSION = 3 };

typedef struct shoal_algorithm {
    /* SHOAL_ALGORITHM sets both: a learner compiled for others is refused. */
    uint32_t version, bytes;
    const char *name;    /* "kmeans" */
    const char *summary; /* one line */
    const shoal_option *options;
    size_t config_size; /* of the struct the options fill */
    /* Names of the counters maps keep, NULL where unused. */
    const char *counter[SHOAL_COUNTERS];
    bool kernel_free; /* the result's bits are the same with every kernel set */
    bool runs_code;   /* runs what crew->code holds, which must be trusted */
    bool spares_memo; /* does without the memo where no memory is there: it is NULL then, and not carried */

    /* Checks config against the shape and makes round 0.  SHOAL_USAGE names the option, SHOAL_INVALID the data. */
    int (*start)(shoal_round **out, const void *config, const shoal_shape *shape);

    /* Whether a round that came from elsewhere (a store, a checkpoint, another rank) is one that this learner can have
     * made for data of this shape: sizes, counts, phases, layout, every number that is used as an index or a length.
     * Called before anything else sees the round, and for rounds that are about to be passed on.  Anyone who can write
     * to a store can make a job's result wrong; a round that passes must do no worse.  SHOAL_BROKEN, with a sentence,
     * if it does not pass. */
    int (*check)(const struct shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape);
    /* Optional.  The same for a result: whether a run that starts with `first`, its round 0, can end with it. */
    int (*check_result)(const struct shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                        const shoal_shape *shape);

    /* Optional.  How many rows a grain should have; 0 leaves it to the engine.  shape->rows_per_grain and grains are
     * not known yet. */
    int64_t (*rows_per_grain)(const void *config, const shoal_shape *shape);

    /* Optional, for learners whose rounds are batches: sets shape->strata, of which there will be no more than grains,
     * and shape->held if rows are held out.  The rest of the shape is known.  Few strata mean few workers, since each
     * holds whole ones; many mean small groups.  SHOAL_USAGE names the option. */
    int (*strata)(const void *config, shoal_shape *shape);

    /* Optional.  Derives from the model what maps of this process share (packed operands, say).  *prepared is what
     * the last round of this process had, or NULL: reuse its memory.  Must not depend on anything but the round. */
    int (*prepare)(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew);
    /* Frees what prepare made.  Accepts a NULL inside. */
    void (*forget)(void **prepared);

    /* Optional.  Bytes of scratch one thread needs to map a grain of this round. */
    size_t (*scratch_bytes)(const shoal_round *round, const void *prepared, const shoal_shape *shape);

    /* Adds one grain to the partial.  Called from any thread; may touch only its own grain's memo and ROW cells. */
    int (*map)(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
               const shoal_scratch *scratch);

    /* Makes the next round, or the result: exactly one of *next and *result is set.  `stop` means: do no more than it
     * takes to return what there is; SHOAL_STOPPED if there is nothing yet. Deterministic, apart from `stop`.
     * `merged` may have come from elsewhere: it has the round's layout, but any values and any number of records.
     * SHOAL_BROKEN for sums that maps of this learner can't have made. */
    int (*update)(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                  const shoal_shape *shape, const shoal_crew *crew, bool stop);

    /* What a run will need.  *out is zero before.  shape->rows_per_grain and grains are 0 if they are not known yet. */
    int (*cost)(shoal_cost *out, const void *config, const shoal_shape *shape);

    /* Optional, all three or none: for learners that compute on crew->device, which holds a slice's rows from then on.
     *
     * attach is asked before a round is mapped, once a slice.  SHOAL_ABSENT (nothing to hold: no round of this run
     * would be mapped there) and SHOAL_MEMORY are no failures: the slice is mapped grain by grain.  After SHOAL_STOPPED
     * it is asked again.
     * map_many adds all grains of the slice to a partial that is neutral; whatever it keeps from round to round, it
     * gives whole sums, never the change.  It asks crew->asked now and then.  SHOAL_ABSENT: not this round.  Any other
     * failure but SHOAL_STOPPED voids what is held: it is detached, and the whole slice is mapped by `map`, not
     * carried.  Neither is called for batches and parts.  The bits are those of `map`. */
    int (*attach)(void **held, const shoal_round *round, const shoal_slice_rows *rows, const shoal_crew *crew);
    void (*detach)(void **held); /* accepts a NULL inside */
    int (*map_many)(shoal_partial *partial, const shoal_round *round, void *held, const shoal_crew *crew,
                    int64_t *counters);
    /* Optional.  Where one slice has all rows: *next is the round, not numbered yet, that comes after *rounds of maps
     * and updates from `round` on, at most `most`, all at once; with the same bits in whatever decides the result.
     * *rounds is 0, and *next NULL, where it does none.  Fails as map_many does. */
    int (*leap)(shoal_round **next, int64_t *rounds, const shoal_round *round, void *held, int64_t most,
                const shoal_crew *crew, int64_t *counters);
} shoal_algorithm;

/* The table of a learner: SHOAL_ALGORITHM(.name = "mine", .start = start, ...). */
#define SHOAL_ALGORITHM(...)                                                                                           \
    {                                                                                                                  \
        .version = SHOAL_ALGORITHM_VERSION, .bytes = sizeof(shoal_algorithm), __VA_ARGS__                              \
    }

#ifdef __cplusplus
}
#endif
#endif
