/* What the seeding phases share: a section of the model with draws or candidate rows, and a memo of distances. */
#ifndef KMEANS_SEED_H
#define KMEANS_SEED_H

#include "learn/kmeans/kmeans_internal.h"

/* A row to fetch: row number `where`, or the row in grain `where` at which the running potential exceeds `rest`. */
typedef struct seed_draw {
    int64_t where, rest;
} seed_draw;

/* Head of the model's own section while seeding.  Behind it: `draws` seed_draw, then `candidates` rows of float64. */
typedef struct seed_state {
    int64_t draws, candidates;
    int64_t by_row;   /* draws name rows */
    int64_t step;     /* makes the random numbers of each step differ */
    int64_t applied;  /* k-means++: the memo knows this many centres; k-means||: this many candidates */
    double inverse;   /* 1 / quantum of the potentials the draws refer to; 0 before there is a centre */
    double most;      /* no row's weight times squared distance to its nearest centre is greater */
    int64_t sampling; /* k-means||: this round draws rows, by `potential` */
    double potential;
} seed_state;

typedef struct seed_view {
    kmeans_view base;
    seed_state *state;
    seed_draw *draw;
    double *candidate;
} seed_view;

seed_view seed_view_of(const shoal_round *round);
/* A seeding round after `from`, whose state it takes over when from has one; draws and candidates are zero. */
int seed_round_from(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t draws,
                    int64_t candidates);

/* Whether the section of a seeding round is one: room for what it says it has, and numbers that can be. */
bool seed_section_is_whole(const kmeans_view *view);

/* The memo of seeding rounds: squared distance to the nearest centre so far, by the definition, and which it is. */
typedef struct seed_memo {
    double *distance;
    int32_t *nearest;
} seed_memo;

enum { SEED_MEMO_BYTES = 16 };

seed_memo seed_memo_of(const shoal_grain *grain);

/* Rows as bytes, kept in the memo from step to step when that takes little memory: k-means++ looks at every row once a
 * step, and reading a quarter of the memory is most of what can be saved. */
typedef struct seed_bytes {
    kernel_byte_rows rows;
    float *square; /* |z|^2 */
    int64_t count; /* how many of the grain's first rows, in whole panels */
} seed_bytes;

bool seed_keeps_bytes(const shoal_shape *shape);
/* Bytes a row of the memo when it keeps bytes. */
size_t seed_bytes_row(const shoal_shape *shape);
seed_bytes seed_bytes_of(const shoal_grain *grain, const kernel_set *kernel);
/* Fills them; z is workspace for a panel's rows. */
void seed_bytes_fill(const seed_bytes *bytes, const kmeans_rows *rows, float *z);

/* A row's potential: its weight times its distance, as a whole number of quanta; any number where the quantum came from
 * elsewhere and was a lie, so that sums of potentials must not mind an overflow. */
int64_t seed_potential(const kmeans_rows *rows, int64_t i, double distance, double inverse);
/* 1 / quantum of potentials when no weight times distance exceeds `most`. */
double seed_potential_inverse(const kmeans_model *model, double most);
/* Whether that quantum leaves anything of `most`: squares near the lower end of float64's range are as good as 0, and
 * asking once more by a finer quantum would never end. */
bool seed_can_weigh(const kmeans_model *model, double most);

/* After the first row came back: round that judges it (k-means++) or measures from it (k-means||). */
int seed_greedy_judge(shoal_round **next, const shoal_round *fetched, shoal_partial *merged);
int seed_parallel_first(shoal_round **next, const shoal_round *fetched, shoal_partial *merged);

/* Picks model->k of `count` weighted points, 1 at least, by greedy k-means++; *found of them when fewer differ. */
int seed_recluster(double *centres, int64_t *found, const kmeans_model *model, const double *points,
                   const int64_t *weights, int64_t count, const shoal_crew *crew);

/* Whether `grains` sums of potentials can be: none is negative, and they add up to at least `least` and at most an
 * int64. */
bool seed_are_potentials(const int64_t *potentials, int64_t grains, int64_t least);
/* Fills draws of `next` with weighted random rows: potentials lists one sum for each grain, which add up to at least 1.
 */
void seed_draw_rows(seed_view *next, const int64_t *potentials, int64_t grains);

/* Whether the merged records of a FETCH round are the rows that were drawn, one for each draw. */
bool seed_are_drawn(const shoal_round *fetched, const shoal_partial *merged);
/* Copies the records of a FETCH round, by slot, dropping rows equal to an earlier one.  Returns how many. */
int64_t seed_take_rows(double *out, shoal_partial *merged, int64_t columns);

/* k-means++: rows that are drawn for each centre, as scikit-learn does. */
int64_t seed_trials(int64_t k);

/* k-means||: expected samples a round, in units of k, and how many rounds sample: 2.5 candidates for each
 * centre.  Twice as many gave no better starts after greedy reclustering, and took twice the memory. */
#define SEED_SAMPLES_PER_CENTRE 0.5
enum { SEED_SAMPLING_ROUNDS = 5 };

/* Members of the set a seeding round looks at, at most; distances of a centre to them lie so far apart. */
enum { SEED_MEMBERS = 32 };

/* Samples that are bytes: distances between them are whole numbers, and take a tenth of the time (recluster_bytes.c).
 * row is NULL where some value is no byte. */
typedef struct seed_samples8 {
    int64_t stride;  /* columns, up to a whole cache line, filled up with zeros */
    uint8_t *row;    /* count x stride */
    int8_t *set;     /* the trials, each value less 128 */
    int64_t *square; /* |x|^2 of each sample ... */
    int64_t *start;  /* ... less 256 times the sum of its values */
} seed_samples8;

int seed_samples8_fill(seed_samples8 *self, const double *points, int64_t count, int64_t columns);
void seed_samples8_free(seed_samples8 *self);
/* Those that distances are to, SEED_MEMBERS at most. */
void seed_samples8_set(seed_samples8 *self, const int64_t *trial, int64_t trials);
/* Squared distances of a sample to each of them, the bits of distance64. */
void seed_samples8_distances(double *out, const seed_samples8 *self, const kernel_set *kernel, int64_t point,
                             const int64_t *trial, int64_t trials);

/* |a - c| >= 2 |x - c| implies |x - a| >= |x - c|: a row at squared `distance` from its nearest centre c need not look
 * at a member whose squared distance to c is `near`.  The slack covers the rounding of all three. */
static inline bool seed_may_be_nearer(double near, double distance)
{
    return !(near > 4 * distance * (1 + 0x1p-20));
}

/* Room for distances to `near` centres and for a set of `set` rows in what the process shares. */
int seed_reserve(kmeans_prepared *prepared, int64_t near, int64_t set, int64_t columns);

/* The sentence for more clusters than different rows. */
int seed_too_few(const kmeans_model *model, int64_t distinct);

#endif
