/* A trial's folder in the store, so that another machine can go on with it:
 *
 *     NAME/trial/7/folder         which files it has, by their hashes, and whose folder it was last; replaced
 *     NAME/trial/7/file/SHA256    one of them, until no folder has it any more
 *
 * What is there is a convenience: without it, or when it is half gone, the trial begins anew.  Results don't depend on
 * it, since a trial's reports lie among its files. */
#ifndef SWEEP_KEEP_H
#define SWEEP_KEEP_H

#include "place.h"

/* The folder of one trial, while a process is at work in it. */
typedef struct sweep_keeper {
    const sweep_place *place;
    int64_t trial;
    const char *folder;
    const char *holder;     /* names this machine and place among those that trials may be at */
    json_t *files;          /* that the store has of it, as far as is known; NULL: nothing */
    unsigned char mark[32]; /* of names, sizes and times of what was put last */
    int64_t put;            /* when that was; 0: never */
} sweep_keeper;

/* Bytes of all files of a trial that go to the store: what has more is only where it is. */
static const int64_t SWEEP_KEEP_MOST = (int64_t)4 << 30;

/* Brings the folder here when somebody else was the last to keep it, in the place of what is there. */
int sweep_keeper_fetch(sweep_keeper *keeper);
/* Puts it if it holds more than reports and has changed since. */
int sweep_keeper_put(sweep_keeper *keeper);
/* Removes it from the store: the trial is done here. */
int sweep_keeper_drop(sweep_keeper *keeper);
/* Forgets it; the store keeps what it has. */
void sweep_keeper_release(sweep_keeper *keeper);

#endif
