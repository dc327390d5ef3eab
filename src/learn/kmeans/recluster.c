/* Greedy k-means++ over weighted points in memory: how k-means|| picks the centres among its samples.
 *
 * Runs inside `update`, on the engine's threads.  Sums are made chunk by chunk and added in the chunks' order, so the
 * choice does not depend on how many threads there are.  A point looks at a trial only where seed_may_be_nearer. */
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
    int64_t filled;
    double *distance; /* of each point to its nearest centre, squared */
    int32_t *nearest;
    int64_t trial[SEED_MEMBERS], trials;
    double *near;      /* filled x SEED_MEMBERS: squared distances of the trials to each centre */
    double *sum;       /* potential of each chunk now ... */
    double *potential; /* ... and chunks x SEED_MEMBERS, under each trial */
} reclustering;

static const double *point_at(const reclustering *job, int64_t point)
{
    return job->point + point * job->columns;
}

static int find_near(void *context, int64_t task, int thread)
{
    const reclustering *job = context;
    int64_t last = (task + 1) * CENTRES_A_TASK < job->filled ? (task + 1) * CENTRES_A_TASK : job->filled;
    (void)thread;
    for (int64_t j = task * CENTRES_A_TASK; j < last; j++)
        for (int64_t t = 0; t < job->trials; t++)
            job->near[j * SEED_MEMBERS + t] =
                job->kernel->distance64(point_at(job, job->trial[t]), job->centres + j * job->columns, job->columns);
    return SHOAL_OK;
}

/* The point's distance when trial t is taken. */
static double distance_under(const reclustering *job, int64_t point, int64_t t)
{
    double distance = job->distance[point];
    if (job->filled > 0 && !seed_may_be_nearer(job->near[job->nearest[point] * SEED_MEMBERS + t], distance))
        return distance;
    double fresh = job->kernel->distance64(point_at(job, point), point_at(job, job->trial[t]), job->columns);
    fresh = fresh > job->same ? fresh : 0;
    return fresh < distance ? fresh : distance;
}

static int64_t chunk_end(const reclustering *job, int64_t chunk)
{
    return (chunk + 1) * CHUNK < job->count ? (chunk + 1) * CHUNK : job->count;
}

static int judge_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context;
    (void)thread;
    for (int64_t t = 0; t < job->trials; t++) {
        double sum = 0;
        for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++)
            sum += (double)job->weight[p] * distance_under(job, p, t);
        job->potential[chunk * SEED_MEMBERS + t] = sum;
    }
    return SHOAL_OK;
}

static int apply_chunk(void *context, int64_t chunk, int thread)
{
    const reclustering *job = context; /* its only trial is the new centre */
    (void)thread;
    for (int64_t p = chunk * CHUNK; p < chunk_end(job, chunk); p++) {
        double distance = distance_under(job, p, 0);
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
            return seed_too_few(job->model, job->filled);
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
    int status = job->trials > 1 ? measure_near(job) : SHOAL_OK;
    if (status == SHOAL_OK && job->trials > 1)
        status = job->crew->each(job->crew, job->chunks, judge_chunk, job);
    if (status < 0)
        return status;
    int64_t best = 0;
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
    job->trial[0] = job->trial[best];
    job->trials = 1;
    return SHOAL_OK;
}

static int add_centre(reclustering *job)
{
    int status = draw_trials(job);
    if (status == SHOAL_OK)
        status = choose_trial(job);
    if (status == SHOAL_OK)
        status = measure_near(job);
    if (status < 0)
        return status;
    if (job->filled == 0)
        for (int64_t p = 0; p < job->count; p++)
            job->distance[p] = INFINITY;
    status = job->crew->each(job->crew, job->chunks, apply_chunk, job);
    memcpy(job->centres + job->filled * job->columns, point_at(job, job->trial[0]),
           (size_t)job->columns * sizeof(double));
    job->filled++;
    return status;
}

int seed_recluster(double *centres, const kmeans_model *model, const double *points, const int64_t *weights,
                   int64_t count, const shoal_crew *crew)
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
        status = base_alloc(&job.near, (size_t)model->k, SEED_MEMBERS * sizeof *job.near, "distances between centres");
    if (status == SHOAL_OK)
        status = base_alloc(&job.potential, (size_t)job.chunks, SEED_MEMBERS * sizeof *job.potential, "potentials");
    if (status == SHOAL_OK)
        status = base_alloc(&job.sum, (size_t)job.chunks, sizeof *job.sum, "potentials");
    for (int64_t p = 0; status == SHOAL_OK && p < count; p++)
        job.distance[p] = 1; /* the first is drawn by weight alone */
    while (status == SHOAL_OK && job.filled < model->k)
        status = add_centre(&job);
    base_free(&job.distance);
    base_free(&job.nearest);
    base_free(&job.near);
    base_free(&job.potential);
    base_free(&job.sum);
    return status;
}
