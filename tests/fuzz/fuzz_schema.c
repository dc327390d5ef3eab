/* Any bytes as what a model remembers of its columns: refused with a message, or taken, and then what is written of it
 * is taken again and is the same text. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "learn/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char *write_text(const learn_schema *schema)
{
    json_t *object = learn_schema_json(schema);
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    json_t *object = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, NULL), *again = NULL;
    learn_schema schema = {0}, back = {0};
    char *text = NULL, *same = NULL;
    if (learn_schema_take(&schema, object, "input") < 0) {
        if (schema.columns || strncmp(shoal_error(), "input", 5) != 0)
            abort();
        goto done;
    }
    text = write_text(&schema);
    again = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (learn_schema_take(&back, again, "input") < 0 || !(same = write_text(&back)) || strcmp(text, same) != 0)
        abort();
done:
    free(text);
    free(same);
    json_decref(object);
    json_decref(again);
    learn_schema_release(&schema);
    learn_schema_release(&back);
    return 0;
}
