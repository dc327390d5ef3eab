/* Small things verbs print with. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_text(const char *text)
{
    json_t *string = json_string(text);
    char *ascii = NULL;
    if (string || base_copy_text(&ascii, text) < 0)
        return string;
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(ascii);
    base_free(&ascii);
    return string;
}

/* A name that came from a store may be no UTF-8, which JSON can't hold. */
void cli_json_put(json_t **object, const char *name, json_t *value)
{
    char *clean = NULL;
    bool fine = base_text_is_clean(name) || base_copy_text(&clean, name) == SHOAL_OK;
    if (clean)
        base_text_clean(clean);
    if (!fine)
        json_decref(value);
    if (!fine || json_object_set_new(*object, clean ? clean : name, value) < 0) {
        json_decref(*object);
        *object = NULL;
    }
    base_free(&clean);
}

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

void cli_format_bytes(char *out, size_t size, double bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = -1;
    for (; bytes >= 999.5 && unit < 5; unit++)
        bytes /= 1000;
    if (unit < 0)
        snprintf(out, size, "%.0f byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(out, size, bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

void cli_format_count(char *out, size_t size, int64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count), at = 0;
    for (int i = 0; i < length && (size_t)at + 2 < size; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}
