/* What the two ways of assigning rows share: one for few columns, one for the rest.
 *
 * Both keep the same memo and the same promise; see kmeans_assign.  All bounds are proved in docs/learn/kmeans.md. */
#ifndef KMEANS_ASSIGN_H
#define KMEANS_ASSIGN_H

#include <math.h>

#include "learn/kmeans/kmeans_internal.h"

/* One grain being labelled. */
typedef struct assigning {
    const kmeans_rows *rows;
    const kmeans_pack *pack;
    const kernel_set *kernel;
    const double *centres;
    int64_t columns;
    kmeans_memo memo;
    float *bounds; /* rows x k, as assign_elkan.c stores them; NULL when they are not kept */
    kmeans_changed *changed;
    void *context;
    int64_t *counters;
    double norm_slack; /* relative error of the computed |z|^2, z's own rounding included */
} assigning;

static inline float assign_up(double value)
{
    return (float)(value * (1 + 0x1p-22));
}

static inline float assign_down(double value)
{
    return (float)(value - fabs(value) * 0x1p-22);
}

/* Bound on the error of any score of a row with the given computed |z|^2. */
static inline double assign_error(const assigning *a, float square)
{
    double norm = sqrt((double)square) * (1 + a->norm_slack);
    return a->pack->error_product * norm + a->pack->error_constant + a->pack->error_square * norm * norm;
}

/* No less than the scaled distance of a centre whose true score is at most `score`.  The factor leaves room for the
 * rounding to float32 and for the definition's own error, so that upper < lower proves the definition's order. */
static inline float assign_upper(const assigning *a, float square, double score)
{
    double distance = (double)square * (1 + a->norm_slack) + 2 * score;
    return distance > 0 ? (float)(sqrt(distance) * (1 + 0x1p-20)) : 0;
}

/* No more than the scaled distance of a centre whose true score is at least `score`. */
static inline float assign_lower(const assigning *a, float square, double score)
{
    double distance = (double)square * (1 - a->norm_slack) + 2 * score;
    return distance > 0 ? (float)(sqrt(distance) * (1 - 0x1p-22)) : 0;
}

static inline float assign_score(const assigning *a, const float *z, int64_t place)
{
    return a->pack->bias[place] - a->kernel->dot(z, a->pack->rows + place * a->columns, a->columns);
}

static inline void assign_label(const assigning *a, int64_t row, int32_t label)
{
    int32_t before = a->memo.label[row];
    if (label == before)
        return;
    a->memo.label[row] = label;
    if (a->changed)
        a->changed(a->context, row, label, before);
}

/* The place that the definition prefers, of `count` places whose score is at most `limit` (all when scores is NULL). */
int64_t assign_decide(const assigning *a, int64_t row, const int32_t *places, const float *scores, int64_t count,
                      double limit);

assigning assign_begin(const kmeans_rows *rows, const kmeans_pack *pack, int64_t *counters);

/* Workspace for scoring up to `block` rows against the panels of a pack. */
typedef struct assign_tiles {
    int block;
    float *row_panels;     /* float32 panels of the rows */
    kernel_byte_rows byte; /* or byte panels */
    float *scores;         /* block x padded: scores, or lower bounds on them when the pack has bytes */
} assign_tiles;

void assign_tiles_cut(assign_tiles *tiles, const kmeans_pack *pack, const kernel_set *kernel, unsigned char **memory);
/* Scores `count` rows (their numbers, z and |z|^2) against the first `places` centres. */
void assign_tiles_score(const assigning *a, const assign_tiles *tiles, const int32_t *rows, const float *z,
                        const float *square, int count, int64_t places);

/* The error that a threshold on scores must leave room for when it comes from a score computed in float32. */
static inline float assign_threshold(const assigning *a, float score, double error)
{
    /* Scores of float32 panels have an error of their own; those of bytes are lower bounds already. */
    double threshold = score + (a->pack->bytes ? 2 : 3) * error;
    return assign_up(threshold + fabs(threshold) * 0x1p-20);
}

/* Which of `count` scored candidates is nearest, by the definition where scores can't tell; returns the least score of
 * the others. */
float assign_choose(const assigning *a, int64_t row, const int32_t *places, const float *scores, int count,
                    double error, int *winner);

/* A row whose bounds broke: z, |z|^2, the place of its own centre and the score there. */
typedef struct elkan_row {
    int64_t row;
    const float *z;
    float square, own_score;
    int32_t own;
    double error;
} elkan_row;

/* Workspace for one row: candidates, and every centre's bound. */
typedef struct elkan_space {
    int32_t *places, *near;
    float *scores, *lower, *left;
} elkan_space;

/* Settles such a row by its bounds on every centre. */
void assign_elkan(const assigning *a, const elkan_row *row, const elkan_space *space);
/* Stores bounds for every centre from the scores (or lower bounds on them) of all places. */
void assign_elkan_store(const assigning *a, int64_t row, float square, const float *scores);

/* Rows that must be looked at again, few columns. */
size_t assign_few_bytes(const kmeans_pack *pack);
void assign_few(const assigning *a, const int32_t *which, int64_t count, unsigned char *memory);

#endif
