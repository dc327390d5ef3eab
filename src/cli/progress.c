/* The line of progress on a terminal.  It is rewritten in place, at most ten times a second, and
 * gone at the end; when stderr is no terminal nothing is written at all. */
#include "cli.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "base/pool.h"

static const double SECONDS_BETWEEN = 0.1;

void cli_progress_start(cli_progress *progress, bool quiet)
{
    *progress = (cli_progress){.stream = !quiet && isatty(STDERR_FILENO) ? stderr : NULL, .shown = -1};
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
}

/* A line that wrapped could not be rewritten, so it is cut.  All text here is ASCII. */
static void show_text(cli_progress *progress, const char *text)
{
    fputs("\r\033[K", progress->stream);
    char cut[256];
    snprintf(cut, sizeof cut, "%.*s", terminal_width() - 1, text);
    cli_put_text(progress->stream, cut);
    fflush(progress->stream);
    progress->dirty = true;
    progress->shown = base_seconds();
}

void cli_progress_say(cli_progress *progress, const char *text)
{
    if (progress->stream)
        show_text(progress, text);
}

void cli_progress_clear(cli_progress *progress)
{
    if (!progress->stream || !progress->dirty)
        return;
    fputs("\r\033[K", progress->stream);
    fflush(progress->stream);
    progress->dirty = false;
}

/* "1.2M", "345k", "87" */
static void format_rate(char *out, size_t size, double rate)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    int unit = 0;
    for (; rate >= 999.5 && unit < 4; unit++)
        rate /= 1000;
    snprintf(out, size, rate < 9.95 && unit ? "%.1f%s" : "%.0f%s", rate, units[unit]);
}

static void format_clock(char *out, size_t size, double seconds)
{
    long long whole = (long long)ceil(seconds);
    if (whole >= 3600)
        snprintf(out, size, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(out, size, "%lld:%02lld", whole / 60, whole % 60);
}

static void append_part(char *line, size_t size, const char *text)
{
    size_t length = strlen(line);
    snprintf(line + length, size - length, "%s%s", length ? ", " : "", text);
}

/* Convergence may come before the last step, so what is left is an upper limit; of several numbers of clusters, those
 * to come are not known here. */
static void append_time_left(char *line, size_t size, const cli_progress *progress, const shoal_round *next,
                             double seconds)
{
    char time[32], part[64];
    if (next->k > 0 || next->steps <= 0 || progress->phase_rounds == 0 || next->step > next->steps)
        return;
    double one = (seconds - progress->phase_started) / (double)progress->phase_rounds;
    double left = one * (double)(next->steps - next->step + 1);
    if (!(left < 1e9))
        return;
    format_clock(time, sizeof time, left);
    snprintf(part, sizeof part, "at most %s left", time);
    append_part(line, size, part);
}

static void follow_phase(cli_progress *progress, const shoal_round *done, const shoal_round *next, double seconds)
{
    if (strcmp(progress->phase, done->phase) == 0)
        progress->phase_rounds++;
    if (strcmp(progress->phase, next->phase) != 0) {
        snprintf(progress->phase, sizeof progress->phase, "%s", next->phase);
        progress->phase_started = seconds;
        progress->phase_rounds = 0;
    }
}

/* What the face says, with the rate and the time left since it said so first. */
static bool show_told(cli_progress *progress, const shoal_round *next, double seconds)
{
    learn_told told = {0};
    char line[256], part[64], text[32];
    if (!progress->face || !progress->face->tell_round || !next->model)
        return false;
    progress->face->tell_round(&told, NULL, next, NULL);
    if (!told.line[0])
        return progress->begun.known; /* while an epoch is scored the line stays */
    if (!progress->begun.known) {
        progress->begun.known = true;
        progress->begun.done = told.done;
        progress->begun.rows = told.rows;
        progress->begun.seconds = seconds;
    }
    if (base_seconds() - progress->shown < SECONDS_BETWEEN)
        return true;
    const double took = seconds - progress->begun.seconds, went = told.done - progress->begun.done;
    snprintf(line, sizeof line, "%s", told.line);
    if (took > 0 && went > 0) {
        format_rate(text, sizeof text, (told.rows - progress->begun.rows) / took);
        snprintf(part, sizeof part, "%s rows/s", text);
        append_part(line, sizeof line, part);
        format_clock(text, sizeof text, fmin(took * (1 - told.done) / went, 1e9));
        snprintf(part, sizeof part, "%s%s left", told.may_end ? "at most " : "", text);
        append_part(line, sizeof line, part);
    }
    show_text(progress, line);
    return true;
}

void cli_progress_round(cli_progress *progress, const shoal_round *done, const shoal_round *next, int64_t rows,
                        double seconds)
{
    if (!progress->stream)
        return;
    if (!next) {
        cli_progress_clear(progress);
        return;
    }
    if (show_told(progress, next, seconds))
        return;
    follow_phase(progress, done, next, seconds);
    if (seconds > progress->last)
        progress->rows_per_second = (double)rows / (seconds - progress->last);
    progress->last = seconds;
    if (base_seconds() - progress->shown < SECONDS_BETWEEN)
        return;
    char line[256] = "", part[64], rate[16];
    if (next->k > 0)
        snprintf(line, sizeof line, "K = %lld", (long long)next->k);
    if (next->steps > 0)
        snprintf(part, sizeof part, "%s %lld/%lld", next->phase, (long long)next->step, (long long)next->steps);
    else
        snprintf(part, sizeof part, "%s %lld", next->phase, (long long)next->step);
    append_part(line, sizeof line, part);
    if (isfinite(next->objective)) {
        snprintf(part, sizeof part, "objective %.7g", next->objective);
        append_part(line, sizeof line, part);
    }
    if (isfinite(next->change)) {
        snprintf(part, sizeof part, "change %.2g", next->change);
        append_part(line, sizeof line, part);
    }
    format_rate(rate, sizeof rate, progress->rows_per_second);
    snprintf(part, sizeof part, "%s rows/s", rate);
    append_part(line, sizeof line, part);
    append_time_left(line, sizeof line, progress, next, seconds);
    show_text(progress, line);
}

void cli_progress_transfer(cli_progress *progress, const transfer_counts *so_far)
{
    char line[256], part[96], first[32], second[32];
    if (!progress->stream)
        return;
    snprintf(line, sizeof line, "%lld of %lld%s files", (long long)so_far->files, (long long)so_far->files_found,
             so_far->all_found ? "" : " or more");
    base_format_bytes(first, sizeof first, (double)so_far->bytes);
    base_format_bytes(second, sizeof second, (double)so_far->bytes_found);
    snprintf(part, sizeof part, "%s of %s", first, second);
    append_part(line, sizeof line, part);
    double rate = so_far->seconds > 0 ? (double)so_far->bytes / so_far->seconds : 0;
    base_format_bytes(first, sizeof first, rate);
    snprintf(part, sizeof part, "%s/s", first);
    append_part(line, sizeof line, part);
    double left = rate > 0 ? (double)(so_far->bytes_found - so_far->bytes) / rate : -1;
    if (so_far->all_found && left >= 0 && left < 1e9) {
        format_clock(first, sizeof first, left);
        snprintf(part, sizeof part, "%s left", first);
        append_part(line, sizeof line, part);
    }
    show_text(progress, line);
}
