/* gloo_peer.cc - Gloo's ring all-reduce in the nodes of an emulated network,
 * measured as wan-peer does it.
 *
 *   gloo-peer FOLDER BYTES     FOLDER: where the peers find each other; BYTES of
 *                              one vector, with K or M
 *
 * Started by wanbox; run.sh builds it where libgloo-dev is installed. */
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
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

/* The largest of the peers' numbers. */
static double most(double value)
{
    std::vector<double> in(1, value), out(1);
    reduce<double>(in, out, &gloo::max<double>);
    return out[0];
}

static void mark(const char *name)
{
    std::string line = std::string("mark ") + name + "\n";
    int fd = std::atoi(std::getenv("WAN_CONTROL"));
    if (write(fd, line.data(), line.size()) != (ssize_t)line.size())
        std::exit(1);
}

int main(int argc, char **argv)
{
    const char *number = std::getenv("WAN_PEER");
    const char *peers = std::getenv("WAN_PEERS");
    const char *address = std::getenv("WAN_ADDRESS");
    if (argc != 3 || !number || !peers || !address) {
        std::fputs("usage: gloo-peer FOLDER BYTES, under wanbox\n", stderr);
        return 2;
    }
    char *unit;
    double bytes = std::strtod(argv[2], &unit);
    if (*unit == 'K') bytes *= 1024;
    if (*unit == 'M') bytes *= 1024 * 1024;
    int rank = std::atoi(number) - 1;
    int size = std::atoi(peers);
    gloo::transport::tcp::attr attr;
    attr.hostname = address;
    gloo::rendezvous::FileStore store(argv[1]);
    context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    auto device = gloo::transport::tcp::CreateDevice(attr);
    context->connectFullMesh(store, device);

    std::vector<float> in((size_t)bytes / sizeof(float), (float)(rank + 1));
    std::vector<float> out(in.size());
    (void)most(0);
    if (rank == 0) mark("gloo-begin");
    double begin = now();
    reduce<float>(in, out, &gloo::sum<float>);
    double end = most(now());
    double time = end + most(-begin); /* from the first launch */
    for (float x : out)
        if (x != (float)(size * (size + 1) / 2)) return 1;
    if (rank > 0) return 0;
    mark("gloo");
    std::printf("{\"phase\":\"gloo\",\"peers\":%d,\"bytes\":%zu,"
                "\"concurrent\":1,\"pool\":1,\"times\":[%.6f]}\n",
                size, in.size() * sizeof(float), time);
    return 0;
}
