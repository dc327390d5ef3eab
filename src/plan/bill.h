/* What machines cost that are paid by the time they run. */
#ifndef PLAN_BILL_H
#define PLAN_BILL_H

#include <math.h>

/* `machines` for `seconds` each, at `dollars` an hour, in steps of `billed` seconds (0: as they come). */
static inline double plan_bill(double machines, double seconds, double dollars, double billed)
{
    double paid = billed > 0 && isfinite(seconds) ? ceil(seconds / billed) * billed : seconds;
    return dollars > 0 ? machines * paid / 3600 * dollars : 0;
}

#endif
