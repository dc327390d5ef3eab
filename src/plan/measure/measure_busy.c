/* Measuring how busy the machine is.  See measure_busy.h. */
#include "measure_busy.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "base/pool.h"

enum { SPINNERS_MOST = 256 };

/* What a half of the processor adds to an error: with others about, estimates are off by 30% rather than by 12%. */
static const double BUSY_WEIGHT = 0.6;

double plan_thread_seconds(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double plan_busy_share(double processor, double wall)
{
    return wall > 0 ? fmin(fmax(1 - processor / wall, 0), 1) : 0;
}

double plan_error_if_busy(double error, double busy)
{
    return busy > PLAN_BUSY_LEAST ? hypot(error, BUSY_WEIGHT * busy) : error;
}

typedef struct spinner {
    pthread_t thread;
    double seconds, processor, wall;
} spinner;

static void *spin(void *from_start)
{
    spinner *self = from_start;
    double began = base_seconds(), had = plan_thread_seconds();
    while (base_seconds() < began + self->seconds)
        ;
    self->processor = plan_thread_seconds() - had;
    self->wall = base_seconds() - began;
    return NULL;
}

double plan_measure_busy(double seconds)
{
    spinner spinner[SPINNERS_MOST];
    int cores = base_cores(), started = 0;
    double processor = 0, wall = 0;
    for (; started < cores && started < SPINNERS_MOST; started++) {
        spinner[started] = (struct spinner){.seconds = seconds};
        if (pthread_create(&spinner[started].thread, NULL, spin, &spinner[started]) != 0)
            break; /* those that could be started tell enough */
    }
    for (int i = 0; i < started; i++) {
        pthread_join(spinner[i].thread, NULL);
        processor += spinner[i].processor;
        wall += spinner[i].wall;
    }
    return plan_busy_share(processor, wall);
}
