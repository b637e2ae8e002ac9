/* master_status.h - answers those who ask a coordinator for the status of its
 * run, and keeps the events that it shows (rule W6). */
#ifndef PCCL_MASTER_STATUS_H
#define PCCL_MASTER_STATUS_H

#include "../../base/host.h"
#include "events.h"
#include "../master.h"
#include "../../base/growing_text.h"
#include "../server/master_server.h"
#include "run_status.h"

enum { DESK_ASKED_MAX = 16 }; /* at a time; more are not answered */

/* Zeroed before. */
struct status_desk {
    struct run_events events;
    struct run_history history;
    pccl_ns first;             /* time of the first status */
    char loss[EVENT_TEXT_MAX]; /* the last event of that kind */
    bool aborted; /* the run was; `loss` is of before, as that ends all */
    uint64_t noted[NOTE_KIND_COUNT]; /* events so far, of each kind */
    struct desk_asked {
        bool used, json;
        uint32_t link;
        pccl_ns at;       /* the members were asked, */
        pccl_ns heard_at; /* have answered, or 0, */
        pccl_ns again_at; /* and were asked once more, or 0 */
    } asked[DESK_ASKED_MAX];
    uint32_t asked_count;
    time_t begun;
    double took; /* s, to write the last status that others waited for */
    char address[80];
    uint64_t host; /* this one */
    struct host_watch watch;
};

/* An event; `line` says it in the log. */
void status_desk_note(struct status_desk *d, const struct master *m,
                      const struct master_note *note, const char *line);
/* Counts it. A member that was lost, left or joined is an event. */
void status_desk_depart(struct status_desk *d, const struct master *m,
                        const struct master_note *note);
/* Somebody asks. All members are asked what they wait in, and again after a
 * while: what both answers have is no passing moment. */
void status_desk_ask(struct status_desk *d, struct master *m, uint32_t link,
                     bool json, pccl_ns now);
void status_desk_closed(struct status_desk *d, uint32_t link);
/* Answers, by `send` of the machine's output, those whose answer is due: all
 * members have reported since the question, or are silent. */
void status_desk_settle(struct status_desk *d, struct master *m, pccl_ns now);
/* When it is to be called at the latest; PCCL_NEVER: nobody has asked. */
pccl_ns status_desk_next(const struct status_desk *d, pccl_ns now);
/* The status at this moment. */
void status_desk_write(struct status_desk *d, const struct master *m,
                       enum status_form form, struct status_writing *w);

#endif
