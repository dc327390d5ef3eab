/* One worker in one job: what the files of the worker share.
 *
 *     job_worker.c    joins jobs, goes from round to round, leaves
 *     job_round.c     one round: does what job_decide.h says, until the next model is there
 *     job_look.c      where the job stands by what is in the store, and telling a store that forgot
 *     job_piece.c     pieces to bytes and back; adding them up
 *     job_lead.c      after the top was merged: update, who does what next, the next model
 *     job_kept.c      what rounds keep for their updates
 *     job_sweep.c     removing what is no longer needed
 *     job_members.c   who is alive
 *     job_wait.c      when to look again; the arithmetic of it is in job_guess.c
 *     job_beat.c      the worker's own record
 */
#ifndef JOB_RUN_H
#define JOB_RUN_H

#include "engine/slice.h"
#include "engine/store/job_blobs.h"
#include "engine/store/job_code.h"
#include "engine/store/job_decide.h"
#include "engine/store/job_guess.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_memory.h"
#include "engine/store/job_model.h"
#include "engine/store/job_record.h"
#include "engine/store/job_rows.h"
#include "engine/store/job_spec.h"

/* ---- the worker's record (job_beat.c) ---------------------------------------------------------------------------- */

typedef struct job_beat job_beat;

/* Puts the record and keeps rewriting it every third of a lease. */
int job_beat_start(job_beat **out, shoal_store *store, const char *id, double lease, const job_record *record,
                   int64_t deadline);
/* Sets what the record says from its next writing on. */
void job_beat_set(job_beat *beat, const job_record *record);
/* Writes it now, from the calling thread. */
int job_beat_now(job_beat *beat, int64_t deadline);
/* Ends the rewriting and moves the record to left/, with that state; with NULL, as for a job that was removed, it is
 * just removed. */
void job_beat_stop(job_beat **beat, const char *state, int64_t deadline);

/* ---- who is alive (job_members.c) -------------------------------------------------------------------------------- */

/* A worker as its record's versions show it. */
typedef struct job_peer {
    uint64_t worker;
    shoal_etag etag;
    int64_t changed; /* when this version was first seen, on this worker's clock */
    bool listed;     /* by the last listing */
    bool known;      /* slots and roles have been read */
    uint32_t slots, roles;
    int64_t turn; /* in which this worker first saw it */
} job_peer;

typedef struct job_members {
    job_peer *peer; /* by number */
    int64_t peers, room;
    int64_t seen;      /* so far */
    int64_t listed_at; /* when the last listing was requested; 0 for never */
} job_members;

void job_members_release(job_members *members);
/* Lists the records. */
int job_members_list(job_members *members, shoal_store *store, const char *id, int64_t deadline);
/* NULL when no record of it was listed. */
job_peer *job_members_find(const job_members *members, uint64_t worker);
bool job_members_alive(const job_members *members, uint64_t worker, double lease);
struct job_run;
/* The live members for a trailer; reads the records of new ones. */
int job_members_write(job_trailer *out, struct job_run *run);
/* Moves records that have been silent for three leases out of the way. */
int job_members_retire(struct job_run *run);

/* ---- when to look again (job_wait.c) ----------------------------------------------------------------------------- */

/* When the others' pieces of a group were there in the last rounds of a phase, by the level of the group. */
typedef struct job_habit {
    char phase[24];
    job_guess children[JOB_LEVELS_MOST];
} job_habit;

enum { JOB_HABITS = 8 };

/* Times are those of base_now. */
typedef struct job_pace {
    job_habit habit[JOB_HABITS];
    int habits;
    job_length length; /* of this phase's rounds */
    double trip;       /* seconds of a request */
    double own;        /* that mapping took in this round */
    double came; /* the last of the pieces that were fetched, in seconds after the round's model, as its maker says */
    int64_t put; /* when this round's model was put, as well as one can tell */
    int64_t next_put;     /* and when the next one was; 0 when unknown */
    int64_t first, asked; /* when it was first and last asked for what is waited for; 0 when not yet */
    int64_t found;        /* when it was asked for the next model and that was there; 0 when it came otherwise */
    bool in_step;  /* `put` is when it was put, give or take a round trip or two; otherwise it may have been earlier */
    int at_once;   /* how often in a row the next model was there when it was first asked for */
    int64_t began; /* this round */
    int64_t flush_at;   /* what is only in memory should be seen */
    int64_t late_at;    /* anything missing may be made by anyone */
    int64_t look_at;    /* list */
    int64_t stored;     /* pieces of this round at the last look, and what this worker has put since */
    int64_t quiet_from; /* since when there have been as many; 0: it has not looked */
    double look_pause;  /* seconds until the look after the next */
} job_pace;

void job_pace_begin(struct job_run *run);
/* How long its own slices took: others may take as long. */
void job_pace_mapped(struct job_run *run, double seconds);
/* Something was made for a worker that may only be late: wait before the next thing, so that it can catch up. */
void job_pace_helped(struct job_run *run);
/* After a look: when the next one is due. */
void job_pace_looked(struct job_run *run);
/* A look has found that many pieces of this round. */
void job_pace_counted(struct job_run *run, int64_t stored);
/* Whether nobody has put a piece for so long that groups which could be made have no maker: where nobody was told what
 * to make, as in round 0, nothing else tells. */
bool job_pace_is_quiet(const struct job_run *run);
/* From now on something else is waited for. */
void job_pace_wait_anew(struct job_run *run);
/* A request sent at that moment has been answered, with or without something. */
void job_pace_note_trip(struct job_run *run, int64_t sent, bool brought);
/* What is waited for was requested at that moment.  `came`: how many things were there; `all`: nothing is missing any
 * more. */
void job_pace_note_answer(struct job_run *run, int64_t sent, int64_t came, bool all);
/* After that, when all children of a group are there. */
void job_pace_note_children(struct job_run *run, int64_t sent, job_guess *guess);
/* run->next is there: works out when it was put. */
void job_pace_note_round(struct job_run *run);
/* How many seconds after this round's model something put now will be there. */
double job_pace_put_after(const struct job_run *run);
/* Seconds after this round's model at which the next may be there; 0 if unknown. */
double job_pace_early(const struct job_run *run);
/* Waits for a change of `name` (a key, or what keys start with), or until a moment of the pace comes, or the worker is
 * told to leave.  On a store that does not wake it sleeps until it is time to ask for something that may be there after
 * `early` seconds. */
void job_pace_wait(struct job_run *run, const char *name, uint32_t *seen, double early);
/* How long to wait for something on a store that wakes: until the next of the round's moments, and never long, since
 * the worker may be told to leave. */
int64_t job_pace_until(const struct job_run *run);
/* What is known of the children of groups of that level, in rounds like this one. */
job_guess *job_pace_children(struct job_run *run, int level);

/* ---- one worker in one job --------------------------------------------------------------------------------------- */

enum { JOB_COUNTERS = SHOAL_COUNTERS + 1, JOB_DOUBLED = SHOAL_COUNTERS };

/* A slice that was loaded. */
typedef struct job_held {
    job_rows *rows;
    engine_slice *slice;
    shoal_partial *partial; /* of this round; belongs to `slice` */
    int64_t used;           /* round it was last mapped in */
} job_held;

/* A piece that this worker put. */
typedef struct job_put {
    const job_tree *tree; /* of that round */
    int64_t round, piece;
} job_put;

/* The first and last round that made what a round keeps. */
typedef struct job_span {
    int64_t first, last;
} job_span;

/* A round that this worker has seen. */
typedef struct job_recent {
    int64_t round;
    job_span span;
} job_recent;

enum { JOB_RECENT = 128 };

/* Something that no round keeps any more, from round `since` on. */
typedef struct job_dropped {
    int64_t born, since;
} job_dropped;

typedef struct job_run {
    shoal_worker *worker;
    shoal_store *store;
    const job_spec *spec;
    const void *spec_bytes; /* as it was read */
    size_t spec_size;
    const shoal_algorithm *algorithm;
    engine_mapper *mapper;
    job_loader *loader;
    job_code_here code;
    job_blobs blobs; /* what maps get and put */
    job_beat *beat;
    job_record record;
    job_members members;
    job_pace pace;

    job_model *model;  /* of the round that is being done */
    job_model *next;   /* the next one, once it is here; or an older one, if what this one keeps was lost */
    bool next_is_mine; /* it was put by this worker */
    bool led;          /* this worker has put a model of the job */

    /* This round's pieces. */
    const job_tree *tree;             /* the job's, in ranges or not */
    unsigned char *flag;              /* JOB_MINE, ... */
    bool *added;                      /* merged into its parent's sum */
    int64_t (*counter)[JOB_COUNTERS]; /* what its maps counted, and how many pieces were made for others; ranges but the
                                       * first have only the latter */
    shoal_partial **sum;              /* of groups with all ranges, NULL while nothing was added; see job_tree_sum */
    job_held *held;                   /* of slices */
    uint64_t *maker;                  /* of slices: who mapped it, if its piece was seen here; 0 if unknown */
    bool begun;                       /* the mapper knows this round */
    int64_t told_at;                  /* when its record last told of its maps */
    int64_t looked_at;                /* when it last looked; 0 once it made something for another */
    int64_t waiting_for;              /* a piece, -1 for the next model, -2 for nothing */
    uint32_t seen_child, seen_model;  /* for shoal_store_wait on it, and on the next model */
    bool queue_open[3];               /* round 0: the queues map, reduce, last may have something */
    int64_t taken[3];                 /* round 0: from each of them */

    /* Pieces this worker put, to be removed. */
    job_put *put;
    int64_t puts, put_room;
    int64_t swept_in;     /* round in which it last tidied up */
    int64_t swept_at;     /* when it last listed for leftovers */
    int64_t swept_models; /* models before this round have been removed */
    int64_t watches_from; /* since when it has watched who is alive: a lease later it knows who is dead */
    int64_t known_at;     /* when the store last agreed with what this worker knows of the job */
    job_memory memory;    /* what this round needs, and how many slices may be held */
    bool has_its_own;     /* this worker made the model that it is about to read */
    bool is_blamed;       /* the learner can't continue from this round as the store has it */
    int64_t distrusted;   /* the newest round of which this worker removed what the store had */
    int distrusts;        /* rounds of which this worker removed what the store had */
    int64_t lacking_from; /* since when rows have been missing; 0 when they are not */
    /* Models that stay while the store may forget newer ones; round 0 for none. */
    struct job_checkpoint {
        int64_t round, at;
        job_span span; /* of what it keeps */
    } checkpoint[2];
    job_recent recent[JOB_RECENT]; /* by round mod JOB_RECENT */
    job_dropped *drop;             /* to be removed */
    int64_t drops, drop_room;
} job_run;

/* Seconds, from now, that a store call may take. */
int64_t job_deadline(const job_run *run);
bool job_leaving(const job_run *run);
const _Atomic uint32_t *job_leave_word(const job_run *run);
/* Hands on what the learner answered: SHOAL_BROKEN of its is the fault of neither the rows nor the store. */
static inline int job_blame(job_run *run, int status)
{
    run->is_blamed |= status == SHOAL_BROKEN;
    return status;
}
/* Gets a model; SHOAL_ABSENT if it is not there, or was damaged and has been removed: it is computed again. */
int job_take_model(job_model **out, job_run *run, int64_t number);
/* The same once it is there; SHOAL_ABSENT at the moment `until`. */
int job_await_model(job_model **out, job_run *run, int64_t number, int64_t until);
/* The newest model available; older ones are removed as it goes on. */
int job_find_model(job_model **out, job_run *run);
/* One line to the log and into the record. */
void job_log(job_run *run, const char *format, ...) SHOAL_PRINTF(2, 3);

/* Does the round run->model until run->next is there. */
int job_round_do(job_run *run);
void job_round_release(job_run *run);
/* Releases all rows, with their memos and partials. */
void job_round_drop_slices(job_run *run);
/* In round 0 the queues may have something again. */
void job_round_open_queues(job_run *run);

/* Finds out the state of the job: what is in the store, who is alive, whether the round is over (then run->next is
 * set).  Puts back what the store has forgotten.  SHOAL_ABSENT when the job was removed.  In job_look.c. */
int job_look(job_run *run);

/* ---- pieces (job_piece.c) ---------------------------------------------------------------------------------------- */

#define JOB_KIND_PIECE SHOAL_KIND('p', 'a', 'r', 't')

/* Of a piece, before it names who mapped its slices: round, piece, the model's check, when it was put, counters. */
enum { JOB_PIECE_HEAD = 2 * sizeof(int64_t) + sizeof(uint32_t) + sizeof(double) + sizeof(int64_t[JOB_COUNTERS]) };

/* Sets and clears flags of a piece; of a slice, those of all ranges. */
void job_piece_flag(job_run *run, int64_t piece, unsigned char set, unsigned char clear);
/* Whether a piece is a part of a blob, so that it can't be waited for by the blob's key. */
bool job_piece_shares_blob(const job_run *run, int64_t piece);
/* Readies flags, sums and counters for the round run->model. */
void job_piece_begin(job_run *run);
/* Adds this worker's own slice or group, which is here, to its parent's sum. */
int job_piece_add(job_run *run, int64_t piece);
/* Adds bytes from the store to the sum of the piece's parent.  SHOAL_BROKEN when they are not that piece of this
 * round. */
int job_piece_add_bytes(job_run *run, int64_t piece, const void *bytes, size_t size);
/* Puts a piece that is here; of a slice, all ranges in one blob. */
int job_piece_put(job_run *run, int64_t piece);
/* Whether what is under that key says that it was computed from run->model, or is too short to say; false if nothing is
 * there. */
int job_piece_is_of_model(bool *out, job_run *run, const char *key);
/* Gets the missing children of `parent` and adds them.  *came counts them; with `only_first` it asks for one first, and
 * for the others if that is there. */
int job_piece_fetch(job_run *run, int64_t parent, bool only_first, int64_t *came);
/* Gets a piece once it is there and adds it; *came is 0 when it was not by the moment `until`. */
int job_piece_await(job_run *run, int64_t piece, int64_t until, int64_t *came);
/* The sum of a group, with room for all ranges, and with the memory of an earlier round where that fits. */
int job_piece_sum(shoal_partial **out, job_run *run, int64_t piece);

/* Whether a request takes no longer than its system call: threads would only get in each other's way. */
static inline bool job_store_is_near(const shoal_store *store)
{
    shoal_store_traits traits = shoal_store_describe(store);
    return traits.wakes && !traits.far;
}

/* Whether the store is remote and wakes: then it is told in advance what will be wanted, and answers the moment that is
 * there. */
static inline bool job_store_awaits(const shoal_store *store)
{
    shoal_store_traits traits = shoal_store_describe(store);
    return traits.wakes && traits.far;
}

/* ---- what rounds keep (job_kept.c) ------------------------------------------------------------------------------- */

/* Sets the check of what is new in the round, which has its number. */
void job_kept_seal(shoal_round *round);
/* Takes over what another round has in memory. */
void job_kept_adopt(shoal_round *round, const shoal_round *from);
/* Whether all of it is in memory. */
bool job_kept_here(const shoal_round *round);
/* Puts what is new in the round, or all of it. */
int job_kept_put(job_run *run, const shoal_round *round, bool all);
/* Fetches what run->model's round keeps and this worker does not have.  SHOAL_ABSENT when some of it is nowhere: then
 * *lost is the round that made it. */
int job_kept_fetch(int64_t *lost, job_run *run);
/* From run->model to run->next: takes over what both keep, and notes what is no longer needed if run->next was put by
 * this worker. */
int job_kept_pass(job_run *run);
/* Whether a checkpoint may keep what that round made. */
bool job_kept_in_checkpoint(const job_run *run, int64_t born);
/* What the model of a round keeps; everything when this worker has not seen it. */
job_span job_kept_span(const job_run *run, int64_t round);
/* Removes what was dropped and is not kept by a model from `oldest` on. */
int job_kept_sweep(job_run *run, int64_t oldest);

/* ---- leading (job_lead.c) ---------------------------------------------------------------------------------------- */

/* The top has been merged: makes the next model and puts it, or takes what another put; sets run->next. */
int job_lead(job_run *run);
/* What can be done in advance while the top's children are not there yet. */
int job_lead_prepare(job_run *run);
/* Ends the job: failed, with a status and a message. */
int job_lead_fail(job_run *run, int failure, const char *message);

/* ---- sweeping (job_sweep.c) -------------------------------------------------------------------------------------- */

/* All of these stop when the worker is told to leave. */

/* Removes the pieces that this worker put in rounds that are over. */
int job_sweep_own(job_run *run);
/* Does that and, in the leader, removes old models and, now and then, what others left. */
int job_sweep(job_run *run);
/* After the end, which is run->model and was put by another: removes what this worker put since that one tidied up. */
int job_sweep_late(job_run *run);
/* After the end, which is model `end`: removes what a finished job no longer needs. */
int job_sweep_all(job_run *run, int64_t end);

#endif
