/* What was measured of this machine and of stores, kept between runs as JSON: $XDG_CONFIG_HOME/shoal/calibration.json,
 * by default ~/.config/shoal/calibration.json.  Read by plan and by every run that says what was predicted; written by
 * calibrate. */
#ifndef PLAN_CALIBRATION_H
#define PLAN_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <shoal/plan.h>

/* A machine whose other programs have at most this share of its processor counts as idle: systems have something to do
 * now and then. */
#define PLAN_BUSY_LEAST 0.1

enum { PLAN_PACES_MOST = 64, PLAN_SITES_MOST = 16 };

/* A store by what it is: "dir", or one account: "az://acct/box". */
typedef struct plan_calibrated_site {
    char store[256];
    shoal_site site;
    int64_t date; /* seconds since 1970; 0: assumed, not measured */
} plan_calibrated_site;

typedef struct plan_calibration {
    int64_t date;
    char host[64], kernel[16]; /* where, and with which arithmetic */
    int threads;               /* of that machine */
    double thread_loss;        /* as in shoal_site */
    double error;              /* of runs without a store; as in shoal_site */
    double busy;               /* share of the processor that other programs had meanwhile */
    int64_t refitted;          /* when it was last fitted to runs; 0: never */
    int paces, sites;
    shoal_pace pace[PLAN_PACES_MOST];
    plan_calibrated_site site[PLAN_SITES_MOST];
} plan_calibration;

/* The file's path; the caller frees it. */
int plan_calibration_path(char **out);
/* SHOAL_ABSENT when there is none.  SHOAL_INVALID names the file and the entry. */
int plan_calibration_read(plan_calibration *out, const char *path);
/* Whether a file that can't be read begins as a calibration does: it is a damaged one, and no other file. */
bool plan_calibration_is_begun(const char *path);
/* Whole or not at all. */
int plan_calibration_write(const char *path, const plan_calibration *calibration);
/* The same as JSON text, for --json; the caller frees it. */
int plan_calibration_json(char **out, const plan_calibration *calibration);

/* The store's entry: its own, or that of its scheme, or what is assumed of one nobody measured: *measured tells which.
 * `store` is a URL or a scheme. */
void plan_calibration_site(shoal_site *out, bool *measured, const plan_calibration *calibration, const char *store);
/* The name under which a store is kept: "dir", "az://acct/box", "s3://bucket". */
void plan_calibration_name(char *out, size_t size, const char *store);
/* Puts an entry in, or in place of the one of that name. SHOAL_USAGE when there are too many. */
int plan_calibration_set_site(plan_calibration *calibration, const plan_calibrated_site *site);
int plan_calibration_set_pace(plan_calibration *calibration, const shoal_pace *pace);

#endif
