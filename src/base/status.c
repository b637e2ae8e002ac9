/* status.c - texts of result codes. */
#include "status.h"

#include "../../include/pccl.h"

const char *status_text(int result)
{
    switch (result) {
#define STATUS_CASE(code, text)                                                \
    case code:                                                                 \
        return text;
        STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default:
        return "unknown result code";
    }
}
