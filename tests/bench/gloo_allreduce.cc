/* gloo_allreduce.cc - median time of Gloo's all-reduce, as mpi_allreduce.c.
 *
 *   gloo_allreduce RANKS CASE...    starts its ranks itself */
#include "floor.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

static std::shared_ptr<gloo::rendezvous::Context> context;

static void reduce(struct floor *f, size_t count)
{
    gloo::AllreduceOptions options(context);
    void (*sum)(void *, const void *, const void *, size_t) = &gloo::sum<float>;
    options.setInput(f->in, count);
    options.setOutput(f->out, count);
    options.setReduceFunction(sum);
    gloo::allreduce(options);
}

static void be_rank(struct floor *f, char *folder, int argc, char **argv)
{
    gloo::transport::tcp::attr attr;
    attr.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(folder);
    context = std::make_shared<gloo::rendezvous::Context>(f->rank, f->ranks);
    auto device = gloo::transport::tcp::CreateDevice(attr);
    context->connectFullMesh(store, device);
    for (int i = 2; i < argc; i++) {
        struct sample_case c;
        if (!sample_parse(argv[i], &c)) _exit(1);
        if (c.at_once > 1 || c.in_place) continue;
        f->in = (float *)malloc(c.size + sizeof(float));
        f->out = (float *)malloc(c.size + sizeof(float));
        if (!f->in || !f->out) _exit(1);
        floor_measure(f, &c, reduce);
        free(f->in);
        free(f->out);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct floor f = {};
    const char *place = getenv("TMPDIR"); /* whose owner cleans up */
    char folder[256];
    snprintf(folder, sizeof folder, "%s/gloo-XXXXXX", place ? place : "/tmp");
    f.ranks = floor_ranks(argc, argv);
    f.shared = (struct floor_shared *)floor_memory(sizeof *f.shared);
    if (!mkdtemp(folder)) return 1;
    for (f.rank = 0; f.rank < f.ranks; f.rank++) {
        if (fork() == 0) be_rank(&f, folder, argc, argv);
    }
    return floor_end(f.ranks);
}
