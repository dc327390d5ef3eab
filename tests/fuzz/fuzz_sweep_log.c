/* Fuzzes the log of a sweep: lines that a store may hold are refused with a sentence, or lead to a course that can be
 * asked for more and be made anew. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "sweep/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static sweep_space *make_space(void)
{
    static const char text[] = "{\"x\": {\"low\": 0.0, \"high\": 1.0}, \"kind\": [\"a\", \"b\"], "
                               "\"n\": {\"low\": 1, \"high\": 3, \"type\": \"integer\", \"when\": {\"kind\": \"b\"}}}";
    static sweep_space *space;
    json_t *json = space ? NULL : json_loads(text, 0, NULL);
    if (!space && sweep_space_of_json(&space, "s", json) < 0)
        abort();
    json_decref(json);
    return space;
}

static void ask_for_more(sweep_log *log)
{
    char *text = NULL;
    if (log->entries == 0 || log->course.trials > 200)
        return;
    int status = sweep_log_awaits(log) >= 0 ? SHOAL_OK : sweep_log_make(&text, log, &(sweep_taken){.asks = 1});
    base_free(&text);
    if (status < 0 || sweep_log_restart(log, log->entries) < 0)
        abort();
    (void)sweep_log_is_over(log);
}

/* The first byte says which rules: strict or free, and which rule of stopping. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const sweep_stopper *const stopper[] = {&sweep_stopper_none, &sweep_stopper_asha, &sweep_stopper_hyperband,
                                                   &sweep_stopper_median};
    sweep_log log;
    if (size < 1 || size > 4096)
        return 0;
    sweep_rules rules = {
        .space = make_space(), .sampler = &sweep_sampler_sobol, .stopper = stopper[bytes[0] & 3], .rungs = {.eta = 3}};
    rules.stopper->lay(&rules.rungs, 9, 0);
    sweep_log_init(&log, &rules, bytes[0] & 8, bytes[0] & 4 ? 3 : 0);
    char *lines = malloc(size);
    memcpy(lines, bytes + 1, size - 1);
    lines[size - 1] = '\0';
    int status = SHOAL_OK;
    for (char *line = lines, *end; status == SHOAL_OK && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        shoal_fail(SHOAL_OK, "%s", "");
        status = sweep_log_apply(&log, line, bytes[0] & 16);
        if (status < 0 && ((status != SHOAL_BROKEN && status != SHOAL_MEMORY) || !*shoal_error()))
            abort();
    }
    if (status == SHOAL_OK)
        ask_for_more(&log);
    free(lines);
    sweep_log_release(&log);
    return 0;
}
