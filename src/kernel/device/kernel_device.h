/* Arithmetic on a device, such as a GPU, that holds the rows in memory of its own: the table that a plug-in fills.
 *
 *     kernel_device *device = NULL;
 *     kernel_device_choose(&device, "auto");        // NULL: there is none, which is no failure
 *     device->open(&held, device, &shape);
 *     while (more) { at = device->room(held, &rows); ...; device->put(held, rows); }
 *     device->measure(held, &units);
 *     device->assign(held, centres, k);
 *     device->sums(held, &sums);
 *
 * It stands beside the kernel sets and keeps their promise: all that it answers are the definition's labels and sums of
 * whole numbers, the same bits as on the CPU.  How a device finds them is its own concern; docs/devices.md has the
 * proof for tensor cores.  tests/device/test_device.c compares a table with the portable set, on a device or on one
 * that computes on the CPU.
 *
 * This header is read by plug-ins too, in C and C++: it includes nothing of shoal.  Functions return 0, or one of the
 * codes below and leave a sentence in device->message.  Held rows are used by one thread at a time. */
#ifndef KERNEL_DEVICE_H
#define KERNEL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KERNEL_DEVICE_VERSION = 1 };

/* What became of a call.  A device that is lost answers nothing any more; what it held is gone. */
enum { KERNEL_DEVICE_LOST = -1, KERNEL_DEVICE_MEMORY = -2, KERNEL_DEVICE_STOPPED = -3, KERNEL_DEVICE_ABSENT = -4 };

/* In what form a row's values are put; a learner converts other types, without rounding, to float64. */
typedef enum kernel_device_form {
    KERNEL_DEVICE_UINT8,
    KERNEL_DEVICE_FLOAT32,
    KERNEL_DEVICE_FLOAT64
} kernel_device_form;

typedef struct kernel_device_shape {
    int64_t rows, columns;
    kernel_device_form form;
    bool weighted;
    bool unit; /* rows have length 1, and the nearest centre is that of the greatest dot product */
} kernel_device_shape;

/* How rows are measured; see learn/kmeans.  All values are finite; origins are float32 numbers, quanta and scales
 * powers of two. */
typedef struct kernel_device_units {
    const double *origin, *inverse; /* columns; inverse is 0 for those whose sums are wide */
    double prescale, scale;
    double weight_scale, weight_inverse;
    double most; /* a row's weight has no more quanta than this */
    int64_t wide;
    const int64_t *wide_column;
    const double *wide_inverse;
    int wide_bits;
} kernel_device_units;

/* Where whole sums of all rows go. */
typedef struct kernel_device_sums {
    int64_t *values; /* k x columns */
    int64_t *rows;   /* k: rows that have weight */
    int64_t *weight; /* k, or NULL when unweighted */
    int64_t *wide;   /* k x wide low digits, then as many high ones */
} kernel_device_sums;

/* What the last round of k-means asks of the rows. */
typedef struct kernel_device_ending {
    double inverse, same; /* 1 / quantum of the objective, or 0; squared distances up to `same` count as 0 */
    int bits;             /* of a digit of the objective */
    int64_t objective[2]; /* out: its digits */
    double most;          /* out: the greatest term */
    int64_t *sizes;       /* k: rows of each cluster */
    int32_t *label;       /* one a row */
    double *distance;     /* one a row: squared, in units; or NULL */
} kernel_device_ending;

/* So many rounds of k-means on end: assign, sum, move.  It ends before a round's centres move where a cluster is
 * empty, and after one that moved no centre, or all of them by no more than `least` together. */
typedef struct kernel_device_rounds {
    int64_t k, most;
    double least, square_total;
    double *centres;          /* in and out */
    int64_t done;             /* out: rounds whose centres moved */
    bool converged;           /* out */
    double change, objective; /* out, of the last of them: squared movement; as kmeans_finish_iteration has it */
    int64_t distances;        /* out: scores computed */
} kernel_device_rounds;

typedef struct kernel_device kernel_device;
typedef struct kernel_device_rows kernel_device_rows;

/* How labels are found: as is fastest; or, for tests and comparisons, by the definition alone, or without the newest
 * instructions. */
typedef enum kernel_device_way { KERNEL_DEVICE_BEST, KERNEL_DEVICE_PLAIN, KERNEL_DEVICE_OLD } kernel_device_way;

struct kernel_device {
    uint32_t version, bytes;
    const char *name;  /* "cuda:0" */
    const char *about; /* "NVIDIA H200, 139.8 GiB" */
    char message[256];
    /* Makes room for the rows of a slice.  KERNEL_DEVICE_MEMORY when it has none: the CPU will do them. */
    int (*open)(kernel_device_rows **out, kernel_device *self, const kernel_device_shape *shape);
    /* Where to write the next rows (`*rows` of them at most), row-major, and their weights if there are any; NULL when
     * the device was lost.  put sends the first `rows` of them on their way. */
    void *(*room)(kernel_device_rows *held, int64_t *rows, double **weights);
    int (*put)(kernel_device_rows *held, int64_t rows);
    /* What follows measures rows so; sums and labels of before are void.  All rows have been put. */
    int (*measure)(kernel_device_rows *held, const kernel_device_units *units);
    /* Every row gets the definition's label: the centre at the least distance, the lowest index on ties. */
    int (*assign)(kernel_device_rows *held, const double *centres, int64_t k, kernel_device_way way);
    int (*sums)(kernel_device_rows *held, const kernel_device_sums *out);
    int (*ending)(kernel_device_rows *held, kernel_device_ending *inout);
    /* Optional. */
    int (*rounds)(kernel_device_rows *held, kernel_device_rounds *inout);
    void (*close)(kernel_device_rows **held); /* accepts a NULL inside */
};

/* Chooses by the words of --device: "auto" (or NULL) is the first device there is, or none; "cpu" is none; "cuda" and
 * "cuda:N" must be there, or SHOAL_ABSENT says why it is not.  Opened once a process, and never closed. */
int kernel_device_choose(kernel_device **out, const char *name);
/* SHOAL_USAGE for what is none of those words; looks for no device. */
int kernel_device_check(const char *name);
/* Puts a table of the caller's in the place of what "auto" and "cuda" find; NULL ends that.  For tests. */
void kernel_device_pretend(kernel_device *device);

/* The entry of a plug-in: the table of device `index`.  0, or not 0 and a sentence. */
typedef int kernel_device_entry(kernel_device **out, uint32_t version, int index, char *message, size_t room);
#define KERNEL_DEVICE_ENTRY "shoal_cuda_enter"

#ifdef __cplusplus
}
#endif
#endif
