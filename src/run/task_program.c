/* Programs that stay for the next task.  See task_program.h.
 *
 * They belong to the process, since functions of tasks know nothing but their call.  A guard ends them if this process
 * is killed. */
#include "task_program.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/world.h"
#include "learn/exec/exec_program.h"

enum { IDLE_MOST = 1024, SAID_ROOM = 3000, FILES_MOST = EXEC_NOTES_MOST / 2 };
static const size_t KEPT_MOST = (size_t)256 << 20; /* bytes of files that a program keeps for later tasks */
static const size_t LARGE = (size_t)64 << 20;      /* bytes of an answer from which on it is seen whether they fit */
static const double END_SECONDS = 1;

typedef struct kept_file {
    char name[72];
    size_t size;
    int64_t used; /* the number of the question that had it last */
} kept_file;

typedef struct staying {
    exec_program *program;
    pid_t process;
    char *command;
    int64_t asked;
    kept_file *file; /* that it has been given */
    int files, room;
    size_t bytes;
    struct staying *next;
} staying;

/* What a task's bytes say. */
typedef struct asking {
    const char *command;
    const char *question;
    size_t size;
} asking;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static staying *idle; /* the one that was used last comes first */
static int idle_count;
static base_guard guard = {.pipe = -1};

/* ---- starting and ending ----------------------------------------------------------------------------------------- */

/* Of one that has ended: another process may get its number. */
static void release_process(pid_t process)
{
    char line[24];
    int length = snprintf(line, sizeof line, "-%ld\n", (long)process);
    pthread_mutex_lock(&lock);
    (void)base_write_all(guard.pipe, line, (size_t)length);
    pthread_mutex_unlock(&lock);
}

static void end_staying(staying **inout, double seconds)
{
    staying *self = *inout;
    if (!self)
        return;
    if (self->program)
        exec_program_end(&self->program, base_time_after(base_now(), seconds));
    if (self->process > 0)
        release_process(self->process);
    base_free(&self->command);
    base_free(&self->file);
    base_free(inout);
}

/* It tells the guard before anything of the command runs, so that nothing runs that the guard does not know. */
static int start_staying(staying **out, const char *command)
{
    char *line = NULL;
    staying *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a program");
    if (status == SHOAL_OK)
        status = base_copy_text(&self->command, command);
    if (status == SHOAL_OK)
        status = base_format(&line, "echo $$ >&%d; exec %d>&-\nexec %s", BASE_SPAWN_EXTRA, BASE_SPAWN_EXTRA, command);
    pthread_mutex_lock(&lock);
    if (status == SHOAL_OK && guard.process == 0 && (errno = base_guard_start(&guard, 0)) != 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't start /bin/sh");
    int extra = guard.pipe;
    pthread_mutex_unlock(&lock);
    if (status == SHOAL_OK)
        status = exec_program_start(&self->program, &(exec_command){.text = line, .folder = ".", .extra = extra});
    if (status == SHOAL_OK)
        self->process = exec_program_id(self->program);
    base_free(&line);
    if (status < 0)
        end_staying(&self, 0);
    *out = self;
    return status;
}

static staying *take_idle(const char *command)
{
    staying *found = NULL, *dead = NULL;
    pthread_mutex_lock(&lock);
    for (staying **at = &idle; *at && !found;) {
        staying *one = *at;
        if (strcmp(one->command, command) != 0) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        idle_count--;
        if (exec_program_has_ended(one->program)) { /* on its own account: no task is to blame */
            one->next = dead;
            dead = one;
        } else {
            found = one;
        }
    }
    pthread_mutex_unlock(&lock);
    while (dead) {
        staying *next = dead->next;
        end_staying(&dead, 0);
        dead = next;
    }
    return found;
}

static void give_back(staying *self)
{
    staying *last = NULL;
    pthread_mutex_lock(&lock);
    self->next = idle;
    idle = self;
    if (++idle_count > IDLE_MOST) {
        staying **at = &idle;
        while ((*at)->next)
            at = &(*at)->next;
        last = *at;
        *at = NULL;
        idle_count--;
    }
    pthread_mutex_unlock(&lock);
    end_staying(&last, END_SECONDS);
}

void run_task_programs_end(void)
{
    pthread_mutex_lock(&lock);
    staying *first = idle;
    idle = NULL;
    idle_count = 0;
    pthread_mutex_unlock(&lock);
    for (staying *one = first; one; one = one->next)
        exec_program_close(one->program);
    while (first) {
        staying *next = first->next;
        end_staying(&first, END_SECONDS);
        first = next;
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static kept_file *find_kept(staying *self, const char *name)
{
    for (int i = 0; i < self->files; i++)
        if (strcmp(self->file[i].name, name) == 0)
            return &self->file[i];
    return NULL;
}

static int keep_file(staying *self, const shoal_task_file *file)
{
    if (self->files == self->room) {
        int room = self->room ? 2 * self->room : 8;
        int status = base_grow(&self->file, (size_t)self->room, (size_t)room, sizeof *self->file, "files");
        if (status < 0)
            return status;
        self->room = room;
    }
    kept_file *kept = &self->file[self->files++];
    *kept = (kept_file){.size = file->size, .used = self->asked};
    snprintf(kept->name, sizeof kept->name, "%s", file->name);
    self->bytes += file->size;
    return SHOAL_OK;
}

/* What a program is told before a question. */
typedef struct telling {
    exec_note note[EXEC_NOTES_MOST];
    int notes;
    char *head[EXEC_NOTES_MOST];
} telling;

static int tell(telling *self, char what, const char *name, const void *bytes, size_t size)
{
    char **head = &self->head[self->notes];
    int status = base_format(head, "%c%s", what, name);
    if (status == SHOAL_OK)
        self->note[self->notes++] =
            (exec_note){.head = *head, .head_size = strlen(*head) + (what == '+'), .bytes = bytes, .size = size};
    return status;
}

static void release_telling(telling *self)
{
    for (int i = 0; i < self->notes; i++)
        base_free(&self->head[i]);
}

/* What it keeps only for later goes when there is too much of it, the oldest first; half of all notes are for that. */
static int tell_forgotten(telling *self, staying *program)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && program->bytes > KEPT_MOST && self->notes < FILES_MOST) {
        kept_file *oldest = NULL;
        for (int i = 0; i < program->files; i++)
            if (program->file[i].used < program->asked && (!oldest || program->file[i].used < oldest->used))
                oldest = &program->file[i];
        if (!oldest)
            break;
        status = tell(self, '-', oldest->name, NULL, 0);
        program->bytes -= oldest->size;
        *oldest = program->file[--program->files];
    }
    return status;
}

static int tell_files(telling *self, staying *program, const shoal_task_call *call)
{
    char *names = NULL;
    int status = base_copy_text(&names, "");
    if (call->file_count > FILES_MOST - 2)
        status = shoal_fail(SHOAL_USAGE, "a program's task has at most %d files", FILES_MOST - 2);
    for (int i = 0; i < call->file_count && status == SHOAL_OK; i++) {
        char *more = NULL;
        kept_file *kept = find_kept(program, call->files[i].name);
        status = base_format(&more, "%s%s\n", names, call->files[i].name);
        base_free(&names);
        names = more;
        if (kept)
            kept->used = program->asked;
        else if (status == SHOAL_OK && (status = call->open(call, i)) == SHOAL_OK &&
                 (status = keep_file(program, &call->files[i])) == SHOAL_OK)
            status = tell(self, '+', call->files[i].name, call->files[i].bytes, call->files[i].size);
    }
    if (status == SHOAL_OK && call->file_count > 0)
        status = tell(self, '*', names, NULL, 0);
    base_free(&names);
    return status == SHOAL_OK ? tell_forgotten(self, program) : status;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static int read_asking(asking *out, const shoal_task_call *call)
{
    const char *bytes = call->bytes, *zero = call->size > 0 ? memchr(bytes, '\0', call->size) : NULL;
    *out = (asking){0};
    if (!zero || zero == bytes)
        return shoal_fail(SHOAL_INVALID, "a task of a program begins with a command and a NUL");
    *out = (asking){.command = bytes, .question = zero + 1, .size = call->size - (size_t)(zero + 1 - bytes)};
    return SHOAL_OK;
}

/* What happened, with the last that the program said. */
static int explain(int status, const staying *self)
{
    char said[SAID_ROOM], what[256];
    if (status != SHOAL_INVALID)
        return status;
    snprintf(what, sizeof what, "%s", shoal_error());
    exec_program_said(self->program, said, sizeof said);
    return shoal_fail(SHOAL_INVALID, "its process failed: %s%s%s", what, said[0] ? "; its last lines on stderr: " : "",
                      said);
}

static int ask(void **bytes, size_t *size, staying *self, const asking *asking, const shoal_task_call *call)
{
    telling telling = {.notes = 0};
    exec_answer answer;
    self->asked++;
    int status = tell_files(&telling, self, call);
    if (status == SHOAL_OK) {
        const exec_question question = {.values = asking->question,
                                        .rows = 1,
                                        .columns = (int64_t)asking->size,
                                        .type = SHOAL_UINT8,
                                        .note = telling.note,
                                        .notes = telling.notes,
                                        .stop = call->stop};
        status = explain(exec_program_ask(&answer, self->program, &question, INT64_MAX), self);
    }
    release_telling(&telling);
    if (status < 0)
        return status;
    if (answer.type != SHOAL_UINT8 || answer.rank != 1)
        return shoal_fail(SHOAL_INVALID, "its process answered with something but bytes of one dimension");
    bool fits = answer.count < LARGE || (int64_t)answer.count < base_memory_available();
    *bytes = fits ? malloc(answer.count + 1) : NULL;
    if (!*bytes)
        return shoal_fail(SHOAL_MEMORY, "there is no memory for an answer of %zu bytes", answer.count);
    memcpy(*bytes, answer.values, answer.count);
    *size = answer.count;
    return SHOAL_OK;
}

static int ask_program(void **bytes, size_t *size, const shoal_task_call *call)
{
    asking asking;
    int status = read_asking(&asking, call);
    if (status < 0)
        return status;
    staying *program = take_idle(asking.command);
    if (!program)
        status = start_staying(&program, asking.command);
    if (status == SHOAL_OK)
        status = ask(bytes, size, program, &asking, call);
    if (status == SHOAL_OK)
        give_back(program);
    else
        end_staying(&program, 0);
    return status;
}

const shoal_task_entry run_task_functions[] = {{"program", ask_program}, {NULL, NULL}};
