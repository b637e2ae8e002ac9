/* helper.c - a rank program for the tests of the launcher.
 *   tell LINE...        sends a command to the coordinator's stub
 *   lines COUNT SIZE    COUNT lines "RANK:NUMBER:xxx..." of SIZE bytes
 *   bytes COUNT         COUNT bytes without a newline
 *   hold WORD           prints WORD and its pid, then sleeps for ever
 *   trap SIGNAL STATUS  the same, and exits with STATUS on SIGNAL
 *   ignore              the same, and ignores INT and TERM */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int trap_status;

static void on_signal(int number)
{
    (void)number;
    _exit(trap_status);
}

static int tell(int argc, char **argv)
{
    char line[256] = "";
    for (int i = 0; i < argc; i++) {
        strncat(line, i ? " " : "", sizeof line - strlen(line) - 1);
        strncat(line, argv[i], sizeof line - strlen(line) - 1);
    }
    const char *master = getenv("PCCL_MASTER");
    const char *colon = master ? strrchr(master, ':') : NULL;
    if (!colon) return 1;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)atoi(colon + 1))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) return 1;
    if (write(fd, line, strlen(line)) < 0) return 1;
    char end;
    return read(fd, &end, 1) == 0 ? 0
                                  : 1; /* the stub has executed the command */
}

_Noreturn static void hold(const char *word)
{
    printf("%s %d\n", word, (int)getpid());
    fflush(stdout);
    for (;;) pause();
}

static int lines(int count, int size)
{
    const char *rank = getenv("PCCL_RANK");
    char *line = malloc((size_t)size + 64);
    if (!line) return 1;
    for (int i = 0; i < count; i++) {
        int used =
            snprintf(line, (size_t)size + 64, "%s:%d:", rank ? rank : "-", i);
        while (used < size - 1) line[used++] = 'x';
        line[used++] = '\n';
        if (write(1, line, (size_t)used) != used) return 1;
    }
    free(line);
    return 0;
}

static int bytes(int count)
{
    for (int i = 0; i < count; i++) putchar('a' + i % 26);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "tell") == 0) return tell(argc - 2, argv + 2);
    if (strcmp(what, "lines") == 0 && argc > 3)
        return lines(atoi(argv[2]), atoi(argv[3]));
    if (strcmp(what, "bytes") == 0 && argc > 2) return bytes(atoi(argv[2]));
    if (strcmp(what, "hold") == 0 && argc > 2) hold(argv[2]);
    if (strcmp(what, "trap") == 0 && argc > 3) {
        trap_status = atoi(argv[3]);
        signal(atoi(argv[2]), on_signal);
        hold("trap");
    }
    if (strcmp(what, "ignore") == 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        hold("ignore");
    }
    fprintf(stderr, "helper: what is '%s'?\n", what);
    return 99;
}
