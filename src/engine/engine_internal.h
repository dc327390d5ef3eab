/* What engines share: a checked call of shoal_run, and what runs it. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <shoal/engine.h>

#include "engine/in_step.h"
#include "kernel/device/kernel_device.h"
#include "kernel/kernel.h"

/* One call of shoal_run, checked: shapes agree, the kernel set exists, threads and grains are chosen. */
typedef struct engine_call {
    const shoal_algorithm *algorithm;
    const void *config;
    shoal_data *data;
    const double *weights;
    shoal_shape shape;
    int threads;
    engine_shares shares; /* of ranks; without ranks all cores belong to this process */
    const kernel_set *kernel;
    kernel_device *device;            /* NULL: the learner has no use for one, or there is none */
    uint64_t kernel_check;            /* kernel_fingerprint, where it matters to the learner */
    const shoal_run_options *options; /* never NULL */
    shoal_report *report;             /* never NULL; the engine adds phases, rounds and counters */
} engine_call;

/* Runs it to its end.  The result has the same bits with every number of threads and ranks. */
int engine_run_rounds(shoal_result **out, const engine_call *call);

/* The shape of a run, grains included: a function of the data, of what the learner asks for and of rows_per_grain (0:
 * chosen), the same for every engine. */
int engine_fill_shape(shoal_shape *shape, const shoal_algorithm *algorithm, const void *config, shoal_data *data,
                      const double *weights, int64_t rows_per_grain);

/* What a run computes on by the words of --device: NULL for the CPU.  SHOAL_USAGE where a learner that has no use for a
 * device is to run on one. */
int engine_choose_device(kernel_device **out, const shoal_algorithm *algorithm, const shoal_shape *shape,
                         const char *name);

/* Numbers a round, and what it newly keeps. */
void engine_number_round(shoal_round *round, int64_t number);

/* Adds seconds and rounds to the phase called `name`, one of *phases; phases beyond SHOAL_PHASES_MOST are counted with
 * the last. */
void engine_add_phase(shoal_phase phase[SHOAL_PHASES_MOST], int *phases, const char *name, double seconds,
                      int64_t rounds);

#endif
