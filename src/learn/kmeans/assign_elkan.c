/* A lower bound for every row and centre (Elkan 2003), where there is memory for them and columns are many.
 *
 * A row whose own two bounds broke then looks only at centres whose bound is broken too, one by one: with some hundred
 * columns a comparison costs next to nothing beside a score.  A bound is stored plus the way its centre had travelled
 * since the run began, so that it needs no touching while its row is not looked at: what is left of it is the stored
 * number less the way travelled by now. */
#include "learn/kmeans/assign.h"

#include <string.h>

/* Where it pays: measured at 784 columns and K = 100 (bench/README.md).  Few columns are scored as fast as compared. */
enum { COLUMNS_LEAST = 128, BOUNDS_BYTES_MOST = 40 << 20 };

bool kmeans_keeps_bounds(const kmeans_model *model)
{
    return !model->predicting && model->iterations > 0 && model->batch == 0 && model->columns >= COLUMNS_LEAST &&
           model->rows <= BOUNDS_BYTES_MOST / (int64_t)sizeof(float) / model->k;
}

size_t kmeans_memo_bytes(const kmeans_model *model)
{
    return KMEANS_MEMO_BYTES + (kmeans_keeps_bounds(model) ? (size_t)model->k * sizeof(float) : 0);
}

static float *bounds_of(const assigning *a, int64_t row)
{
    return a->bounds + row * a->rows->view->model->k;
}

/* What is stored for a centre that is at least `distance` away now. */
static float stored(const assigning *a, int64_t centre, float distance)
{
    return (distance + a->pack->travel_least[centre]) * (1 - 0x1p-22f);
}

void assign_elkan_store(const assigning *a, int64_t row, float square, const float *scores)
{
    const kmeans_pack *pack = a->pack;
    const float error = (float)(2.01 * assign_error(a, square)), less = (float)(1 - 1.01 * a->norm_slack);
    float *bounds = bounds_of(a, row);
    if (pack->count < a->rows->view->model->k) /* of copies nothing is known; 0 promises nothing */
        memset(bounds, 0, (size_t)a->rows->view->model->k * sizeof *bounds);
    for (int64_t p = 0; p < pack->count; p++) { /* in float32, with twice the error as in assign_few.c */
        float distance = square * less + 2 * (scores[p] - error);
        bounds[pack->id[p]] = stored(a, pack->id[p], sqrtf(distance > 0 ? distance : 0) * (1 - 0x1p-21f));
    }
}

/* What is left of the bounds of a row, before rounding down; +infinity for its own centre and the padding. */
static void subtract_travel(const assigning *a, int64_t row, int32_t own, float *restrict left, int64_t padded)
{
    const float *restrict bounds = bounds_of(a, row), *restrict travel = a->pack->travel_most;
    int64_t k = a->rows->view->model->k;
    for (int64_t j = 0; j < k; j++)
        left[j] = bounds[j] - travel[j];
    for (int64_t j = k; j < padded; j++)
        left[j] = INFINITY;
    left[own] = INFINITY;
}

static float rounded_down(float bound)
{
    return bound > 0 ? bound * (1 - 0x1p-22f) : 0;
}

/* Scores the listed centres that still matter and returns how many candidates there are, the own centre first.
 * lower[c] is a lower bound on the distance of candidate c; *rest becomes one for all that are none. */
static int score_near(const assigning *a, const elkan_row *row, const elkan_space *space, int count, float *rest)
{
    const kmeans_pack *pack = a->pack;
    float upper = a->memo.upper[row->row], best = row->own_score, *bounds = bounds_of(a, row->row);
    int candidates = 1;
    space->places[0] = row->own;
    space->scores[0] = row->own_score;
    space->lower[0] = assign_lower(a, row->square, row->own_score - row->error);
    for (int c = 0; c < count; c++) {
        int32_t centre = space->near[c], place = pack->position[centre];
        float left = rounded_down(space->left[centre]);
        if (place < 0 || left > upper) {
            *rest = place < 0 || left > *rest ? *rest : left;
            continue;
        }
        float score = space->scores[candidates] = assign_score(a, row->z, place);
        space->places[candidates] = place;
        space->lower[candidates] = assign_lower(a, row->square, score - row->error);
        bounds[centre] = stored(a, centre, space->lower[candidates++]);
        if (score < best) {
            best = score;
            upper = assign_upper(a, row->square, score + row->error);
        }
    }
    a->counters[KMEANS_COMPUTED] += candidates - 1;
    return candidates;
}

void assign_elkan(const assigning *a, const elkan_row *row, const elkan_space *space)
{
    const kmeans_pack *pack = a->pack;
    const int32_t own = pack->id[row->own];
    int64_t padded = (a->rows->view->model->k + 15) / 16 * 16;
    float rest;
    int winner = 0;
    subtract_travel(a, row->row, own, space->left, padded);
    /* What is above the threshold stays above `upper` when rounded down. */
    int count =
        a->kernel->select(space->near, &rest, space->left, (int)padded, a->memo.upper[row->row] * (1 + 0x1p-21f));
    rest = rounded_down(rest);
    int candidates = score_near(a, row, space, count, &rest);
    bounds_of(a, row->row)[own] = stored(a, own, space->lower[0]);
    if (candidates > 1) {
        assign_choose(a, row->row, space->places, space->scores, candidates, row->error, &winner);
        a->memo.upper[row->row] = assign_upper(a, row->square, space->scores[winner] + row->error);
        assign_label(a, row->row, pack->id[space->places[winner]]);
    }
    for (int c = 0; c < candidates; c++)
        if (c != winner && space->lower[c] < rest)
            rest = space->lower[c];
    a->memo.lower[row->row] = rest;
}
