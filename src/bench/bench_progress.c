/* bench_progress.c - how far a long run is, on standard error: a bar where that
 * is a terminal, else a plain line for each tenth of the run. */
#include "bench.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 30 };

#define BAR_NS INT64_C(200000000)
#define LINES_FROM 600 /* seconds; shorter runs only draw bars */

static struct {
    bool shown;
    int64_t at; /* of the last bar */
    int tenth;
} progress;

static bool has_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && term && strcmp(term, "dumb") != 0;
}

static void say_left(double seconds, char text[32])
{
    long left = lround(seconds > 0 ? seconds : 0);
    snprintf(text, 32, "%ld:%02ld:%02ld left", left / 3600, left / 60 % 60,
             left % 60);
}

void bench_progress(double done, double seconds, const char *text)
{
    double share = done < seconds ? done / seconds : 1;
    char left[32];
    say_left(seconds - done, left);
    if (has_terminal()) {
        int64_t now = bench_now();
        if (progress.shown && now - progress.at < BAR_NS) return;
        char bar[WIDTH + 1] = "";
        memset(bar, '.', WIDTH);
        memset(bar, '#', (size_t)(share * WIDTH));
        fprintf(stderr, "\r[%s] %3d %%  %s, %s\033[K", bar, (int)(share * 100),
                left, text);
        progress.shown = true;
        progress.at = now;
    } else if (seconds >= LINES_FROM && (int)(share * 10) > progress.tenth) {
        progress.tenth = (int)(share * 10);
        fprintf(stderr, "pccl-bench: %d %%, %s, %s\n", progress.tenth * 10,
                left, text);
    }
}

void bench_progress_end(void)
{
    if (progress.shown) fputs("\r\033[K", stderr);
    progress.shown = false;
}
