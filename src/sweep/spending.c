/* See spending.h. */
#include "spending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"

typedef struct sum {
    const sweep_place *place;
    const char *but;
    double seconds;
} sum;

int sweep_spending_put(const sweep_place *place, const char *runner, double worker_seconds)
{
    char key[SHOAL_KEY_MOST + 1], text[64];
    snprintf(key, sizeof key, "runner/%s", runner);
    snprintf(text, sizeof text, "{\"worker_seconds\": %.3f}", worker_seconds);
    return sweep_place_put(place, key, text);
}

static int add_runner(void *context, const char *runner)
{
    sum *self = context;
    char key[SHOAL_KEY_MOST + 1], *text = NULL;
    if (self->but && strcmp(runner, self->but) == 0)
        return SHOAL_OK;
    snprintf(key, sizeof key, "runner/%s", runner);
    int status = sweep_place_get(&text, self->place, key);
    if (status < 0)
        return status;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const double seconds = json_number_value(json_object_get(json, "worker_seconds"));
    self->seconds += seconds > 0 ? seconds : 0;
    json_decref(json);
    base_free(&text);
    return SHOAL_OK;
}

int sweep_spending_sum(double *worker_seconds, const sweep_place *place, const char *but)
{
    sum self = {.place = place, .but = but};
    int status = sweep_place_each(place, "runner/", add_runner, &self);
    *worker_seconds = self.seconds;
    return status;
}
