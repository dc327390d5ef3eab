/* What a learner of this layer will ask for, for plans.  See gradient.h. */
#include <math.h>

#include "learn/gradient/gradient_internal.h"

/* What a round and a partial have around their numbers on the way: names, numbers, a layout, what is kept. */
enum { ROUND_BYTES = 340, PARTIAL_BYTES = 20 };

/* A search looks at the first point, and then at a few more than one for each iteration: the first has no curvature to
 * go by. */
static double evaluations(double iterations)
{
    return iterations > 0 ? ceil(2 + 1.1 * iterations) : 1;
}

void gradient_cost(shoal_cost *out, const gradient_sizes *sizes)
{
    const double word = sizeof(double), head = ROUND_BYTES + sizeof(gradient_model);
    const double own_bytes = sizes->run_own_bytes > 0 ? sizes->run_own_bytes : sizes->own_bytes;
    const shoal_cost_phase scan = {.name = "scan",
                                   .rounds = 1,
                                   .model_bytes = head + sizes->own_bytes,
                                   .partial_bytes = PARTIAL_BYTES + sizes->scan_bytes};
    const shoal_cost_phase run = {.name = "run",
                                  .rounds = evaluations(sizes->iterations),
                                  .operations_per_row = sizes->operations_per_row,
                                  .model_bytes = head + own_bytes + sizes->parameters * word,
                                  .partial_bytes = PARTIAL_BYTES + (sizes->sums + sizes->groups) * word,
                                  .kept_bytes =
                                      sizes->iterations > 0 ? (3 * sizes->parameters + sizes->notes) * word : 0};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .rounds = (int64_t)(scan.rounds + run.rounds),
                        .phases = 2,
                        .phase = {scan, run}};
}
