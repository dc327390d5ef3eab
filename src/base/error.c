/* The calling thread's message.  See include/shoal/error.h. */
#include <shoal/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static _Thread_local char message[4096];

int shoal_fail(int status, const char *format, ...)
{
    char fresh[sizeof message]; /* an argument may be the old message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    base_text_clean(fresh); /* parts of it may come from a file or another machine */
    memcpy(message, fresh, sizeof message);
    return status;
}

int shoal_fail_errno(int status, int error, const char *format, ...)
{
    char fresh[sizeof message], reason[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    return shoal_fail(status, "%s: %s", fresh, strerror_r(error, reason, sizeof reason));
}

const char *shoal_error(void)
{
    return message;
}

void shoal_bug(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "shoal: bug at %s:%d: ", file, line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}
