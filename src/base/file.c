/* Output under a temporary name, renamed when whole.  See file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "memory.h"

struct base_output {
    char *path;
    char *temporary; /* NULL when the target is written directly */
    FILE *stream;
    int slot; /* in open_temporaries, or -1 */
};

/* What a signal handler has to remove.  Slots hold pointers that stay valid while they are non-NULL. */
enum { SLOTS = 32 };
static _Atomic(char *) open_temporaries[SLOTS];
static atomic_int temporaries_made;

void base_output_discard_all(void)
{
    for (int i = 0; i < SLOTS; i++) {
        char *path = atomic_exchange(&open_temporaries[i], NULL);
        if (path)
            unlink(path);
    }
}

static int remember(char *path)
{
    for (int i = 0; i < SLOTS; i++) {
        char *expected = NULL;
        if (atomic_compare_exchange_strong(&open_temporaries[i], &expected, path))
            return i;
    }
    return -1;
}

static bool is_plain_or_absent(const char *path)
{
    struct stat info;
    return stat(path, &info) < 0 || S_ISREG(info.st_mode);
}

/* The file a symbolic link points to is what gets replaced, not the link. */
static int resolve_target(char **out, const char *path)
{
    char *real = realpath(path, NULL);
    int status = base_copy_text(out, real ? real : path);
    free(real);
    return status;
}

int base_output_open(base_output **out, const char *path)
{
    base_output *output = NULL;
    int descriptor = -1;
    if (!*path)
        return shoal_fail(SHOAL_SYSTEM, "can't write a file without a name");
    int status = base_alloc(&output, 1, sizeof *output, "an output file");
    if (status < 0)
        return status;
    output->slot = -1;
    if ((status = resolve_target(&output->path, path)) < 0)
        goto done;
    const char *name = output->path;
    if (is_plain_or_absent(output->path)) {
        struct stat old;
        mode_t mode = stat(output->path, &old) == 0 ? old.st_mode & 0777 : 0666;
        status = base_format(&output->temporary, "%s.tmp-%ld-%d", output->path, (long)getpid(),
                             atomic_fetch_add(&temporaries_made, 1));
        if (status < 0)
            goto done;
        name = output->temporary;
        output->slot = remember(output->temporary);
        descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } else {
        descriptor = open(name, O_WRONLY | O_CLOEXEC);
    }
    output->stream = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!output->stream) {
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", path);
        if (descriptor >= 0)
            close(descriptor);
        goto done;
    }
    *out = output;
    output = NULL;
done:
    base_output_discard(&output);
    return status;
}

int base_output_write(base_output *output, const void *bytes, size_t size)
{
    if (size && fwrite(bytes, 1, size, output->stream) != size)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", output->path);
    return SHOAL_OK;
}

FILE *base_output_stream(base_output *output)
{
    return output->stream;
}

int base_output_commit(base_output **inout)
{
    base_output *output = *inout;
    int error = 0;
    if (ferror(output->stream) || fflush(output->stream) != 0)
        error = errno ? errno : EIO;
    if (fclose(output->stream) != 0 && !error)
        error = errno;
    output->stream = NULL;
    if (!error && output->temporary && rename(output->temporary, output->path) != 0)
        error = errno;
    int status = error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write", output->path) : SHOAL_OK;
    if (status == SHOAL_OK && output->slot >= 0) {
        atomic_store(&open_temporaries[output->slot], NULL);
        output->slot = -1;
        base_free(&output->temporary);
    }
    base_output_discard(inout);
    return status;
}

void base_output_discard(base_output **inout)
{
    base_output *output = *inout;
    if (!output)
        return;
    if (output->stream)
        fclose(output->stream);
    if (output->temporary)
        unlink(output->temporary);
    if (output->slot >= 0)
        atomic_store(&open_temporaries[output->slot], NULL);
    base_free(&output->temporary);
    base_free(&output->path);
    base_free(inout);
}

int base_output_check(const char *path)
{
    if (!is_plain_or_absent(path)) {
        if (access(path, W_OK) == 0) {
            struct stat info;
            if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
                return shoal_fail(SHOAL_SYSTEM, "%s: can't write: it is a folder", path);
            return SHOAL_OK;
        }
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", path);
    }
    base_output *output = NULL;
    int status = base_output_open(&output, path);
    base_output_discard(&output);
    return status;
}
