/* Rounds of k-means on a device with the rows there, for bench/bench_device.py: one line of JSON.
 *
 *     bench_device_rounds DEVICE ROWS COLUMNS K FORM KIND ROUNDS TURNS
 *
 * FORM is uint8, float32 or float64; KIND uniform, or the number of overlapping blobs.  First centres are rows, K of
 * them, evenly apart.  Every turn is the same rounds from the same centres, with labels forgotten. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <shoal/error.h>

#include "kernel/device/kernel_device.h"
#include "shoal/learn.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

typedef struct task {
    int64_t first, rows, columns, blobs;
    kernel_device_form form;
    void *to;
    pthread_t thread;
} task;

static double value_of(const task *t, int64_t i, int64_t k)
{
    const uint64_t z = mix((uint64_t)(i * t->columns + k) * UINT64_C(0x9E3779B97F4A7C15) + 1);
    const double u = (double)(z >> 40) * 0x1p-24, v = (double)(z >> 16 & 0xffffff) * 0x1p-24;
    if (!t->blobs)
        return u;
    const uint64_t blob = mix((uint64_t)i * UINT64_C(0x9E3779B97F4A7C15)) % (uint64_t)t->blobs;
    const double at = (double)(mix((blob * 1000003 + (uint64_t)k) * UINT64_C(0x9E3779B97F4A7C15)) >> 40) * 0x1p-24;
    return at * 4 + (u + v) * 2 - 7;
}

static void *fill(void *untyped)
{
    const task *t = untyped;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k++) {
            const int64_t at = i * t->columns + k;
            const double v = value_of(t, t->first + i, k);
            if (t->form == KERNEL_DEVICE_UINT8)
                ((uint8_t *)t->to)[at] = (uint8_t)(t->blobs ? (v + 7) / 8 * 255 : v * 256);
            else if (t->form == KERNEL_DEVICE_FLOAT32)
                ((float *)t->to)[at] = (float)v;
            else
                ((double *)t->to)[at] = v;
        }
    return NULL;
}

/* Rows from `first` on, by all cores. */
static void make(void *to, const task *like, int64_t first, int64_t rows)
{
    enum { MOST = 64 };
    static task tasks[MOST];
    const size_t size = like->form == KERNEL_DEVICE_UINT8 ? 1 : like->form == KERNEL_DEVICE_FLOAT32 ? 4 : 8;
    int count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    count = count < MOST ? count : MOST;
    for (int i = 0; i < count; i++) {
        const int64_t from = rows * i / count, end = rows * (i + 1) / count;
        tasks[i] = *like;
        tasks[i].first = first + from;
        tasks[i].rows = end - from;
        tasks[i].to = (char *)to + (size_t)(from * like->columns) * size;
        pthread_create(&tasks[i].thread, NULL, fill, &tasks[i]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(tasks[i].thread, NULL);
}

static int fail(const kernel_device *device, const char *doing)
{
    printf("{\"failed\": \"%s: %s\"}\n", doing, device->message);
    return 1;
}

int main(int argc, char **argv)
{
    kernel_device *device = NULL;
    kernel_device_rows *held = NULL;
    if (argc < 9 || kernel_device_choose(&device, argv[1]) < 0 || !device) {
        fprintf(stderr, "bench_device_rounds: %s\n", argc < 9 ? "too few arguments" : shoal_error());
        return 2;
    }
    task like = {.columns = atoll(argv[3]), .blobs = atoll(argv[6])};
    const int64_t rows = atoll(argv[2]), columns = like.columns, k = atoll(argv[4]);
    like.form = strcmp(argv[5], "uint8") == 0     ? KERNEL_DEVICE_UINT8
                : strcmp(argv[5], "float32") == 0 ? KERNEL_DEVICE_FLOAT32
                                                  : KERNEL_DEVICE_FLOAT64;
    const int rounds = atoi(argv[7]), turns = atoi(argv[8]);
    const bool bytes = like.form == KERNEL_DEVICE_UINT8;
    const kernel_device_shape shape = {rows, columns, like.form, false, false};
    double began = now(), *memory = calloc((size_t)(2 * columns + 2 * k * columns), sizeof *memory);
    if (device->open(&held, device, &shape) < 0)
        return fail(device, "open");
    const double opened = now();
    for (int64_t done = 0; done < rows;) {
        int64_t room = 0;
        double *weights;
        void *to = device->room(held, &room, &weights);
        if (!to)
            return fail(device, "room");
        room = room < rows - done ? room : rows - done;
        make(to, &like, done, room);
        if (device->put(held, room) < 0)
            return fail(device, "put");
        done += room;
    }
    double *origin = memory, *inverse = memory + columns, *start = inverse + columns, *centres = start + k * columns;
    for (int64_t c = 0; c < columns; c++) {
        origin[c] = bytes ? 127.5 : like.blobs ? -1 : 0.5;
        inverse[c] = 0x1p62 / (0x1p27 * (bytes ? 256 : like.blobs ? 16 : 1));
    }
    for (int64_t j = 0; j < k; j++)
        for (int64_t c = 0; c < columns; c++) {
            const double v = value_of(&like, j * (rows / k), c);
            start[j * columns + c] = bytes ? (double)(uint8_t)(like.blobs ? (v + 7) / 8 * 255 : v * 256) : (float)v;
        }
    const kernel_device_units units = {.origin = origin,
                                       .inverse = inverse,
                                       .prescale = 1,
                                       .scale = bytes        ? 0x1p-7
                                                : like.blobs ? 0x1p-3
                                                             : 2,
                                       .weight_scale = 1,
                                       .weight_inverse = 1,
                                       .most = 0x1p62 / (double)rows,
                                       .wide_bits = shoal_wide_bits(rows)};
    double measured = now(), least = 1e30, all[64], total = 0;
    if (device->measure(held, &units) < 0)
        return fail(device, "measure");
    measured = now() - measured;
    kernel_device_rounds job = {.k = k, .most = rounds, .centres = centres};
    for (int t = 0; t <= turns && t < 64; t++) { /* the first is not counted */
        memcpy(centres, start, (size_t)(k * columns) * sizeof *centres);
        if (device->measure(held, &units) < 0)
            return fail(device, "measure");
        const double from = now();
        if (device->rounds(held, &job) < 0)
            return fail(device, "rounds");
        all[t] = now() - from;
        if (t > 0) {
            least = all[t] < least ? all[t] : least;
            total += all[t];
        }
    }
    printf("{\"rows\": %lld, \"columns\": %lld, \"k\": %lld, \"form\": \"%s\", \"blobs\": %lld, \"rounds\": %lld, "
           "\"open_ms\": %.3f, \"measure_ms\": %.3f, \"least_ms\": %.3f, \"mean_ms\": %.3f, \"turns_ms\": [",
           (long long)rows, (long long)columns, (long long)k, argv[5], (long long)like.blobs, (long long)job.done,
           1e3 * (opened - began), 1e3 * measured, 1e3 * least, 1e3 * total / turns);
    for (int t = 1; t <= turns && t < 64; t++)
        printf("%s%.3f", t > 1 ? ", " : "", 1e3 * all[t]);
    printf("]}\n");
    device->close(&held);
    free(memory);
    return 0;
}
