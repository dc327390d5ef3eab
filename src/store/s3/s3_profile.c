/* The files that other programs for AWS share: ~/.aws/credentials and ~/.aws/config.
 *
 *     [default]                  # in the first file; [profile NAME] in the second
 *     aws_access_key_id = ...
 *     aws_secret_access_key = ...
 *     region = eu-central-1
 *
 * They are written by hand and by many programs, so whatever is not understood is ignored; values with the line's
 * indent greater than none belong to nested settings and are passed over, too. */
#include "s3_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

enum { FILE_MOST = 1 << 20 };

/* A run of bytes in the file's text. */
typedef struct span {
    const char *start;
    size_t size;
} span;

static span trim(span text)
{
    while (text.size && isspace((unsigned char)text.start[0]))
        text = (span){text.start + 1, text.size - 1};
    while (text.size && isspace((unsigned char)text.start[text.size - 1]))
        text.size--;
    return text;
}

static bool span_is(span text, const char *word)
{
    return strlen(word) == text.size && strncasecmp(text.start, word, text.size) == 0;
}

/* Whether "[profile NAME]", "[NAME]" or "[profile 'NAME']" is the heading of the profile. */
static bool heading_is(span line, const char *name, bool config)
{
    const char *end = memchr(line.start, ']', line.size);
    span text = trim((span){line.start + 1, end ? (size_t)(end - line.start) - 1 : line.size - 1});
    size_t word = strlen("profile");
    bool prefixed =
        text.size > word && memcmp(text.start, "profile", word) == 0 && isspace((unsigned char)text.start[word]);
    if (config && prefixed)
        text = trim((span){text.start + word, text.size - word});
    else if (config && !span_is(text, "default"))
        return false;
    if (text.size >= 2 && (text.start[0] == '"' || text.start[0] == '\'') && text.start[text.size - 1] == text.start[0])
        text = (span){text.start + 1, text.size - 2};
    return strlen(name) == text.size && memcmp(text.start, name, text.size) == 0;
}

/* The text before " #" or " ;". */
static span without_comment(span value)
{
    for (size_t i = 1; i < value.size; i++)
        if ((value.start[i] == '#' || value.start[i] == ';') && isspace((unsigned char)value.start[i - 1]))
            return trim((span){value.start, i});
    return value;
}

/* What a file says, before it is judged. */
typedef struct settings {
    span id, secret, token, region, endpoint;
} settings;

static void read_setting(settings *out, s3_profile *profile, span line)
{
    static const char *const unsupported[] = {"role_arn", "credential_process", "sso_session", "sso_start_url",
                                              "web_identity_token_file"};
    const char *equals = memchr(line.start, '=', line.size);
    if (!equals)
        return;
    span name = trim((span){line.start, (size_t)(equals - line.start)});
    span value = without_comment(trim((span){equals + 1, line.size - (size_t)(equals - line.start) - 1}));
    const struct {
        const char *name;
        span *value;
    } known[] = {{"aws_access_key_id", &out->id},
                 {"aws_secret_access_key", &out->secret},
                 {"aws_session_token", &out->token},
                 {"region", &out->region},
                 {"endpoint_url", &out->endpoint}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (span_is(name, known[i].name))
            *known[i].value = value;
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (span_is(name, unsupported[i]))
            strcpy(profile->unsupported, unsupported[i]);
}

/* Copies a value that is not to be replaced by one of the other file. */
static int keep(char **out, span value)
{
    return *out || value.size == 0 ? SHOAL_OK : base_copy_text_n(out, value.start, value.size);
}

int s3_profile_parse(s3_profile *out, const char *text, size_t size, const char *name, bool config)
{
    settings found = {0};
    bool inside = false;
    const char *end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        span raw = {text, (size_t)((stop ? stop : end) - text)}, line = trim(raw);
        text = stop ? stop + 1 : end;
        if (line.size == 0 || line.start[0] == '#' || line.start[0] == ';')
            continue;
        if (line.start[0] == '[') {
            inside = heading_is(line, name, config);
            out->found |= inside;
        } else if (inside && line.start == raw.start) {
            read_setting(&found, out, line);
        }
    }
    int status = keep(&out->region, found.region);
    if (status == SHOAL_OK)
        status = keep(&out->endpoint, found.endpoint);
    if (status < 0 || out->keys || found.id.size == 0 || found.secret.size == 0)
        return status;
    status = s3_keys_new(&out->keys);
    if (status == SHOAL_OK)
        status = s3_keys_set(out->keys, found.id.start, found.id.size, found.secret.start, found.secret.size,
                             found.token.start, found.token.size);
    if (status < 0)
        s3_keys_free(&out->keys);
    return status;
}

/* All of a file, which is wiped by the caller; *out stays NULL when there is none. */
static int read_file(char **out, size_t *size, const char *path)
{
    struct stat about;
    int status = SHOAL_OK, file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && (errno == ENOENT || errno == ENOTDIR))
        return SHOAL_OK;
    if (file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s", path);
    if (fstat(file, &about) < 0 || !S_ISREG(about.st_mode) || about.st_size > FILE_MOST)
        status = shoal_fail(SHOAL_INVALID, "%s: not a regular file of less than 1 MiB", path);
    if (status == SHOAL_OK)
        status = base_alloc(out, (size_t)about.st_size + 1, 1, "a file of credentials");
    *size = 0;
    int error = status == SHOAL_OK ? base_read_all(file, *out, (size_t)about.st_size, size) : 0;
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s", path);
    close(file);
    return status;
}

/* The file that a variable names, or the one below the home folder; *out stays NULL when there is neither. */
static int file_path(char **out, const char *variable, const char *name)
{
    const char *given = getenv(variable), *home = getenv("HOME");
    if (given && *given)
        return base_copy_text(out, given);
    return home && *home ? base_format(out, "%s/.aws/%s", home, name) : SHOAL_OK;
}

int s3_profile_load(s3_profile *out, const char *name)
{
    static const char *const variables[] = {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"};
    static const char *const names[] = {"credentials", "config"};
    int status = SHOAL_OK;
    for (int i = 0; i < 2 && status == SHOAL_OK; i++) {
        char *path = NULL, *text = NULL;
        size_t size = 0;
        status = file_path(&path, variables[i], names[i]);
        if (status == SHOAL_OK && path)
            status = read_file(&text, &size, path);
        if (status == SHOAL_OK && text) {
            status = s3_profile_parse(out, text, size, name, i == 1);
            if (status == SHOAL_INVALID)
                shoal_fail(status, "%s: profile %s: %s", path, name, shoal_error());
        }
        if (text)
            base_wipe(text, size);
        base_free(&text);
        base_free(&path);
    }
    if (status < 0)
        s3_profile_release(out);
    return status;
}

void s3_profile_release(s3_profile *profile)
{
    s3_keys_free(&profile->keys);
    base_free(&profile->region);
    base_free(&profile->endpoint);
    *profile = (s3_profile){0};
}
