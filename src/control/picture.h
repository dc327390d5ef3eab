/* A picture of how a job was held: machines over time, what was foretold beside what happened, and money.
 *
 *     const control_point points[] = {{.at = 2.5, .workers = 3, .end = 61, .low = 52, .high = 70}, ...};
 *     int status = control_draw("control.svg", points, count, &(control_limits){.deadline = 90}); */
#ifndef CONTROL_PICTURE_H
#define CONTROL_PICTURE_H

#include <stdint.h>

/* Seconds are from the beginning. */
typedef struct control_point {
    double at;
    int64_t workers;
    double end, low, high; /* foretold then; 0: nothing was */
    double spent, cost;    /* and what all will have cost */
} control_point;

typedef struct control_limits {
    double deadline, budget; /* 0: none */
    double price;            /* of a worker, an hour; 0: money is not drawn */
} control_limits;

/* SVG or PNG by the ending.  At least one point; the last one is the end. */
int control_draw(const char *path, const control_point *point, int64_t count, const control_limits *limits);

#endif
