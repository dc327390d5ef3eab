/* Scores of clusterings.  See score.h. */
#include "learn/kmeans/score.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* ---- distances --------------------------------------------------------------------------------------------------- */

/* Rows that are measured together: so many of them stay in the cache while all others go by. */
enum { BLOCK = 16 };

typedef struct measuring {
    const kmeans_points *sample;
    const kernel_set *kernel;
    double scale;
    float *out;
} measuring;

static double squared_distance(const kmeans_points *sample, const kernel_set *kernel, int64_t i, int64_t j)
{
    return kernel->distance64(sample->values + i * sample->columns, sample->values + j * sample->columns,
                              sample->columns);
}

static int64_t block_end(int64_t block, int64_t rows)
{
    return (block + 1) * BLOCK < rows ? (block + 1) * BLOCK : rows;
}

/* Each pair is measured once, and written twice. */
static int measure_block(void *context, int64_t block, int thread)
{
    const measuring *job = context;
    const int64_t rows = job->sample->rows, end = block_end(block, rows);
    (void)thread;
    for (int64_t j = block * BLOCK; j < rows; j++)
        for (int64_t i = block * BLOCK; i < end && i < j; i++)
            job->out[i * rows + j] = job->out[j * rows + i] =
                (float)(squared_distance(job->sample, job->kernel, i, j) * job->scale * job->scale);
    for (int64_t i = block * BLOCK; i < end; i++)
        job->out[i * rows + i] = 0;
    return SHOAL_OK;
}

int kmeans_pair_distances(float *out, const kmeans_points *sample, double scale, const kernel_set *kernel,
                          const shoal_crew *crew)
{
    measuring job = {sample, kernel, scale, out};
    return crew->each(crew, (sample->rows + BLOCK - 1) / BLOCK, measure_block, &job);
}

/* ---- silhouettes ------------------------------------------------------------------------------------------------- */

typedef struct judging {
    const kmeans_points *sample;
    const kernel_set *kernel;
    const int32_t *labels;
    const int64_t *ks;
    int64_t trials, k_most;
    int64_t *sizes;  /* trials x k_most: rows of each label */
    double *values;  /* trials x rows: the silhouette of each row */
    double *scratch; /* of each thread: distances of a block's rows to all, then sums by label */
    int64_t scratch_values;
} judging;

/* `sums` has the distances of a row to the rows of each cluster, added up.  Alone in its cluster a row has 0. */
static double silhouette(const double *sums, const int64_t *sizes, int64_t k, int64_t own)
{
    double nearest = INFINITY;
    if (sizes[own] < 2)
        return 0;
    const double inside = sums[own] / (double)(sizes[own] - 1);
    for (int64_t j = 0; j < k; j++)
        if (j != own && sizes[j] > 0)
            nearest = fmin(nearest, sums[j] / (double)sizes[j]);
    const double most = fmax(inside, nearest);
    return most > 0 ? (nearest - inside) / most : 0;
}

/* 1 - cosine is half the squared distance of unit vectors. */
static double distance_between(const judging *job, int64_t i, int64_t j)
{
    const double square = squared_distance(job->sample, job->kernel, i, j);
    return job->sample->cosine ? square / 2 : sqrt(square);
}

static int judge_block(void *context, int64_t block, int thread)
{
    const judging *job = context;
    const int64_t rows = job->sample->rows, first = block * BLOCK, end = block_end(block, rows);
    double *distance = job->scratch + thread * job->scratch_values, *sums = distance + BLOCK * rows;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = first; i < end; i++)
            distance[(i - first) * rows + j] = i == j ? 0 : distance_between(job, i, j);
    for (int64_t t = 0; t < job->trials; t++) {
        const int32_t *label = job->labels + t * rows;
        for (int64_t i = first; i < end; i++) {
            memset(sums, 0, (size_t)job->ks[t] * sizeof *sums);
            for (int64_t j = 0; j < rows; j++)
                sums[label[j]] += distance[(i - first) * rows + j];
            job->values[t * rows + i] = silhouette(sums, job->sizes + t * job->k_most, job->ks[t], label[i]);
        }
    }
    return SHOAL_OK;
}

/* Counts the rows of each label; whether there are several, and fewer than rows. */
static bool can_be_judged(int64_t *sizes, const int32_t *labels, int64_t rows)
{
    int64_t used = 0;
    for (int64_t i = 0; i < rows; i++)
        used += sizes[labels[i]]++ == 0;
    return used > 1 && used < rows;
}

static int judge_all(double *out, judging *job, const shoal_crew *crew)
{
    const int64_t rows = job->sample->rows;
    int status = crew->each(crew, (rows + BLOCK - 1) / BLOCK, judge_block, job);
    for (int64_t t = 0; status == SHOAL_OK && t < job->trials; t++) {
        double total = 0;
        for (int64_t i = 0; i < rows; i++)
            total += job->values[t * rows + i];
        out[t] = isnan(out[t]) ? NAN : total / (double)rows;
    }
    return status;
}

int kmeans_silhouettes(double *out, const kmeans_points *sample, const int32_t *labels, const int64_t *ks,
                       int64_t trials, const kernel_set *kernel, const shoal_crew *crew)
{
    judging job = {.sample = sample, .kernel = kernel, .labels = labels, .ks = ks, .trials = trials, .k_most = 1};
    const int64_t rows = sample->rows;
    for (int64_t t = 0; t < trials; t++)
        job.k_most = ks[t] > job.k_most ? ks[t] : job.k_most;
    job.scratch_values = BLOCK * rows + job.k_most;
    int status = base_alloc(&job.sizes, (size_t)(trials * job.k_most), sizeof *job.sizes, "sizes of clusters");
    if (status == SHOAL_OK)
        status = base_alloc(&job.values, (size_t)(trials * rows), sizeof *job.values, "silhouettes");
    if (status == SHOAL_OK)
        status =
            base_alloc(&job.scratch, (size_t)(crew->threads * job.scratch_values), sizeof *job.scratch, "distances");
    for (int64_t t = 0; status == SHOAL_OK && t < trials; t++)
        out[t] = can_be_judged(job.sizes + t * job.k_most, labels + t * rows, rows) ? 0 : NAN;
    if (status == SHOAL_OK)
        status = judge_all(out, &job, crew);
    base_free(&job.sizes);
    base_free(&job.values);
    base_free(&job.scratch);
    return status;
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

double kmeans_calinski_harabasz(double between, double within, double weight, int64_t k)
{
    if (k < 2 || !(weight > (double)k))
        return NAN;
    if (!(within > 0))
        return 1; /* as scikit-learn has it */
    return between * (weight - (double)k) / (within * (double)(k - 1));
}

int64_t kmeans_greatest(const double *scores, int64_t count)
{
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(scores[i]) && (best < 0 || scores[i] > scores[best]))
            best = i;
    return best;
}

int64_t kmeans_elbow(const int64_t *ks, const double *objectives, int64_t count)
{
    const double low = objectives[count - 1], height = objectives[0] - low;
    const double width = (double)(ks[count - 1] - ks[0]);
    int64_t best = -1;
    double farthest = 0;
    for (int64_t i = 1; i + 1 < count && height > 0; i++) {
        double below = 1 - (double)(ks[i] - ks[0]) / width - (objectives[i] - low) / height;
        if (below > farthest) {
            farthest = below;
            best = i;
        }
    }
    return best;
}
