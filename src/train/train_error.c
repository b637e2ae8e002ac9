/* train_error.c - why the last failed call of a thread failed. */
#include "train.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[256];

pcclResult_t pcclTrainGetLastError(char *buf, size_t size)
{
    if (!buf || size == 0) return pcclInvalidArgument;
    (void)snprintf(buf, size, "%s", last_error);
    for (char *at = buf; *at; at++) /* names of tensors make no line */
        if ((unsigned char)*at < ' ') *at = '?';
    return pcclSuccess;
}

pcclResult_t train_fail(pcclResult_t rc, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return rc;
}

pcclResult_t train_fail_comm(pcclResult_t rc, const pcclComm_t *comm,
                             const char *what)
{
    char detail[200] = "";
    if (comm) (void)pcclGetLastError(comm, detail, sizeof detail);
    return train_fail(rc, "%s: %s", what,
                      *detail ? detail : pcclGetErrorString(rc));
}

pcclResult_t train_no_memory(void)
{
    return train_fail(pcclInternalError, "no memory");
}

pcclResult_t train_null(const char *function, const char *argument)
{
    return train_fail(pcclInvalidArgument, "%s: %s is NULL", function,
                      argument);
}
