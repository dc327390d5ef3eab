/* A calibration for people and as JSON.  See calibrate_print.h. */
#include "calibrate_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/measure/measure_busy.h"
#include "plan/units.h"

static void format_bytes_a_second(char *out, size_t size, double rate)
{
    char bytes[24];
    base_format_bytes(bytes, sizeof bytes, rate);
    if (rate > 0)
        snprintf(out, size, "%s/s", bytes);
    else
        snprintf(out, size, "-");
}

/* "12 µs", "3.4 ms", "0 s": three digits. */
static void format_small_time(char *out, size_t size, double seconds)
{
    static const char *const units[] = {"s", "ms", "µs", "ns", "ps"};
    int unit = 0;
    for (; unit < 4 && seconds > 0 && seconds < 0.9995; unit++)
        seconds *= 1000;
    snprintf(out, size, "%.*f %s",
             seconds >= 99.95 || seconds == 0 ? 0
             : seconds >= 9.995               ? 1
                                              : 2,
             seconds, units[unit]);
}

/* A time in a column of that many characters: µ is one of them and two bytes. */
static void print_time(FILE *stream, double seconds, int width)
{
    char text[32];
    format_small_time(text, sizeof text, seconds);
    fprintf(stream, "%*s", width + (strstr(text, "µ") != NULL), text);
}

static void print_machine(FILE *stream, const plan_calibration *calibration)
{
    int threads = calibration->threads;
    char date[32] = "?";
    time_t then = (time_t)calibration->date;
    struct tm parts;
    if (gmtime_r(&then, &parts))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts);
    fputs("machine    ", stream);
    cli_put_text(stream, calibration->host);
    fprintf(stream, ", %d thread%s, kernel ", threads, base_plural(threads));
    cli_put_text(stream, calibration->kernel);
    fprintf(stream, ", %s\n", date);
    if (threads > 1)
        fprintf(stream, "threads    %d are %.2f times as fast as one\n", threads,
                threads / (1 + (threads - 1) * calibration->thread_loss));
    if (calibration->busy > PLAN_BUSY_LEAST)
        fprintf(stream, "busy       %.0f%% of the processor went to other programs: intervals are wider\n",
                100 * calibration->busy);
}

static void print_paces(FILE *stream, const plan_calibration *calibration)
{
    if (calibration->paces == 0)
        return;
    fprintf(stream, "\n%-12s %-8s %12s %12s %12s %12s %12s\n", "time per", "", "row", "value", "operation", "round",
            "kB of model");
    for (int i = 0; i < calibration->paces; i++) {
        const shoal_pace *pace = &calibration->pace[i];
        fprintf(stream, "%-12s %-8s", pace->learner, pace->phase);
        const double seconds[] = {pace->row, pace->value, pace->operation, pace->round, 1000 * pace->model_byte};
        for (int j = 0; j < 5; j++) {
            fputc(' ', stream);
            print_time(stream, seconds[j], 12);
        }
        fputc('\n', stream);
    }
}

static void print_site(FILE *stream, const plan_calibrated_site *entry)
{
    const shoal_site *site = &entry->site;
    char a[32], b[32], c[32], d[32];
    fputs("\nstore      ", stream);
    cli_put_text(stream, entry->store);
    format_small_time(a, sizeof a, site->get);
    format_small_time(b, sizeof b, site->put);
    format_small_time(c, sizeof c, site->wait);
    fprintf(stream, "%s\nlatency    get %s, put %s, %s until a waiting worker sees a put\n",
            entry->date ? "" : " (assumed)", a, b, c);
    format_bytes_a_second(a, sizeof a, site->read);
    format_bytes_a_second(b, sizeof b, site->write);
    format_bytes_a_second(c, sizeof c, site->account);
    format_bytes_a_second(d, sizeof d, site->account_write > 0 ? site->account_write : site->account);
    fprintf(stream, "bandwidth  read %s, write %s with one connection (at most %.0f); %s and %s for all together\n", a,
            b, site->connections, c, d);
    format_small_time(a, sizeof a, site->start);
    fprintf(stream, "start      %s to submit a job, start local workers and stop them\n", a);
    format_small_time(a, sizeof a, site->sync);
    format_small_time(b, sizeof b, site->crowd);
    fprintf(stream,
            "rounds     %s of overhead, %s per further worker here, %.1f requests per worker; times differ by %.1f%%\n",
            a, b, site->requests, 100 * site->straggle);
    if (site->get_price > 0 || site->put_price > 0)
        fprintf(stream, "prices     $%.4f per 10,000 gets, $%.4f per 10,000 puts\n", 1e4 * site->get_price,
                1e4 * site->put_price);
}

void cli_calibration_print(FILE *stream, const plan_calibration *calibration, const char *path)
{
    print_machine(stream, calibration);
    print_paces(stream, calibration);
    for (int i = 0; i < calibration->sites; i++)
        print_site(stream, &calibration->site[i]);
    fputs("\nwrote      ", stream);
    cli_put_text(stream, path);
    fputc('\n', stream);
}

int cli_calibration_print_json(const plan_calibration *calibration, const char *path)
{
    char *text = NULL;
    int status = plan_calibration_json(&text, calibration);
    if (status < 0)
        return status;
    json_t *object = json_loads(text, 0, NULL);
    base_free(&text);
    base_json_put(&object, "path", base_json_text(path));
    return cli_print_json(object);
}
