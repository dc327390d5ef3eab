/* Fuzzes the reader of spaces: whatever comes is refused with a sentence, or gives a space that says the same when it
 * is written, and whose samplers give points of it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "sweep/sampler.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_points(const sweep_space *space, const sweep_sampler *sampler)
{
    sweep_trial trial[14];
    if (sampler->check && sampler->check(space) < 0)
        return;
    for (int64_t i = 0; i < 14; i++) {
        const sweep_question question = {.space = space, .seed = 1, .number = i, .trial = trial, .trials = i};
        sweep_point read;
        trial[i] = (sweep_trial){.state = SWEEP_DONE, .rungs = 1, .value = (double)(i * 5 % 7)};
        int status = sampler->suggest(&trial[i].point, &question);
        if (status == SHOAL_ABSENT)
            return;
        json_t *json = sweep_point_json(space, &trial[i].point);
        if (status < 0 || sweep_point_of_json(&read, space, "p", json) < 0 ||
            !sweep_same_point(space, &read, &trial[i].point))
            abort();
        json_decref(json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sweep_space *space = NULL, *again = NULL;
    json_t *json = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, NULL);
    if (!json)
        return 0;
    int status = sweep_space_of_json(&space, "s.json", json);
    if (status < 0 && ((status != SHOAL_INVALID && status != SHOAL_MEMORY) || space || !*shoal_error()))
        abort();
    json_decref(json);
    if (status < 0)
        return 0;
    json = sweep_space_json(space);
    if (sweep_space_of_json(&again, "again", json) < 0)
        abort();
    json_t *twice = sweep_space_json(again);
    if (!json_equal(json, twice))
        abort();
    for (int i = 0; sweep_samplers[i]; i++)
        check_points(space, sweep_samplers[i]);
    json_decref(json);
    json_decref(twice);
    sweep_space_free(&space);
    sweep_space_free(&again);
    return 0;
}
