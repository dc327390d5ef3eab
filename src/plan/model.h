/* shoal_plan_estimate for who asks it a million times.  See choose.c. */
#ifndef PLAN_MODEL_H
#define PLAN_MODEL_H

#include <shoal/plan.h>

#include "plan/straggle.h"

/* The same, with what was found of the slowest the last time: it depends on the number of workers alone, and is most of
 * the work. */
int plan_estimate(shoal_estimate *out, plan_slowest_memo *memo, const shoal_plan_job *job, const shoal_site *site,
                  const shoal_pace *pace, int paces, const shoal_plan_crew *crew);

#endif
