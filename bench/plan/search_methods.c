#include "search_methods.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "kernel_fit.h"

static const base_kernel_prior published = {.scale = 1,
                                            .scale_spread = INFINITY,
                                            .signal = 0.5,
                                            .signal_spread = INFINITY,
                                            .noise = 0.05,
                                            .noise_spread = INFINITY};

static int init_cherrypick(plan_search *search)
{
    const base_kernel empty = {.features = search->features, .signal = published.signal, .noise = published.noise};
    return base_gaussian_init(&search->model.member[search->model.members++], &empty, search->place, 0);
}

/* The kernel anew from all trials. */
static int fit_cherrypick(plan_search *search, double *value)
{
    base_gaussian *process = &search->model.member[0];
    base_kernel kernel = process->kernel;
    const size_t width = (size_t)search->features;
    double *place = NULL;
    int64_t count = 0;
    search_seen_values(value, search, SEARCH_OBJECTIVE);
    int status = base_alloc(&place, (size_t)search->trials * width, sizeof *place, "a search");
    for (int64_t i = 0; status == SHOAL_OK && i < search->trials; i++)
        if (search_tells_time(&search->trial[i]))
            memcpy(place + (size_t)count++ * width, search->place + (size_t)search->trial[i].candidate * width,
                   width * sizeof *place);
    if (status == SHOAL_OK)
        status = base_kernel_fit(&kernel, &published, place, value, count);
    base_free(&place);
    if (status == SHOAL_OK) {
        base_gaussian_release(process);
        status = base_gaussian_init(process, &kernel, search->place, search->space->candidates);
    }
    for (int64_t i = 0; status == SHOAL_OK && i < search->trials; i++)
        if (search_tells_time(&search->trial[i]))
            status = base_gaussian_see(process, search->trial[i].candidate);
    return status;
}

/* It has no rule for as long as nothing works. */
static double next_of_cherrypick(const plan_search *search, double next)
{
    return search->best >= 0 ? next : INFINITY;
}

const search_method search_cherrypick = {.name = "cherrypick",
                                         .init = init_cherrypick,
                                         .learn = fit_cherrypick,
                                         .left_to_gain = next_of_cherrypick,
                                         .left = "the next one is"};
const search_method search_random = {.name = "random"};
