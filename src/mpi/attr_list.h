/* attr_list.h - data structures of keyvals and attribute lists. */
#ifndef ATTR_LIST_H
#define ATTR_LIST_H

#include "attr.h"

/* Any of the callbacks; cast back before the call. */
typedef void callback(void);

/* Fortran callbacks are called through functions that libmpichfort registers
 * with MPII_Keyval_set_proxy. */
typedef int copy_proxy(callback *user, any_handle handle, int keyval,
                       void *extra, int type, void *value, void **out,
                       int *flag);
typedef int drop_proxy(callback *user, any_handle handle, int keyval, int type,
                       void *value, void *extra);

enum attr_owner { ATTR_COMM, ATTR_TYPE };

struct keyval {
    struct object object;
    enum attr_owner owner;
    bool freed; /* the handle's reference is gone; attributes keep the rest */
    callback *copy, *drop;
    copy_proxy *copy_by;
    drop_proxy *drop_by;
    void *extra;
};

/* Kind of the stored value; MPICH's numbers, which libmpichfort uses too. */
enum { VALUE_POINTER = 0, VALUE_AINT = 1, VALUE_FINT = 2 };

struct attribute {
    struct attribute *next; /* an older attribute */
    struct keyval *keyval;  /* holds one reference */
    void *value;
    int type;
};

struct keyval *keyval_find(int handle);
/* These return noted classes. */
int keyval_create(enum attr_owner owner, callback *copy, callback *drop,
                  int *keyval_out, void *extra);
int keyval_free(enum attr_owner owner, int *handle);
int attr_set(any_handle handle, struct attribute **list, struct keyval *keyval,
             void *value, int type);
int attr_delete(any_handle handle, struct attribute **list,
                struct keyval *keyval);
bool attr_get(struct attribute **list, struct keyval *keyval,
              struct attribute *out);

#endif
