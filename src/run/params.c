/* See params.h. */
#include "params.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "learn/module.h"

enum { PARAMS_BYTES_MOST = 16 << 20 };

/* An object starts with a brace, and the names of files do not. */
bool run_params_are_json(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{';
}

static int read_file(char **out, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "--params %s: neither a JSON object nor a file", path);
    int status = base_alloc(out, PARAMS_BYTES_MOST, 1, path);
    if (status == SHOAL_OK) {
        size_t length = fread(*out, 1, PARAMS_BYTES_MOST, file);
        if (ferror(file))
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "--params %s: can't read", path);
        else if (length == PARAMS_BYTES_MOST || strlen(*out) != length)
            status = shoal_fail(SHOAL_INVALID, "--params %s: no JSON object of less than 16 MiB", path);
    }
    fclose(file);
    return status;
}

int run_params_read(char **text, const char *asked)
{
    shoal_params *params = NULL;
    if (!asked)
        return SHOAL_OK;
    int status = run_params_are_json(asked) ? base_copy_text(text, asked) : read_file(text, asked);
    if (status == SHOAL_OK) {
        status = learn_params_new(&params, *text);
        if (status == SHOAL_USAGE && !run_params_are_json(asked))
            status = shoal_fail(SHOAL_INVALID, "%s: %s", asked, shoal_error());
    }
    learn_params_free(&params);
    return status;
}
