/* TensorBoard's event files.  See events.h.  An event is a protocol buffer message of a handful of fields
 * (tensorboard's event.proto and summary.proto), so it is encoded by hand, in the frames of a TFRecord. */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"
#include "data/format/tfrecord.h"

struct run_events {
    int descriptor;
    char *path;
    int status; /* the first failure; nothing is written after it, since half an event may have been written */
    int error;  /* errno of it */
};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* How a field's value is written: in the low three bits of its tag. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* Numbers of the fields. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE_VALUE = 2 };

static void write_varint(base_writer *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        base_write_u8(out, (uint8_t)(value | 0x80));
    base_write_u8(out, (uint8_t)value);
}

static void write_field(base_writer *out, int field, int kind)
{
    write_varint(out, (uint64_t)(field << 3 | kind));
}

static void write_part(base_writer *out, int field, const void *bytes, size_t size)
{
    write_field(out, field, BYTES);
    write_varint(out, size);
    base_write_bytes(out, bytes, size);
}

static void write_wall_time(base_writer *out, double wall_time)
{
    write_field(out, EVENT_WALL_TIME, FIXED64);
    base_write_double(out, wall_time);
}

void run_event_write_version(base_writer *out, double wall_time)
{
    static const char version[] = "brain.Event:2";
    write_wall_time(out, wall_time);
    write_part(out, EVENT_FILE_VERSION, version, sizeof version - 1);
}

static void write_value(base_writer *summary, const run_event_value *value)
{
    const float number = (float)value->value;
    base_writer message = {0};
    uint32_t bits;
    if (!isfinite(number))
        return;
    memcpy(&bits, &number, sizeof bits);
    write_part(&message, VALUE_TAG, value->tag, strlen(value->tag));
    write_field(&message, VALUE_SIMPLE_VALUE, FIXED32);
    base_write_u32(&message, bits);
    write_part(summary, SUMMARY_VALUE, message.data, message.size);
    summary->status = summary->status < 0 ? summary->status : message.status;
    base_writer_release(&message);
}

void run_event_write_values(base_writer *out, double wall_time, int64_t step, const run_event_value *values, int count)
{
    base_writer summary = {0};
    for (int i = 0; i < count; i++)
        write_value(&summary, &values[i]);
    write_wall_time(out, wall_time);
    write_field(out, EVENT_STEP, VARINT);
    write_varint(out, (uint64_t)step);
    write_part(out, EVENT_SUMMARY, summary.data, summary.size);
    out->status = out->status < 0 ? out->status : summary.status;
    base_writer_release(&summary);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static int fail_folder(const char *folder, int error)
{
    return shoal_fail_errno(SHOAL_SYSTEM, error, "--tensorboard %s: can't write to this folder", folder);
}

/* Shortens the path by its last part; false when there is none. */
static bool go_up(char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length == 0) {
        bool was_here = strcmp(path, ".") == 0;
        snprintf(path, 2, ".");
        return !was_here;
    }
    path[length > 1 ? length - 1 : 1] = '\0';
    return true;
}

int run_events_check(const char *folder)
{
    char *path = NULL;
    struct stat info;
    if (!*folder)
        return shoal_fail(SHOAL_USAGE, "--tensorboard needs the name of a folder");
    int status = base_format(&path, "%s ", folder); /* room for "." */
    if (status < 0)
        return status;
    path[strlen(folder)] = '\0';
    while (stat(path, &info) < 0) {
        if (errno != ENOENT || !go_up(path)) {
            status = fail_folder(folder, errno);
            goto done;
        }
    }
    if (!S_ISDIR(info.st_mode))
        status = fail_folder(folder, ENOTDIR);
    else if (access(path, W_OK | X_OK) < 0)
        status = fail_folder(folder, errno);
done:
    base_free(&path);
    return status;
}

/* Makes the folder and those above it. */
static int make_events_folder(const char *folder)
{
    int error = base_make_folders(folder, 0777, NULL);
    return error ? fail_folder(folder, error) : SHOAL_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static double wall_time(void)
{
    return 1e-9 * (double)base_wall_now();
}

/* Appends one event in its frame, all at once. */
static int append_event(run_events *events, const base_writer *event)
{
    base_writer frame = {0};
    if (event->status < 0)
        return event->status;
    data_tfrecord_write(&frame, event->data, event->size);
    int status = frame.status;
    if (status == SHOAL_OK && (events->error = base_write_all(events->descriptor, frame.data, frame.size)) != 0)
        status = SHOAL_SYSTEM;
    base_writer_release(&frame);
    return status;
}

/* TensorBoard wants "tfevents" in the name and reads files in the order of their names, so the time comes first. */
static int create_file(run_events *events, const char *folder)
{
    char host[256] = "";
    const long long now = (long long)wall_time();
    if (gethostname(host, sizeof host - 1) < 0 || !*host)
        snprintf(host, sizeof host, "localhost");
    for (int attempt = 0; attempt < 1000; attempt++) {
        base_free(&events->path);
        int status = base_format(&events->path, "%s%sevents.out.tfevents.%010lld.%s.%ld.%d", folder,
                                 folder[strlen(folder) - 1] == '/' ? "" : "/", now, host, (long)getpid(), attempt);
        if (status < 0)
            return status;
        events->descriptor = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (events->descriptor >= 0)
            return SHOAL_OK;
        if (errno != EEXIST)
            return fail_folder(folder, errno);
    }
    return fail_folder(folder, EEXIST);
}

static int fail_file(const run_events *events)
{
    if (events->status == SHOAL_SYSTEM)
        return shoal_fail_errno(SHOAL_SYSTEM, events->error, "--tensorboard: can't write %s", events->path);
    return shoal_fail(events->status, "--tensorboard: out of memory for %s", events->path);
}

int run_events_open(run_events **out, const char *folder)
{
    base_writer event = {0};
    run_events *events = NULL;
    int status = run_events_check(folder);
    if (status == SHOAL_OK)
        status = make_events_folder(folder);
    if (status == SHOAL_OK)
        status = base_alloc(&events, 1, sizeof *events, "events");
    if (status < 0)
        return status;
    events->descriptor = -1;
    status = create_file(events, folder);
    if (status == SHOAL_OK) {
        run_event_write_version(&event, wall_time());
        events->status = append_event(events, &event);
        status = events->status < 0 ? fail_file(events) : SHOAL_OK;
        if (status < 0)
            unlink(events->path); /* it holds nothing */
    }
    if (status == SHOAL_OK) {
        *out = events;
        events = NULL;
    }
    base_writer_release(&event);
    run_events_abandon(&events);
    return status;
}

void run_events_add(run_events *events, int64_t step, const run_event_value *values, int count)
{
    base_writer event = {0};
    if (events->status < 0)
        return;
    run_event_write_values(&event, wall_time(), step, values, count);
    events->status = append_event(events, &event);
    base_writer_release(&event);
}

int run_events_close(run_events **inout)
{
    run_events *events = *inout;
    if (!events)
        return SHOAL_OK;
    if (close(events->descriptor) < 0 && events->status == SHOAL_OK) {
        events->status = SHOAL_SYSTEM; /* some file systems report a full disk only now */
        events->error = errno;
    }
    events->descriptor = -1;
    int status = events->status < 0 ? fail_file(events) : SHOAL_OK;
    run_events_abandon(inout);
    return status;
}

void run_events_abandon(run_events **inout)
{
    run_events *events = *inout;
    if (!events)
        return;
    if (events->descriptor >= 0)
        close(events->descriptor);
    base_free(&events->path);
    base_free(inout);
}
