/* How busy this machine is with other programs, which make everything that is measured slower than it is.
 *
 *     double busy = plan_measure_busy(0.05);          // 0: all cores were ours; 0.6: others had 60% of them
 *     error = plan_error_if_busy(error, busy);        // what is measured meanwhile is that much less sure */
#ifndef PLAN_MEASURE_BUSY_H
#define PLAN_MEASURE_BUSY_H

#include "plan/calibration.h" /* PLAN_BUSY_LEAST */

/* Seconds that the processor has given to the calling thread. */
double plan_thread_seconds(void);
/* Keeps every core busy for that many seconds, and compares the processor time that came of it with the time that
 * passed: 0 to 1. */
double plan_measure_busy(double seconds);
/* The share that others had while `wall` seconds passed and a thread that never waits had `processor` of them. */
double plan_busy_share(double processor, double wall);
/* An error, as in shoal_site, of what is measured while others have that share. */
double plan_error_if_busy(double error, double busy);

#endif
