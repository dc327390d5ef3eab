/* See search_journal.h. */
#include "search_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"

enum { VERSION = 1, BYTES_MOST = 64 << 20 };
static const char magic[] = "shoal plan search";

/* ---- paths ------------------------------------------------------------------------------------------------------- */

static int with_ending(char **out, const char *path, const char *old_ending, const char *ending)
{
    size_t length = strlen(path), cut = strlen(old_ending);
    if (length > cut && strcmp(path + length - cut, old_ending) == 0 && path[length - cut - 1] != '/')
        length -= cut;
    return base_format(out, "%.*s%s", (int)length, path, ending);
}

int plan_search_journal_path(char **out, const char *space_path)
{
    return with_ending(out, space_path, ".json", ".trials.jsonl");
}

int plan_search_output_folder(char **out, const char *journal_path)
{
    return with_ending(out, journal_path, ".jsonl", ".output");
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

json_t *plan_search_trial_json(const plan_trial_record *trial, const plan_search_space *space, int64_t number)
{
    json_t *object = json_object();
    double dollars = plan_search_dollars(trial, space);
    base_json_put(&object, "trial", json_integer(number));
    for (int i = 0; i < space->dimensions; i++) {
        const plan_search_dimension *dimension = &space->dimension[i];
        int64_t value = plan_search_value(space, trial->candidate, i);
        bool whole = !dimension->is_text && dimension->number[value] == floor(dimension->number[value]) &&
                     fabs(dimension->number[value]) < 1e15;
        base_json_put(&object, dimension->name,
                      dimension->is_text ? base_json_text(dimension->text[value])
                      : whole            ? json_integer((json_int_t)dimension->number[value])
                                         : json_real(dimension->number[value]));
    }
    base_json_put(&object, "outcome", json_string(plan_search_outcome_name(trial->outcome)));
    if (trial->exit_code)
        base_json_put(&object, "exit", json_integer(trial->exit_code));
    if (trial->signal_sent)
        base_json_put(&object, "signal", json_integer(trial->signal_sent));
    if (trial->said[0])
        base_json_put(&object, "said", base_json_text(trial->said));
    base_json_put(&object, "seconds", json_real(trial->seconds));
    if (!isnan(dollars))
        base_json_put(&object, "cost", json_real(dollars));
    if (!isnan(trial->told_dollars))
        base_json_put(&object, "cost_told", json_true());
    base_json_put(&object, "why", base_json_text(trial->why));
    return object;
}

static int damaged(const plan_search_journal *journal, int64_t line, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s", journal->path, line, what);
}

static int read_journal_candidate(int64_t *out, const plan_search_journal *journal, const plan_search_space *space,
                                  json_t *object, int64_t line)
{
    int64_t value[PLAN_SEARCH_DIMENSIONS_MOST];
    for (int i = 0; i < space->dimensions; i++) {
        const plan_search_dimension *dimension = &space->dimension[i];
        json_t *entry = json_object_get(object, dimension->name);
        value[i] = -1;
        if (dimension->is_text && json_is_string(entry))
            value[i] = plan_search_value_named(dimension, json_string_value(entry));
        for (int64_t j = 0; !dimension->is_text && json_is_number(entry) && j < dimension->values; j++)
            if (dimension->number[j] == json_number_value(entry))
                value[i] = j;
        if (value[i] < 0)
            return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": no \"%s\" that %s has", journal->path, line,
                              dimension->name, space->path);
    }
    *out = plan_search_candidate(space, value);
    return SHOAL_OK;
}

static int read_journal_trial(plan_search_journal *journal, const plan_search_space *space, json_t *object,
                              int64_t line)
{
    plan_trial_record trial = {.told_dollars = NAN};
    const char *outcome = json_string_value(json_object_get(object, "outcome"));
    const char *why = json_string_value(json_object_get(object, "why")),
               *said = json_string_value(json_object_get(object, "said"));
    int status = read_journal_candidate(&trial.candidate, journal, space, object, line);
    if (status < 0)
        return status;
    int named = outcome ? plan_search_outcome_named(outcome) : -1;
    trial.seconds = json_number_value(json_object_get(object, "seconds"));
    if (named < 0 || !(trial.seconds > 0) || !isfinite(trial.seconds))
        return damaged(journal, line, "outcome or seconds are missing");
    trial.outcome = (plan_outcome)named;
    trial.exit_code = (int)json_integer_value(json_object_get(object, "exit"));
    trial.signal_sent = (int)json_integer_value(json_object_get(object, "signal"));
    if (json_is_true(json_object_get(object, "cost_told")))
        trial.told_dollars = json_number_value(json_object_get(object, "cost"));
    if (!isnan(trial.told_dollars) && !(trial.told_dollars > 0))
        return damaged(journal, line, "the cost is not a number");
    snprintf(trial.why, sizeof trial.why, "%s", why ? why : "");
    snprintf(trial.said, sizeof trial.said, "%s", said ? said : "");
    for (int64_t i = 0; i < journal->trials; i++)
        if (journal->trial[i].candidate == trial.candidate)
            return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has the configuration of line %" PRId64 " again",
                              journal->path, line, i + 2);
    status = base_grow(&journal->trial, (size_t)journal->trials, (size_t)journal->trials + 1, sizeof *journal->trial,
                       "trials");
    if (status == SHOAL_OK)
        journal->trial[journal->trials++] = trial;
    /* Lines may have been removed: what comes next must not take a number that another one has. */
    int64_t number = json_integer_value(json_object_get(object, "trial"));
    if (number > journal->last && number < INT32_MAX)
        journal->last = number;
    return status;
}

/* ---- the first line ---------------------------------------------------------------------------------------------- */

static json_t *header_json(const plan_search_purpose *purpose)
{
    json_t *object = json_object();
    base_json_put(&object, "journal", json_string(magic));
    base_json_put(&object, "version", json_integer(VERSION));
    base_json_put(&object, "space", json_string(purpose->space->hash));
    base_json_put(&object, "objective", json_string(purpose->objective));
    base_json_put(&object, "command", base_json_text(purpose->command));
    if (purpose->space->price_hash[0])
        base_json_put(&object, "prices", json_string(purpose->space->price_hash));
    return object;
}

static int check_header(const plan_search_journal *journal, json_t *found, const plan_search_purpose *purpose)
{
    static const struct {
        const char *key, *what;
    } parts[] = {{"space", "other machines or parameters"},
                 {"objective", "another objective"},
                 {"command", "another command"},
                 {"prices", "other prices"}};
    const char *kind = json_string_value(json_object_get(found, "journal"));
    if (!kind || strcmp(kind, magic) != 0)
        return shoal_fail(SHOAL_INVALID, "%s: not the journal of a search; use --journal to name another file",
                          journal->path);
    if (json_integer_value(json_object_get(found, "version")) != VERSION)
        return shoal_fail(SHOAL_INVALID, "%s: was written by another version of this program", journal->path);
    json_t *wanted = header_json(purpose);
    int status = wanted ? SHOAL_OK : shoal_fail(SHOAL_MEMORY, "out of memory for the journal");
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == SHOAL_OK; i++) {
        json_t *had = json_object_get(found, parts[i].key), *now = json_object_get(wanted, parts[i].key);
        if (had != now && !json_equal(had, now)) /* neither may be there */
            status = shoal_fail(
                SHOAL_USAGE,
                "%s has the trials of a search with %s; use --journal to name another file, or move this one away",
                journal->path, parts[i].what);
    }
    json_decref(wanted);
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Writes a line in one piece; what is not whole is taken back. */
static int write_journal_line(plan_search_journal *journal, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL, *line = NULL;
    json_decref(object);
    if (!text)
        return shoal_fail(SHOAL_MEMORY, "out of memory for the journal");
    int status = base_format(&line, "%s\n", text);
    free(text);
    size_t length = status == SHOAL_OK ? strlen(line) : 0;
    ssize_t written = status == SHOAL_OK ? write(journal->descriptor, line, length) : 0;
    int error = written < 0 ? errno : ENOSPC;
    base_free(&line);
    if (status < 0)
        return status;
    if (written != (ssize_t)length || fdatasync(journal->descriptor) < 0) {
        error = written == (ssize_t)length ? errno : error;
        if (ftruncate(journal->descriptor, (off_t)journal->bytes) < 0)
            return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write, nor take back what was written",
                                    journal->path);
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write the trial", journal->path);
    }
    journal->bytes += (int64_t)length;
    return SHOAL_OK;
}

static int read_journal_file(char **out, size_t *size, const plan_search_journal *journal)
{
    struct stat info;
    if (fstat(journal->descriptor, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", journal->path);
    if (!S_ISREG(info.st_mode))
        return shoal_fail(SHOAL_USAGE, "%s: a journal must be a regular file", journal->path);
    if (info.st_size > BYTES_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: too large for a journal", journal->path);
    int status = base_alloc(out, (size_t)info.st_size + 1, 1, "the journal");
    if (status < 0)
        return status;
    int error = base_read_all_at(journal->descriptor, *out, (size_t)info.st_size, 0, size);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", journal->path) : SHOAL_OK;
}

/* Reads one whole line, the newline excluded.  *broken when it is not JSON. */
static int read_journal_line(plan_search_journal *journal, const plan_search_purpose *purpose, const char *text,
                             size_t length, int64_t line, bool *broken)
{
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    int status = SHOAL_OK;
    *broken = !json_is_object(object);
    if (!*broken)
        status = line == 1 ? check_header(journal, object, purpose)
                           : read_journal_trial(journal, purpose->space, object, line);
    json_decref(object);
    return status;
}

/* Reads all lines; an incomplete last line, or one that is not JSON, is left for the caller to cut off. */
static int read_journal_lines(plan_search_journal *journal, const plan_search_purpose *purpose, const char *text,
                              size_t size)
{
    int status = SHOAL_OK;
    int64_t line = 1;
    for (size_t at = 0; at < size && status == SHOAL_OK; line++) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t next = newline ? (size_t)(newline - text) + 1 : size;
        bool broken = false;
        status = read_journal_line(journal, purpose, text + at, next - at - (newline != NULL), line, &broken);
        if (broken && line == 1 && !(size < 4096 && strncmp(text, "{\"journal\":", size < 11 ? size : 11) == 0))
            return shoal_fail(SHOAL_INVALID, "%s: not the journal of a search; use --journal to name another file",
                              journal->path);
        if (broken && next < size)
            return damaged(journal, line, "not JSON");
        if (!broken)
            journal->bytes = (int64_t)next;
        journal->cut = broken;
        journal->open = !broken && !newline;
        at = next;
    }
    return status;
}

static int take_over(plan_search_journal *journal, const plan_search_purpose *purpose)
{
    char *text = NULL;
    size_t size = 0;
    int status = read_journal_file(&text, &size, journal);
    if (status == SHOAL_OK)
        status = read_journal_lines(journal, purpose, text, size);
    base_free(&text);
    if (status == SHOAL_OK && journal->cut && ftruncate(journal->descriptor, (off_t)journal->bytes) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", journal->path);
    if (status == SHOAL_OK && journal->open && write(journal->descriptor, "\n", 1) != 1)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", journal->path);
    journal->bytes += journal->open;
    if (status == SHOAL_OK && journal->bytes == 0) {
        status = write_journal_line(journal, header_json(purpose));
        base_output_sync_folder(journal->path);
    }
    return status;
}

int plan_search_journal_open(plan_search_journal **out, const char *path, const plan_search_purpose *purpose)
{
    plan_search_journal *journal = NULL;
    int status = base_alloc(&journal, 1, sizeof *journal, "the journal");
    if (status < 0)
        return status;
    journal->descriptor = -1;
    status = base_copy_text(&journal->path, path);
    if (status == SHOAL_OK) {
        journal->descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (journal->descriptor < 0)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write the journal", path);
        else if (flock(journal->descriptor, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
            status = shoal_fail(SHOAL_USAGE, "%s: another search is writing to it", path);
    }
    if (status == SHOAL_OK)
        status = take_over(journal, purpose);
    if (status < 0)
        plan_search_journal_close(&journal);
    *out = journal;
    return status;
}

int64_t plan_search_journal_next(const plan_search_journal *journal)
{
    return (journal->last > journal->trials ? journal->last : journal->trials) + 1;
}

int plan_search_journal_add(plan_search_journal *journal, const plan_search_space *space,
                            const plan_trial_record *trial)
{
    int status = base_grow(&journal->trial, (size_t)journal->trials, (size_t)journal->trials + 1,
                           sizeof *journal->trial, "trials");
    if (status == SHOAL_OK)
        status = write_journal_line(journal, plan_search_trial_json(trial, space, plan_search_journal_next(journal)));
    if (status == SHOAL_OK) {
        journal->last = plan_search_journal_next(journal);
        journal->trial[journal->trials++] = *trial;
    }
    return status;
}

void plan_search_journal_close(plan_search_journal **inout)
{
    plan_search_journal *journal = *inout;
    if (!journal)
        return;
    if (journal->descriptor >= 0)
        close(journal->descriptor);
    base_free(&journal->trial);
    base_free(&journal->path);
    base_free(inout);
}
