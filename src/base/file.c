/* Output under a temporary name, renamed when whole.  See file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"

struct base_output {
    char *name;      /* as the caller wrote it, for messages */
    char *path;      /* the file itself, behind all links */
    char *temporary; /* NULL when the target is written directly, and until it has been made */
    FILE *stream;
    int descriptor;
    int error; /* of the first write that failed */
    int slot;  /* in open_temporaries, or -1 */
};

/* What a signal handler has to remove.  Slots hold pointers that stay valid while they are non-NULL. */
enum { SLOTS = 32 };
static _Atomic(char *) open_temporaries[SLOTS];

void base_output_discard_all(void)
{
    for (int i = 0; i < SLOTS; i++) {
        char *path = atomic_exchange(&open_temporaries[i], NULL);
        if (path)
            unlink(path);
    }
}

static void remember(base_output *output)
{
    for (output->slot = 0; output->slot < SLOTS; output->slot++) {
        char *expected = NULL;
        if (atomic_compare_exchange_strong(&open_temporaries[output->slot], &expected, output->temporary))
            return;
    }
    output->slot = -1;
}

static void forget(base_output *output)
{
    char *expected = output->temporary;
    if (output->slot >= 0) /* unless discard_all was here */
        atomic_compare_exchange_strong(&open_temporaries[output->slot], &expected, NULL);
    output->slot = -1;
}

/* ---- the target -------------------------------------------------------------------------------------------------- */

/* The folder's own path and the name in it, for what does not exist yet. */
static int resolve_absent(char **out, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    int status = base_copy_text_n(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    if (status < 0)
        return status;
    char *real = realpath(folder, NULL);
    const char *name = slash ? slash + 1 : path;
    if (real)
        status = base_format(out, "%s%s%s", real, strcmp(real, "/") == 0 ? "" : "/", name);
    else
        status = base_copy_text(out, path); /* opening it will say what is wrong */
    free(real);
    base_free(&folder);
    return status;
}

/* Replaces *path, which names a symbolic link, by what the link says. */
static int follow_link(char **path, const char *to)
{
    const char *slash = strrchr(*path, '/');
    int folder = to[0] == '/' || !slash ? 0 : (int)(slash - *path) + 1;
    char *next = NULL;
    int status = base_format(&next, "%.*s%s", folder, *path, to);
    if (status < 0)
        return status;
    base_free(path);
    *path = next;
    return SHOAL_OK;
}

/* Where a path leads that may be "-". */
static const char *place_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "/dev/stdout" : path;
}

int base_output_resolve(char **out, const char *path)
{
    enum { LINKS_MOST = 40 };
    struct stat info;
    char *current = NULL, to[4096];
    path = place_of(path);
    *out = NULL;
    if (stat(path, &info) == 0) {
        char *real = realpath(path, NULL); /* NULL for a pipe behind /dev/stdout, which has no other name */
        int status = base_copy_text(out, real ? real : path);
        free(real);
        return status;
    }
    int status = base_copy_text(&current, path);
    for (int links = 0; status == SHOAL_OK && links < LINKS_MOST; links++) {
        ssize_t length = readlink(current, to, sizeof to - 1);
        if (length <= 0)
            break;
        to[length] = '\0';
        status = follow_link(&current, to);
    }
    if (status == SHOAL_OK)
        status = resolve_absent(out, current);
    base_free(&current);
    return status;
}

static bool is_plain_or_absent(const char *path)
{
    struct stat info;
    return stat(path, &info) < 0 || S_ISREG(info.st_mode);
}

bool base_output_is_special(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || !is_plain_or_absent(path);
}

static bool is_writable(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

int base_output_descriptor(const char *path)
{
    struct stat file, stream;
    int named, length = 0;
    if (sscanf(path, "/dev/fd/%d%n", &named, &length) == 1 && !path[length] && is_writable(named))
        return named;
    if (stat(place_of(path), &file) < 0)
        return -1;
    for (int descriptor = STDOUT_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (is_writable(descriptor) && fstat(descriptor, &stream) == 0 && stream.st_dev == file.st_dev &&
            stream.st_ino == file.st_ino)
            return descriptor;
    return -1;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Remembers why a write failed: by the time of the commit errno is about something else. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t size)
{
    base_output *output = cookie;
    int error = base_write_all(output->descriptor, bytes, size);
    if (error && !output->error)
        output->error = error;
    return error ? 0 : (ssize_t)size;
}

static unsigned long long random_word(void)
{
    unsigned long long word;
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == (ssize_t)sizeof word)
        return word;
    static atomic_ullong calls;
    return (unsigned long long)base_wall_now() * 2654435761u + atomic_fetch_add(&calls, 1);
}

/* Makes the file and lists it for the signal handler; a signal waits until both are done.  Returns 0 or errno. */
static int make_temporary(base_output *output, char **name, mode_t mode)
{
    sigset_t all, callers;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers);
    output->descriptor = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int error = output->descriptor < 0 ? errno : 0;
    if (!error) {
        output->temporary = *name;
        *name = NULL;
        remember(output);
    }
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return error;
}

/* A file of our own beside the target.  A new target gets the mode the umask leaves, an old one keeps its own. */
static int open_temporary(base_output *output)
{
    enum { ATTEMPTS = 100 };
    struct stat old;
    bool replaces = stat(output->path, &old) == 0;
    mode_t mode = replaces ? old.st_mode & 0777 : 0666;
    int error = EEXIST;
    for (int i = 0; error == EEXIST && i < ATTEMPTS; i++) {
        char *name = NULL;
        int status = base_format(&name, "%s.tmp-%ld-%016llx", output->path, (long)getpid(), random_word());
        if (status < 0)
            return status;
        error = make_temporary(output, &name, mode);
        base_free(&name);
    }
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write", output->name);
    if (replaces)
        (void)fchmod(output->descriptor, mode); /* a file system without modes keeps none */
    return SHOAL_OK;
}

/* `there` is a descriptor that is what the path means, or -1. */
static int open_directly(base_output *output, int there)
{
    output->descriptor = there >= 0 ? fcntl(there, F_DUPFD_CLOEXEC, 0) : open(output->path, O_WRONLY | O_CLOEXEC);
    if (output->descriptor < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", output->name);
    return SHOAL_OK;
}

int base_output_open(base_output **out, const char *path)
{
    base_output *output = NULL;
    if (!*path)
        return shoal_fail(SHOAL_SYSTEM, "can't write a file without a name");
    int status = base_alloc(&output, 1, sizeof *output, "an output file");
    if (status < 0)
        return status;
    output->slot = output->descriptor = -1;
    status = base_copy_text(&output->name, strcmp(path, "-") == 0 ? "standard output" : path);
    if (status < 0 || (status = base_output_resolve(&output->path, path)) < 0)
        goto done;
    const int there = base_output_descriptor(path);
    const bool directly = there >= 0 || !is_plain_or_absent(output->path);
    if ((status = directly ? open_directly(output, there) : open_temporary(output)) < 0)
        goto done;
    output->stream = fopencookie(output, "wb", (cookie_io_functions_t){.write = write_stream});
    if (!output->stream) {
        status = shoal_fail(SHOAL_MEMORY, "%s: out of memory for an output file", path);
        goto done;
    }
    *out = output;
    output = NULL;
done:
    base_output_discard(&output);
    return status;
}

static int check_written(const base_output *output, bool written)
{
    const int error = output->error ? output->error : EIO;
    return written ? SHOAL_OK : shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write", output->name);
}

int base_output_write(base_output *output, const void *bytes, size_t size)
{
    return check_written(output, !size || fwrite(bytes, 1, size, output->stream) == size);
}

int base_output_flush(base_output *output)
{
    return check_written(output, fflush(output->stream) == 0);
}

FILE *base_output_stream(base_output *output)
{
    return output->stream;
}

int base_output_redirect(base_output *output, const char *path)
{
    char *resolved = NULL;
    int status = base_output_resolve(&resolved, path);
    if (status < 0)
        return status;
    base_free(&output->path);
    output->path = resolved;
    return SHOAL_OK;
}

void base_output_sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096] = "."; /* no longer path can be opened; and nothing is to fail for want of memory now */
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        close(descriptor);
    }
}

static int commit(base_output **inout, bool to_disk)
{
    base_output *output = *inout;
    bool failed = ferror(output->stream) != 0;
    failed |= fclose(output->stream) != 0;
    output->stream = NULL;
    int error = output->error ? output->error : failed ? EIO : 0;
    if (!error && to_disk && output->temporary && fsync(output->descriptor) != 0)
        error = errno;
    if (close(output->descriptor) != 0 && !error)
        error = errno;
    output->descriptor = -1;
    if (!error && output->temporary && rename(output->temporary, output->path) != 0)
        error = errno;
    int status = error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write", output->name) : SHOAL_OK;
    if (status == SHOAL_OK) {
        if (to_disk && output->temporary)
            base_output_sync_folder(output->path);
        forget(output);
        base_free(&output->temporary);
    }
    base_output_discard(inout);
    return status;
}

int base_output_commit(base_output **inout)
{
    return commit(inout, false);
}

int base_output_commit_to_disk(base_output **inout)
{
    return commit(inout, true);
}

void base_output_discard(base_output **inout)
{
    base_output *output = *inout;
    if (!output)
        return;
    if (output->stream)
        fclose(output->stream);
    if (output->descriptor >= 0)
        close(output->descriptor);
    if (output->temporary)
        unlink(output->temporary);
    forget(output);
    base_free(&output->temporary);
    base_free(&output->path);
    base_free(&output->name);
    base_free(inout);
}

int base_output_folders(const char *path)
{
    base_making making;
    int error = base_make_folders_above(path, 0700, &making);
    if (error == 0 || error == ENOTDIR) /* opening it will say what is wrong */
        return SHOAL_OK;
    return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make the folder %.*s", path, (int)making.failed, path);
}

int base_output_check(const char *path)
{
    path = place_of(path);
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

/* ---- below a folder ---------------------------------------------------------------------------------------------- */

/* To open a device or a pipe is to do something to it, so what is not a plain file is not opened. */
static int open_last(int folder, const char *name, int flags)
{
    struct stat about;
    if (!(flags & O_DIRECTORY)) {
        if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        if (!S_ISREG(about.st_mode)) {
            errno = S_ISLNK(about.st_mode) ? ELOOP : EINVAL;
            return -1;
        }
        flags |= O_NONBLOCK | O_NOCTTY;
    }
    return openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC);
}

/* Name by name, which no kernel is too old for.  A path that is changed meanwhile leads to a failure, not elsewhere. */
int base_open_beneath(int folder, const char *path, int flags)
{
    char name[256];
    int here = folder, next = -1;
    for (bool last = false; !last; here = next) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        last = path[length + strspn(path + length, "/")] == '\0';
        bool fits = length < sizeof name, climbs = length == 2 && memcmp(path, "..", 2) == 0;
        snprintf(name, sizeof name, "%.*s", (int)(fits ? length : 0), path);
        if (!fits || climbs)
            errno = climbs ? EXDEV : ENAMETOOLONG;
        next = !fits || climbs ? -1
               : last          ? open_last(here, *name ? name : ".", flags)
                               : openat(here, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        if (here != folder)
            close(here);
        errno = error;
        if (next < 0)
            break;
        path += length;
    }
    return next;
}
