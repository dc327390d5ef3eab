/* Measuring all that plans need of this machine and of stores, and keeping it (plan/calibration.h).
 *
 *     plan_calibration *kept = ...;
 *     char *path = NULL;
 *     int status = plan_calibrate(kept, &path, &(plan_calibrate_request){.workers = 4, .seconds = 45}, &watcher);
 *
 * What was measured anew takes the place of what was there, and the rest stays. */
#ifndef PLAN_MEASURE_CALIBRATE_H
#define PLAN_MEASURE_CALIBRATE_H

#include <shoal/option.h>
#include <shoal/run.h>

#include "plan/calibration.h"

typedef struct plan_calibrate_request {
    shoal_texts stores;   /* URLs; none: a folder of this user, which is removed again */
    shoal_texts learners; /* names; none: all whose faces have a probe */
    int64_t workers;      /* the most that are started */
    double seconds;       /* about, of all measurements together */
    double limit;    /* seconds after which nothing further is measured; 0: about a minute, or what `seconds` need */
    const char *out; /* the file; NULL: plan_calibration_path */
    bool fresh;      /* forget what was measured before */
} plan_calibrate_request;

/* *kept, zero before, and *path, which the caller frees, are what the file has then and where it lies.  SHOAL_USAGE and
 * SHOAL_INVALID say in the words of the command line what is wrong.  SHOAL_STOPPED when the watcher's stop was set, and
 * nothing is written then; what was put into stores is removed in any case. */
int plan_calibrate(plan_calibration *kept, char **path, const plan_calibrate_request *request,
                   const shoal_watcher *watcher);
/* Measures nothing: fits what the file has to the runs that happened, `used` of `count`.  `out` as above. */
int plan_recalibrate(plan_calibration *kept, char **path, const char *out, int64_t *used, int64_t *count);

#endif
