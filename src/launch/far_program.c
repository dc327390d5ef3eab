/* The builds of a program that can be sent elsewhere.  See far_program.h.
 *
 * A portable build is preferred if there is one: it contains its libraries.  Otherwise the program itself is sent,
 * which starts where the same libraries are. */
#include "launch/far_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/mapped.h"
#include "base/memory.h"

enum { SLACK_SECONDS = 600 }; /* that one run of the compiler may take */

/* The builds of one program, once they were looked for. */
typedef struct far_builds {
    struct far_builds *next;
    const char *path;         /* this_program, or a copy */
    far_program usual, whole; /* with the system's C library; with nothing but the kernel */
} far_builds;

static const char this_program[] = "/proc/self/exe";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const far_program none = {.file = -1};
static far_builds *known; /* a process usually has one, but a long session may try several */

/* ---- one file ---------------------------------------------------------------------------------------------------- */

/* The greatest N of all the "GLIBC_2.N" that a program names; 0 when there is none. */
static int least_glibc(const char *bytes, size_t size)
{
    static const char name[] = "GLIBC_2.";
    const char *end = bytes + size, *at = bytes;
    int most = 0;
    while ((at = memmem(at, (size_t)(end - at), name, sizeof name - 1)) != NULL) {
        int value = 0;
        for (at += sizeof name - 1; at < end && *at >= '0' && *at <= '9' && value < 1000; at++)
            value = value * 10 + (*at - '0');
        most = value > most ? value : most;
    }
    return most;
}

static int read_program(far_program *self)
{
    unsigned char digest[BASE_HASH_SIZE];
    base_hash hash = {0};
    base_mapped *mapped = NULL;
    struct stat about;
    if (fstat(self->file, &about) < 0 || about.st_size <= 0)
        return shoal_fail(SHOAL_SYSTEM, "%s: this program can't read itself", self->path);
    self->size = about.st_size;
    int status = base_mapped_open(&mapped, self->file, 0, (size_t)self->size, self->path);
    if (status < 0)
        return status;
    self->glibc = least_glibc((const char *)base_mapped_bytes(mapped), (size_t)self->size);
    base_hash_add(&hash, base_mapped_bytes(mapped), (size_t)self->size);
    base_hash_end(&hash, digest);
    base_hex_write(self->sha256, digest, sizeof digest);
    status = base_mapped_check(mapped, self->file, self->path);
    base_mapped_close(&mapped);
    return status;
}

/* Leaves self->file -1 when there is no such file. */
static int open_program(far_program *self, const char *folder, const char *name)
{
    struct stat about;
    int length = snprintf(self->path, sizeof self->path, "%s%s%s", folder, *name ? "/" : "", name);
    if (length < 0 || (size_t)length >= sizeof self->path)
        return SHOAL_OK;
    self->file = open(self->path, O_RDONLY | O_CLOEXEC);
    if (self->file >= 0 && (fstat(self->file, &about) < 0 || !S_ISREG(about.st_mode) || about.st_size == 0)) {
        close(self->file);
        self->file = -1;
    }
    return self->file >= 0 ? read_program(self) : SHOAL_OK;
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

static int open_portable(far_builds *self, const char *folder)
{
    int status = open_program(&self->usual, folder, "shoal");
    if (status == SHOAL_OK)
        status = open_program(&self->whole, folder, "shoal-static");
    self->usual.portable = self->usual.file >= 0;
    self->whole.portable = true;
    return status;
}

static void close_builds(far_builds *self)
{
    if (self->usual.file >= 0)
        close(self->usual.file);
    if (self->whole.file >= 0)
        close(self->whole.file);
    self->usual = self->whole = none;
}

/* Builds that are much older than the program come from other sources, and might not understand it. */
static bool is_outdated(const far_builds *self, const far_program *portable)
{
    struct stat own, theirs;
    return portable->file >= 0 && stat(self->path, &own) == 0 && fstat(portable->file, &theirs) == 0 &&
           theirs.st_mtime + SLACK_SECONDS < own.st_mtime;
}

static int open_beside(far_builds *self, const char *here, const char *place)
{
    char folder[PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%s/%s", here, place);
    int status = open_portable(self, folder);
    if (status == SHOAL_OK && (is_outdated(self, &self->usual) || is_outdated(self, &self->whole)))
        close_builds(self);
    return status;
}

/* The program's folder; false if unknown.  The running program may have been replaced since it was started: its old
 * name still gives the folder. */
static bool find_folder(char out[PATH_MAX], const far_builds *self)
{
    ssize_t length = self->path == this_program ? readlink(this_program, out, PATH_MAX - 1) : -1;
    if (length > 0)
        out[length] = '\0';
    else if (self->path == this_program || !realpath(self->path, out))
        return false;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* Beside the program, as a build leaves them and as an installation does; SHOAL_PORTABLE names another folder; if it is
 * empty or "none", the program itself is sent. */
static int look_for_portable(far_builds *self)
{
    const char *named = getenv("SHOAL_PORTABLE");
    char here[PATH_MAX];
    if (named)
        return *named && strcmp(named, "none") != 0 ? open_portable(self, named) : SHOAL_OK;
    if (!find_folder(here, self))
        return SHOAL_OK;
    int status = open_beside(self, here, "portable");
    if (status == SHOAL_OK && self->usual.file < 0 && self->whole.file < 0)
        status = open_beside(self, here, "../libexec/shoal");
    return status;
}

static int look_for_builds(far_builds *self)
{
    int status = look_for_portable(self);
    if (status == SHOAL_OK && self->usual.file < 0)
        status = open_program(&self->usual, self->path, "");
    if (status == SHOAL_OK && self->usual.file < 0)
        status = self->path == this_program
                     ? shoal_fail_errno(SHOAL_SYSTEM, errno, "this program can't read itself")
                     : shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the program", self->path);
    return status;
}

static int find_builds(const far_builds **out, const char *path)
{
    far_builds *self = known;
    char *copy = NULL;
    while (self && (path ? strcmp(self->path, path) != 0 : self->path != this_program))
        self = self->next;
    *out = self;
    if (self)
        return SHOAL_OK;
    int status = base_alloc(&self, 1, sizeof *self, "a program");
    if (status == SHOAL_OK && path)
        status = base_copy_text(&copy, path);
    if (status == SHOAL_OK) {
        *self = (far_builds){.next = known, .path = copy ? copy : this_program, .usual = none, .whole = none};
        status = look_for_builds(self);
    }
    if (status == SHOAL_OK) {
        *out = known = self;
        return SHOAL_OK;
    }
    if (self && self->path)
        close_builds(self);
    base_free(&copy);
    base_free(&self);
    return status;
}

int far_program_for(const far_program **out, const char *path, const char *system, const char *machine,
                    const char *library, bool no_libraries)
{
    const far_builds *builds = NULL;
    struct utsname here;
    int major = 0, minor = 0;
    *out = NULL;
    pthread_mutex_lock(&lock);
    int status = find_builds(&builds, path);
    pthread_mutex_unlock(&lock);
    if (status < 0)
        return status;
    const far_program *usual = &builds->usual, *whole = &builds->whole;
    if (uname(&here) == 0 && (strcmp(here.sysname, system) != 0 || strcmp(here.machine, machine) != 0))
        return shoal_fail(SHOAL_INVALID, "it is %s on %s, but this program is for %s on %s", system, machine,
                          here.sysname, here.machine);
    bool glibc = sscanf(library, "glibc %d.%d", &major, &minor) == 2 && (major > 2 || minor >= usual->glibc);
    if (no_libraries && whole->file < 0)
        return shoal_fail(SHOAL_ABSENT, "there is no portable build of this program");
    *out = no_libraries || (!glibc && whole->file >= 0) ? whole : usual;
    return SHOAL_OK;
}
