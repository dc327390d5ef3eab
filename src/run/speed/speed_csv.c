/* The runs as a table for other programs.  See speed.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/text.h"
#include "speed.h"

static const char header[] = "source,kind,pass,batch_size,batches,repetition,images,bytes,skipped,began,seconds,"
                             "processor_seconds,images_per_second,resident\n";

int speed_csv_check(const char *path, bool force)
{
    char line[sizeof header] = "";
    const bool special = strcmp(path, "-") == 0 || base_output_is_special(path);
    if (!special && !base_text_ends(path, ".csv"))
        return shoal_fail(SHOAL_USAGE, "--csv %s: the name must end with .csv", path);
    FILE *old = special || force ? NULL : fopen(path, "re");
    if (!old)
        return SHOAL_OK;
    const size_t size = fread(line, 1, sizeof header - 1, old);
    fclose(old);
    if (size == 0 || (size == sizeof header - 1 && memcmp(line, header, size) == 0))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "--csv %s: the file holds something else than the runs of a speed test; use another "
                      "name, or replace it with --force",
                      path);
}

/* In quotes, as a path may have commas, quotes and line ends in it. */
static void write_name(FILE *stream, const char *name)
{
    fputc('"', stream);
    for (; *name; name++) {
        if (*name == '"')
            fputc('"', stream);
        fputc(*name, stream);
    }
    fputc('"', stream);
}

static void write_run(FILE *stream, const speed_outcome *outcome, const speed_run *run)
{
    const speed_about *about = &outcome->source[run->source];
    write_name(stream, about->name);
    fprintf(stream,
            ",%s,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g,%.9g,%.9g,%.9g,",
            about->kind == SPEED_IMAGES ? "images" : "tfrecord", run->pass + 1, run->batch_size, run->batches,
            run->repetition, run->images, run->bytes, run->skipped, run->began, run->seconds, run->processor,
            speed_rate(run));
    if (isfinite(run->resident))
        fprintf(stream, "%.6g", run->resident);
    fputc('\n', stream);
}

int speed_csv_write(const char *path, const speed_outcome *outcome)
{
    base_output *output = NULL;
    int status = base_output_open(&output, path);
    if (status < 0)
        return status;
    fputs(header, base_output_stream(output));
    for (int64_t i = 0; i < outcome->runs; i++)
        write_run(base_output_stream(output), outcome, &outcome->run[i]);
    status = base_output_commit(&output);
    base_output_discard(&output);
    return status;
}
