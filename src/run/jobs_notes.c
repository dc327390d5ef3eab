/* What this machine keeps about jobs: a note of what each was submitted with, and what was said while nobody followed
 * it.  Both stay while the job is in its store, and go with it.  See jobs.h. */
#include "jobs.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"

enum {
    YOUNG_SECONDS = 3600,       /* a note is written before its job: one that is younger may not be listed yet */
    UNSEEN_SECONDS = 30 * 86400 /* a folder that is missing may be on a disk that is not mounted today */
};

int run_jobs_file_path(char **out, const char *id, const char *kind)
{
    char name[SHOAL_JOB_ID_BYTES + 32];
    snprintf(name, sizeof name, "%s/%s.%s", kind, id, kind);
    return run_jobs_state_path(out, name);
}

void run_jobs_forget(const char *id)
{
    static const char *const kinds[] = {"log", "request"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *path = NULL;
        if (run_jobs_file_path(&path, id, kinds[i]) == SHOAL_OK)
            unlink(path); /* there is one only if the job was submitted or detached here */
        base_free(&path);
    }
}

bool run_jobs_is_folder(const char *url)
{
    return strncmp(url, "dir:", 4) == 0 || !strchr(url, ':');
}

int run_jobs_place(char **out, const char *url)
{
    char *place = NULL;
    const char *path = strncmp(url, "dir:", 4) == 0 ? url + 4 : url;
    int status = base_copy_text_n(&place, path, strcspn(path, "?"));
    if (status == SHOAL_OK && run_jobs_is_folder(url)) {
        char *real = realpath(place, NULL);
        status = base_copy_text(out, real ? real : place);
        free(real);
        base_free(&place);
    } else if (status == SHOAL_OK) {
        *out = place;
    }
    return status;
}

static bool is_listed(const char *id, const shoal_job_id *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(ids[i].text, id) == 0)
            return true;
    return false;
}

/* Whether the job of a note is gone: from the store at `place`, whose jobs are listed, or with the whole folder. */
static bool is_gone(const char *path, const char *place, double age)
{
    struct stat about;
    json_t *note = json_load_file(path, 0, NULL);
    const char *store = json_string_value(json_object_get(note, "store"));
    bool gone = store && strcmp(store, place) == 0 && age > YOUNG_SECONDS;
    if (store && store[0] == '/' && age > UNSEEN_SECONDS)
        gone = gone || stat(store, &about) < 0;
    json_decref(note);
    return gone;
}

void run_jobs_sweep(const run_jobs *jobs, const shoal_job_id *ids, int64_t count)
{
    static const char ending[] = ".request";
    char *folder = NULL, *place = NULL;
    DIR *notes = NULL;
    if (!run_jobs_is_folder(
            jobs->url)) /* one URL may mean several servers: what is not on this one may be on another */
        return;
    if (run_jobs_state_path(&folder, "request") == SHOAL_OK && run_jobs_place(&place, jobs->url) == SHOAL_OK)
        notes = opendir(folder);
    for (struct dirent *entry; notes && (entry = readdir(notes)) != NULL;) {
        char id[SHOAL_JOB_ID_BYTES], *path = NULL;
        struct stat about;
        size_t length = strlen(entry->d_name);
        if (!base_text_ends(entry->d_name, ending) || length - strlen(ending) >= sizeof id)
            continue;
        snprintf(id, sizeof id, "%.*s", (int)(length - strlen(ending)), entry->d_name);
        if (!is_listed(id, ids, count) && base_format(&path, "%s/%s", folder, entry->d_name) == SHOAL_OK &&
            stat(path, &about) == 0 && is_gone(path, place, difftime(time(NULL), about.st_mtime)))
            run_jobs_forget(id);
        base_free(&path);
    }
    if (notes)
        closedir(notes);
    base_free(&place);
    base_free(&folder);
}
