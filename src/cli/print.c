/* Small things verbs print with. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int cli_print_json(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_REAL_PRECISION(17) | JSON_ENSURE_ASCII) : NULL;
    json_decref(object);
    if (!text)
        return shoal_fail(SHOAL_MEMORY, "out of memory for the JSON object");
    puts(text);
    free(text);
    return SHOAL_OK;
}

void cli_put_text(FILE *stream, const char *text)
{
    cli_put_text_n(stream, text, strlen(text));
}

void cli_put_text_n(FILE *stream, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        bool plain = false;
        size_t step = base_text_next(&plain, text + at);
        if (plain && at + step <= length)
            fwrite(text + at, 1, step, stream);
        else
            fputc('?', stream);
        at += step;
    }
}
