/* timeline_text.h - the lines of a trace. See timeline.h. */
#ifndef PCCL_TIMELINE_TEXT_H
#define PCCL_TIMELINE_TEXT_H

#include "timeline.h"

enum { TRACE_TEXT_MAX = 1024 }; /* bytes of a line */

/* Each writes whole lines without an end, and returns their size. */
/* The beginning of the file: who this is, and its clocks. */
size_t trace_text_begin(char *to, int32_t rank);
size_t trace_text_thread(char *to, int thread, const char *name);
size_t trace_text_event(char *to, int thread, const struct trace_event *event);
/* After the last one: the file is valid JSON. */
size_t trace_text_end(char *to);

#endif
