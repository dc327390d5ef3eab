/* See params.h. */
#include "params.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "learn/module.h"

enum { PARAMS_BYTES_MOST = 16 << 20 };

/* An object starts with a brace, and the names of files do not. */
bool run_params_are_json(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{';
}

static int read_params_file(char **out, const char *path)
{
    size_t length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "--params %s: neither a JSON object nor a file", path);
    int status = base_read_whole(out, &length, file, PARAMS_BYTES_MOST - 1, path);
    if (status == SHOAL_SYSTEM)
        shoal_fail_errno(status, errno, "--params %s: can't read", path);
    else if (status == SHOAL_INVALID || (status == SHOAL_OK && strlen(*out) != length))
        status = shoal_fail(SHOAL_INVALID, "--params %s: no JSON object of less than 16 MiB", path);
    close(file);
    return status;
}

int run_params_read(char **text, const char *asked)
{
    shoal_params *params = NULL;
    if (!asked)
        return SHOAL_OK;
    int status = run_params_are_json(asked) ? base_copy_text(text, asked) : read_params_file(text, asked);
    if (status == SHOAL_OK) {
        status = learn_params_new(&params, *text);
        if (status == SHOAL_USAGE && !run_params_are_json(asked))
            status = shoal_fail(SHOAL_INVALID, "%s: %s", asked, shoal_error());
    }
    learn_params_free(&params);
    return status;
}
