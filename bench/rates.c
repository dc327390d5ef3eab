/* What this machine can do, and what the dense float32 pass makes of it: multiply-adds, memory, and rows scored against
 * centres, with several threads at once; or, beside the multiply-adds, the matrix products of an autoencoder.
 *
 *     bench_rates [THREADS [ROWS [COLUMNS HIDDEN]]]
 *
 * Prints JSON.  Every thread alternates between short runs of multiply-adds and blocks of the pass, so that both meet
 * the same clock and the same neighbours: the share is between figures of the same threads at the same time. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel/kernel.h"

enum {
    COLUMNS = 1000,
    CENTRES = 1000,
    PADDED = 1024,
    BLOCK_ROWS = KERNEL_BLOCK_ROWS,
    BLOCKS_A_PEAK = 4,
    NET_ROWS = 256, /* of a block, as src/learn/autoencoder has them */
    THREADS_MOST = 256
};
static const size_t read_bytes = (size_t)256 << 20; /* of each thread: far more than any cache holds */

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* While this thread runs: what it loses to other programs is no part of a share. */
static double thread_seconds(void)
{
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static void *take(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench_rates: out of memory\n");
        exit(1);
    }
    return memset(memory, 0, (bytes + 63) / 64 * 64);
}

/* ---- multiply-adds ----------------------------------------------------------------------------------------------- */

/* Independent chains: what the units can do when they wait for nothing.  Returns the operations done. */
#define PEAK(NAME, TARGET, LANES, STEP)                                                                                \
    TARGET static double NAME(void)                                                                                    \
    {                                                                                                                  \
        typedef float vector __attribute__((vector_size(4 * LANES)));                                                  \
        const vector factor = (vector){0} + 0.999f, term = (vector){0} + 0.001f;                                       \
        vector sum[12];                                                                                                \
        for (int c = 0; c < 12; c++) /* all different, lest they be computed once */                                   \
            sum[c] = term + (float)c;                                                                                  \
        for (int i = 0; i < 20000; i++)                                                                                \
            _Pragma("GCC unroll 12") for (int c = 0; c < 12; c++) STEP;                                                \
        for (int c = 0; c < 12; c++)                                                                                   \
            __asm__ volatile("" : : "x"(sum[c]));                                                                      \
        return 20000. * 12 * 2 * LANES;                                                                                \
    }

PEAK(peak_portable, , 4, sum[c] = sum[c] * factor + term)
#if defined(__x86_64__)
#include <immintrin.h>
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), 8,
     sum[c] = (vector)_mm256_fmadd_ps((__m256)sum[c], (__m256)factor, (__m256)term))
PEAK(peak_avx512, __attribute__((target("avx512f"))), 16,
     sum[c] = (vector)_mm512_fmadd_ps((__m512)sum[c], (__m512)factor, (__m512)term))
#endif

static double peak(const kernel_set *set)
{
#if defined(__x86_64__)
    if (strcmp(set->name, "avx2") == 0)
        return peak_avx2();
    if (strcmp(set->name, "portable") != 0)
        return peak_avx512();
#endif
    (void)set;
    return peak_portable();
}

/* ---- the dense pass ---------------------------------------------------------------------------------------------- */

/* What threads share. */
typedef struct work {
    const kernel_set *set;
    const float *rows, *panels, *bias, *origin32;
    const double *origin64;
    int64_t count;
    int64_t columns, hidden; /* of a net */
    atomic_llong next;
    pthread_barrier_t start;
} work;

typedef struct thread {
    work *work;
    pthread_t id;
    double peak_operations, peak_seconds, pass_operations, pass_seconds, read_rate;
    volatile double sink;
} thread;

/* Centres, packs and scores one block of rows and finds the nearest centre of each. */
static void pass(thread *self, float *centred, float *panels, float *scores, int64_t first, int count)
{
    const work *w = self->work;
    const kernel_origin origin = {w->origin32, w->origin64, 1};
    const kernel_set *set = w->set;
    int nearest = 0;
    for (int r = 0; r < count; r++)
        set->centre_row(centred + r * COLUMNS, w->rows + (first + r) * COLUMNS, SHOAL_FLOAT32, &origin, COLUMNS);
    set->pack_rows(panels, centred, count, COLUMNS);
    set->score_float(scores, PADDED, panels, (count + set->tile_rows - 1) / set->tile_rows, w->panels, w->bias,
                     (CENTRES + set->tile_centres - 1) / set->tile_centres, COLUMNS);
    for (int r = 0; r < count; r++)
        nearest += set->least(scores + r * PADDED, CENTRES / 16 * 16);
    self->sink = nearest;
}

static void *run_pass(void *untyped)
{
    thread *self = untyped;
    work *w = self->work;
    float *centred = take(BLOCK_ROWS * COLUMNS * sizeof(float));
    float *panels = take((BLOCK_ROWS + KERNEL_TILE_ROWS_MOST) * COLUMNS * sizeof(float));
    float *scores = take((BLOCK_ROWS + KERNEL_TILE_ROWS_MOST) * PADDED * sizeof(float));
    pthread_barrier_wait(&w->start);
    for (int turn = 0;; turn++) {
        int64_t first = atomic_fetch_add(&w->next, BLOCK_ROWS);
        if (first >= w->count)
            break;
        int count = w->count - first < BLOCK_ROWS ? (int)(w->count - first) : BLOCK_ROWS;
        double started = thread_seconds();
        if (turn % BLOCKS_A_PEAK == 0) {
            self->peak_operations += peak(w->set);
            self->peak_seconds += thread_seconds() - started;
            started = thread_seconds();
        }
        pass(self, centred, panels, scores, first, count);
        self->pass_seconds += thread_seconds() - started;
        self->pass_operations += 2. * count * COLUMNS * CENTRES;
    }
    free(centred), free(panels), free(scores);
    return NULL;
}

static float *pack_centres(const float *centres, int tile)
{
    float *panels = take((size_t)(CENTRES + tile) * COLUMNS * sizeof(float));
    for (int j = 0; j < CENTRES; j++)
        for (int k = 0; k < COLUMNS; k++)
            panels[((int64_t)(j / tile) * COLUMNS + k) * tile + j % tile] = centres[j * COLUMNS + k];
    return panels;
}

static float *make_bias(const float *centres)
{
    float *bias = take(PADDED * sizeof(float));
    for (int j = 0; j < PADDED; j++) {
        double square = 0;
        for (int k = 0; j < CENTRES && k < COLUMNS; k++)
            square += (double)centres[j * COLUMNS + k] * centres[j * COLUMNS + k];
        bias[j] = j < CENTRES ? (float)(square / 2) : INFINITY;
    }
    return bias;
}

/* ---- the products of a net --------------------------------------------------------------------------------------- */

/* What a block of rows of a sparse net with one hidden layer needs, biases and activations left out. */
typedef struct net {
    float *input, *output, *hidden, *back; /* of the rows; back: deltas of the hidden layer, then slopes */
    float *encoder, *decoder, *gradient;   /* columns x hidden; hidden x columns; 2 hidden x columns */
} net;

/* Forwards through both layers, back through one, the gradients of both, and what the sparsity multiplies: six products
 * of the same size, the last two in one. */
static double multiply(const kernel_dense32 *dense, const net *n, int64_t columns, int64_t hidden)
{
    dense->product(n->hidden, hidden, n->input, columns, 1, n->encoder, hidden, NET_ROWS, hidden, columns);
    dense->product(n->output, columns, n->hidden, hidden, 1, n->decoder, columns, NET_ROWS, columns, hidden);
    dense->product(n->gradient, columns, n->hidden, 1, hidden, n->output, columns, hidden, columns, NET_ROWS);
    dense->product(n->back, 2 * hidden, n->output, columns, 1, n->encoder, hidden, NET_ROWS, hidden, columns);
    dense->product(n->gradient, columns, n->back, 1, 2 * hidden, n->input, columns, 2 * hidden, columns, NET_ROWS);
    return 6 * 2. * NET_ROWS * (double)columns * (double)hidden;
}

/* As many blocks as there are rows for; results are cleared each time, lest sums grow out of what floats hold. */
static void *run_net(void *untyped)
{
    thread *self = untyped;
    work *w = self->work;
    size_t input = (size_t)(NET_ROWS * w->columns) * sizeof(float),
           hidden = (size_t)(NET_ROWS * w->hidden) * sizeof(float);
    size_t weights = (size_t)(w->columns * w->hidden) * sizeof(float);
    net n = {take(input), take(input), take(hidden), take(2 * hidden), take(weights), take(weights), take(2 * weights)};
    memcpy(n.input, w->rows, input);
    memcpy(n.encoder, w->rows, weights);
    memcpy(n.decoder, w->rows, weights);
    pthread_barrier_wait(&w->start);
    while (atomic_fetch_add(&w->next, NET_ROWS) < w->count) {
        memset(n.hidden, 0, hidden), memset(n.output, 0, input), memset(n.back, 0, 2 * hidden);
        memset(n.gradient, 0, 2 * weights);
        double started = thread_seconds();
        do {
            self->peak_operations += peak(w->set);
        } while (self->peak_seconds + thread_seconds() - started < self->pass_seconds / 4);
        self->peak_seconds += thread_seconds() - started;
        started = thread_seconds();
        self->pass_operations += multiply(&w->set->dense32, &n, w->columns, w->hidden);
        self->pass_seconds += thread_seconds() - started;
    }
    free(n.input), free(n.output), free(n.hidden), free(n.back), free(n.encoder), free(n.decoder), free(n.gradient);
    return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *run_read(void *untyped)
{
    typedef uint64_t vector __attribute__((vector_size(64)));
    thread *self = untyped;
    vector *memory = take(read_bytes), sum = {0};
    memset(memory, 1, read_bytes);
    pthread_barrier_wait(&self->work->start);
    for (int turn = 0; turn < 5; turn++) {
        double started = clock_seconds(CLOCK_MONOTONIC);
        for (size_t i = 0; i < read_bytes / sizeof *memory; i++)
            sum += memory[i];
        __asm__ volatile("" : "+m"(sum));
        double rate = (double)read_bytes / (clock_seconds(CLOCK_MONOTONIC) - started);
        self->read_rate = rate > self->read_rate ? rate : self->read_rate;
    }
    free(memory);
    return NULL;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void run_threads(work *w, thread *threads, int count, void *(*body)(void *))
{
    memset(threads, 0, (size_t)count * sizeof *threads);
    atomic_store(&w->next, 0);
    pthread_barrier_init(&w->start, NULL, (unsigned)count);
    for (int t = 0; t < count; t++) {
        threads[t].work = w;
        if (pthread_create(&threads[t].id, NULL, body, &threads[t]) != 0)
            exit(1);
    }
    for (int t = 0; t < count; t++)
        pthread_join(threads[t].id, NULL);
    pthread_barrier_destroy(&w->start);
}

/* Operations a second of all threads together. */
static void add_up(double *peaks, double *passes, const thread *threads, int count)
{
    *peaks = *passes = 0;
    for (int t = 0; t < count; t++) {
        if (threads[t].peak_seconds > 0) { /* it had some of the work */
            *peaks += threads[t].peak_operations / threads[t].peak_seconds;
            *passes += threads[t].pass_operations / threads[t].pass_seconds;
        }
    }
}

static void print_set(work *w, thread *threads, int count, const float *centres)
{
    double peaks, passes;
    float *panels = pack_centres(centres, w->set->tile_centres);
    w->panels = panels;
    run_threads(w, threads, count, run_pass);
    add_up(&peaks, &passes, threads, count);
    printf("\"%s\": {\"fma_gflops\": %.1f, \"dense_gflops\": %.1f, \"dense_share\": %.3f}, ", w->set->name,
           peaks * 1e-9, passes * 1e-9, passes / peaks);
    free(panels);
}

static uint64_t state = 88172645463325252u;

static float *random_floats(int64_t count)
{
    float *values = take((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17; /* Marsaglia 2003, xorshift64 */
        values[i] = (float)(int32_t)state * 0x1p-32f;
    }
    return values;
}

static void print_kmeans(work *w, thread *threads, int count, const kernel_set *const *sets, int count_sets)
{
    float *rows = random_floats(w->count * COLUMNS), *centres = random_floats(CENTRES * COLUMNS),
          *bias = make_bias(centres);
    double read = 0;
    w->rows = rows;
    w->bias = bias;
    for (int s = 1; s < count_sets; s++) { /* portable C is not meant to be fast */
        w->set = sets[s];
        print_set(w, threads, count, centres);
    }
    run_threads(w, threads, count, run_read);
    for (int t = 0; t < count; t++)
        read += threads[t].read_rate;
    printf("\"read_gbytes\": %.1f}\n", read * 1e-9);
    free(rows), free(centres), free(bias);
}

static void print_net(work *w, thread *threads, int count, const kernel_set *const *sets, int count_sets)
{
    int64_t most = w->hidden > NET_ROWS ? w->hidden : NET_ROWS;
    float *values = random_floats(most * w->columns);
    double peaks, products;
    w->rows = values;
    printf("\"net\": [");
    for (int s = 1; s < count_sets; s++) {
        w->set = sets[s];
        run_threads(w, threads, count, run_net);
        add_up(&peaks, &products, threads, count);
        printf("%s{\"kernel\": \"%s\", \"fma_gflops\": %.1f, \"product_gflops\": %.1f}", s > 1 ? ", " : "",
               w->set->name, peaks * 1e-9, products * 1e-9);
    }
    printf("]}\n");
    free(values);
}

int main(int argc, char **argv)
{
    static thread threads[THREADS_MOST];
    static const float origin32[COLUMNS];
    static const double origin64[COLUMNS];
    const kernel_set *sets[8];
    int count_sets = kernel_list(sets), count = argc > 1 ? atoi(argv[1]) : 2;
    work w = {.count = argc > 2 ? atoll(argv[2]) : 20000, .origin32 = origin32, .origin64 = origin64};
    w.columns = argc > 4 ? atoll(argv[3]) : 0;
    w.hidden = argc > 4 ? atoll(argv[4]) : 0;
    if (count < 1 || count > THREADS_MOST || w.count < 1 || (argc > 3 && (w.columns < 1 || w.hidden < 1))) {
        fprintf(stderr, "usage: bench_rates [THREADS [ROWS [COLUMNS HIDDEN]]]\n");
        return 2;
    }
    printf("{\"threads\": %d, ", count);
    (w.columns > 0 ? print_net : print_kmeans)(&w, threads, count, sets, count_sets);
    return 0;
}
