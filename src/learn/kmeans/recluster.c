/* Greedy k-means++ over weighted points in memory: how k-means|| picks the centres among its samples.
 *
 * Runs inside `update`, on the engine's threads.  Sums are made chunk by chunk and added in the chunks' order, so the
 * choice does not depend on how many threads there are.  A point looks at a trial only where seed_may_be_nearer, and
 * where a distance in float32, less all it can be wrong by, leaves a doubt: what is passed over is never nearer.
 * Points that are bytes need no float32: their distances are whole numbers. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/kmeans/seed.h"

enum { CHUNK = 256, CENTRES_A_TASK = 32 };

typedef struct reclustering {
    const kmeans_model *model;
    const kernel_set *kernel;
    const shoal_crew *crew;
    const double *point; /* count x columns */
    const int64_t *weight;
    int64_t count, columns, chunks;
    double same;     /* squared distances up to this are 0 */
    double *centres; /* those chosen so far, `filled` of them */
    int64_t *chosen; /* which points they are */
    int64_t filled;
    double *distance; /* of each point to its nearest centre, squared */
    int32_t *nearest;
    int64_t trial[SEED_MEMBERS], trials;
    double *under;       /* of the trials: count x SEED_MEMBERS, each point's distance when it is taken ... */
    int64_t taken;       /* ... and which of them is; -1 when there was one alone, and they are not known */
    double *near;        /* filled x SEED_MEMBERS: squared distances of the trials to each centre */
    seed_samples8 bytes; /* the points, if that is what they are; then there is no z */
    float *z, *set;      /* the points in float32, centred and scaled; the trials of them */
    float bias[SEED_MEMBERS];
    double *square;               /* |z|^2 of each point */
    double *middle, scale, error; /* z = (point - middle) scale; of squared distances there.  scale 0: there is no z */
    double *sum;                  /* potential of each chunk now ... */
    double *potential;            /* ... and chunks x SEED_MEMBERS, under each trial */
} reclustering;

static const double *point_at(const reclustering *job, int64_t point)
{
    return job->point + point * job->columns;
}

static int64_t chunk_end(const reclustering *job, int64_t chunk)
{
    return (chunk + 1) * CHUNK < job->count ? (chunk + 1) * CHUNK : job->count;
}

static int find_near(void *context, int64_t task, int thread)
{
    const reclustering *job = context;
    int64_t last = (task + 1) * CENTRES_A_TASK < job->filled ? (task + 1) * CENTRES_A_TASK : job->filled;
    (void)thread;
    for (int64_t j = task * CENTRES_A_TASK; j < last; j++) {
        double *near = job->near + j * SEED_MEMBERS;
        if (job->bytes.row) {
            seed_samples8_distances(near, &job->bytes, job->kernel, job->chosen[j], job->trial, job->trials);
            continue;
        }
        for (int64_t t = 0; t < job->trials; t++)
            near[t] =
                job->kernel->distance64(point_at(job, job->trial[t]), job->centres + j * job->columns, job->columns);
    }
    return SHOAL_OK;
}

/* ---- distances in float32 ---------------------------------------------------------------------------------------- */

/* With z the stored points, |z| <= R, N = kernel_roundings(columns) and u = 2^-24: a computed |z|^2 is wrong by
 * 1.01 N u R^2 at most, and so is that of the bias; the product, which counts twice, by 2.02 N u R^2; all other steps
 * by 6 u R^2; and as z is rounded from what it stands for, 8.5 u R^2.  That is 4.04 N + 14.5 of these, and `error` has
 * 6 N + 32: the difference covers an R^2 that is itself computed, and far more than float64 loses.  One value of z is
 * at least 1/2, so that nothing that underflows counts. */
static double screen_error(int64_t columns, double square_most)
{
    return (6 * (double)kernel_roundings(columns) + 32) * 0x1p-24 * square_most;
}

/* What is subtracted from all points: about their mean, any place near them would do. */
static void find_middle(double *middle, const reclustering *job)
{
    enum { LOOKED_AT = 64 };
    const int64_t step = (job->count + LOOKED_AT - 1) / LOOKED_AT, looked_at = (job->count + step - 1) / step;
    for (int64_t p = 0; p < job->count; p += step)
        for (int64_t k = 0; k < job->columns; k++)
            middle[k] += point_at(job, p)[k] / (double)looked_at;
}

/* The greatest distance of a chunk's points from the middle in one column, into `sum`. */
static int measure_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context;
    double most = 0;
    (void)thread;
    for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++)
        for (int64_t k = 0; k < job->columns; k++) {
            const double away = fabs(point_at(job, p)[k] - job->middle[k]);
            most = away > most ? away : most;
        }
    job->sum[chunk] = most;
    return SHOAL_OK;
}

/* Their z, and the greatest square of them into `sum`. */
static int scale_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context;
    double most = 0;
    (void)thread;
    for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++) {
        float *z = job->z + p * job->columns;
        for (int64_t k = 0; k < job->columns; k++)
            z[k] = (float)((point_at(job, p)[k] - job->middle[k]) * job->scale);
        job->square[p] = job->kernel->dot(z, z, job->columns);
        most = fmax(most, job->square[p]);
    }
    job->sum[chunk] = most;
    return SHOAL_OK;
}

static double greatest_sum(const reclustering *job)
{
    double most = 0;
    for (int64_t chunk = 0; chunk < job->chunks; chunk++)
        most = fmax(most, job->sum[chunk]);
    return most;
}

/* Without z, where numbers are so large or small that their squares might not do, every distance is the definition's.
 */
static int fill_screen(reclustering *job)
{
    int exponent, status = SHOAL_OK;
    if (job->same == 0)
        status = seed_samples8_fill(&job->bytes, job->point, job->count, job->columns);
    if (status < 0 || job->bytes.row)
        return status;
    status = base_alloc(&job->middle, (size_t)job->columns, sizeof *job->middle, "the middle of samples");
    if (status < 0)
        return status;
    find_middle(job->middle, job);
    status = job->crew->each(job->crew, job->chunks, measure_chunk, job);
    const double most = greatest_sum(job);
    frexp(most, &exponent);
    if (status < 0 || !(most > 0 && exponent > -400 && exponent < 400))
        return status;
    status = base_alloc_unset(&job->z, (size_t)(job->count * job->columns), sizeof *job->z, "samples");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job->set, (size_t)(SEED_MEMBERS * job->columns), sizeof *job->set, "trials");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job->square, (size_t)job->count, sizeof *job->square, "norms of samples");
    job->scale = ldexp(1, -exponent);
    if (status == SHOAL_OK)
        status = job->crew->each(job->crew, job->chunks, scale_chunk, job);
    if (status == SHOAL_OK)
        job->error = screen_error(job->columns, greatest_sum(job));
    return status;
}

/* The trials, row by row, as the kernels want them. */
static void fill_set(reclustering *job)
{
    if (job->bytes.row)
        seed_samples8_set(&job->bytes, job->trial, job->trials);
    for (int64_t t = 0; t < job->trials && job->scale > 0; t++) {
        memcpy(job->set + t * job->columns, job->z + job->trial[t] * job->columns,
               (size_t)job->columns * sizeof *job->set);
        job->bias[t] = (float)(job->square[job->trial[t]] / 2);
    }
}

/* Which trials a point may be nearer to than to its centre, by the distances between trials and centres. */
static bool find_near_trials(bool maybe[SEED_MEMBERS], const reclustering *job, int64_t point)
{
    const double *near = job->near + job->nearest[point] * SEED_MEMBERS;
    bool any = false;
    for (int64_t t = 0; t < job->trials; t++) {
        maybe[t] = job->filled == 0 || seed_may_be_nearer(near[t], job->distance[point]);
        any |= maybe[t];
    }
    return any;
}

/* Leaves those that distances in float32 leave a doubt about: all when there are none. */
static void screen_point(bool maybe[SEED_MEMBERS], const reclustering *job, int64_t point)
{
    const double scaled = job->distance[point] * job->scale * job->scale * (1 + 0x1p-20);
    float score[SEED_MEMBERS];
    if (job->scale == 0 || job->filled == 0)
        return;
    job->kernel->score_row(score, job->z + point * job->columns, job->set, job->bias, (int)job->trials, job->columns);
    for (int64_t t = 0; t < job->trials; t++)
        maybe[t] = maybe[t] && !(job->square[point] + 2 * (double)score[t] - job->error > scaled);
}

/* ---- trials ------------------------------------------------------------------------------------------------------ */

/* The point's distance to trial t. */
static double distance_to(const reclustering *job, int64_t point, int64_t t)
{
    const double fresh = job->kernel->distance64(point_at(job, point), point_at(job, job->trial[t]), job->columns);
    return fresh > job->same ? fresh : 0;
}

/* The point's distance to its centre when trial t is taken, for each t. */
static void find_under(double under[SEED_MEMBERS], const reclustering *job, int64_t point)
{
    const double distance = job->distance[point];
    bool maybe[SEED_MEMBERS];
    const bool any = find_near_trials(maybe, job, point);
    if (any && job->bytes.row)
        seed_samples8_distances(under, &job->bytes, job->kernel, point, job->trial, job->trials);
    else if (any)
        screen_point(maybe, job, point);
    for (int64_t t = 0; t < job->trials; t++) {
        const double fresh = !maybe[t] ? distance : job->bytes.row ? under[t] : distance_to(job, point, t);
        under[t] = fresh < distance ? fresh : distance;
    }
}

static int judge_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context;
    double *potential = job->potential + chunk * SEED_MEMBERS;
    (void)thread;
    for (int64_t t = 0; t < job->trials; t++)
        potential[t] = 0;
    for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++) {
        const double weight = (double)job->weight[p];
        double *under = job->under + p * SEED_MEMBERS;
        find_under(under, job, p);
        for (int64_t t = 0; t < job->trials; t++)
            potential[t] += weight * under[t];
    }
    return SHOAL_OK;
}

static int apply_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context; /* its only trial is the new centre */
    (void)thread;
    for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++) {
        double *under = job->under + p * SEED_MEMBERS;
        if (job->taken < 0)
            find_under(under, job, p);
        const double distance = under[job->taken < 0 ? 0 : job->taken];
        if (distance < job->distance[p]) {
            job->distance[p] = distance;
            job->nearest[p] = (int32_t)job->filled;
        }
    }
    return SHOAL_OK;
}

/* What each chunk's points weigh times their distances; the total is their sum in the chunks' order. */
static double sum_of_chunk(const reclustering *job, int64_t chunk)
{
    double sum = 0;
    for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++)
        sum += (double)job->weight[p] * job->distance[p];
    return sum;
}

static int sum_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context;
    (void)thread;
    job->sum[chunk] = sum_of_chunk(job, chunk);
    return SHOAL_OK;
}

/* A point of positive potential in proportion to it: first its chunk, then its place there. */
static int64_t draw_point(const reclustering *job, double total, uint32_t draw)
{
    uint64_t index = (uint64_t)job->model->run << 40 | (uint64_t)job->filled;
    double rest = total * base_random_unit((uint64_t)job->model->seed, BASE_FOR_RECLUSTER, index, draw);
    int64_t chunk = 0, last = -1;
    while (chunk + 1 < job->chunks && rest >= job->sum[chunk])
        rest -= job->sum[chunk++];
    for (; last < 0 && chunk >= 0; chunk--, rest = 0) /* rounding may lead to a chunk without potential: go back */
        for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++) {
            double potential = (double)job->weight[p] * job->distance[p];
            if (!(potential > 0))
                continue;
            last = p;
            if (rest < potential)
                break;
            rest -= potential;
        }
    return last;
}

/* The lowest point that is no centre yet, when all potentials vanish; -1 when there is none. */
static int64_t first_apart(const reclustering *job)
{
    for (int64_t p = 0; p < job->count; p++)
        if (job->distance[p] > 0)
            return p;
    return -1;
}

/* As many trials as k-means++ makes, or as fit into some seconds of work where K is large: a function of the shape. */
static int64_t trials_worth(const reclustering *job)
{
    const double operations_most = 8e9;
    double one = (double)job->model->k * (double)job->count * (double)job->columns;
    int64_t usual = 2 + (int64_t)log((double)job->model->k);
    return one * (double)usual <= operations_most ? usual
           : one * 2 <= operations_most           ? (int64_t)(operations_most / one)
                                                  : 1;
}

/* Draws the step's trials.  The first centre, and centres without potential, are drawn once. */
static int draw_trials(reclustering *job)
{
    double total = 0;
    int status = job->crew->each(job->crew, job->chunks, sum_chunk, job);
    if (status < 0)
        return status;
    for (int64_t chunk = 0; chunk < job->chunks; chunk++)
        total += job->sum[chunk];
    int64_t wanted = job->filled > 0 && total > 0 ? trials_worth(job) : 1;
    for (job->trials = 0; job->trials < wanted; job->trials++) {
        int64_t point = total > 0 ? draw_point(job, total, (uint32_t)job->trials) : first_apart(job);
        if (point < 0)
            break; /* there are no more different points */
        job->trial[job->trials] = point;
    }
    return SHOAL_OK;
}

static int measure_near(reclustering *job)
{
    return job->crew->each(job->crew, (job->filled + CENTRES_A_TASK - 1) / CENTRES_A_TASK, find_near, job);
}

/* Leaves the trial with the least potential, the first on ties, as the only one. */
static int choose_trial(reclustering *job)
{
    fill_set(job);
    int status = job->trials > 1 ? measure_near(job) : SHOAL_OK;
    if (status == SHOAL_OK && job->trials > 1)
        status = job->crew->each(job->crew, job->chunks, judge_chunk, job);
    if (status < 0)
        return status;
    int64_t best = 0;
    job->taken = -1;
    double least = INFINITY;
    for (int64_t t = 0; job->trials > 1 && t < job->trials; t++) {
        double total = 0;
        for (int64_t chunk = 0; chunk < job->chunks; chunk++)
            total += job->potential[chunk * SEED_MEMBERS + t];
        if (total < least) {
            least = total;
            best = t;
        }
    }
    if (job->trials > 1)
        job->taken = best;
    job->trial[0] = job->trial[best];
    job->trials = 1;
    return SHOAL_OK;
}

static int add_centre(reclustering *job)
{
    int status = draw_trials(job);
    if (job->trials == 0)
        return status;
    if (status == SHOAL_OK)
        status = choose_trial(job);
    if (status == SHOAL_OK && job->taken < 0) {
        fill_set(job);
        status = measure_near(job);
    }
    if (status < 0)
        return status;
    if (job->filled == 0)
        for (int64_t p = 0; p < job->count; p++)
            job->distance[p] = INFINITY;
    status = job->crew->each(job->crew, job->chunks, apply_chunk, job);
    memcpy(job->centres + job->filled * job->columns, point_at(job, job->trial[0]),
           (size_t)job->columns * sizeof(double));
    job->chosen[job->filled++] = job->trial[0];
    return status;
}

int seed_recluster(double *centres, int64_t *found, const kmeans_model *model, const double *points,
                   const int64_t *weights, int64_t count, const shoal_crew *crew)
{
    reclustering job = {.model = model,
                        .crew = crew,
                        .point = points,
                        .weight = weights,
                        .count = count,
                        .columns = model->columns,
                        .same = kmeans_same_direction(model),
                        .chunks = (count + CHUNK - 1) / CHUNK,
                        .centres = centres};
    int status = kernel_choose(&job.kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&job.distance, (size_t)count, sizeof *job.distance, "distances of samples");
    if (status == SHOAL_OK)
        status = base_alloc(&job.nearest, (size_t)count, sizeof *job.nearest, "nearest centres of samples");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job.under, (size_t)count, SEED_MEMBERS * sizeof *job.under, "distances of samples");
    if (status == SHOAL_OK)
        status = base_alloc(&job.near, (size_t)model->k, SEED_MEMBERS * sizeof *job.near, "distances between centres");
    if (status == SHOAL_OK)
        status = base_alloc(&job.chosen, (size_t)model->k, sizeof *job.chosen, "centres");
    if (status == SHOAL_OK)
        status = base_alloc(&job.potential, (size_t)job.chunks, SEED_MEMBERS * sizeof *job.potential, "potentials");
    if (status == SHOAL_OK)
        status = base_alloc(&job.sum, (size_t)job.chunks, sizeof *job.sum, "potentials");
    if (status == SHOAL_OK)
        status = fill_screen(&job);
    for (int64_t p = 0; status == SHOAL_OK && p < count; p++)
        job.distance[p] = 1; /* the first is drawn by weight alone */
    do {
        *found = job.filled;
        if (status == SHOAL_OK)
            status = add_centre(&job);
    } while (status == SHOAL_OK && job.filled > *found && job.filled < model->k);
    *found = job.filled;
    seed_samples8_free(&job.bytes);
    base_free(&job.chosen);
    base_free(&job.middle);
    base_free(&job.z);
    base_free(&job.set);
    base_free(&job.square);
    base_free(&job.distance);
    base_free(&job.nearest);
    base_free(&job.under);
    base_free(&job.near);
    base_free(&job.potential);
    base_free(&job.sum);
    return status;
}
