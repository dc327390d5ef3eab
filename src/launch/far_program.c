/* The builds of this program that can be sent elsewhere.  See far_program.h.
 *
 * Where a portable build was made it is preferred: it has its libraries inside.  Otherwise it is this very program,
 * which starts where the same libraries are. */
#include "launch/far_program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/hash.h"
#include "base/hex.h"

enum { SLACK_SECONDS = 600 }; /* that one run of the compiler may take */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked; /* for the builds below */
static far_program usual = {.file = -1},
                   whole = {.file = -1}; /* with the system's C library; with nothing but the kernel */

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
    struct stat about;
    if (fstat(self->file, &about) < 0 || about.st_size <= 0)
        return shoal_fail(SHOAL_SYSTEM, "%s: this program can't read itself", self->path);
    self->size = about.st_size;
    char *bytes = mmap(NULL, (size_t)self->size, PROT_READ, MAP_PRIVATE, self->file, 0);
    if (bytes == MAP_FAILED)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s", self->path);
    self->glibc = least_glibc(bytes, (size_t)self->size);
    base_hash_add(&hash, bytes, (size_t)self->size);
    base_hash_end(&hash, digest);
    munmap(bytes, (size_t)self->size);
    base_hex_write(self->sha256, digest, sizeof digest);
    return SHOAL_OK;
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

static int open_portable(const char *folder)
{
    int status = open_program(&usual, folder, "shoal");
    if (status == SHOAL_OK)
        status = open_program(&whole, folder, "shoal-static");
    usual.portable = usual.file >= 0;
    whole.portable = true;
    return status;
}

static void close_program(far_program *self)
{
    if (self->file >= 0)
        close(self->file);
    *self = (far_program){.file = -1};
}

/* Builds that were made long before this program are of other sources, and might not understand it. */
static bool is_outdated(const far_program *portable)
{
    struct stat own, theirs;
    return portable->file >= 0 && stat("/proc/self/exe", &own) == 0 && fstat(portable->file, &theirs) == 0 &&
           theirs.st_mtime + SLACK_SECONDS < own.st_mtime;
}

static int open_beside(const char *here, const char *place)
{
    char folder[480];
    snprintf(folder, sizeof folder, "%s/%s", here, place);
    int status = open_portable(folder);
    if (status == SHOAL_OK && (is_outdated(&usual) || is_outdated(&whole))) {
        close_program(&usual);
        close_program(&whole);
    }
    return status;
}

/* Beside this program, as a build leaves them and as an installation does; SHOAL_PORTABLE names another folder, and
 * nothing or "none" if this very program is to be sent. */
static int look_for_portable(void)
{
    const char *named = getenv("SHOAL_PORTABLE");
    char here[400];
    if (named)
        return *named && strcmp(named, "none") != 0 ? open_portable(named) : SHOAL_OK;
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    if (length <= 0)
        return SHOAL_OK;
    here[length] = '\0';
    char *slash = strrchr(here, '/');
    if (!slash)
        return SHOAL_OK;
    *slash = '\0';
    int status = open_beside(here, "portable");
    if (status == SHOAL_OK && usual.file < 0 && whole.file < 0)
        status = open_beside(here, "../libexec/shoal");
    return status;
}

static int look_for_programs(void)
{
    int status = SHOAL_OK;
    pthread_mutex_lock(&lock);
    if (!looked) {
        status = look_for_portable();
        if (status == SHOAL_OK && usual.file < 0)
            status = open_program(&usual, "/proc/self/exe", "");
        if (status == SHOAL_OK && usual.file < 0)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "this program can't read itself");
        looked = status == SHOAL_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int far_program_for(const far_program **out, const char *system, const char *machine, const char *library,
                    bool no_libraries)
{
    struct utsname here;
    int major = 0, minor = 0;
    *out = NULL;
    int status = look_for_programs();
    if (status < 0)
        return status;
    if (uname(&here) == 0 && (strcmp(here.sysname, system) != 0 || strcmp(here.machine, machine) != 0))
        return shoal_fail(SHOAL_INVALID, "it is %s on %s, and this program is for %s on %s", system, machine,
                          here.sysname, here.machine);
    bool glibc = sscanf(library, "glibc %d.%d", &major, &minor) == 2 && (major > 2 || minor >= usual.glibc);
    if (no_libraries && whole.file < 0)
        return shoal_fail(SHOAL_ABSENT, "there is no portable build of this program");
    *out = no_libraries || (!glibc && whole.file >= 0) ? &whole : &usual;
    return SHOAL_OK;
}
