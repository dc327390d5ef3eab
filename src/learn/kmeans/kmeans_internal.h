/* k-means inside: the model that goes from round to round, its phases, and what the files of this folder share.
 *
 * docs/learn/kmeans.md has the mathematics.  Words used here:
 *   units      values as the learner sees them: the data's own, times `prescale` (1 unless they are extreme); with
 *              --metric cosine the rows brought to length 1
 *   origin     the midrange of each column, rounded to float32; what rows and centres are measured from
 *   scale      power of two that brings centred values to about 1 for float32 arithmetic
 *   score      |c|^2/2 - z.c of a centred, scaled row z and centre c; orders centres as the distance does */
#ifndef KMEANS_INTERNAL_H
#define KMEANS_INTERNAL_H

#include <math.h>

#include <shoal/kmeans.h>

#include "kernel/kernel.h"

typedef enum kmeans_phase_id {
    KMEANS_RANGE,    /* least and greatest value of each column; refuses what is not finite */
    KMEANS_SPREAD,   /* variances, and which columns need wide sums */
    KMEANS_WEIGH,    /* k-means++: potentials before there is a centre */
    KMEANS_FETCH,    /* brings drawn rows */
    KMEANS_JUDGE,    /* k-means++: potentials under each candidate */
    KMEANS_SAMPLE,   /* k-means||: distances to the newest candidates; the next sample */
    KMEANS_LLOYD,    /* labels and sums */
    KMEANS_RELOCATE, /* rows for empty clusters */
    KMEANS_LABEL,    /* final labels and objective */
    KMEANS_DRAW,     /* several K: brings the rows that they are compared by */
    KMEANS_TALLY,    /* several K: sums of the clusters as they are labelled in the end */
    KMEANS_SCATTER,  /* batches: brings the rows that first centres are found among */
    KMEANS_RATE,     /* batches: improves first centres, and compares those of several runs */
    KMEANS_BATCH,    /* batches: labels and sums of one */
    KMEANS_REFILL,   /* batches: brings rows for clusters that hardly get any */
    KMEANS_PHASES
} kmeans_phase_id;

typedef enum kmeans_start {
    KMEANS_START_GREEDY,
    KMEANS_START_PARALLEL,
    KMEANS_START_RANDOM,
    KMEANS_START_GIVEN
} kmeans_start;

/* Flags of what the label round gives besides labels. */
enum { KMEANS_NEAREST = 1 /* the distance from the nearest centre */, KMEANS_ALL = 2 /* those from all */ };

enum { KMEANS_RUNS_MOST = 1 << 20 }; /* random numbers of a run are drawn by its number, which has so much room */

/* The model: this header, then the arrays of kmeans_view, then what the phase adds. */
typedef struct kmeans_model {
    int64_t phase; /* kmeans_phase_id */
    int64_t k, columns, rows;
    int64_t start, empty, iterations, runs, seed;
    double tolerance;
    int64_t weighted;
    int64_t predicting; /* centres are given and stay: label, nothing else */
    int64_t distances;  /* the label round also gives each row's distance, or distances: KMEANS_NEAREST, ... */
    int64_t metric;     /* shoal_kmeans_metric */

    /* Known after the scan. */
    double prescale, scale;
    double weight_scale;   /* power of two that brings the greatest weight to about 1 */
    double weight_inverse; /* 1 / quantum of weight sums; 1 when unweighted */
    double weight_most;    /* greatest scaled weight */
    double variance;       /* mean over the columns */
    double square_total;   /* sum of w |x - origin|^2, for the trace */
    double distance_most;  /* no squared distance in the data is greater */
    double weight_total;
    int64_t wide; /* columns whose sums need 128 bits */

    /* Where we are. */
    int64_t run;        /* 0 .. runs - 1 */
    int64_t filled;     /* centres there are so far */
    int64_t iteration;  /* updates done in this run */
    int64_t memo_round; /* round whose memo the next one can use, or -1 */
    int64_t converged;
    int64_t stopping;      /* asked to stop: label and finish */
    double objective_most; /* no row adds more to the objective; 0 when that is not known yet */
    int64_t finishing;     /* the centres are the best run's: label and finish */
    int64_t runs_done;
    int64_t best_run, best_iterations, best_converged;
    double best_objective;

    /* Several numbers of clusters (choose.h); all zero for one. */
    int64_t trials;       /* how many there are to try */
    int64_t trial;        /* the one at hand */
    int64_t tried;        /* how many are done */
    int64_t sample;       /* rows that they are compared by */
    int64_t sampled;      /* which are here */
    int64_t searching;    /* each starts from a clustering of the sample */
    int64_t rule;         /* shoal_kmeans_choose */
    int64_t chosen;       /* k is the number that was chosen: label and finish */
    double between, away; /* of the last tally, see kmeans_tally_sums */

    /* Batches (batch.h); all zero without. */
    int64_t batch;     /* rows of one */
    int64_t init_size; /* rows that first centres are found among */
    int64_t patience;  /* batches in a row without improvement that end it; 0: none do */
    double reassignment;
    int64_t batches; /* done so far */

    int64_t extra_bytes; /* of the phase's own section */
} kmeans_model;

/* The arrays after the header. */
typedef struct kmeans_view {
    kmeans_model *model;
    double *origin, *inverse; /* columns; inverse = 1 / quantum of the column's sums, 0 for wide columns */
    int64_t *wide_column;     /* wide of them */
    double *wide_inverse;
    double *centres;            /* k x columns, in units */
    double *drift;              /* k: how far each centre is from where the memo's round had it, rounded up; in units */
    double *travel;             /* k: the way each centre has come since the run began, rounded up; in units */
    double *best;               /* k x columns when runs > 1, else NULL */
    double *seen;               /* batches: k, the weight, or number, of the rows that each centre has had; else NULL */
    struct kmeans_trial *trial; /* as many as there are trials */
    void *extra;
} kmeans_view;

kmeans_view kmeans_view_of(const shoal_round *round);

/* A new round that starts as a copy of `from`'s model (arrays included), with another phase and extra section. */
int kmeans_round_from(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, size_t extra_bytes);
/* The first one. */
int kmeans_round_first(shoal_round **out, const kmeans_model *header);
/* Like kmeans_round_from, but for the centres: the caller writes all of them. */
int kmeans_round_moved(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, size_t extra_bytes);
/* Like kmeans_round_from, with another number of centres, all zero, and no way that they have come. */
int kmeans_round_resized(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t k);
/* Like kmeans_round_from, with another number of wide columns (all zero). */
int kmeans_round_widen(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t wide);

/* Whether the round's model is a header and just the sections that the header asks for. */
bool kmeans_model_is_whole(const shoal_round *round);

/* ---- phases ------------------------------------------------------------------------------------------------------ */

struct kmeans_prepared;
struct kmeans_held;

typedef struct kmeans_phase {
    const char *name; /* as reported: "scan", "seed", "run" */
    /* Whether the model's own section is this phase's, and the header is one this phase can have; the header was
     * checked by itself, and the section is extra_bytes long.  NULL: it has no section. */
    bool (*check)(const kmeans_view *view, const shoal_shape *shape);
    /* Fills layout and the people's part of a round whose model is done. */
    void (*describe)(shoal_round *round, const shoal_shape *shape);
    /* Optional. */
    int (*prepare)(struct kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                   const shoal_crew *crew);
    size_t (*scratch_bytes)(const shoal_round *round, const struct kmeans_prepared *prepared, const shoal_shape *shape);
    int (*map)(shoal_partial *partial, const shoal_round *round, const struct kmeans_prepared *prepared,
               const shoal_grain *grain, const shoal_scratch *scratch);
    int (*update)(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                  const shoal_shape *shape, const shoal_crew *crew, bool stop);
    /* Optional.  All rows that a device holds (device.h). */
    int (*map_many)(shoal_partial *partial, const shoal_round *round, struct kmeans_held *held, const shoal_crew *crew,
                    int64_t *counters);
} kmeans_phase;

extern const kmeans_phase kmeans_range, kmeans_spread, kmeans_weigh, kmeans_fetch, kmeans_judge, kmeans_sample,
    kmeans_lloyd, kmeans_relocate, kmeans_label, kmeans_draw, kmeans_tally, kmeans_scatter, kmeans_rate, kmeans_batch,
    kmeans_refill;

/* Counters of shoal_scratch. */
enum { KMEANS_COMPUTED, KMEANS_SKIPPED, KMEANS_DEFINITIONS };

/* shoal_algorithm.check and check_result of both learners of this folder. */
int kmeans_check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape);
int kmeans_check_predict(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape);
int kmeans_check_result(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                        const shoal_shape *shape);
const kmeans_phase *kmeans_phase_of(const shoal_round *round);
/* Fills layout and the people's part of a round. */
void kmeans_describe(shoal_round *round, const shoal_shape *shape);

/* Whether numbers are finite, and finite and not negative. */
bool kmeans_are_finite(const double *values, int64_t count);
bool kmeans_are_sizes(const double *values, int64_t count);
/* SHOAL_BROKEN: what was added up can't have come from maps of the round. */
int kmeans_fail_merged(const shoal_round *round, const char *what);

/* The names of shoal_kmeans_metric, ended by NULL. */
extern const char *const kmeans_metrics[];
/* How first centres are found when nobody says. */
kmeans_start kmeans_usual_start(int64_t k);
/* How first centres are found; SHOAL_USAGE for a name that is none. */
int kmeans_choose_start(int64_t *out, const shoal_kmeans_config *config);
/* shoal_algorithm.cost of both learners of this folder. */
int kmeans_cost(shoal_cost *out, const void *config, const shoal_shape *shape);
int kmeans_cost_predict(shoal_cost *out, const void *config, const shoal_shape *shape);

/* Begins run number model->run: the first seeding round, or the first Lloyd round when centres are given. */
int kmeans_begin_run(shoal_round **next, const shoal_round *from, const shoal_shape *shape);
/* Asked to stop while there are no centres of this run: labels by the best run's before it, or fails with SHOAL_STOPPED
 * when there was none. */
int kmeans_stop_early(shoal_round **next, const shoal_round *round, const char *doing);
/* The best run so far is the one at hand, by an objective in the learner's units; and its centres are those to end
 * with. */
void kmeans_remember_best(kmeans_view *view, double objective);
void kmeans_recall_best(kmeans_view *view);
/* The first Lloyd round, or that of batches, once all centres are there. */
int kmeans_begin_lloyd(shoal_round **next, const shoal_round *from, const shoal_shape *shape);

enum { KMEANS_ORIGIN_COPIES = 48 };

/* ---- directions -------------------------------------------------------------------------------------------------- */

static inline bool kmeans_is_cosine(const kmeans_model *model)
{
    return model->metric == SHOAL_METRIC_COSINE;
}

/* Brings a vector to length 1.  False, and the vector stays as it is, when it has no direction: all values are 0, or
 * one is not finite. */
bool kmeans_make_unit(double *values, const kernel_set *kernel, int64_t columns);
/* 1 / length of a sum of unit vectors; 0 where they cancel out and leave no direction. */
double kmeans_sum_factor(const double *sum, const kernel_set *kernel, int64_t columns);
/* The same for given centres.  Those that are unit vectors already, but for rounding, keep their bits: a model's
 * centres stay what they were.  SHOAL_INVALID names the first that has no direction. */
int kmeans_make_centres_unit(double *centres, int64_t k, int64_t columns);
/* No two vectors of one direction are farther apart, squared, once they are brought to length 1; what is as near as
 * that counts as distance 0.  0 for the Euclidean metric. */
double kmeans_same_direction(const kmeans_model *model);

/* What is told of a sum of weights times squared distances: in the units of the data, and for the cosine metric a sum
 * of 1 - cosine, of which the squared distance of unit vectors is the double. */
double kmeans_told_objective(const kmeans_model *model, double sum);

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Reading single rows of a grain in the precision the definition needs. */
typedef struct kmeans_rows {
    const shoal_grain *grain;
    const kernel_set *kernel;
    const kmeans_view *view;
    kernel_origin origin;
    double most;  /* whole numbers of quanta that one row adds: that many rows can't overflow */
    bool narrow;  /* float32 holds the type exactly */
    bool unit;    /* rows are brought to length 1 */
    double same;  /* squared distances up to this are 0 */
    float *row32; /* columns each, for types that must be converted */
    double *row64;
    int64_t *held; /* the row that row64 holds as a unit vector, or -1 */
} kmeans_rows;

/* Whether float32 holds every value of a type exactly. */
bool kmeans_fits_float32(shoal_type type);

size_t kmeans_rows_bytes(int64_t columns);
/* Takes its buffers from *memory and moves it on. */
void kmeans_rows_init(kmeans_rows *rows, const struct kmeans_prepared *prepared, const kmeans_view *view,
                      const shoal_grain *grain, unsigned char **memory);
/* The row's values where they lie, in the data's own type. */
const void *kmeans_rows_raw(const kmeans_rows *rows, int64_t i);
/* z of row i, float32. */
void kmeans_rows_centre(float *out, const kmeans_rows *rows, int64_t i);
/* z of rows i .. i + count - 1, one after another; count is at most KMEANS_ORIGIN_COPIES. */
void kmeans_rows_centre_run(float *out, const kmeans_rows *rows, int64_t i, int count);
/* The definition: squared distance of row i to a centre, in units. */
double kmeans_rows_distance(const kmeans_rows *rows, int64_t i, const double *centre);
/* The same of every row of the grain to the centre that it is labelled with. */
void kmeans_rows_distances(double *out, const kmeans_rows *rows, const int32_t *label, const double *centres);
/* Whether rows are bytes, 0 to 255, as they lie: kernels take them so. */
bool kmeans_rows_are_bytes(const kmeans_view *view, const shoal_shape *shape);
/* The definition of labels by the cosine: dot product of row i, brought to length 1, and a centre. */
double kmeans_rows_product(const kmeans_rows *rows, int64_t i, const double *centre);
/* Adds row i to the sums of one cluster and takes it from another's (NULL: from none). */
void kmeans_rows_move(const kmeans_rows *rows, int64_t i, int64_t *to, int64_t *from);
/* Row i in units, float64. */
void kmeans_rows_values(double *out, const kmeans_rows *rows, int64_t i);
/* A number of quanta as an integer.  Beyond what the quantum was made for, which only one from elsewhere can be, it is
 * cut. */
static inline int64_t kmeans_rows_whole(const kmeans_rows *rows, double quanta)
{
    quanta = quanta < rows->most ? quanta : rows->most; /* and so is NaN */
    return llrint(quanta > -rows->most ? quanta : -rows->most);
}
/* Its weight, scaled; 1 when there are no weights. */
double kmeans_rows_weight(const kmeans_rows *rows, int64_t i);

/* Cuts `bytes` off the front of scratch memory, keeping 64-byte alignment. */
void *kmeans_cut(unsigned char **memory, size_t bytes);
size_t kmeans_cut_size(size_t bytes);

/* ---- centres, packed --------------------------------------------------------------------------------------------- */

/* Centres as the kernels want them, sorted so that those that moved farthest come first. */
typedef struct kmeans_pack {
    int64_t count;  /* distinct centres */
    int64_t padded; /* multiple of the panel's width and of 16 */
    int64_t capacity, columns;
    bool prefers_bytes; /* set before filling: the rows are bytes already, so bytes pay for any number of centres */
    bool bytes;         /* byte panels are in use */
    bool direct;        /* rows are bytes by nature and go into panels as they are */
    bool few;           /* so few columns that nearest_few is in use; no panels */
    int panel;          /* centres a panel */
    int32_t *id;        /* padded: index of the centre; 0 for padding */
    int32_t *position;  /* by index: place in the pack, or -1 for a copy of an earlier centre */
    double *drift;      /* padded + 1: scaled drift of the centre at each place, decreasing; 0 from `count` on */
    float *drift_of;    /* by index: the same, rounded up; +infinity for a copy of an earlier centre */
    float reach;        /* the greatest drift, rounded up */
    float *travel_least, *travel_most; /* by index: scaled way since the run began, rounded down and up */
    float *rows;                       /* count x columns */
    float *panels;
    float *bias;
    int8_t *byte_panels;
    float *byte_bias, *byte_step, *byte_residual, *byte_norm;
    int32_t *byte_offset;
    double norm_most; /* greatest |c| */
    bool far;         /* some |c| is beyond what the kernels' bounds hold for: only the definition is used */
    /* |computed score - true score| <= error_product |z| + error_constant + error_square |z|^2 */
    double error_product, error_constant, error_square;
} kmeans_pack;

/* Packs `count` centres for rows of the given type; drift may be NULL when nothing is known of where they were. */
int kmeans_pack_fill(kmeans_pack *pack, const kernel_set *kernel, const double *centres, const double *drift,
                     int64_t count, const kmeans_view *view, shoal_type type, const shoal_crew *crew);
void kmeans_pack_release(kmeans_pack *pack);
/* The byte panels as the kernels take them. */
kernel_byte_centres kmeans_pack_bytes(const kmeans_pack *pack);

/* The same for rows of the same bits. */
uint64_t kmeans_hash_row(const double *row, int64_t columns);
/* Sets copy[i] to the lowest index of a bitwise equal centre (i itself when there is none before it).  `hash` has
 * those of all centres. */
int kmeans_find_copies(int32_t *copy, const double *centres, const uint64_t *hash, int64_t count, int64_t columns);
/* The same, hashing them first. */
int kmeans_hash_and_find_copies(int32_t *copy, const double *centres, int64_t count, int64_t columns,
                                const shoal_crew *crew);

/* What a process derives from a round's model.  Reused from round to round. */
typedef struct kmeans_prepared {
    const kernel_set *kernel;
    float *origin32; /* KMEANS_ORIGIN_COPIES times over when there are few columns, so that runs of rows are one */
    kmeans_pack pack;
    double *padded;           /* the label round with KMEANS_ALL: the centres, padded with columns of zeros */
    double objective_inverse; /* where rows' distances are added up: 1 / quantum of the objective */
    double *near;             /* seeding: for each centre, squared distances to the set's members, in units */
    double *set;              /* seeding: the rows that were packed */
    int64_t near_capacity, set_capacity;
} kmeans_prepared;

/* ---- assigning rows to centres ----------------------------------------------------------------------------------- */

/* The memo of one grain in Lloyd rounds: three arrays of `rows` values each. */
typedef struct kmeans_memo {
    int32_t *label;
    float *upper; /* no less than the scaled distance to the label's centre */
    float *lower; /* no more than the scaled distance to any other centre */
} kmeans_memo;

enum { KMEANS_MEMO_BYTES = 12 };

/* Whether the memo also holds a bound for every row and centre, behind those three arrays; and its bytes a row. */
bool kmeans_keeps_bounds(const kmeans_model *model);
size_t kmeans_memo_bytes(const kmeans_model *model);

kmeans_memo kmeans_memo_of(const shoal_grain *grain);
/* Whether what a memo has for each row is an index below `limit`.  A round from elsewhere may name a memo that other
 * rounds than its own have left: SHOAL_BROKEN then. */
int kmeans_memo_check(const shoal_grain *grain, const int32_t *index, int64_t limit);

/* Called when row i gets `label` and had `before` (-1: none).  May be NULL. */
typedef void kmeans_changed(void *context, int64_t i, int32_t label, int32_t before);

size_t kmeans_assign_bytes(const kmeans_pack *pack, const kernel_set *kernel, int64_t rows_per_grain);
/* Brings the memo of a grain up to date with the packed centres: afterwards every label is the definition's. */
int kmeans_assign(const kmeans_rows *rows, const kmeans_pack *pack, const double *centres, bool carried,
                  kmeans_changed *changed, void *context, unsigned char *memory, int64_t *counters);

/* With KMEANS_ALL (distances.c): the distances of all rows of a grain, and for each row the definition's label and
 * squared distance, in units; and what that needs. */
int kmeans_pad_centres(kmeans_prepared *prepared, const kmeans_view *view);
size_t kmeans_scratch_distances(const shoal_shape *shape);
void kmeans_map_distances(double *out, int32_t *label, double *nearest, const kmeans_rows *rows,
                          const kmeans_prepared *prepared, unsigned char *memory);

/* For seeding: hands to `visit` each row of `which` with the places of the pack that may be nearer to it than its
 * squared distance so far, `reach[i]` (in units); rows that have none are left out. */
typedef void kmeans_visit(void *context, int64_t i, const int32_t *places, int count);
size_t kmeans_nearer_bytes(const kmeans_pack *pack, const kernel_set *kernel);
void kmeans_nearer(const kmeans_rows *rows, const kmeans_pack *pack, const int32_t *which, int64_t count,
                   const double *reach, kmeans_visit *visit, void *context, unsigned char *memory, int64_t *counters);
/* The same for rows 0 .. count - 1 that are at hand as whole byte panels, with their |z|^2. */
void kmeans_nearer_kept(const kmeans_rows *rows, const kmeans_pack *pack, const kernel_byte_rows *bytes,
                        const float *square, int64_t count, const double *reach, kmeans_visit *visit, void *context,
                        unsigned char *memory, int64_t *counters);
/* The same, but only places that may be the nearest of the whole pack. */
void kmeans_nearest(const kmeans_rows *rows, const kmeans_pack *pack, const int32_t *which, int64_t count,
                    const double *reach, kmeans_visit *visit, void *context, unsigned char *memory, int64_t *counters);

/* prepare and scratch_bytes of every phase that assigns rows to the model's centres. */
int kmeans_prepare_centres(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                           const shoal_crew *crew);
size_t kmeans_scratch_assign(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape);

/* ---- sums of clusters -------------------------------------------------------------------------------------------- */

/* What a Lloyd round adds up, wherever it lies. */
typedef struct kmeans_sums {
    int64_t *values;     /* k x columns */
    int64_t *rows;       /* k: how many that have weight */
    int64_t *weight;     /* k, in quanta; NULL when unweighted */
    int64_t *wide;       /* k x wide pairs of digits */
    kernel_pairs *pairs; /* those of a batch of bytes: k x kmeans_pairs(columns) plain sums, in the place of values and
                          * wide; else NULL */
} kmeans_sums;

/* The cells of a Lloyd round. */
enum { LLOYD_VALUES, LLOYD_ROWS, LLOYD_WEIGHT, LLOYD_WIDE };

/* Columns, and one more where that takes to fill whole int64_t. */
static inline int64_t kmeans_pairs(int64_t columns)
{
    return (columns + 1) / 2 * 2;
}

/* Adds row i to cluster `to` and takes it from `from` (-1: from none). */
void kmeans_sums_move(const kmeans_sums *sums, const kmeans_rows *rows, int64_t i, int64_t to, int64_t from);
bool kmeans_sums_empty(const kmeans_sums *sums, int64_t cluster);
/* Those of a Lloyd round's partial, or of a batch's. */
kmeans_sums kmeans_sums_of(shoal_partial *partial, const kmeans_model *model);
/* A cluster's weight, or its number of rows. */
double kmeans_sums_weight(const kmeans_sums *sums, const kmeans_model *model, int64_t cluster);
/* The sum of its rows' differences from the origin, and what each column's quantum is: 0 for wide ones. */
void kmeans_sums_values(double *out, const kmeans_sums *sums, const kmeans_view *view, const double *quantum,
                        int64_t cluster);
void kmeans_quanta(double *quantum, const kmeans_view *view);

/* Sums of weighted squared distances from the model's centres: no row's term is greater than the bound, and 1 / quantum
 * of the sum, 0 where it is infinite. */
double kmeans_objective_bound(const kmeans_view *view);
double kmeans_objective_inverse(const kmeans_view *view);
double kmeans_objective_value(const kmeans_view *view, const int64_t *digits);

/* Ends an iteration: new centres from the sums (empty clusters keep theirs), then the next Lloyd or label round.
 * `next` starts as a copy of `round`'s model, whose centres the sums were made with. */
int kmeans_finish_iteration(shoal_round **next, const shoal_round *round, const kmeans_sums *sums,
                            const shoal_shape *shape, const shoal_crew *crew, bool stop);

/* The phase that follows the last iteration. */
kmeans_phase_id kmeans_phase_after_lloyd(const kmeans_model *model);
/* The layout and the map of Lloyd rounds, for tallies. */
void kmeans_describe_lloyd(shoal_round *round, const shoal_shape *shape);
int kmeans_map_lloyd(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch);
int kmeans_map_many_lloyd(shoal_partial *partial, const shoal_round *round, struct kmeans_held *held,
                          const shoal_crew *crew, int64_t *counters);
/* Weighted sums of squared distances: of the clusters' means from the mean of all rows, and of their centres from their
 * means. */
int kmeans_tally_sums(double *between, double *away, const shoal_round *round, shoal_partial *merged);

/* Asks for rows for the empty clusters; the sums go along in the model. */
int kmeans_begin_relocate(shoal_round **next, const shoal_round *round, const kmeans_sums *sums, int64_t empty);

/* Greatest double not above / least not below a product, near enough for bounds: nudged by one part in 2^50. */
static inline double kmeans_up(double value)
{
    return value * (1 + 0x1p-50);
}

/* Least power of two that is at least `value` > 0. */
double kmeans_power_above(double value);

#endif
