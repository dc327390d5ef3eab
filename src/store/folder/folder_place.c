/* Which folder a URL means, what is refused and why, and how a new store is made.
 *
 * A store is made under its gate, and the marker that makes a folder a store comes last: a process killed before that
 * leaves a folder with only a store's files in it, which the next one completes. */
#include "folder_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"

static const char marker_name[] = "shoal-store", marker_fresh[] = "shoal-store.new";
static const char marker_text[] = "shoal store, format %d\n"
                                  "This folder is a store of blobs and queues: change it by the program only.\n";

static int fail_path(const char *path, int error, const char *what)
{
    return shoal_fail_errno(error == EACCES || error == EPERM ? SHOAL_DENIED : SHOAL_SYSTEM, error, "%s: %s", path,
                            what);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static bool is_missing(int error)
{
    return error == ENOENT || error == ENOTDIR;
}

/* Cuts a path at its last slash: "/a/b" becomes "/a" and "b", "/a" becomes "/" and "a".  False for the root. */
static bool cut_last(char *path, char **name)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash[1] == '\0')
        return false;
    *name = slash + 1;
    *slash = '\0';
    return true;
}

/* Puts a name in front of what is left of the path. */
static int prepend(char **rest, const char *name)
{
    char *longer = NULL;
    int status = base_format(&longer, "%s%s%s", name, **rest ? "/" : "", *rest);
    if (status == SHOAL_OK) {
        base_free(rest);
        *rest = longer;
    }
    return status;
}

/* An absolute path without links for what exists of `path`; what does not exist is left as *rest. */
static int resolve(char **out, char **rest, const char *path)
{
    char *at = NULL, real[PATH_MAX];
    int status = base_format(&at, "%s%s", path[0] == '/' ? "" : "./", path);
    if (status == SHOAL_OK)
        status = base_copy_text(rest, "");
    while (status == SHOAL_OK && !realpath(*at ? at : "/", real)) {
        char *slash = strrchr(at, '/');
        if (!is_missing(errno) || !slash) {
            status = fail_path(path, errno, "can't be opened");
            break;
        }
        *slash = '\0';
        if (strcmp(slash + 1, "..") == 0)
            status = shoal_fail(SHOAL_USAGE, "%s: '..' follows a folder that does not exist", path);
        else if (slash[1] && strcmp(slash + 1, ".") != 0)
            status = prepend(rest, slash + 1);
    }
    if (status == SHOAL_OK)
        status = base_copy_text(out, real);
    base_free(&at);
    return status;
}

/* Whether a folder has the marker. */
static int has_marker(bool *out, const char *folder)
{
    char *path = NULL;
    struct stat info;
    int status = base_format(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, marker_name);
    if (status < 0)
        return status;
    *out = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    if (!*out && errno == EACCES)
        status = fail_path(folder, EACCES, "can't be searched");
    base_free(&path);
    return status;
}

int folder_find(folder_store *self, char **rest, bool *found, const char *path)
{
    char *at = NULL, *below = NULL, *whole = NULL, *name;
    *found = false;
    int status =
        *path ? resolve(&at, &below, path) : shoal_fail(SHOAL_USAGE, "dir: must be followed by the path of a folder");
    if (status == SHOAL_OK) /* where a new one would be */
        status = base_format(&whole, "%s%s%s", at, *below && strcmp(at, "/") != 0 ? "/" : "", below);
    while (status == SHOAL_OK) {
        status = has_marker(found, *at ? at : "/");
        if (status < 0 || *found || !cut_last(at, &name))
            break;
        status = prepend(&below, name);
    }
    if (status == SHOAL_OK) {
        self->root = *found ? at : whole;
        *(*found ? &at : &whole) = NULL;
        if (*found) {
            *rest = below;
            below = NULL;
        } else {
            status = base_copy_text(rest, "");
        }
    }
    base_free(&at);
    base_free(&below);
    base_free(&whole);
    return status;
}

int folder_check_within(const folder_store *self, const char *folder)
{
    size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (strncmp(self->root, folder, length) == 0 && (self->root[length] == '/' || self->root[length] == '\0'))
        return SHOAL_OK;
    return shoal_fail(SHOAL_DENIED, "the store at %s is not inside %s", self->root, folder);
}

/* ---- disks ------------------------------------------------------------------------------------------------------- */

const char *folder_disk_refused(long magic)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } kinds[] = {
        {NFS_SUPER_MAGIC, "NFS"},
        {SMB_SUPER_MAGIC, "SMB"},
        {CIFS_SUPER_MAGIC, "CIFS"},
        {SMB2_SUPER_MAGIC, "SMB"},
        {FUSE_SUPER_MAGIC, "FUSE (sshfs and the like)"},
        {V9FS_MAGIC, "9p"},
        {CEPH_SUPER_MAGIC, "Ceph"},
        {AFS_SUPER_MAGIC, "AFS"},
        {AFS_FS_MAGIC, "AFS"},
        {CODA_SUPER_MAGIC, "Coda"},
        {OCFS2_SUPER_MAGIC, "OCFS2"},
        {NCP_SUPER_MAGIC, "NCP"},
        {0x0bd00bd0, "Lustre"},
        {0x01161970, "GFS2"},
        {0x47504653, "GPFS"},
        {0x19830326, "BeeGFS"},
        {0xaad7aaea, "PanFS"},
        {0x786f4256, "a folder shared by VirtualBox"},
        {0x7c7c6673, "a folder shared by Parallels"},
        {0xbacbacbc, "a folder shared by VMware"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].magic == ((unsigned long)magic & 0xffffffffu))
            return kinds[i].name;
    return NULL;
}

int folder_check_disk(const folder_store *self)
{
    char *at = NULL, *name;
    struct statfs info;
    int status = base_copy_text(&at, self->root);
    while (status == SHOAL_OK && statfs(*at ? at : "/", &info) != 0)
        if (!is_missing(errno) || !cut_last(at, &name))
            status = fail_path(self->root, errno, "can't be opened");
    const char *kind = status == SHOAL_OK ? folder_disk_refused((long)info.f_type) : NULL;
    if (kind)
        status = shoal_fail(
            SHOAL_INVALID,
            "%s is on a network file system (%s), where the locks and shared memory a store needs do not work "
            "reliably: use a local disk, or a store that machines can share (az://, s3://)",
            self->root, kind);
    base_free(&at);
    return status;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Flushes the names in a folder to the disk, if requested. */
static int sync_folder(const folder_store *self, const char *path)
{
    int descriptor = self->sync ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (!self->sync)
        return SHOAL_OK;
    int status =
        descriptor < 0 || fsync(descriptor) != 0 ? fail_path(path, errno, "can't be flushed to the disk") : SHOAL_OK;
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

/* Creates the folders of a path, and flushes the name of each to the disk. */
static int make_folders(const folder_store *self, const char *path)
{
    base_making making;
    char *part = NULL, *name;
    int error = base_make_folders(path, 0777, &making);
    int status = base_copy_text_n(&part, path, error ? making.failed : strlen(path));
    if (status == SHOAL_OK && error == ENOTDIR)
        status = shoal_fail(SHOAL_INVALID, "%s is not a folder: a store needs one", part);
    else if (status == SHOAL_OK && error)
        status = fail_path(part, error, "can't be made");
    while (status == SHOAL_OK && making.first > 0 && strlen(part) >= making.first && cut_last(part, &name))
        status = sync_folder(self, *part ? part : "/");
    base_free(&part);
    return status;
}

/* What a folder that becomes a store may hold: nothing, or what an interrupted creation left. */
static bool is_store_file(const char *name)
{
    static const char *const names[] = {".",
                                        "..",
                                        "gate",
                                        "wake",
                                        "spare",
                                        "bodies",
                                        "temp",
                                        "index.db",
                                        "index.db-wal",
                                        "index.db-shm",
                                        "index.db-journal",
                                        "lost+found"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strcmp(name, marker_fresh) == 0 || strcmp(name, marker_name) == 0;
}

int folder_make_root(folder_store *self)
{
    int status = make_folders(self, self->root);
    DIR *folder = status == SHOAL_OK ? opendir(self->root) : NULL;
    if (status == SHOAL_OK && !folder)
        return fail_path(self->root, errno, "can't be opened");
    for (struct dirent *entry; folder && status == SHOAL_OK && (entry = readdir(folder));)
        if (!is_store_file(entry->d_name))
            status = shoal_fail(SHOAL_INVALID,
                                "%s is neither a store nor empty (it holds '%s'): name a new or an empty folder",
                                self->root, entry->d_name);
    if (folder)
        closedir(folder);
    return status;
}

int folder_open_root(folder_store *self)
{
    int top = self->no_links ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    self->root_folder = self->no_links ? base_open_beneath(top, self->root, O_RDONLY | O_DIRECTORY)
                                       : open(self->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top >= 0)
        close(top);
    if (self->root_folder < 0)
        return fail_path(self->root, errno, "can't be opened");
    if (self->read_only)
        return SHOAL_OK;
    self->gate = openat(self->root_folder, "gate", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (self->gate < 0)
        return fail_path(self->root, errno, "can't be written to (reading alone needs no permission to write)");
    return SHOAL_OK;
}

int folder_read_marker(const folder_store *self)
{
    char text[256] = "";
    int format = 0, descriptor = openat(self->root_folder, marker_name, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return errno == ENOENT ? SHOAL_ABSENT : fail_path(self->root, errno, "can't read its marker file shoal-store");
    ssize_t size = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (size < 0 || sscanf(text, "shoal store, format %d", &format) != 1 || format < 1)
        return shoal_fail(SHOAL_INVALID, "%s/%s is not the marker of a store", self->root, marker_name);
    if (format > FOLDER_FORMAT)
        return shoal_fail(SHOAL_INVALID,
                          "%s was created by a newer version of shoal (format %d; this one reads up to %d)", self->root,
                          format, FOLDER_FORMAT);
    return SHOAL_OK;
}

/* Its bytes are on the disk before its name, whatever `sync` says: an empty marker after an outage would lock everybody
 * out of a store whose index is intact. */
int folder_write_marker(const folder_store *self)
{
    char text[256];
    int size = snprintf(text, sizeof text, marker_text, FOLDER_FORMAT), status = SHOAL_OK;
    int descriptor = openat(self->root_folder, marker_fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool done = descriptor >= 0 && write(descriptor, text, (size_t)size) == size && fsync(descriptor) == 0 &&
                (!self->sync || fsync(self->root_folder) == 0) &&
                renameat(self->root_folder, marker_fresh, self->root_folder, marker_name) == 0 &&
                (!self->sync || fsync(self->root_folder) == 0);
    if (!done)
        status = fail_path(self->root, errno, "can't be made into a store");
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

static int open_folder_in(const folder_store *self, int *out, const char *name)
{
    if (!self->read_only && mkdirat(self->root_folder, name, 0777) != 0 && errno != EEXIST)
        return fail_path(self->root, errno, "can't be written to");
    *out = openat(self->root_folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (self->no_links ? O_NOFOLLOW : 0));
    return *out < 0 ? fail_path(self->root, errno, "can't open a folder in it") : SHOAL_OK;
}

/* The file's blocks are taken now rather than when they are written to: on a full disk that would kill the writer. */
static int size_shared(int descriptor, bool read_only)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return errno;
    if (info.st_size >= (off_t)sizeof(folder_shared))
        return 0;
    return read_only ? ENODATA : posix_fallocate(descriptor, 0, sizeof(folder_shared));
}

int folder_map_shared(folder_store *self)
{
    int descriptor = openat(self->root_folder, "wake", O_RDWR | O_CLOEXEC | (self->read_only ? 0 : O_CREAT), 0666);
    int error = descriptor < 0 ? errno : size_shared(descriptor, self->read_only);
    if (!error) {
        void *memory = mmap(NULL, sizeof(folder_shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        error = memory == MAP_FAILED ? errno : 0;
        self->shared = error ? NULL : memory;
    }
    if (descriptor >= 0)
        close(descriptor);
    if (error && !self->read_only) /* a reader can do without, and polls instead of being woken */
        return fail_path(self->root, error, "can't use its file 'wake'");
    return SHOAL_OK;
}

int folder_open_parts(folder_store *self)
{
    int status = open_folder_in(self, &self->bodies_folder, "bodies");
    if (status == SHOAL_OK)
        status = open_folder_in(self, &self->temp_folder, "temp");
    return status;
}

/* ---- spare room -------------------------------------------------------------------------------------------------- */

enum { SPARE_BYTES = 256 << 10 }; /* for a log and its shared memory, and some pages */

bool folder_spare_release(const folder_store *self)
{
    struct stat info;
    int descriptor = openat(self->root_folder, "spare", O_WRONLY | O_CLOEXEC);
    bool released =
        descriptor >= 0 && fstat(descriptor, &info) == 0 && info.st_size > 0 && ftruncate(descriptor, 0) == 0;
    if (descriptor >= 0)
        close(descriptor);
    return released;
}

void folder_spare_restore(const folder_store *self)
{
    struct stat info;
    int descriptor = openat(self->root_folder, "spare", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return;
    if (fstat(descriptor, &info) == 0 && info.st_size < SPARE_BYTES && posix_fallocate(descriptor, 0, SPARE_BYTES) != 0)
        (void)!ftruncate(descriptor, 0); /* less would be useless */
    close(descriptor);
}
