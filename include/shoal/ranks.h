/* Ranks: processes that run one job in step, as MPI starts them.
 *
 *     shoal_ranks *ranks = NULL;
 *     shoal_ranks_started started;
 *     if (shoal_ranks_find(&started))                                  // by mpirun or srun, as the environment tells
 *         status = shoal_ranks_open(&ranks, NULL);                     // loads libshoal-mpi.so and calls MPI_Init
 *     options.ranks = ranks;                                           // NULL: this process alone
 *     status = shoal_run(&result, &report, &shoal_kmeans, &config, data, NULL, &options);
 *     shoal_ranks_close(&ranks);                                       // MPI_Finalize
 *
 * Every rank makes the same calls with the same data and options; each maps its own part of the rows, and every rank
 * gets the same result, except for values per row (labels, say): only rank 0 has them, and the others have a tensor
 * without rows.  A failure of one rank inside shoal_run fails on all, with the same message.  A rank that fails
 * elsewhere, when it opens the data, say, must not just return, since the others wait for it in shoal_run:
 * ranks->abort(ranks, shoal_error(), 1) ends all of them.
 *
 * shoal itself does not use MPI: it needs this table of functions, which libshoal-mpi.so fills.  A program with another
 * kind of ranks may fill one itself. */
#ifndef SHOAL_RANKS_H
#define SHOAL_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shoal_ranks shoal_ranks;

/* Only the thread that opened the ranks may call these.  A failure ends the whole job, on all ranks, with a sentence on
 * stderr: they do not return then, and end the process rather than this thread.  poll and alarmed are called while
 * other threads of the rank map, using data on this one's stack.
 *
 * All but post_send, post_receive, poll, wait, alarm, alarmed and abort are collective: every rank calls them, in the
 * same order and with the same sizes.  Counts and sizes may be 0, and may exceed an int. */
struct shoal_ranks {
    uint32_t version; /* SHOAL_RANKS_VERSION */
    uint32_t bytes;   /* of this struct */
    int rank, size;
    char name[64]; /* "Open MPI 4.1.4" */

    /* out[i] becomes the sum, or the maximum, of all ranks' in[i].  `in` is `out` on all ranks or on none; if not, they
     * do not overlap. */
    void (*sum)(shoal_ranks *self, int64_t *out, const int64_t *in, size_t count);
    void (*max)(shoal_ranks *self, int64_t *out, const int64_t *in, size_t count);
    /* `bytes` bytes of every rank, one after another in the order of ranks, on every rank. */
    void (*gather)(shoal_ranks *self, void *out, const void *in, size_t bytes);
    /* The same where rank i has bytes[i] of them; `bytes` has an entry for each rank and is the same on all. */
    void (*gather_some)(shoal_ranks *self, void *out, const size_t *bytes, const void *in);
    /* Every rank gets what rank `from` has. */
    void (*share)(shoal_ranks *self, void *inout, size_t bytes, int from);

    /* Sends and receives that progress while this process computes.  Their memory must stay until wait has returned or
     * poll was true.  Between two ranks messages arrive in order, and may be shorter than the receiver's buffer. */
    void (*post_send)(shoal_ranks *self, const void *bytes, size_t size, int to);
    void (*post_receive)(shoal_ranks *self, void *bytes, size_t size, int from);
    bool (*poll)(shoal_ranks *self); /* progresses what was posted; true when all of it is done */
    void (*wait)(shoal_ranks *self); /* until all of it is done */

    /* Tells all other ranks that this one failed, without waiting for them; and says whether another one did.  An alarm
     * holds until the next collective call, where ranks agree on what to do. */
    void (*alarm)(shoal_ranks *self);
    bool (*alarmed)(shoal_ranks *self);

    /* Ends all ranks at once with this exit code, after `message` (or NULL) on stderr with the rank and its host. */
    void (*abort)(shoal_ranks *self, const char *message, int code);
    /* Leaves.  Collective, but for ranks that were aborted. */
    void (*close)(shoal_ranks *self);
    void *own; /* for the implementation */
};

enum { SHOAL_RANKS_VERSION = 1 };

/* What libshoal-mpi.so exports, under this name: calls MPI_Init and fills a table that lasts until its close.  0, or -1
 * with a sentence in message. */
#define SHOAL_RANKS_ENTRY "shoal_ranks_mpi"
typedef int shoal_ranks_entry(shoal_ranks **out, uint32_t version, char *message, size_t size);

/* How this process was started, by its environment. */
typedef struct shoal_ranks_started {
    int rank, size;       /* of the processes that were started together */
    const char *launcher; /* "mpirun", "srun" */
    const char *kind;     /* the launcher's MPI: "openmpi", "mpich"; NULL if it may be any */
    bool bare;            /* started without what MPI needs to find the others: srun without --mpi */
} shoal_ranks_started;

/* Whether this process was started as one of several ranks, or as the only one by a launcher of ranks. */
SHOAL_API bool shoal_ranks_find(shoal_ranks_started *out);
/* Loads libshoal-mpi.so and connects to the others.  `path` names the file, or is NULL: SHOAL_MPI_PLUGIN from the
 * environment, or the one of started.kind where shoal was installed or built.  SHOAL_ABSENT, naming the places
 * searched, if there is none. */
SHOAL_API int shoal_ranks_open(shoal_ranks **out, const char *path);
/* Ends the others, which wait for this process, after shoal_ranks_open failed in it: for launchers that ignore exit
 * codes.  Call it last, after reporting the failure. */
SHOAL_API void shoal_ranks_give_up(const shoal_ranks_started *started);
SHOAL_API void shoal_ranks_close(shoal_ranks **ranks);

#ifdef __cplusplus
}
#endif
#endif
