/* mpi_same_values.c - prints values on which two MPI libraries should agree:
 * sizes, bounds and contents of datatypes, packed sizes, shapes of grids,
 * texts, the order of callbacks. Rank 0 prints; same.sh compares. */
#include "conform.h"

#include <stdarg.h>

static int rank, size;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (rank == 0) vprintf(format, list);
    va_end(list);
}

/* ------------------------------------------------------------------ types */

static void show(const char *name, MPI_Datatype type)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Count wide, wide_lb, wide_extent;
    int bytes, pack = -1, ni, na, nt, combiner, dynamic;
    OK(MPI_Type_size(type, &bytes));
    OK(MPI_Type_size_x(type, &wide));
    OK(MPI_Type_get_extent(type, &lb, &extent));
    OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    OK(MPI_Type_get_extent_x(type, &wide_lb, &wide_extent));
    CHECK(wide == bytes && wide_lb == lb && wide_extent == extent);
    OK(MPI_Type_get_true_extent_x(type, &wide_lb, &wide_extent));
    CHECK(wide_lb == true_lb && wide_extent == true_extent);
    OK(MPI_Type_get_envelope(type, &ni, &na, &nt, &combiner));
    dynamic = combiner != MPI_COMBINER_NAMED;
    if (dynamic) OK(MPI_Type_commit(&type));
    OK(MPI_Pack_size(3, type, MPI_COMM_WORLD, &pack));
    say("%s: size %d lb %ld extent %ld true %ld %ld pack %d combiner %d "
        "(%d %d %d)",
        name, bytes, (long)lb, (long)extent, (long)true_lb, (long)true_extent,
        pack, combiner, ni, na, nt);
    if (dynamic) {
        int ints[64], n;
        MPI_Aint aints[64];
        MPI_Datatype types[16];
        OK(MPI_Type_get_contents(type, 64, 64, 16, ints, aints, types));
        for (int i = 0; i < ni; i++) say(" %d", ints[i]);
        say(" /");
        for (int i = 0; i < na; i++) say(" %ld", (long)aints[i]);
        say(" /");
        for (int i = 0; i < nt; i++) {
            OK(MPI_Type_size(types[i], &n));
            say(" %d", n);
            OK(MPI_Type_get_envelope(types[i], &ni, &na, &n, &combiner));
            if (combiner != MPI_COMBINER_NAMED) OK(MPI_Type_free(&types[i]));
        }
    }
    say("\n");
    if (dynamic) OK(MPI_Type_free(&type));
}

#define SHOW(constructor, ...)                                                 \
    do {                                                                       \
        MPI_Datatype made_ = MPI_DATATYPE_NULL;                                \
        OK(constructor(__VA_ARGS__, &made_));                                  \
        show(#constructor "(" #__VA_ARGS__ ")", made_);                        \
    } while (0)

static void test_named(void)
{
#define NAMED(type)                                                            \
    do {                                                                       \
        char name_[MPI_MAX_OBJECT_NAME];                                       \
        int length_;                                                           \
        OK(MPI_Type_get_name(type, name_, &length_));                          \
        show(name_, type);                                                     \
    } while (0)
    NAMED(MPI_CHAR);
    NAMED(MPI_SIGNED_CHAR);
    NAMED(MPI_UNSIGNED_CHAR);
    NAMED(MPI_BYTE);
    NAMED(MPI_WCHAR);
    NAMED(MPI_SHORT);
    NAMED(MPI_UNSIGNED_SHORT);
    NAMED(MPI_INT);
    NAMED(MPI_UNSIGNED);
    NAMED(MPI_LONG);
    NAMED(MPI_UNSIGNED_LONG);
    NAMED(MPI_LONG_LONG_INT);
    NAMED(MPI_LONG_LONG);
    NAMED(MPI_UNSIGNED_LONG_LONG);
    NAMED(MPI_FLOAT);
    NAMED(MPI_DOUBLE);
    NAMED(MPI_LONG_DOUBLE);
    NAMED(MPI_PACKED);
    NAMED(MPI_FLOAT_INT);
    NAMED(MPI_DOUBLE_INT);
    NAMED(MPI_LONG_INT);
    NAMED(MPI_SHORT_INT);
    NAMED(MPI_2INT);
    NAMED(MPI_LONG_DOUBLE_INT);
    NAMED(MPI_COMPLEX);
    NAMED(MPI_DOUBLE_COMPLEX);
    NAMED(MPI_LOGICAL);
    NAMED(MPI_REAL);
    NAMED(MPI_DOUBLE_PRECISION);
    NAMED(MPI_INTEGER);
    NAMED(MPI_2INTEGER);
    NAMED(MPI_2REAL);
    NAMED(MPI_2DOUBLE_PRECISION);
    NAMED(MPI_CHARACTER);
    NAMED(MPI_REAL4);
    NAMED(MPI_REAL8);
    NAMED(MPI_REAL16);
    NAMED(MPI_COMPLEX8);
    NAMED(MPI_COMPLEX16);
    NAMED(MPI_COMPLEX32);
    NAMED(MPI_INTEGER1);
    NAMED(MPI_INTEGER2);
    NAMED(MPI_INTEGER4);
    NAMED(MPI_INTEGER8);
    NAMED(MPI_INT8_T);
    NAMED(MPI_INT16_T);
    NAMED(MPI_INT32_T);
    NAMED(MPI_INT64_T);
    NAMED(MPI_UINT8_T);
    NAMED(MPI_UINT16_T);
    NAMED(MPI_UINT32_T);
    NAMED(MPI_UINT64_T);
    NAMED(MPI_C_BOOL);
    NAMED(MPI_C_FLOAT_COMPLEX);
    NAMED(MPI_C_DOUBLE_COMPLEX);
    NAMED(MPI_C_LONG_DOUBLE_COMPLEX);
    NAMED(MPI_AINT);
    NAMED(MPI_OFFSET);
    NAMED(MPI_COUNT);
    NAMED(MPI_CXX_BOOL);
    NAMED(MPI_CXX_FLOAT_COMPLEX);
    NAMED(MPI_CXX_DOUBLE_COMPLEX);
    NAMED(MPI_CXX_LONG_DOUBLE_COMPLEX);
}

static const int ones[] = {1, 1, 1}, lens[] = {2, 0, 1}, steps[] = {4, 0, -3};
static const MPI_Aint bytes[] = {16, 0, -24}, ordered[] = {0, 8, 20};

static void test_made_of(MPI_Datatype base)
{
    const MPI_Datatype types[] = {base, MPI_CHAR, MPI_DOUBLE};
    SHOW(MPI_Type_contiguous, 0, base);
    SHOW(MPI_Type_contiguous, 3, base);
    SHOW(MPI_Type_vector, 3, 2, 4, base);
    SHOW(MPI_Type_vector, 3, 2, -4, base);
    SHOW(MPI_Type_vector, 0, 2, 4, base);
    SHOW(MPI_Type_vector, 1, 3, 100, base);
    SHOW(MPI_Type_create_hvector, 3, 1, 40, base);
    SHOW(MPI_Type_create_hvector, 2, 1, -40, base);
    SHOW(MPI_Type_indexed, 3, lens, steps, base);
    SHOW(MPI_Type_indexed, 0, lens, steps, base);
    SHOW(MPI_Type_create_hindexed, 3, lens, bytes, base);
    SHOW(MPI_Type_create_indexed_block, 3, 2, steps, base);
    SHOW(MPI_Type_create_hindexed_block, 3, 1, bytes, base);
    SHOW(MPI_Type_create_struct, 3, ones, ordered, types);
    SHOW(MPI_Type_create_struct, 3, lens, bytes, types);
    SHOW(MPI_Type_create_struct, 0, lens, bytes, types);
    SHOW(MPI_Type_create_resized, base, -8, 64);
    SHOW(MPI_Type_create_resized, base, 0, 1);
    SHOW(MPI_Type_create_resized, base, 4, -8);
    SHOW(MPI_Type_dup, base);
    const int sizes[] = {4, 5, 6}, subs[] = {2, 3, 1}, starts[] = {1, 2, 5};
    SHOW(MPI_Type_create_subarray, 3, sizes, subs, starts, MPI_ORDER_C, base);
    SHOW(MPI_Type_create_subarray, 3, sizes, subs, starts, MPI_ORDER_FORTRAN,
         base);
    const int cyclic[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
              args[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, procs[] = {2, 2};
    for (int r = 0; r < 4; r++)
        SHOW(MPI_Type_create_darray, 4, r, 2, sizes, cyclic, args, procs,
             MPI_ORDER_C, base);
}

static void test_bases(void)
{
    MPI_Datatype t, u;
    test_made_of(MPI_INT);
    test_made_of(MPI_CHAR);
    test_made_of(MPI_LONG_DOUBLE_INT);
    test_made_of(MPI_SHORT_INT);
    OK(MPI_Type_vector(2, 1, 3, MPI_SHORT, &t));
    test_made_of(t);
    OK(MPI_Type_create_resized(t, -4, 24, &u));
    test_made_of(u);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_free(&u));
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, &t));
    show("real 4", t);
    OK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 8, &t));
    show("integer 8", t);
    OK(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &t));
    show("complex 16", t);
}

static void test_partial(void)
{
    MPI_Datatype t, u;
    OK(MPI_Type_create_struct(3, ones, ordered,
                              ((MPI_Datatype[]){MPI_SHORT, MPI_INT, MPI_CHAR}),
                              &t));
    OK(MPI_Type_vector(2, 2, 3, t, &u));
    OK(MPI_Type_commit(&t));
    OK(MPI_Type_commit(&u));
    for (int n = 0; n <= 60; n++) {
        MPI_Status status;
        int counts[4];
        memset(&status, 0, sizeof status);
        OK(MPI_Status_set_elements(&status, MPI_BYTE, n));
        OK(MPI_Get_count(&status, t, &counts[0]));
        OK(MPI_Get_elements(&status, t, &counts[1]));
        OK(MPI_Get_count(&status, u, &counts[2]));
        OK(MPI_Get_elements(&status, u, &counts[3]));
        say("%d bytes: %d %d, %d %d\n", n, counts[0], counts[1], counts[2],
            counts[3]);
    }
    OK(MPI_Type_free(&t));
    OK(MPI_Type_free(&u));
    for (int n = 1; n < 70; n += 7) {
        MPI_Aint e = -1;
        OK(MPI_Pack_external_size("external32", n, MPI_DOUBLE, &e));
        say("external %ld\n", (long)e);
    }
}

/* ------------------------------------------------------------------ grids */

static void test_dims(void)
{
    for (int n = 1; n <= 200; n++)
        for (int d = 1; d <= 4; d++) {
            int dims[4] = {0};
            OK(MPI_Dims_create(n, d, dims));
            say("%d in %d: %d %d %d %d\n", n, d, dims[0], dims[1], dims[2],
                dims[3]);
        }
    for (int n = 1; n <= 120; n++) {
        int dims[3] = {0, 3, 0};
        if (n % 3) continue;
        OK(MPI_Dims_create(n, 3, dims));
        say("%d with 3: %d %d %d\n", n, dims[0], dims[1], dims[2]);
    }
    int large[] = {1024, 4096, 65536, 99991, 720720};
    for (int i = 0; i < 5; i++)
        for (int d = 2; d <= 5; d++) {
            int dims[5] = {0};
            OK(MPI_Dims_create(large[i], d, dims));
            say("%d in %d: %d %d %d %d %d\n", large[i], d, dims[0], dims[1],
                dims[2], dims[3], dims[4]);
        }
}

static void test_cart(void)
{
    for (int wraps = 0; wraps < 4; wraps++) {
        int dims[2] = {0, 0}, periods[2] = {wraps & 1, wraps >> 1}, found[2],
            coords[2];
        MPI_Comm grid, line;
        OK(MPI_Dims_create(size, 2, dims));
        OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
        for (int d = 0; d < 2; d++)
            for (int by = -3; by <= 3; by++) {
                int from = -9, to = -9;
                OK(MPI_Cart_shift(grid, d, by, &from, &to));
                say("shift %d of %d by %d: %d %d\n", wraps, d, by, from, to);
            }
        for (int r = 0; r < size; r++) {
            OK(MPI_Cart_coords(grid, r, 2, coords));
            say("coords %d: %d %d\n", r, coords[0], coords[1]);
        }
        for (int i = -2; i < 4; i++) {
            int at[2] = {i, 0}, r = -9;
            if (!periods[0] && (i < 0 || i >= dims[0])) continue;
            OK(MPI_Cart_rank(grid, at, &r));
            say("rank at %d: %d\n", i, r);
        }
        OK(MPI_Cart_get(grid, 2, found, periods, coords));
        say("get %d %d, %d %d\n", found[0], found[1], periods[0], periods[1]);
        for (int keep = 0; keep < 4; keep++) {
            int remain[2] = {keep & 1, keep >> 1}, n, kind;
            OK(MPI_Cart_sub(grid, remain, &line));
            if (line == MPI_COMM_NULL) continue;
            OK(MPI_Comm_size(line, &n));
            OK(MPI_Topo_test(line, &kind));
            say("sub %d: size %d, kind %d", keep, n, kind);
            OK(MPI_Cartdim_get(line, &n));
            say(", %d dimensions\n", n);
            OK(MPI_Comm_free(&line));
        }
        OK(MPI_Comm_free(&grid));
    }
    MPI_Comm point;
    int n, kind, r, none[1];
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, none, none, 0, &point));
    if (point != MPI_COMM_NULL) {
        OK(MPI_Comm_size(point, &n));
        OK(MPI_Topo_test(point, &kind));
        OK(MPI_Cart_rank(point, none, &r));
        say("no dimension: size %d kind %d rank %d\n", n, kind, r);
        OK(MPI_Comm_free(&point));
    }
    int one[1] = {1};
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, one, one, &r));
    say("map: %d\n", r);
}

/* ----------------------------------------------------------------- groups */

static void group_show(const char *name, MPI_Group g, MPI_Group all)
{
    int n, ranks[16], mapped[16];
    OK(MPI_Group_size(g, &n));
    for (int i = 0; i < n; i++) ranks[i] = i;
    OK(MPI_Group_translate_ranks(g, n, ranks, all, mapped));
    say("%s:", name);
    for (int i = 0; i < n; i++) say(" %d", mapped[i]);
    OK(MPI_Group_rank(g, &n));
    say(", own %d, empty %d\n", n, g == MPI_GROUP_EMPTY);
}

static void test_groups(void)
{
    MPI_Group all, parts[6], result;
    int first = 0, last[2] = {size - 1, 0}, compared;
    int back[1][3] = {{0, 0, -1}}, upward[1][3] = {{0, 0, 1}};
    back[0][0] = size - 1;
    upward[0][1] = size - 1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 0, &first, &parts[0]));
    OK(MPI_Group_incl(all, 1, &first, &parts[1]));
    OK(MPI_Group_incl(all, size > 1 ? 2 : 1, last, &parts[2]));
    OK(MPI_Group_excl(all, 1, last, &parts[3]));
    OK(MPI_Group_range_incl(all, 1, back, &parts[4]));
    OK(MPI_Group_range_excl(all, 1, upward, &parts[5]));
    for (int i = 0; i < 6; i++) {
        group_show("part", parts[i], all);
        for (int j = 0; j < 6; j++) {
            OK(MPI_Group_compare(parts[i], parts[j], &compared));
            say("%d and %d compare %d\n", i, j, compared);
            OK(MPI_Group_union(parts[i], parts[j], &result));
            group_show("union", result, all);
            OK(MPI_Group_free(&result));
            OK(MPI_Group_intersection(parts[i], parts[j], &result));
            group_show("intersection", result, all);
            OK(MPI_Group_free(&result));
            OK(MPI_Group_difference(parts[i], parts[j], &result));
            group_show("difference", result, all);
            OK(MPI_Group_free(&result));
        }
    }
    int null = MPI_PROC_NULL, mapped = 5;
    OK(MPI_Group_translate_ranks(all, 1, &null, all, &mapped));
    say("nobody is %d\n", mapped);
    OK(MPI_Group_translate_ranks(all, 1, &first, parts[0], &mapped));
    say("in nothing %d\n", mapped);
    for (int i = 0; i < 6; i++) OK(MPI_Group_free(&parts[i]));
    OK(MPI_Group_free(&all));
}

/* ------------------------------------------------------------- attributes */

static int log_copy(MPI_Comm comm, int key, void *extra, void *in, void *out,
                    int *flag)
{
    (void)comm;
    (void)key;
    say("copy %ld of key %ld\n", (long)in, (long)extra);
    *(void **)out = (char *)in + 100;
    *flag = (long)extra != 2;
    return MPI_SUCCESS;
}

static int log_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    say("delete %ld of key %ld\n", (long)value, (long)extra);
    return MPI_SUCCESS;
}

static int refuse_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    say("refuse to delete %ld\n", (long)value);
    return value == (void *)7 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int refuse_copy(MPI_Comm comm, int key, void *extra, void *in, void *out,
                       int *flag)
{
    (void)comm;
    (void)key;
    (void)extra;
    (void)in;
    (void)out;
    *flag = 0;
    say("refuse to copy\n");
    return MPI_ERR_OTHER;
}

static void test_attributes(void)
{
    int keys[3], stubborn, flag, result;
    void *value;
    MPI_Comm a, b, c = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN));
    for (long k = 0; k < 3; k++)
        OK(MPI_Comm_create_keyval(log_copy, log_delete, &keys[k],
                                  (void *)(k + 1)));
    for (long k = 0; k < 3; k++)
        OK(MPI_Comm_set_attr(a, keys[k], (void *)(10 * k)));
    OK(MPI_Comm_set_attr(a, keys[0], (void *)5));
    OK(MPI_Comm_dup(a, &b));
    for (int k = 0; k < 3; k++) {
        OK(MPI_Comm_get_attr(b, keys[k], &value, &flag));
        say("key %d: %d %ld\n", k, flag, flag ? (long)value : -1);
    }
    OK(MPI_Comm_delete_attr(b, keys[2]));
    OK(MPI_Comm_free_keyval(&keys[0]));
    say("freed %d\n", keys[0] == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_free(&b));
    OK(MPI_Comm_create_keyval(refuse_copy, refuse_delete, &stubborn, NULL));
    OK(MPI_Comm_set_attr(a, stubborn, (void *)7));
    result = MPI_Comm_dup(a, &c);
    say("dup fails: %d, null %d\n", result != MPI_SUCCESS, c == MPI_COMM_NULL);
    result = MPI_Comm_delete_attr(a, stubborn);
    say("delete fails: %d\n", result != MPI_SUCCESS);
    OK(MPI_Comm_get_attr(a, stubborn, &value, &flag));
    say("still there: %d\n", flag);
    result = MPI_Comm_set_attr(a, stubborn, (void *)8);
    say("set fails: %d\n", result != MPI_SUCCESS);
    OK(MPI_Comm_get_attr(a, stubborn, &value, &flag));
    say("now %d %ld\n", flag, (long)value);
    if ((long)value == 7) /* so that it can be deleted */
        return;
    OK(MPI_Comm_free(&a));
    for (int k = 1; k < 3; k++) OK(MPI_Comm_free_keyval(&keys[k]));
    OK(MPI_Comm_free_keyval(&stubborn));
}

/* ------------------------------------------------------------------ texts */

static void test_texts(void)
{
    char text[MPI_MAX_ERROR_STRING], name[MPI_MAX_OBJECT_NAME];
    int n, error_class, code, first;
    static const int classes[] = {
        MPI_SUCCESS,      MPI_ERR_BUFFER, MPI_ERR_COUNT,   MPI_ERR_TYPE,
        MPI_ERR_TAG,      MPI_ERR_COMM,   MPI_ERR_RANK,    MPI_ERR_ROOT,
        MPI_ERR_GROUP,    MPI_ERR_OP,     MPI_ERR_DIMS,    MPI_ERR_ARG,
        MPI_ERR_TRUNCATE, MPI_ERR_OTHER,  MPI_ERR_PENDING, MPI_ERR_TOPOLOGY,
        MPI_ERR_IN_STATUS};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        OK(MPI_Error_string(classes[i], text, &n));
        OK(MPI_Error_class(classes[i], &error_class));
        say("%d: %s (%d), class %d\n", classes[i], text, n, error_class);
    }
    OK(MPI_Add_error_class(&first));
    OK(MPI_Add_error_code(first, &code));
    OK(MPI_Add_error_string(first, "a class"));
    OK(MPI_Add_error_string(code, "a code"));
    OK(MPI_Error_class(code, &error_class));
    say("class of code %d, above %d\n", error_class == first,
        first > MPI_ERR_LASTCODE);
    OK(MPI_Error_string(code, text, &n));
    say("%s %d\n", text, n);
    OK(MPI_Error_string(first, text, &n));
    say("%s %d\n", text, n);
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &n));
    say("%s %d\n", name, n);
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &n));
    say("%s %d\n", name, n);
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_get_name(dup, name, &n));
    say("'%s' %d\n", name, n);
    OK(MPI_Comm_free(&dup));
    MPI_Datatype t;
    OK(MPI_Type_contiguous(2, MPI_INT, &t));
    OK(MPI_Type_get_name(t, name, &n));
    say("'%s' %d\n", name, n);
    OK(MPI_Type_free(&t));
    MPI_Op ops[] = {MPI_MAX,    MPI_MIN,    MPI_SUM,  MPI_PROD, MPI_LAND,
                    MPI_BAND,   MPI_LOR,    MPI_BOR,  MPI_LXOR, MPI_BXOR,
                    MPI_MINLOC, MPI_MAXLOC, MPI_NO_OP};
    for (int i = 0; i < 13; i++) {
        OK(MPI_Op_commutative(ops[i], &n));
        say("operator %d commutes: %d\n", i, n);
    }
}

static void test_info(void)
{
    MPI_Info info, copy;
    char key[MPI_MAX_INFO_KEY + 1], value[100];
    int n, flag, length;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "one", "1"));
    OK(MPI_Info_set(info, "two", " two words "));
    OK(MPI_Info_set(info, "three", "333333"));
    OK(MPI_Info_set(info, "one", "eleven"));
    OK(MPI_Info_delete(info, "three"));
    OK(MPI_Info_set(info, "four", "4"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_set(info, "five", "5"));
    OK(MPI_Info_get_nkeys(copy, &n));
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(copy, i, key));
        OK(MPI_Info_get_valuelen(copy, key, &length, &flag));
        OK(MPI_Info_get(copy, key, 99, value, &flag));
        say("%d %s %d '%s' %d\n", i, key, length, value, flag);
        length = 4;
        OK(MPI_Info_get_string(copy, key, &length, value, &flag));
        say("'%s' %d %d\n", value, length, flag);
        length = 0;
        OK(MPI_Info_get_string(copy, key, &length, value, &flag));
        say("%d %d\n", length, flag);
    }
    OK(MPI_Info_get(copy, "five", 9, value, &flag));
    say("five: %d\n", flag);
    OK(MPI_Info_get_valuelen(copy, "five", &length, &flag));
    say("five: %d\n", flag);
    OK(MPI_Info_free(&copy));
    OK(MPI_Info_free(&info));
    say("freed %d\n", info == MPI_INFO_NULL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_named();
    test_bases();
    test_partial();
    test_dims();
    test_cart();
    test_groups();
    test_texts();
    test_info();
    test_attributes();
    return conform_end();
}
