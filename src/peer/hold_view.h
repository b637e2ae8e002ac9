/* hold_view.h - the one call of the library that is not of pccl.h: the MPI
 * library has the views of the session themselves, and no copies. */
#ifndef PCCL_HOLD_VIEW_H
#define PCCL_HOLD_VIEW_H

#include "../../include/pccl.h"
#include "../link/view.h"

/* The view that pcclGetView reports, with a reference, which view_release()
 * gives back on any thread. NULL: not connected. */
PCCL_EXPORT const struct view *pcclHoldView(const pcclComm_t *comm);

#endif
