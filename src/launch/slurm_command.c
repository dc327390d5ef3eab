/* Running commands of Slurm.  See slurm_command.h.
 *
 * Their output goes to files in memory, so that none ever waits for a reader. */
#include "launch/slurm_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/world.h"

enum { TEXT_MOST = 8 << 20, POLL_MS = 5 };

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* Takes `input`. */
static int start_slurm(slurm_command *self, const char *const *words, int input, double seconds)
{
    int error = input < 0 ? errno : 0;
    self->name = words[0];
    self->late = false;
    self->until = base_time_after(base_now(), seconds);
    self->text = memfd_create("shoal-slurm", MFD_CLOEXEC);
    self->said = memfd_create("shoal-slurm-said", MFD_CLOEXEC);
    if (error == 0 && (self->text < 0 || self->said < 0))
        error = errno;
    if (error == 0)
        error = base_spawn(
            &self->process,
            &(base_spawning){.words = words, .stream = {input, self->text, self->said}, .group = BASE_GROUP_SESSION});
    base_close(&input);
    if (error == 0)
        return SHOAL_OK;
    slurm_command_release(self, 0);
    if (error == ENOENT)
        return shoal_fail(SHOAL_INVALID,
                          "slurm: there is no %s on this machine: start from one where Slurm jobs can be submitted",
                          words[0]);
    return shoal_fail_errno(SHOAL_SYSTEM, error, "slurm: can't run %s", words[0]);
}

static int file_of(const char *text)
{
    int file = memfd_create("shoal-slurm-input", MFD_CLOEXEC);
    if (file >= 0 && (errno = base_write_all_at(file, text, strlen(text), 0)) != 0)
        base_close(&file);
    return file;
}

int slurm_command_start(slurm_command *self, const char *const *words, const char *input, double seconds)
{
    *self = SLURM_COMMAND_NONE;
    return start_slurm(self, words, input ? file_of(input) : open("/dev/null", O_RDONLY | O_CLOEXEC), seconds);
}

int slurm_command_hold(slurm_command *self, const char *const *words)
{
    int ends[2] = {-1, -1};
    *self = SLURM_COMMAND_NONE;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "slurm: can't run %s", words[0]);
    self->input = ends[1];
    return start_slurm(self, words, ends[0], 1e9);
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

bool slurm_command_is_over(slurm_command *self)
{
    if (self->process == 0)
        return true;
    pid_t ended = waitpid(self->process, &self->end, WNOHANG);
    if (ended == 0 && base_now() >= self->until && !self->late) {
        self->late = true;
        kill(-self->process, SIGKILL);
    }
    if (ended < 0)
        self->end = 0; /* the program that embeds us reaps all children: what it wrote has to tell */
    if (ended != 0)
        self->process = 0;
    return ended != 0;
}

int slurm_command_read(const slurm_command *self, bool said, char **text)
{
    int file = said ? self->said : self->text;
    struct stat about = {0};
    *text = NULL;
    if (file >= 0 && fstat(file, &about) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "slurm: can't read what %s wrote", self->name);
    if (about.st_size > TEXT_MOST)
        return shoal_fail(SHOAL_INVALID, "slurm: %s wrote %lld bytes", self->name, (long long)about.st_size);
    int status = base_alloc(text, (size_t)about.st_size + 1, 1, "what Slurm said");
    size_t got;
    int error =
        status == SHOAL_OK && about.st_size > 0 ? base_read_all_at(file, *text, (size_t)about.st_size, 0, &got) : 0;
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "slurm: can't read what %s wrote", self->name);
    if (status < 0)
        base_free(text);
    return status;
}

/* Messages that say that the controller is away rather than that it refuses. */
static bool is_passing(const char *said)
{
    static const char *const sayings[] = {
        "Unable to contact",           "Socket timed out",   "temporarily",          "not responding",
        "Zero Bytes were transmitted", "Connection refused", "Connection timed out", "Connection reset"};
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++)
        if (strstr(said, sayings[i]))
            return true;
    return false;
}

/* The last line, without "sbatch: error: " or "sbatch: fatal: ". */
static const char *last_line(char *said)
{
    static const char *const before[] = {"error: ", "fatal: "};
    size_t length = strlen(said);
    while (length > 0 && said[length - 1] == '\n')
        said[--length] = '\0';
    const char *line = strrchr(said, '\n');
    line = line ? line + 1 : said;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *at = strstr(line, before[i]);
        if (at)
            return at + strlen(before[i]);
    }
    return line;
}

static int fail_command(const slurm_command *self)
{
    char *said = NULL;
    int status = slurm_command_read(self, true, &said);
    if (status < 0)
        return status;
    bool passing = self->late || is_passing(said);
    const char *line = last_line(said);
    if (self->late)
        status = shoal_fail(SHOAL_AGAIN, "slurm: %s does not answer", self->name);
    else if (*line)
        status = shoal_fail(passing ? SHOAL_AGAIN : SHOAL_INVALID, "slurm: %s: %s", self->name, line);
    else
        status = shoal_fail(SHOAL_INVALID, "slurm: %s failed without saying why", self->name);
    base_free(&said);
    return status;
}

int slurm_command_finish(slurm_command *self, char **text)
{
    *text = NULL;
    int status = self->late || self->end != 0 ? fail_command(self) : slurm_command_read(self, false, text);
    slurm_command_release(self, 0);
    return status;
}

void slurm_command_release(slurm_command *self, double seconds)
{
    int64_t until = base_time_after(base_now(), seconds);
    base_close(&self->input);
    while (!slurm_command_is_over(self) && base_now() < until)
        base_sleep_until(base_time_after(base_now(), POLL_MS / 1000.0));
    if (self->process != 0) {
        kill(-self->process, SIGKILL);
        base_wait(self->process, &self->end);
        self->process = 0;
    }
    base_close(&self->text);
    base_close(&self->said);
}
