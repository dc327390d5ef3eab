/* Ranks of MPI: detects from the environment whether this process is one of several, and finds and loads the plug-in
 * that connects them (libshoal-mpi.so, src/mpi).  Nothing here calls MPI. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <shoal/ranks.h>
#include "base/memory.h"

#define PLUGIN "libshoal-mpi.so"

/* From the folder of an installed program to where plug-ins are installed; set by the build. */
#ifndef SHOAL_PLUGINS_FROM_PROGRAM
#define SHOAL_PLUGINS_FROM_PROGRAM "../lib/shoal"
#endif

/* ---- how this process was started -------------------------------------------------------------------------------- */

/* The number in a variable; -1 if it is unset or not a number. */
static int number_in(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    long number = strtol(text, &end, 10);
    return *end == '\0' && number <= INT_MAX ? (int)number : -1;
}

static bool started_as(shoal_ranks_started *out, const char *rank, const char *size, const char *launcher,
                       const char *kind)
{
    *out = (shoal_ranks_started){.rank = number_in(rank), .size = number_in(size), .launcher = launcher, .kind = kind};
    return out->rank >= 0 && out->size > out->rank;
}

/* A task of srun; neither a batch script nor the shell of salloc is one. */
static bool in_step(void)
{
    return getenv("SLURM_STEP_ID") != NULL && number_in("SLURM_PROCID") >= 0;
}

/* By an MPI launcher, or by srun with the environment that such a launcher gives its processes. */
static bool find_launcher(shoal_ranks_started *out)
{
    const char *simple =
        in_step() && getenv("HYDI_CONTROL_FD") == NULL ? "srun" : "mpirun"; /* Hydra may itself be below srun */
    return started_as(out, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun", "openmpi") ||
           started_as(out, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "mpirun", "mpich") ||
           started_as(out, "PMI_RANK", "PMI_SIZE", simple, "mpich") ||
           (getenv("PMIX_NAMESPACE") != NULL && in_step() &&
            started_as(out, "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "srun", NULL));
}

bool shoal_ranks_find(shoal_ranks_started *out)
{
    if (find_launcher(out))
        return true;
    if (in_step() && started_as(out, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun", NULL) && out->size > 1) {
        out->bare = true;
        return true;
    }
    *out = (shoal_ranks_started){.size = 1};
    return false;
}

static const char *name_of(const char *kind)
{
    return kind == NULL ? "MPI" : strcmp(kind, "openmpi") == 0 ? "Open MPI" : "MPICH";
}

/* ---- where the plug-in may be ------------------------------------------------------------------------------------ */

enum { PLACES_MOST = 16 };

typedef struct places {
    char *path[PLACES_MOST];
    int count;
} places;

static int add_place(places *places, const char *format, ...)
{
    char path[PATH_MAX];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    if (length < 0 || length >= (int)sizeof path || places->count == PLACES_MOST)
        return SHOAL_OK; /* no file has such a name */
    for (int i = 0; i < places->count; i++)
        if (strcmp(places->path[i], path) == 0)
            return SHOAL_OK;
    int status = base_copy_text(&places->path[places->count], path);
    if (status == SHOAL_OK)
        places->count++;
    return status;
}

static void release_places(places *places)
{
    while (places->count > 0)
        base_free(&places->path[--places->count]);
}

/* The folder of the running program, and that of the library when this code is in one; "" where that is not known. */
static void find_folders(char program[PATH_MAX], char library[PATH_MAX])
{
    Dl_info info;
    char *slash;
    ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);
    program[length < 0 ? 0 : length] = '\0';
    library[0] = '\0';
    if (dladdr(PLUGIN, &info) != 0 && info.dli_fname != NULL && realpath(info.dli_fname, library) == NULL)
        library[0] = '\0';
    if (length < 0) /* without /proc; the library with this code has its plug-ins in the same places */
        strcpy(program, library);
    else if (strcmp(library, program) == 0)
        library[0] = '\0';
    if ((slash = strrchr(program, '/')) != NULL)
        *slash = '\0';
    if ((slash = strrchr(library, '/')) != NULL)
        *slash = '\0';
}

/* Where the plug-in of one kind of MPI may be: in a build folder, or beside a program that was copied; then where
 * it is installed. */
static int find_places(places *places, const char *kind)
{
    char program[PATH_MAX], library[PATH_MAX];
    int status = SHOAL_OK;
    find_folders(program, library);
    if (program[0] != '\0')
        status = add_place(places, "%s/mpi/%s/" PLUGIN, program, kind);
    if (status == SHOAL_OK && library[0] != '\0')
        status = add_place(places, "%s/mpi/%s/" PLUGIN, library, kind);
    if (status == SHOAL_OK && library[0] != '\0')
        status = add_place(places, "%s/shoal/%s/" PLUGIN, library, kind);
    if (status == SHOAL_OK && program[0] != '\0') {
        const char *installed = SHOAL_PLUGINS_FROM_PROGRAM;
        for (char *slash; strncmp(installed, "../", 3) == 0 && (slash = strrchr(program, '/')) != NULL; installed += 3)
            *slash = '\0';
        status = add_place(places, "%s/%s/%s/" PLUGIN, program, installed, kind);
    }
    return status;
}

/* ---- loading it -------------------------------------------------------------------------------------------------- */

/* A truncated library (by an interrupted copy, say) would crash the process in the loader, which detects other damage
 * itself. */
static bool is_whole(const char *path)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    struct stat size;
    bool whole = true;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &size) != 0 || fread(&head, sizeof head, 1, file) != 1 ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof part ||
        fseek(file, (long)head.e_phoff, SEEK_SET) != 0) {
        if (file != NULL)
            fclose(file);
        return true; /* which dlopen will not accept */
    }
    for (int i = 0; i < head.e_phnum && whole; i++)
        whole = fread(&part, sizeof part, 1, file) == 1 &&
                (part.p_type != PT_LOAD ||
                 (part.p_offset <= (uint64_t)size.st_size && part.p_filesz <= (uint64_t)size.st_size - part.p_offset));
    fclose(file);
    return whole;
}

/* With global symbols, since MPI loads parts of itself that look for them there.  It stays loaded: MPI can't be
 * unloaded. */
static int load_bridge(shoal_ranks_entry **out, const char *path)
{
    bool whole = is_whole(path);
    void *handle = whole ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (handle == NULL) {
        const char *why = whole ? dlerror() : "its end is missing";
        size_t length = strlen(path);
        if (strncmp(why, path, length) == 0 && strncmp(why + length, ": ", 2) == 0)
            why += length + 2;
        return shoal_fail(SHOAL_SYSTEM, "%s: the MPI plug-in can't be loaded: %s", path, why);
    }
    void *entry = dlsym(handle, SHOAL_RANKS_ENTRY);
    if (entry == NULL)
        return shoal_fail(SHOAL_INVALID, "%s: not an MPI plug-in of shoal: it has no " SHOAL_RANKS_ENTRY, path);
    memcpy(out, &entry, sizeof entry); /* C has no cast from an object to a function */
    return SHOAL_OK;
}

/* The plug-in named by `path` or in the environment. */
static int load_named(shoal_ranks_entry **out, char **where, const char *path)
{
    char whole[PATH_MAX]; /* with its folder: the loader would search for a bare name elsewhere */
    if (realpath(path, whole) == NULL)
        return shoal_fail_errno(SHOAL_ABSENT, errno, "%s: the MPI plug-in can't be loaded", path);
    int status = base_copy_text(where, whole);
    return status == SHOAL_OK ? load_bridge(out, whole) : status;
}

static int fail_absent(const places *places, const shoal_ranks_started *started)
{
    char looked[2 * PATH_MAX] = "", by[96] = "";
    size_t length = 0;
    for (int i = 0; i < places->count && length < sizeof looked; i++)
        length += (size_t)snprintf(looked + length, sizeof looked - length, "%s%s",
                                   i == 0                  ? ""
                                   : i + 1 < places->count ? ", "
                                                           : " and ",
                                   places->path[i]);
    if (started->launcher != NULL)
        snprintf(by, sizeof by, "started by %s (%s), but ", started->launcher, name_of(started->kind));
    return shoal_fail(SHOAL_ABSENT,
                      "%s" PLUGIN " is not here: looked for %s; install it, build shoal where %s's mpicc is, or name "
                      "the file in SHOAL_MPI_PLUGIN",
                      by, looked, started->kind == NULL ? "an MPI" : name_of(started->kind));
}

/* The first candidate that loads; if none does, the failure of the first. */
static int load_found(shoal_ranks_entry **out, char **where, const shoal_ranks_started *started)
{
    places places = {.count = 0};
    const char *failed = NULL;
    int status = find_places(&places, started->kind != NULL ? started->kind : "openmpi");
    if (status == SHOAL_OK && started->kind == NULL)
        status = find_places(&places, "mpich");
    for (int i = 0; status == SHOAL_OK && i < places.count && *out == NULL; i++)
        if (access(places.path[i], F_OK) == 0) {
            if (load_bridge(out, places.path[i]) == SHOAL_OK)
                status = base_copy_text(where, places.path[i]);
            else if (failed == NULL)
                failed = places.path[i];
        }
    if (status == SHOAL_OK && *out == NULL)
        status = failed != NULL ? load_bridge(out, failed) : fail_absent(&places, started);
    release_places(&places);
    return status;
}

static int load_plugin(shoal_ranks_entry **out, char **where, const char *path, const shoal_ranks_started *started)
{
    if (dlopen(NULL, RTLD_NOW) == NULL) /* not even this program itself: it is static */
        return shoal_fail(SHOAL_USAGE, "%s%s%sMPI can't be used: %s", started->launcher != NULL ? "started by " : "",
                          started->launcher != NULL ? started->launcher : "", started->launcher != NULL ? ", but " : "",
                          dlerror());
    if (path == NULL || *path == '\0')
        path = getenv("SHOAL_MPI_PLUGIN");
    if (path != NULL && *path != '\0')
        return load_named(out, where, path);
    return load_found(out, where, started);
}

/* A plug-in for another MPI than the launcher's does not find the other processes: each is then rank 0 of 1. */
static int check_size(const shoal_ranks *ranks, const shoal_ranks_started *started, const char *where)
{
    if (started->launcher == NULL || ranks->size == started->size)
        return SHOAL_OK;
    if (strcmp(started->launcher, "srun") == 0)
        return shoal_fail(
            SHOAL_INVALID,
            "%s: this is for %s, which sees only %d of the %d processes that srun started: choose another --mpi for "
            "srun, or name another MPI's plug-in in SHOAL_MPI_PLUGIN",
            where, ranks->name, ranks->size, started->size);
    if (strncmp(ranks->name, name_of(started->kind), strlen(name_of(started->kind))) == 0)
        return shoal_fail(
            SHOAL_INVALID,
            "%s: this is for %s, which sees only %d of the %d processes that %s's %s started: build it with the mpicc "
            "of that %s; or, if no launcher started this, unset its variables",
            where, ranks->name, ranks->size, started->size, name_of(started->kind), started->launcher,
            started->launcher);
    return shoal_fail(
        SHOAL_INVALID,
        "%s: this is for %s, which sees only %d of the %d processes that %s's %s started: use the plug-in for %s, or "
        "the other %s",
        where, ranks->name, ranks->size, started->size, name_of(started->kind), started->launcher,
        name_of(started->kind), started->launcher);
}

int shoal_ranks_open(shoal_ranks **out, const char *path)
{
    shoal_ranks_started started;
    shoal_ranks_entry *enter = NULL;
    shoal_ranks *ranks = NULL;
    char *where = NULL, message[512] = "";
    *out = NULL;
    /* Also for a single process: MPI itself would fail with a page of output. */
    if ((shoal_ranks_find(&started) && started.bare) || (started.launcher == NULL && in_step()))
        return shoal_fail(SHOAL_USAGE,
                          "started by srun without anything by which MPI could find the other processes: add "
                          "--mpi=pmix or --mpi=pmi2 (srun --mpi=list shows the choices)");
    int status = load_plugin(&enter, &where, path, &started);
    if (status == SHOAL_OK && enter(&ranks, SHOAL_RANKS_VERSION, message, sizeof message) != 0)
        status = shoal_fail(SHOAL_SYSTEM, "%s: %s", where, message);
    else if (status == SHOAL_OK && (ranks->version != SHOAL_RANKS_VERSION || ranks->bytes < sizeof *ranks))
        status = shoal_fail(SHOAL_INVALID, "%s: it belongs to another version of shoal", where);
    else if (status == SHOAL_OK)
        status = check_size(ranks, &started, where);
    if (status != SHOAL_OK)
        shoal_ranks_close(&ranks);
    *out = ranks;
    base_free(&where);
    return status;
}

/* Open MPI's mpirun ends the job when one process exits with an error.  MPICH's ignores processes that never contacted
 * it, as MPI_Init does: so it is told in its own protocol, PMI-1. */
void shoal_ranks_give_up(const shoal_ranks_started *started)
{
    static const char words[] = "cmd=abort exitcode=1\n";
    const struct timespec a_moment = {.tv_nsec = 200000000};
    int wire = number_in("PMI_FD");
    if (started->launcher == NULL || strcmp(started->launcher, "mpirun") != 0 || wire < 0)
        return;
    nanosleep(&a_moment, NULL); /* messages are forwarded by then */
    if (write(wire, words, sizeof words - 1) < 0)
        return; /* nobody listens */
}

void shoal_ranks_close(shoal_ranks **ranks)
{
    if (*ranks != NULL)
        (*ranks)->close(*ranks);
    *ranks = NULL;
}
