/* Tensors of a result as files.  See tensors.h. */
#include "tensors.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/array.h"
#include "data/table/content.h"
#include "outputs.h"

static int write_tensor(const char *option, const char *path, const shoal_tensor *tensor, bool force)
{
    data_content content = {.kind = DATA_CONTENT_ARRAY};
    run_output_note(&content, tensor);
    int status = force ? SHOAL_OK : data_content_check_old(option, path, &content);
    if (status < 0)
        return status;
    return data_array_write(
        path,
        &(data_array){.values = tensor->values, .type = tensor->type, .rank = tensor->rank, .shape = tensor->shape});
}

/* A name from the store must not lead out of the folder, nor be one that can't be shown. */
static bool is_file_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/') && base_text_is_clean(name);
}

int run_tensors_write(const char *folder, const shoal_result *result, bool force)
{
    int status = SHOAL_OK;
    if (strcmp(folder, "-") == 0)
        return shoal_fail(SHOAL_USAGE, "--out needs a folder; --tensor NAME --output - writes to standard output");
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "--out %s: can't make the folder", folder);
    for (int i = 0; i < result->tensors && status == SHOAL_OK; i++) {
        const shoal_tensor *tensor = &result->tensor[i];
        char *path = NULL;
        if (!is_file_name(tensor->name))
            return shoal_fail(SHOAL_INVALID, "the result has a tensor called '%s', which is not a name for a file",
                              tensor->name);
        status = base_format(&path, "%s/%s.npy", folder, tensor->name);
        if (status == SHOAL_OK)
            status = write_tensor("--out", path, tensor, force);
        base_free(&path);
    }
    return status;
}

static int fail_no_tensor(const shoal_result *result, const char *name)
{
    char names[500] = "";
    for (int i = 0; i < result->tensors; i++) {
        size_t length = strlen(names);
        if (length + sizeof result->tensor[i].name + 3 > sizeof names - 4) {
            snprintf(names + length, sizeof names - length, ", ...");
            break;
        }
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", result->tensor[i].name);
    }
    return shoal_fail(SHOAL_USAGE, "--tensor: the result has no '%s', but %s", name, *names ? names : "none at all");
}

int run_tensor_write(const char *path, const shoal_result *result, const char *name, bool force)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, name);
    return tensor ? write_tensor("--output", path, tensor, force) : fail_no_tensor(result, name);
}
