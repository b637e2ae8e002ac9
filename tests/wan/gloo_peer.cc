/* gloo_peer.cc - Gloo's ring all-reduce in the nodes of an emulated network,
 * measured as wan-peer does it.
 *
 *   gloo-peer FOLDER LOADS     FOLDER: where the peers find each other; LOADS
 *                              as in load.h. Calls block: what is to be reduced
 *                              at once goes one after the other.
 *
 * Started by wan-emulator; run.sh builds it where libgloo-dev is installed. */
#include "load.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <ctime>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

static std::shared_ptr<gloo::rendezvous::Context> context;

template <typename T>
static void reduce(std::vector<T> &in, std::vector<T> &out,
                   void (*what)(void *, const void *, const void *, size_t))
{
    gloo::AllreduceOptions options(context);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setReduceFunction(what);
    gloo::allreduce(options);
}

static double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The largest of the peers' values. */
static double most(double value)
{
    std::vector<double> in(1, value), out(1);
    reduce<double>(in, out, &gloo::max<double>);
    return out[0];
}

static void mark(const std::string &name)
{
    std::string line = "mark " + name + "\n";
    int fd = std::atoi(std::getenv("WAN_CONTROL"));
    if (write(fd, line.data(), line.size()) != (ssize_t)line.size())
        std::exit(1);
}

static void measure(const load &l, int rank, int size)
{
    std::vector<float> in(l.bytes / sizeof(float), (float)(rank + 1));
    std::vector<float> out(in.size());
    double times[LOAD_TIMES_MAX];
    (void)most(0);
    if (rank == 0) mark("begin");
    for (int k = 0; k < l.repeat; k++) {
        (void)most(0);
        double begin = now();
        for (int i = 0; i < l.concurrent * l.row; i++)
            reduce<float>(in, out, &gloo::sum<float>);
        double end = most(now());
        times[k] = end + most(-begin); /* from the first launch */
    }
    for (float x : out)
        if (x != (float)(size * (size + 1) / 2)) std::exit(1);
    if (rank > 0) return;
    mark(std::string("gloo ") + l.name);
    load_print(&l, "gloo", size, 1, times);
}

int main(int argc, char **argv)
{
    const char *number = std::getenv("WAN_PEER");
    const char *peers = std::getenv("WAN_PEERS");
    const char *address = std::getenv("WAN_ADDRESS");
    if (argc != 3 || !number || !peers || !address) {
        std::fputs("usage: gloo-peer FOLDER LOADS, under wan-emulator\n",
                   stderr);
        return 2;
    }
    struct load loads[LOADS_MAX];
    int count = loads_read(loads, argv[2], 1);
    if (count == 0) return 2;
    int rank = std::atoi(number) - 1;
    int size = std::atoi(peers);
    gloo::transport::tcp::attr attr;
    attr.hostname = address;
    gloo::rendezvous::FileStore store(argv[1]);
    context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    auto device = gloo::transport::tcp::CreateDevice(attr);
    context->connectFullMesh(store, device);

    for (int i = 0; i < count; i++) measure(loads[i], rank, size);
    return 0;
}
