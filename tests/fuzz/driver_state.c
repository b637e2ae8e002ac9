/* driver_state.c - the program of fuzz_driver.c: its calls with a shared state,
 * and the checkpoints of it. See driver_calls.h. */
#include "driver_calls.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/pccl-fuzz-driver-XXXXXX";
static bool has_folder;
static bool saved;
static uint8_t tensor_bytes[WORLD_TENSOR];
static pcclTensorInfo_t tensors[2];

/* As the mates have it; or otherwise. */
static pcclSharedState_t state(uint8_t bits, uint64_t revision)
{
    tensors[0] = (pcclTensorInfo_t){.name = bits & 1 ? "odd" : "t",
                                    .data = tensor_bytes,
                                    .count = WORLD_TENSOR,
                                    .datatype = pcclUint8};
    if (bits & 2) tensors[0].count = WORLD_TENSOR / 2;
    if (bits & 4) tensors[0].datatype = (pcclDataType_t)99;
    if (bits & 8) tensors[0].device_type = pcclDeviceCuda;
    if (bits & 16) tensors[0].data = NULL;
    tensors[1] = tensors[0];
    tensors[1].name = "u";
    return (pcclSharedState_t){
        .revision = revision, .count = 1 + (bits >> 5 & 1), .infos = tensors};
}

/* Most often nothing is wrong with it. */
static pcclSharedState_t state_of(struct fuzz_input *in, uint64_t revision)
{
    uint8_t bits = fuzz_u8(in);
    return state(bits < 128 ? 0 : bits, revision);
}

static void synchronize(struct fuzz_input *in)
{
    pcclSharedStateSyncStrategy_t strategy =
        (pcclSharedStateSyncStrategy_t)(fuzz_u8(in) % 3);
    uint64_t revision = fuzz_u8(in);
    pcclSharedState_t s = state_of(in, revision < 255 ? revision : UINT64_MAX);
    pcclSharedStateSyncInfo_t info;
    (void)pcclSynchronizeSharedState(program_comm(), &s, strategy, &info);
}

static void offer(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    pcclSharedState_t s = state_of(in, fuzz_u8(in));
    (void)pcclOfferState(program_comm(), bits & 1 ? NULL : &s, NULL);
}

static void prefetch(struct fuzz_input *in)
{
    const pcclPrefetchOptions_t options = {.size = sizeof options,
                                           .max_stale = fuzz_u8(in)};
    pcclSharedState_t s = state_of(in, 0);
    pcclPrefetchInfo_t info;
    (void)pcclPrefetch(program_comm(), &s, &options, &info);
}

static const char *directory(uint8_t bits)
{
    static char none[80];
    if (!has_folder) {
        assert(mkdtemp(folder));
        has_folder = true;
    }
    saved = true;
    (void)snprintf(none, sizeof none, "%s/none", folder);
    return bits & 128 ? none : folder;
}

static void save(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    pcclSharedState_t s = state_of(in, fuzz_u8(in));
    const pcclSaveOptions_t options = {.size = sizeof options,
                                       .keep = 1,
                                       .synchronous = bits & 1,
                                       .this_peer = bits >> 1 & 1};
    (void)pcclSaveState(program_comm(), &s, directory(bits), &options);
}

static void load(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    pcclSharedState_t s = state_of(in, 0);
    const pcclLoadOptions_t options = {.size = sizeof options,
                                       .choice = (pcclLoadChoice_t)(bits % 4),
                                       .revision = fuzz_u8(in)};
    pcclCheckpointInfo_t info = {.size = sizeof info};
    (void)pcclLoadState(program_comm(), &s, directory(bits), &options, &info);
}

void program_state_call(uint8_t which, struct fuzz_input *in)
{
    switch (which) {
    case CALL_SYNC:
        synchronize(in);
        return;
    case CALL_OFFER:
        offer(in);
        return;
    case CALL_PREFETCH:
        prefetch(in);
        return;
    case CALL_SAVE:
        save(in);
        return;
    default:
        load(in);
    }
}

/* ------------------------------------------------------------ begin and end */

static void remove_folder(void)
{
    if (has_folder) (void)rmdir(folder);
}

static void sweep(void)
{
    char path[sizeof folder + 300];
    DIR *all = opendir(folder);
    if (!all) return;
    for (const struct dirent *d; (d = readdir(all));) {
        if (d->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        (void)unlink(path);
    }
    (void)closedir(all);
}

void program_state_begin(void)
{
    static bool begun;
    if (!begun) (void)atexit(remove_folder);
    begun = true;
    saved = false;
    memset(tensor_bytes, 9, sizeof tensor_bytes);
}

void program_state_end(void)
{
    if (saved) sweep();
}
