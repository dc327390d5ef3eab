/* Clusterings of a sample.  See search.h.
 *
 * K grows by one: the clustering before gets a new cluster around one of several rows, those that lower the objective
 * most, and fresh starts by greedy k-means++ compete with it; each is improved by moving single rows while that lowers
 * the objective (Hartigan 1975), and the best goes on (Likas, Vlassis and Verbeek 2003 add centres this way).  On the
 * way back the two clusters whose union costs least are joined, and what is better than before replaces it. */
#include "learn/kmeans/search.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

/* Attempts at each K: a new cluster around this many rows, and fresh starts; sweeps of moves, at most. */
enum { ADDITIONS = 4, FRESH = 2, ATTEMPTS = ADDITIONS + FRESH, SWEEPS_MOST = 60 };

/* A clustering with what it takes to measure from its means. */
typedef struct clustering {
    int64_t k;
    double objective;
    int32_t *label;
    double *sum;            /* k x rows: S of each row and cluster */
    double *mass, *inner;   /* M and I of each cluster */
    double *inverse, *less; /* 1 / M and I / M^2 */
    int64_t *size;
} clustering;

typedef struct searching {
    const kmeans_search *search;
    int64_t k_most;
    clustering best, attempt[ATTEMPTS]; /* the best of the K at hand */
    double *own;                        /* squared distance of each row to the mean of its cluster */
    double *gain;                       /* by row: how much a cluster around it lowers the objective */
    int64_t candidate[ADDITIONS], candidates;
    int32_t *labels; /* k_most + 1 times rows: the best of every K so far */
    double *objective;
} searching;

/* ---- one clustering ---------------------------------------------------------------------------------------------- */

static int clustering_new(clustering *out, const searching *job)
{
    const size_t rows = (size_t)job->search->rows, k = (size_t)job->k_most;
    int status = base_alloc(&out->label, rows, sizeof *out->label, "labels");
    if (status == SHOAL_OK)
        status = base_alloc(&out->sum, k * rows, sizeof *out->sum, "sums of distances");
    if (status == SHOAL_OK)
        status = base_alloc(&out->mass, 4 * k, sizeof *out->mass, "clusters");
    if (status == SHOAL_OK)
        status = base_alloc(&out->size, k, sizeof *out->size, "clusters");
    if (status == SHOAL_OK) {
        out->inner = out->mass + k;
        out->inverse = out->inner + k;
        out->less = out->inverse + k;
    }
    return status;
}

static void clustering_release(clustering *is)
{
    base_free(&is->label);
    base_free(&is->sum);
    base_free(&is->mass);
    base_free(&is->size);
}

static void copy_clustering(clustering *to, const clustering *from, int64_t rows)
{
    const size_t k = (size_t)from->k;
    to->k = from->k;
    to->objective = from->objective;
    memcpy(to->label, from->label, (size_t)rows * sizeof *to->label);
    memcpy(to->sum, from->sum, k * (size_t)rows * sizeof *to->sum);
    memcpy(to->mass, from->mass, k * sizeof *to->mass);
    memcpy(to->inner, from->inner, k * sizeof *to->inner);
    memcpy(to->inverse, from->inverse, k * sizeof *to->inverse);
    memcpy(to->less, from->less, k * sizeof *to->less);
    memcpy(to->size, from->size, k * sizeof *to->size);
}

static void derive_cluster(clustering *is, int64_t j)
{
    is->inverse[j] = is->size[j] > 0 ? 1 / is->mass[j] : 0;
    is->less[j] = is->inner[j] * is->inverse[j] * is->inverse[j];
}

/* Adds a row to a cluster, or takes it away with a sign of -1; its label is the caller's. */
static void shift_row(clustering *is, const kmeans_search *search, int64_t row, int64_t j, double sign)
{
    const float *distance = search->distance + row * search->rows;
    double *restrict sum = is->sum + j * search->rows, weight = sign * search->weight[row];
    is->inner[j] += weight * sum[row];
    is->mass[j] += weight;
    is->size[j] += sign > 0 ? 1 : -1;
    for (int64_t i = 0; i < search->rows; i++)
        sum[i] += weight * (double)distance[i];
    derive_cluster(is, j);
}

static void move_row(clustering *is, const kmeans_search *search, int64_t row, int64_t to)
{
    shift_row(is, search, row, is->label[row], -1);
    shift_row(is, search, row, to, 1);
    is->label[row] = (int32_t)to;
}

static void clear_cluster(clustering *is, const kmeans_search *search, int64_t j)
{
    memset(is->sum + j * search->rows, 0, (size_t)search->rows * sizeof *is->sum);
    is->mass[j] = is->inner[j] = is->inverse[j] = is->less[j] = 0;
    is->size[j] = 0;
}

/* Makes it the clustering of these labels. */
static void build_clustering(clustering *is, const kmeans_search *search, const int32_t *label, int64_t k)
{
    is->k = k;
    memmove(is->label, label, (size_t)search->rows * sizeof *label);
    for (int64_t j = 0; j < k; j++)
        clear_cluster(is, search, j);
    for (int64_t i = 0; i < search->rows; i++)
        shift_row(is, search, i, is->label[i], 1);
}

/* Squared distance of a row to the mean of a cluster. */
static double distance_to(const clustering *is, int64_t rows, int64_t row, int64_t j)
{
    return fmax(is->sum[j * rows + row] * is->inverse[j] - is->less[j], 0);
}

/* Moves rows, each to where it lowers the objective most, until no row does. */
static void improve(clustering *is, const kmeans_search *search)
{
    bool moved = true;
    for (int sweep = 0; moved && sweep < SWEEPS_MOST; sweep++) {
        moved = false;
        for (int64_t i = 0; i < search->rows; i++) {
            const int64_t from = is->label[i];
            const double weight = search->weight[i];
            if (is->size[from] < 2)
                continue;
            double saved = distance_to(is, search->rows, i, from) * is->mass[from] / (is->mass[from] - weight);
            double least = saved * (1 - 1e-9); /* what rounding made of nothing is no reason to move */
            int64_t to = from;
            for (int64_t j = 0; j < is->k; j++) {
                double paid = distance_to(is, search->rows, i, j) * is->mass[j] / (is->mass[j] + weight);
                if (j != from && paid < least) {
                    least = paid;
                    to = j;
                }
            }
            if (to != from) {
                move_row(is, search, i, to);
                moved = true;
            }
        }
    }
    is->objective = 0;
    for (int64_t j = 0; j < is->k; j++)
        is->objective += is->inner[j] * is->inverse[j];
}

/* Whether every cluster has rows. */
static bool is_full(const clustering *is)
{
    for (int64_t j = 0; j < is->k; j++)
        if (is->size[j] == 0)
            return false;
    return true;
}

/* ---- one more cluster -------------------------------------------------------------------------------------------- */

static int find_gain(void *context, int64_t row, int thread)
{
    const searching *job = context;
    const kmeans_search *search = job->search;
    const float *distance = search->distance + row * search->rows;
    double lane[8] = {0};
    int64_t i = 0;
    (void)thread;
    for (; i + 8 <= search->rows; i += 8)
        for (int l = 0; l < 8; l++) {
            double saved = job->own[i + l] - (double)distance[i + l];
            lane[l] += search->weight[i + l] * (saved > 0 ? saved : 0);
        }
    for (; i < search->rows; i++)
        lane[0] += search->weight[i] * fmax(job->own[i] - (double)distance[i], 0);
    job->gain[row] = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    return SHOAL_OK;
}

/* The rows that gain most, one of each cluster at most. */
static void choose_candidates(searching *job)
{
    const clustering *best = &job->best;
    bool used[KMEANS_SEARCH_K_MOST] = {0};
    for (job->candidates = 0; job->candidates < ADDITIONS; job->candidates++) {
        int64_t most = -1;
        for (int64_t i = 0; i < job->search->rows; i++)
            if (!used[best->label[i]] && job->gain[i] > 0 && (most < 0 || job->gain[i] > job->gain[most]))
                most = i;
        if (most < 0)
            return;
        used[best->label[most]] = true;
        job->candidate[job->candidates] = most;
    }
}

static void add_cluster(clustering *is, const searching *job, int64_t centre)
{
    const kmeans_search *search = job->search;
    const float *distance = search->distance + centre * search->rows;
    const int64_t fresh = is->k++;
    clear_cluster(is, search, fresh);
    for (int64_t i = 0; i < search->rows; i++)
        if ((double)distance[i] < job->own[i] && is->size[is->label[i]] > 1)
            move_row(is, search, i, fresh);
}

/* ---- a fresh start ----------------------------------------------------------------------------------------------- */

/* A row in proportion to its weight times `distance`, or to its weight alone; -1 when all are 0. */
static int64_t draw_row(const kmeans_search *search, const double *distance, double unit)
{
    double total = 0;
    for (int64_t i = 0; i < search->rows; i++)
        total += search->weight[i] * (distance ? distance[i] : 1);
    double rest = unit * total;
    int64_t last = -1;
    for (int64_t i = 0; i < search->rows && rest >= 0; i++) {
        double part = search->weight[i] * (distance ? distance[i] : 1);
        rest -= part;
        last = part > 0 ? i : last;
    }
    return last;
}

static double potential_under(const kmeans_search *search, const double *nearest, int64_t row)
{
    const float *distance = search->distance + row * search->rows;
    double total = 0;
    for (int64_t i = 0; i < search->rows; i++)
        total += search->weight[i] * fmin(nearest[i], (double)distance[i]);
    return total;
}

/* Greedy k-means++.  The distances to the nearest centre are kept in the sums, which are made anew afterwards. */
static void start_afresh(clustering *is, const kmeans_search *search, int64_t k, int64_t attempt)
{
    double *nearest = is->sum;
    const int64_t trials = 2 + (int64_t)log((double)k);
    const uint64_t seed = (uint64_t)search->seed, index = (uint64_t)(k * ATTEMPTS + attempt);
    uint32_t draws = 0;
    is->k = 0;
    while (is->k < k) {
        int64_t chosen = -1;
        double least = INFINITY;
        for (int64_t trial = 0; trial < (is->k == 0 ? 1 : trials); trial++) {
            const double unit = base_random_unit(seed, BASE_FOR_TRIALS, index, draws++);
            const int64_t row = draw_row(search, is->k > 0 ? nearest : NULL, unit);
            double total = row < 0 ? INFINITY : is->k > 0 ? potential_under(search, nearest, row) : 0;
            if (row >= 0 && total < least) {
                least = total;
                chosen = row;
            }
        }
        if (chosen < 0)
            return; /* as many centres as there are different rows */
        for (int64_t i = 0; i < search->rows; i++) {
            const double distance = search->distance[chosen * search->rows + i];
            if (is->k == 0 || distance < nearest[i]) {
                nearest[i] = distance;
                is->label[i] = (int32_t)is->k;
            }
        }
        is->k++;
    }
    build_clustering(is, search, is->label, k);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static int attempt_clusters(void *context, int64_t number, int thread)
{
    searching *job = context;
    clustering *is = &job->attempt[number];
    const int64_t k = job->best.k + 1;
    (void)thread;
    is->objective = INFINITY;
    if (number < job->candidates) {
        copy_clustering(is, &job->best, job->search->rows);
        add_cluster(is, job, job->candidate[number]);
    } else if (number >= ADDITIONS) {
        start_afresh(is, job->search, k, number);
    } else {
        return SHOAL_OK;
    }
    if (is->k == k && is_full(is))
        improve(is, job->search);
    return SHOAL_OK;
}

static void keep_best(searching *job, const clustering *is)
{
    const size_t rows = (size_t)job->search->rows;
    if (!(is->objective < job->objective[is->k]))
        return;
    job->objective[is->k] = is->objective;
    memcpy(job->labels + (size_t)is->k * rows, is->label, rows * sizeof *is->label);
}

/* Goes from job->best.k clusters to one more; false when no row is left to put a cluster around. */
static int grow(bool *grown, searching *job, const shoal_crew *crew)
{
    const kmeans_search *search = job->search;
    for (int64_t i = 0; i < search->rows; i++)
        job->own[i] = distance_to(&job->best, search->rows, i, job->best.label[i]);
    int status = crew->each(crew, search->rows, find_gain, job);
    if (status == SHOAL_OK) {
        choose_candidates(job);
        status = crew->each(crew, ATTEMPTS, attempt_clusters, job);
    }
    const clustering *best = &job->attempt[0];
    for (int i = 1; i < ATTEMPTS; i++)
        if (job->attempt[i].objective < best->objective)
            best = &job->attempt[i];
    *grown = status == SHOAL_OK && best->objective < INFINITY;
    if (*grown) {
        copy_clustering(&job->best, best, search->rows);
        keep_best(job, best);
    }
    return status;
}

/* Joins the two clusters whose union adds least to the objective, in the labels alone. */
static void join_nearest(clustering *is, const kmeans_search *search)
{
    int64_t first = 0, second = 1;
    double least = INFINITY;
    for (int64_t a = 0; a < is->k; a++) {
        double cross[KMEANS_SEARCH_K_MOST] = {0};
        for (int64_t i = 0; i < search->rows; i++)
            for (int64_t b = a + 1; is->label[i] == a && b < is->k; b++)
                cross[b] += search->weight[i] * is->sum[b * search->rows + i];
        for (int64_t b = a + 1; b < is->k; b++) {
            double together = (is->inner[a] + is->inner[b] + cross[b]) / (is->mass[a] + is->mass[b]);
            double more = together - is->inner[a] * is->inverse[a] - is->inner[b] * is->inverse[b];
            if (more < least) {
                least = more;
                first = a;
                second = b;
            }
        }
    }
    for (int64_t i = 0; i < search->rows; i++) {
        if (is->label[i] == second)
            is->label[i] = (int32_t)first;
        else if (is->label[i] == is->k - 1)
            is->label[i] = (int32_t)second; /* the last one takes the number that is free */
    }
}

/* From the most clusters back to two. */
static void shrink(searching *job, int64_t most)
{
    const kmeans_search *search = job->search;
    clustering *is = &job->best;
    for (int64_t k = most; k > 2; k--) {
        build_clustering(is, search, job->labels + k * search->rows, k);
        join_nearest(is, search);
        build_clustering(is, search, is->label, k - 1);
        improve(is, search);
        keep_best(job, is);
    }
}

static int reserve_search(searching *job)
{
    const size_t rows = (size_t)job->search->rows, k = (size_t)job->k_most;
    int status = clustering_new(&job->best, job);
    for (int i = 0; status == SHOAL_OK && i < ATTEMPTS; i++)
        status = clustering_new(&job->attempt[i], job);
    if (status == SHOAL_OK)
        status = base_alloc(&job->own, rows, sizeof *job->own, "distances");
    if (status == SHOAL_OK)
        status = base_alloc(&job->gain, rows, sizeof *job->gain, "gains");
    if (status == SHOAL_OK)
        status = base_alloc(&job->labels, (k + 1) * rows, sizeof *job->labels, "labels");
    if (status == SHOAL_OK)
        status = base_alloc(&job->objective, k + 1, sizeof *job->objective, "objectives");
    return status;
}

static void release_search(searching *job)
{
    clustering_release(&job->best);
    for (int i = 0; i < ATTEMPTS; i++)
        clustering_release(&job->attempt[i]);
    base_free(&job->own);
    base_free(&job->gain);
    base_free(&job->labels);
    base_free(&job->objective);
}

int kmeans_search_run(int32_t *labels, const kmeans_search *search, const shoal_crew *crew)
{
    searching job = {.search = search, .k_most = 1};
    int64_t limit = search->rows / KMEANS_SEARCH_ROWS_EACH;
    limit = limit < KMEANS_SEARCH_K_MOST ? limit : KMEANS_SEARCH_K_MOST;
    for (int64_t t = 0; t < search->trials; t++) {
        labels[t * search->rows] = -1;
        if (search->ks[t] <= limit && search->ks[t] > job.k_most)
            job.k_most = search->ks[t];
    }
    if (limit < 1)
        return SHOAL_OK;
    int status = reserve_search(&job);
    int64_t most = 1;
    bool grown = true;
    for (int64_t k = 0; status == SHOAL_OK && k <= job.k_most; k++)
        job.objective[k] = INFINITY;
    if (status == SHOAL_OK) { /* all rows together, and so are the labels that are zero */
        build_clustering(&job.best, search, job.labels, 1);
        improve(&job.best, search);
        keep_best(&job, &job.best);
    }
    while (status == SHOAL_OK && grown && most < job.k_most) {
        status = grow(&grown, &job, crew);
        most += grown;
    }
    if (status == SHOAL_OK)
        shrink(&job, most);
    for (int64_t t = 0; status == SHOAL_OK && t < search->trials; t++)
        if (search->ks[t] <= most)
            memcpy(labels + t * search->rows, job.labels + search->ks[t] * search->rows,
                   (size_t)search->rows * sizeof *labels);
    release_search(&job);
    return status;
}
