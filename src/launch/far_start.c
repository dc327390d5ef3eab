/* Starting the agent on another machine.  See far_start.h. */
#include "launch/far_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/world.h"
#include "launch/far_program.h"

enum { LINE_BYTES = 2048, JUNK_MOST = 256 * 1024, CHUNK = 64 * 1024, WORDS_MOST = 128, END_POLL_MS = 5 };

/* ---- the script -------------------------------------------------------------------------------------------------- */

/* It stands between single quotes in a line that the user's login shell reads, whichever that is: so it has no single
 * quotes, no line breaks and no '!' (csh), and no backslashes (fish).  $1 is the nonce.  No command may read standard
 * input unless it is meant to.  Folders that others could have made are used only if they are ours alone. */
static const char script[] =
    "n=$1; set -f; umask 077; u=$(id -u); m=; say() { echo \"$n $*\"; }; same() { [ -f \"$1\" ] && [ \"$(wc -c "
    "<\"$1\")\" -eq \"$z\" ] || return 1; command -v sha256sum >/dev/null 2>&1 || return 0; case $(sha256sum <\"$1\") "
    "in $h*) return 0;; esac; return 1; }; "
    /* Whether it starts.  126: nothing may be run from this folder. */
    "starts() { m=$( (\"$1\" version) 2>&1 </dev/null); s=$?; [ $s -eq 0 ] && return 0; [ $s -eq 126 ] && return 1; rm "
    "-f \"$t\"; say unfit $m; exit 1; }; go() { touch \"$f\" 2>/dev/null; find \"$d/bin\" -type f -mtime +30 -exec rm "
    "-f {} + 2>/dev/null </dev/null; say start $1 \"$d\"; exec \"$f\" agent --nonce \"$n\" --cache \"$d\"; exit 1; }; "
    "private() { mkdir \"$1\" 2>/dev/null; set -- $(ls -ldn \"$1\" 2>/dev/null); case $1 in drwx------*) ;; *) return "
    "1;; esac; [ \"$3\" = \"$u\" ]; }; usable() { case $d in /*) ;; *) m=\"no whole path\"; return 1;; esac; case $d "
    "in */shoal) ;; *) private \"$d\" || { m=\"it is not ours alone\"; return 1; };; esac; m=$(mkdir -p \"$d/bin\" "
    "2>&1) || return 1; [ -w \"$d/bin\" ] || { m=\"no permission to write\"; return 1; }; }; l=$(getconf "
    "GNU_LIBC_VERSION 2>/dev/null || ldd --version 2>&1 </dev/null | head -n 1); say system $(uname -s) $(uname -m) "
    "$l; read -r h z || exit 1; for d in \"${XDG_CACHE_HOME:-$HOME/.cache}/shoal\" \"${TMPDIR:-/tmp}/shoal-$u\" "
    "\"/dev/shm/shoal-$u\"; do f=$d/bin/$h; t=$d/bin/.$n; usable || { say skip $d: $m; continue; }; if same \"$f\"; "
    "then starts \"$f\" && go 1; say skip $d: $m; continue; fi; say copy $d; "
    /* A disk that is full must not leave the rest of the bytes in the pipe, where they would be taken for answers. */
    "m=$(head -c \"$z\" | (cat 2>&1 >\"$t\"; s=$?; cat >/dev/null; exit $s)) && m=\"the copy is not what was sent\"; "
    "if same \"$t\"; then chmod 700 \"$t\"; starts \"$t\" && mv -f \"$t\" \"$f\" && go 0; fi; rm -f \"$t\"; say skip "
    "$d: $m; done; say none; exit 1";

static int compose(char **out, const char *nonce)
{
    return base_format(out, "exec sh -c '%s' shoal %s", script, nonce);
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

/* Runs the words and `last` with pipes for its streams. */
static int run_command(far_command *self, const char *const *words, const char *last)
{
    const char *all[WORDS_MOST + 2];
    int to[2] = {-1, -1}, from[2] = {-1, -1}, count = 0, error = 0;
    for (; words[count]; count++) {
        if (count == WORDS_MOST)
            return shoal_fail(SHOAL_USAGE, "%s: the command has more than %d words", self->name, WORDS_MOST);
        all[count] = words[count];
    }
    all[count] = last;
    all[count + 1] = NULL;
    self->said = memfd_create("shoal-said", MFD_CLOEXEC);
    if (self->said < 0 || pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        error = errno;
    if (error == 0) {
        fcntl(self->said, F_SETFL, O_APPEND); /* so that it can be truncated while it is written to */
        error = base_spawn(
            &self->process,
            &(base_spawning){.words = all, .stream = {to[0], from[1], self->said}, .group = BASE_GROUP_SESSION});
    }
    base_close(&to[0]);
    base_close(&from[1]);
    self->out = to[1];
    self->in = from[0];
    if (error == ENOENT || error == EACCES)
        return shoal_fail_errno(SHOAL_INVALID, error, "%s: can't start %s", self->name, words[0]);
    if (error != 0)
        return shoal_fail_errno(SHOAL_AGAIN, error, "%s: can't start %s", self->name, words[0]);
    fcntl(self->out, F_SETFL, O_NONBLOCK);
    fcntl(self->in, F_SETFL, O_NONBLOCK);
    return SHOAL_OK;
}

static int exit_code_of(const siginfo_t *end)
{
    return end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;
}

/* Waits for its end; its exit code, or -1 when it still runs. */
static int await_end(far_command *self, double seconds)
{
    int64_t until = base_time_after(base_now(), seconds);
    while (self->process > 0) {
        siginfo_t end = {0};
        int waited = waitid(P_PID, (id_t)self->process, &end, WEXITED | WNOHANG);
        if (waited == 0 && end.si_pid != 0) {
            kill(-self->process, SIGTERM); /* also what it started: a wrapper's ssh, say */
            self->process = 0;
            return exit_code_of(&end);
        }
        if (waited < 0 && errno == ECHILD) { /* the program that embeds us reaps all children */
            self->process = 0;
            return -1;
        }
        if (base_now() >= until)
            return -1;
        base_sleep_until(base_time_after(base_now(), END_POLL_MS / 1000.0));
    }
    return -1;
}

int far_command_end(far_command *self, double seconds)
{
    int code = -1;
    base_close(&self->out);
    base_close(&self->in);
    if (self->process > 0)
        code = await_end(self, seconds);
    if (self->process > 0) {
        kill(-self->process, SIGTERM);
        code = await_end(self, 1);
    }
    if (self->process > 0) {
        kill(-self->process, SIGKILL);
        code = await_end(self, 5);
    }
    base_close(&self->said);
    self->process = 0;
    return code;
}

/* ---- what went wrong --------------------------------------------------------------------------------------------- */

char *far_last_line(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr("\r\n \t", text[length - 1]))
        text[--length] = '\0';
    char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

void far_command_said(const far_command *self, char *out, size_t size)
{
    off_t end = self->said >= 0 ? lseek(self->said, 0, SEEK_END) : -1;
    out[0] = '\0';
    if (end <= 0)
        return;
    off_t from = end > (off_t)size - 1 ? end - ((off_t)size - 1) : 0;
    ssize_t count = pread(self->said, out, size - 1, from);
    out[count > 0 ? count : 0] = '\0';
    for (char *c = out; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == 127)
            *c = ' ';
}

int far_command_fail(far_command *self, const char *what, const char *why, const far_start_options *options)
{
    char said[FAR_SAID_BYTES], reason[FAR_REASON_BYTES], last[FAR_SAID_BYTES];
    far_verdict verdict = FAR_PASSING;
    int code = await_end(self, why ? 0 : 1);
    far_command_said(self, said, sizeof said);
    snprintf(last, sizeof last, "%s", said);
    const char *line = far_last_line(last);
    self->junk[self->junk_size] = '\0';
    if (!*line)
        line = far_last_line(self->junk);
    if (why)
        snprintf(reason, sizeof reason, "%s%s%.900s", why, *line ? "; its last output: " : "", line);
    else if (*line)
        snprintf(reason, sizeof reason, "%.900s", line);
    else
        snprintf(reason, sizeof reason, "the command ended with exit code %d and said nothing", code);
    if (options->judge)
        verdict = options->judge(reason, sizeof reason, said, code);
    return shoal_fail(verdict == FAR_LASTING ? SHOAL_INVALID : SHOAL_AGAIN, "%s: %s: %s", self->name, what, reason);
}

/* ---- lines and bytes --------------------------------------------------------------------------------------------- */

/* Waits until the descriptor is ready or patience runs out. */
static int await_ready(far_command *self, int descriptor, short events, const char *what,
                       const far_start_options *options)
{
    int64_t until = base_time_after(base_now(), options->patience);
    for (;;) {
        struct pollfd wanted[2] = {{.fd = descriptor, .events = events}, {.fd = options->bell, .events = POLLIN}};
        double left = base_seconds_until(until);
        if (atomic_load(options->stop))
            return shoal_fail(SHOAL_STOPPED, "%s: stopped", self->name);
        if (left <= 0) {
            char why[64];
            snprintf(why, sizeof why, "nothing came for %.0f s", options->patience);
            return far_command_fail(self, what, why, options);
        }
        if (poll(wanted, 2, (int)(left * 1000) + 1) < 0 && errno != EINTR)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't wait", self->name);
        if (wanted[1].revents & POLLIN) {
            uint64_t rung;
            (void)!read(options->bell, &rung, sizeof rung);
        }
        if (wanted[0].revents)
            return SHOAL_OK;
    }
}

static void keep_junk(far_command *self, const char *line)
{
    size_t length = strlen(line), most = sizeof self->junk - 2;
    if (length == 0)
        return;
    if (length > most) {
        line += length - most;
        length = most;
    }
    if (self->junk_size + length + 1 > most) {
        size_t drop = self->junk_size + length + 1 - most;
        drop = drop < self->junk_size ? drop : self->junk_size;
        memmove(self->junk, self->junk + drop, self->junk_size - drop);
        self->junk_size -= drop;
    }
    memcpy(self->junk + self->junk_size, line, length);
    self->junk_size += length;
    self->junk[self->junk_size++] = '\n';
}

/* One line, byte by byte: what comes after the last one is the agent's, and not for us. */
static int read_line(far_command *self, char *line, size_t size, const char *what, const far_start_options *options)
{
    size_t length = 0;
    for (;;) {
        char c;
        ssize_t count = read(self->in, &c, 1);
        if (count < 0 && errno == EAGAIN) {
            int status = await_ready(self, self->in, POLLIN, what, options);
            if (status < 0) {
                line[length] = '\0';
                keep_junk(self, line); /* a prompt has no end of line */
                return status;
            }
            continue;
        }
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            line[length] = '\0';
            keep_junk(self, line);
            return far_command_fail(self, what, NULL, options);
        }
        if (c == '\n' || length == size - 1) {
            line[length] = '\0';
            return SHOAL_OK;
        }
        if ((unsigned char)c >= ' ' && c != 127)
            line[length++] = c;
    }
}

/* The next of our lines; *text is what comes after the nonce. */
static int read_ours(far_command *self, char line[LINE_BYTES], char **text, const char *what,
                     const far_start_options *options)
{
    size_t junk = 0;
    for (;;) {
        int status = read_line(self, line, LINE_BYTES, what, options);
        if (status < 0)
            return status;
        char *at = strstr(line, self->nonce); /* a banner without an end of line may precede it */
        if (at && at[strlen(self->nonce)] == ' ') {
            *text = at + strlen(self->nonce) + 1;
            return SHOAL_OK;
        }
        junk += strlen(line) + 1;
        keep_junk(self, line);
        if (junk > JUNK_MOST)
            return far_command_fail(self, what, "its output is not from our script", options);
    }
}

static int write_bytes(far_command *self, const char *bytes, size_t size, const char *what,
                       const far_start_options *options)
{
    while (size > 0) {
        ssize_t count = write(self->out, bytes, size);
        if (count > 0) {
            bytes += count;
            size -= (size_t)count;
        } else if (count < 0 && errno == EAGAIN) {
            int status = await_ready(self, self->out, POLLOUT, what, options);
            if (status < 0)
                return status;
        } else if (count < 0 && errno != EINTR) {
            return far_command_fail(self, what, NULL, options);
        }
    }
    return SHOAL_OK;
}

static int send_program(far_command *self, const far_program *program, const far_start_options *options)
{
    static const char what[] = "can't copy this program there";
    char *chunk = NULL;
    int status = base_alloc_unset(&chunk, 1, CHUNK, "a part of this program");
    for (int64_t sent = 0; sent < program->size && status == SHOAL_OK;) {
        ssize_t count = pread(program->file, chunk, CHUNK, sent);
        if (count <= 0)
            status = shoal_fail(SHOAL_INVALID, "%s: %s can't be read", self->name, program->path);
        else
            status = write_bytes(self, chunk, (size_t)count, what, options);
        sent += count;
    }
    base_free(&chunk);
    return status;
}

/* ---- the conversation -------------------------------------------------------------------------------------------- */

/* Cuts the first word off. */
static const char *take_first_word(char **text)
{
    char *word = *text, *end = word + strcspn(word, " ");
    *text = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static int choose_program(const far_program **out, far_command *self, char *text, const far_start_options *options)
{
    const char *first = take_first_word(&text);
    const char *system = strcmp(first, "system") == 0 ? take_first_word(&text) : "", *machine = take_first_word(&text);
    if (strcmp(first, "system") != 0)
        return shoal_fail(SHOAL_AGAIN, "%s: its shell does not respond as expected", self->name);
    snprintf(self->system, sizeof self->system, "%.16s %.16s %.28s", system, machine, text);
    int status = far_program_for(out, options->program, system, machine, text, options->no_libraries);
    if (status < 0) {
        char why[512];
        snprintf(why, sizeof why, "%s", shoal_error());
        status = shoal_fail(status, "%s: can't run workers: %s", self->name, why);
    }
    return status;
}

static int fail_unfit(far_command *self, const char *why, const far_program *program, const far_start_options *options)
{
    const char *hint = program->portable ? "" : "; a build with few needs is made by ./dev build --portable";
    return shoal_fail(options->no_libraries ? SHOAL_INVALID : SHOAL_ABSENT,
                      "%s: this program does not start there: %s%s", self->name, why, hint);
}

/* Reads the script's lines until the agent starts. */
static int converse(far_command *self, const far_program *program, const far_start_options *options)
{
    char line[LINE_BYTES], skipped[FAR_REASON_BYTES] = "", *text = NULL;
    size_t length = 0;
    for (;;) {
        int status = read_ours(self, line, &text, "can't be started there", options);
        if (status < 0)
            return status;
        const char *word = take_first_word(&text);
        if (strcmp(word, "copy") == 0) {
            status = send_program(self, program, options);
            if (status < 0)
                return status;
        } else if (strcmp(word, "skip") == 0) {
            length += (size_t)snprintf(skipped + length, sizeof skipped - length, "; %.300s", text);
            length = length < sizeof skipped ? length : sizeof skipped - 1;
        } else if (strcmp(word, "start") == 0) {
            self->cached = strcmp(take_first_word(&text), "1") == 0;
            snprintf(self->folder, sizeof self->folder, "%.255s", text);
            return SHOAL_OK;
        } else if (strcmp(word, "unfit") == 0) {
            return fail_unfit(self, text, program, options);
        } else if (strcmp(word, "none") == 0) {
            return shoal_fail(SHOAL_INVALID, "%s: there is no folder to keep this program in and run it from%s",
                              self->name, skipped);
        } else {
            return shoal_fail(SHOAL_AGAIN, "%s: its shell does not respond as expected: '%s'", self->name, word);
        }
    }
}

static int start_far_command(far_command *self, const char *script_word, const far_start_options *options)
{
    const far_program *program = NULL;
    char line[LINE_BYTES], *text = NULL;
    int status = far_gate_pass(options->gate, options->stop, options->bell);
    if (status < 0)
        return status;
    status = run_command(self, options->words, script_word);
    if (status == SHOAL_OK)
        status = read_ours(self, line, &text, "can't be reached", options);
    far_gate_leave(options->gate);
    if (status == SHOAL_OK)
        status = choose_program(&program, self, text, options);
    if (status == SHOAL_OK) {
        snprintf(line, sizeof line, "%s %lld\n", program->sha256, (long long)program->size);
        status = write_bytes(self, line, strlen(line), "can't be started there", options);
    }
    if (status == SHOAL_OK)
        status = converse(self, program, options);
    return status;
}

int far_start(far_command *out, const far_start_options *options)
{
    far_command self = {.name = options->name, .in = -1, .out = -1, .said = -1};
    unsigned char random[(PIPE_NONCE_BYTES - 1) / 2];
    char *word = NULL;
    base_entropy(random, sizeof random);
    base_hex_write(self.nonce, random, sizeof random);
    int status = compose(&word, self.nonce);
    if (status == SHOAL_OK)
        status = start_far_command(&self, word, options);
    base_free(&word);
    if (status < 0) {
        (void)far_command_end(&self, 0);
        return status;
    }
    fcntl(self.out, F_SETFL, 0);
    fcntl(self.in, F_SETFL, 0);
    *out = self;
    return SHOAL_OK;
}
