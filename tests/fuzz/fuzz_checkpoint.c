/* fuzz_checkpoint.c - a directory with checkpoints in which somebody else has
 * written, cut, renamed and removed, and manifests of tensors that are not
 * there: a load gives the tensors of a save, or says why not and writes
 * nothing. */
#include "fuzz.h"

#include "../../src/base/dtype.h"
#include "../../src/checkpoint/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../run/checkpoint/scratch.h"

enum { TENSORS = 4, ELEMENTS = 40, SAVES = 4, CHANGES = 12, FILES = 16 };

/* A save of this revision has these bytes in all its tensors. */
#define BYTE_OF(revision) ((uint8_t)(0xa0 + (revision)))
enum { UNTOUCHED = 0x11 };

static struct file_layer files;
static char names[FILES][SNAPSHOT_NAME_MAX + 8];
static uint32_t name_count;

struct state {
    struct manifest m;
    struct manifest_tensor tensors[TENSORS];
    struct checkpoint_data data[TENSORS];
    uint8_t bytes[TENSORS][ELEMENTS * 16];
    bool fails; /* the device does */
};

static bool get(const void *device, void *host, const void *bytes,
                uint64_t size)
{
    memcpy(host, bytes, size);
    return !*(const bool *)device;
}

static bool put(const void *device, void *bytes, const void *host,
                uint64_t size)
{
    if (!*(const bool *)device) memcpy(bytes, host, size);
    return !*(const bool *)device;
}

static void shape(struct state *s, struct fuzz_input *in)
{
    static const char *const texts[] = {"a", "weights", "\xc3\xa4", "x y", "b"};
    s->m = (struct manifest){.tensors = s->tensors,
                             .count = fuzz_below(in, TENSORS + 1),
                             .world = 3};
    uint8_t devices = fuzz_u8(in);
    s->fails = devices == 255;
    for (uint32_t i = 0; i < s->m.count; i++) {
        uint8_t bits = fuzz_u8(in);
        s->tensors[i] =
            (struct manifest_tensor){.name = texts[(i + (bits == 77)) % 5],
                                     .count = bits % (ELEMENTS + 1u),
                                     .dtype = (uint8_t)(bits % DTYPE_COUNT),
                                     .free = bits >> 7};
        s->data[i] = (struct checkpoint_data){
            .bytes = s->bytes[i], .get = get, .put = put};
        if (devices >> i & 1) s->data[i].device = &s->fails;
    }
}

static void save(struct state *s, uint8_t bits, uint64_t unique)
{
    struct checkpoint_error error = {.text = ""};
    uint64_t size = 0;
    s->m.group = bits & 1;
    s->m.revision = bits >> 1 & 7;
    memset(s->bytes, BYTE_OF(s->m.revision), sizeof s->bytes);
    bool good =
        checkpoint_time(&files, s->m.group, bits >> 4, &s->m.time_ns, &error) &&
        checkpoint_write(&files, &s->m, s->data, 1 + (bits >> 6), unique, &size,
                         &error);
    assert(good || error.text[0] != '\0');
}

/* ------------------------------------------------------------ somebody else */

static void list_one(void *to, const char *name)
{
    (void)to;
    if (name[0] == '.' || name_count == FILES) return;
    (void)snprintf(names[name_count++], sizeof names[0], "%s", name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* In an order that does not depend on the file system. */
static void list_all(void)
{
    name_count = 0;
    int error = files.list(files.user, list_one, NULL);
    assert(error == 0);
    qsort(names, name_count, sizeof names[0], by_name);
}

/* A manifest that is right in itself. */
static void forge(struct state *s, struct fuzz_input *in)
{
    struct growing_text text = {0};
    struct snapshot_name n = {.kind = SNAPSHOT_MANIFEST};
    char name[SNAPSHOT_NAME_MAX];
    int file;
    uint8_t bits = fuzz_u8(in);
    s->m.revision = n.revision = bits & 7;
    s->m.group = n.group = 0;
    s->m.time_ns = n.time_ns = fuzz_u16(in);
    if (bits & 8 && s->m.count > 0) s->tensors[0].digest++;
    manifest_write(&s->m, &text, &n.digest);
    if (bits & 16) n.digest++;
    snapshot_print(&n, name);
    if (files.create(files.user, name, &file) == 0) {
        (void)files.write(files.user, file, text.bytes, text.size);
        (void)files.close(files.user, file);
    }
    n.kind = SNAPSHOT_TENSORS;
    snapshot_print(&n, name);
    if (bits & 32 && name_count > 0)
        (void)files.rename(files.user, names[bits % name_count], name);
    text_free(&text);
}

static void write_into(const char *path, struct fuzz_input *in)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    size_t size = fuzz_below(in, 16);
    if (fd < 0) return;
    off_t end = lseek(fd, 0, SEEK_END);
    uint16_t at = fuzz_u16(in);
    if (size > in->left) size = in->left;
    if (end > 0) (void)!pwrite(fd, in->at, size, at % end);
    in->at += size;
    in->left -= size;
    (void)close(fd);
}

static void change(struct state *s, struct fuzz_input *in)
{
    char path[512], other[512];
    uint8_t what = fuzz_u8(in);
    list_all();
    if (what % 16 == 0) {
        forge(s, in);
        return;
    }
    if (name_count == 0) return;
    const char *name = names[what / 16 % name_count];
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    (void)snprintf(other, sizeof other, "%s/%s", scratch,
                   names[fuzz_u8(in) % name_count]);
    switch (what % 16) {
    case 1:
        (void)files.remove(files.user, name);
        break;
    case 2:
        (void)!truncate(path, fuzz_u8(in) * 8);
        break;
    case 3:
        (void)rename(path, other);
        break;
    case 4: /* nothing that can be read */
        (void)unlink(path);
        (void)(what & 16 ? mkfifo(path, 0600) : symlink("/dev/null", path));
        break;
    case 5: /* larger than a manifest may be; it has no bytes */
        (void)!truncate(path, (off_t)MANIFEST_SIZE_MAX + 1);
        break;
    default:
        write_into(path, in);
        break;
    }
}

/* -------------------------------------------------------------------- load */

/* All bytes of all tensors are of one save; or of none. */
static void judge(const struct state *s, bool good)
{
    uint8_t byte = good ? BYTE_OF(s->m.revision) : UNTOUCHED;
    if (!good && s->fails) return; /* the device, in the middle */
    for (uint32_t i = 0; i < s->m.count; i++) {
        size_t size = (size_t)manifest_size(&s->tensors[i]);
        for (size_t k = 0; k < sizeof s->bytes[i]; k++)
            assert(s->bytes[i][k] == (k < size ? byte : UNTOUCHED));
    }
}

static void load(struct state *s, struct fuzz_input *in)
{
    struct checkpoint_error error = {.text = ""};
    uint64_t size = 0, cut = 0;
    uint8_t bits = fuzz_u8(in);
    s->m.group = bits & 1;
    if (bits == 255 && s->m.count > 0) s->tensors[0].count /= 2;
    if (bits == 254 && s->m.count > 0) s->m.count--;
    memset(s->bytes, UNTOUCHED, sizeof s->bytes);
    bool good = checkpoint_read(&files, &s->m, s->data,
                                (enum checkpoint_choice)(bits >> 1) %
                                    CHECKPOINT_CHOICE_COUNT,
                                bits >> 4, &size, &cut, &error);
    assert(good || (error.result != CHECKPOINT_DONE && error.text[0] != '\0'));
    assert(!good || size > 0);
    judge(s, good);
}

static void end(void)
{
    (void)scratch_remove(NULL);
}

/* In memory, if it can be: a sync would wait for a disk. */
static void begin(void)
{
    if (access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 1);
    struct file_layer none;
    int missing = file_layer_open(&none, "/nonexistent");
    assert(missing == ENOENT);
    if (scratch_make(NULL) != 0) abort();
    if (file_layer_open_private(&files, scratch) != 0) abort();
    (void)atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct state s;
    struct fuzz_input in = {bytes, size};
    if (!files.list) begin();
    scratch_empty();
    shape(&s, &in);
    uint32_t saves = fuzz_below(&in, SAVES);
    for (uint32_t i = 0; i < saves; i++) save(&s, fuzz_u8(&in), i);
    uint32_t changes = fuzz_below(&in, CHANGES);
    for (uint32_t i = 0; i < changes && in.left > 0; i++) change(&s, &in);
    s.fails = fuzz_u8(&in) == 255;
    do load(&s, &in);
    while (in.left > 0 && in.left < 8);
    return 0;
}
