/* Each trial by chance, regardless of all others. */
#include "sampler.h"

const sweep_sampler sweep_sampler_random = {.name = "random", .summary = "by chance", .suggest = sweep_point_by_chance};
