! kinds.f90 - what a Fortran program passes that C has no like of: the commons
! of mpif.h, strings, logicals, pair types, arrays of statuses, and functions of
! its own as operators, attributes' callbacks and error handlers.
module callbacks
    implicit none
    integer :: copies = 0, drops = 0, errors = 0
contains
    subroutine add_mod(in, inout, n, type)
        integer :: n, type
        integer :: in(n), inout(n)
        inout = mod(in + inout, 1000)
        if (type < 0) n = 0
    end subroutine
    subroutine copy_twice(comm, key, extra, value_in, value_out, flag, ierr)
        use mpi, only: MPI_ADDRESS_KIND, MPI_SUCCESS
        integer :: comm, key, ierr
        integer(MPI_ADDRESS_KIND) :: extra, value_in, value_out
        logical :: flag
        copies = copies + 1
        value_out = 2 * value_in + extra
        flag = .true.
        ierr = MPI_SUCCESS
    end subroutine
    subroutine drop_it(comm, key, value, extra, ierr)
        use mpi, only: MPI_ADDRESS_KIND, MPI_SUCCESS
        integer :: comm, key, ierr
        integer(MPI_ADDRESS_KIND) :: value, extra
        drops = drops + 1
        ierr = MPI_SUCCESS
    end subroutine
    subroutine on_error(comm, code)
        integer :: comm, code
        errors = errors + 1
    end subroutine
end module

program kinds
    use mpi
    use callbacks
    implicit none
    integer :: ierr, rank, size, failures, total
    failures = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    call strings
    call commons
    call statuses
    call types
    call operators
    call attributes
    call old_attributes
    call handlers
    call grids
    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, &
                       MPI_COMM_WORLD, ierr)
    if (rank == 0 .and. total == 0) &
        print '(a,i0,a)', 'all right with ', size, ' ranks'
    call MPI_Finalize(ierr)
    if (total /= 0) stop 1
contains
    subroutine check(good, what)
        logical, intent(in) :: good
        character(*), intent(in) :: what
        if (good) return
        failures = failures + 1
        print '(a,i0,2a)', 'rank ', rank, ': not true: ', what
    end subroutine

    subroutine strings
        character(MPI_MAX_OBJECT_NAME) :: name
        character(MPI_MAX_PROCESSOR_NAME) :: host
        character(MPI_MAX_ERROR_STRING) :: text
        character(20) :: value, key
        integer :: length, comm, info, count
        logical :: flag
        name = 'x'
        call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierr)
        call check(name == 'MPI_COMM_WORLD' .and. length == 14, 'name of world')
        call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
        call MPI_Comm_set_name(comm, 'two words   ', ierr)
        name = repeat('z', MPI_MAX_OBJECT_NAME)
        call MPI_Comm_get_name(comm, name, length, ierr)
        call check(name == 'two words' .and. length == 9, 'blanks are cut')
        call check(name(10:) == ' ', 'blanks are filled in')
        call MPI_Comm_free(comm, ierr)
        call check(comm == MPI_COMM_NULL, 'comm is null')
        call MPI_Get_processor_name(host, length, ierr)
        call check(length > 0 .and. host(length + 1:) == ' ', 'processor name')
        call MPI_Error_string(MPI_ERR_RANK, text, length, ierr)
        call check(length > 0, 'error string')
        call MPI_Info_create(info, ierr)
        call MPI_Info_set(info, '  key  ', '  a value ', ierr)
        call MPI_Info_get(info, 'key', 20, value, flag, ierr)
        call check(flag .and. value == 'a value', 'info value')
        call MPI_Info_get(info, 'none', 20, value, flag, ierr)
        call check(.not. flag, 'no info value')
        call MPI_Info_get_nkeys(info, count, ierr)
        call MPI_Info_get_nthkey(info, 0, key, ierr)
        call check(count == 1 .and. key == 'key', 'info key')
        call MPI_Info_free(info, ierr)
        call check(MPI_Wtime() > 0d0 .and. MPI_Wtick() > 0d0, 'times')
    end subroutine

    subroutine commons
        integer :: x(4), all(4 * size), type, i
        integer(MPI_ADDRESS_KIND) :: address
        logical :: flag
        x = rank + [1, 2, 3, 4]
        call MPI_Allreduce(MPI_IN_PLACE, x, 4, MPI_INTEGER, MPI_SUM, &
                           MPI_COMM_WORLD, ierr)
        call check(all_equal(x, size * (size - 1) / 2 + size * [1, 2, 3, 4]), &
                   'in place')
        all = -1
        all(4 * rank + 1:4 * rank + 4) = rank
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 4, &
                           MPI_INTEGER, MPI_COMM_WORLD, ierr)
        call check(all_equal(all, [((i - 1) / 4, i = 1, 4 * size)]), &
                   'gather in place')
        ! Absolute addresses: MPI_BOTTOM is a place in a common.
        call MPI_Get_address(x, address, ierr)
        call MPI_Type_create_hindexed(1, [4], [address], MPI_INTEGER, type, &
                                      ierr)
        call MPI_Type_commit(type, ierr)
        x = 7 * rank
        call MPI_Bcast(MPI_BOTTOM, 1, type, size - 1, MPI_COMM_WORLD, ierr)
        call check(all_equal(x, [(7 * (size - 1), i = 1, 4)]), 'bottom')
        call MPI_Type_free(type, ierr)
        call MPI_Initialized(flag, ierr)
        call check(flag, 'initialized')
        call MPI_Finalized(flag, ierr)
        call check(.not. flag, 'not finalized')
    end subroutine

    logical function all_equal(a, b)
        integer, intent(in) :: a(:), b(:)
        all_equal = all(a == b)
    end function

    subroutine statuses
        integer :: requests(4), status(MPI_STATUS_SIZE, 4), one(MPI_STATUS_SIZE)
        integer :: in(4), out(4), i, count, next, before, index, done(4)
        logical :: flag
        next = mod(rank + 1, size)
        before = mod(rank + size - 1, size)
        do i = 1, 4
            call MPI_Irecv(in(i), 1, MPI_INTEGER, before, i, MPI_COMM_WORLD, &
                           requests(i), ierr)
        end do
        do i = 4, 1, -1
            out(i) = 10 * rank + i
            call MPI_Send(out(i), 1, MPI_INTEGER, next, i, MPI_COMM_WORLD, ierr)
        end do
        call MPI_Waitall(4, requests, status, ierr)
        do i = 1, 4
            call check(in(i) == 10 * before + i, 'received')
            call check(status(MPI_SOURCE, i) == before .and. &
                       status(MPI_TAG, i) == i, 'status')
            call MPI_Get_count(status(1, i), MPI_INTEGER, count, ierr)
            call check(count == 1, 'count')
            call check(requests(i) == MPI_REQUEST_NULL, 'request is null')
        end do
        call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 9, in(1), 1, &
                          MPI_INTEGER, before, MPI_ANY_TAG, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, ierr)
        call check(in(1) == before, 'sendrecv')
        call MPI_Isend(rank, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, &
                       requests(1), ierr)
        call MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, one, ierr)
        call check(one(MPI_SOURCE) == before, 'probe')
        call MPI_Irecv(in, 4, MPI_INTEGER, before, 3, MPI_COMM_WORLD, &
                       requests(2), ierr)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
        ! Indices count from one.
        requests = MPI_REQUEST_NULL
        call MPI_Isend(rank, 1, MPI_INTEGER, next, 4, MPI_COMM_WORLD, &
                       requests(3), ierr)
        call MPI_Recv(in, 1, MPI_INTEGER, before, 4, MPI_COMM_WORLD, one, ierr)
        call MPI_Waitany(4, requests, index, one, ierr)
        call check(index == 3, 'index of waitany')
        call MPI_Testany(4, requests, index, flag, one, ierr)
        call check(flag, 'nothing to test')
        call MPI_Waitsome(4, requests, count, done, status, ierr)
        call check(count == MPI_UNDEFINED, 'nothing to wait for')
    end subroutine

    subroutine types
        real :: pair(2), pairs(2)
        double precision :: dpair(2), dpairs(2)
        complex :: c, csum
        double complex :: z, zsum
        logical :: l, land
        character :: letter
        integer(8) :: big, bigs
        integer :: ipair(2), ipairs(2), bytes, type
        integer(MPI_ADDRESS_KIND) :: lb, extent
        pair = [real(mod(rank, 3)), real(rank)]
        call MPI_Allreduce(pair, pairs, 1, MPI_2REAL, MPI_MAXLOC, &
                           MPI_COMM_WORLD, ierr)
        call check(pairs(1) == min(size - 1, 2), '2REAL')
        call check(pairs(2) == min(size - 1, 2), 'place in 2REAL')
        dpair = [-1d0 * rank, 1d0 * rank]
        call MPI_Allreduce(dpair, dpairs, 1, MPI_2DOUBLE_PRECISION, &
                           MPI_MINLOC, MPI_COMM_WORLD, ierr)
        call check(dpairs(1) == 1 - size .and. dpairs(2) == size - 1, &
                   '2DOUBLE_PRECISION')
        ipair = [rank / 2, rank]
        call MPI_Allreduce(ipair, ipairs, 1, MPI_2INTEGER, MPI_MAXLOC, &
                           MPI_COMM_WORLD, ierr)
        call check(ipairs(1) == (size - 1) / 2, '2INTEGER')
        call check(ipairs(2) == 2 * ((size - 1) / 2), 'least place in 2INTEGER')
        c = cmplx(rank, 1)
        call MPI_Allreduce(c, csum, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, &
                           ierr)
        call check(csum == cmplx(size * (size - 1) / 2, size), 'COMPLEX')
        z = (0d0, 1d0)
        call MPI_Allreduce(z, zsum, 1, MPI_DOUBLE_COMPLEX, MPI_PROD, &
                           MPI_COMM_WORLD, ierr)
        call check(abs(zsum - z**size) < 1d-12, 'DOUBLE_COMPLEX')
        l = rank == 0
        call MPI_Allreduce(l, land, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, &
                           ierr)
        call check(land .eqv. size == 1, 'LAND')
        call MPI_Allreduce(l, land, 1, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD, &
                           ierr)
        call check(land, 'LXOR')
        letter = achar(iachar('a') + rank)
        call MPI_Bcast(letter, 1, MPI_CHARACTER, size - 1, MPI_COMM_WORLD, ierr)
        call check(letter == achar(iachar('a') + size - 1), 'CHARACTER')
        big = 2_8**40 + rank
        call MPI_Allreduce(big, bigs, 1, MPI_INTEGER8, MPI_MAX, &
                           MPI_COMM_WORLD, ierr)
        call check(bigs == 2_8**40 + size - 1, 'INTEGER8')
        call MPI_Type_size(MPI_DOUBLE_PRECISION, bytes, ierr)
        call check(bytes == 8, 'size')
        call MPI_Type_create_resized(MPI_REAL, 0_MPI_ADDRESS_KIND, &
                                     16_MPI_ADDRESS_KIND, type, ierr)
        call MPI_Type_get_extent(type, lb, extent, ierr)
        call check(lb == 0 .and. extent == 16, 'extent')
        call MPI_Type_free(type, ierr)
        call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, type, ierr)
        call MPI_Type_size(type, bytes, ierr)
        call check(bytes == 8, 'match size')
        call MPI_Type_create_f90_real(15, 300, type, ierr)
        call MPI_Type_size(type, bytes, ierr)
        call check(bytes == 8, 'f90 real')
    end subroutine

    subroutine operators
        integer :: op, x(3), y(3), i
        logical :: flag
        call MPI_Op_create(add_mod, .true., op, ierr)
        call MPI_Op_commutative(op, flag, ierr)
        call check(flag, 'commutative')
        x = [999, rank, 500]
        call MPI_Allreduce(x, y, 3, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
        call check(all_equal(y, [mod(999 * size, 1000), &
                                 size * (size - 1) / 2, &
                                 mod(500 * size, 1000)]), 'own operator')
        call MPI_Op_free(op, ierr)
        call check(op == MPI_OP_NULL, 'op is null')
        i = rank + 1
        call MPI_Scan(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, &
                      MPI_COMM_WORLD, ierr)
        call check(i == (rank + 1) * (rank + 2) / 2, 'scan in place')
    end subroutine

    subroutine attributes
        integer :: key, null_key, dup_key, comm
        integer(MPI_ADDRESS_KIND) :: value, extra
        logical :: flag
        extra = 5
        call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
        call check(flag .and. value >= 32767, 'tag ub')
        call MPI_Comm_create_keyval(copy_twice, drop_it, key, extra, ierr)
        call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &
                                    MPI_COMM_NULL_DELETE_FN, null_key, extra, &
                                    ierr)
        call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &
                                    dup_key, extra, ierr)
        value = 2_MPI_ADDRESS_KIND**33 + rank
        call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
        call MPI_Comm_set_attr(MPI_COMM_WORLD, null_key, value, ierr)
        call MPI_Comm_set_attr(MPI_COMM_WORLD, dup_key, value, ierr)
        call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
        call check(copies == 1, 'copied once')
        call MPI_Comm_get_attr(comm, key, value, flag, ierr)
        call check(flag .and. &
                   value == 2_MPI_ADDRESS_KIND**34 + 2 * rank + 5, 'copied')
        call MPI_Comm_get_attr(comm, null_key, value, flag, ierr)
        call check(.not. flag, 'not copied')
        call MPI_Comm_get_attr(comm, dup_key, value, flag, ierr)
        call check(flag .and. value == 2_MPI_ADDRESS_KIND**33 + rank, &
                   'copied as it is')
        call MPI_Comm_free(comm, ierr)
        call check(drops == 1, 'dropped once')
        call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
        call MPI_Comm_delete_attr(MPI_COMM_WORLD, null_key, ierr)
        call MPI_Comm_delete_attr(MPI_COMM_WORLD, dup_key, ierr)
        call check(drops == 2, 'dropped twice')
        call MPI_Comm_free_keyval(key, ierr)
        call check(key == MPI_KEYVAL_INVALID, 'keyval is null')
        call MPI_Comm_free_keyval(null_key, ierr)
        call MPI_Comm_free_keyval(dup_key, ierr)
    end subroutine

    ! MPI-1's, of default integers.
    subroutine old_attributes
        integer :: key, value, comm
        logical :: flag
        external :: MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, MPI_DUP_FN
        call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
        call check(flag .and. value >= 32767, 'old tag ub')
        call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0, ierr)
        call MPI_Attr_put(MPI_COMM_WORLD, key, -5, ierr)
        call MPI_Attr_get(MPI_COMM_WORLD, key, value, flag, ierr)
        call check(flag .and. value == -5, 'old value')
        call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
        call MPI_Attr_get(comm, key, value, flag, ierr)
        call check(flag .and. value == -5, 'old value copied')
        call MPI_Comm_free(comm, ierr)
        call MPI_Attr_delete(MPI_COMM_WORLD, key, ierr)
        call MPI_Attr_get(MPI_COMM_WORLD, key, value, flag, ierr)
        call check(.not. flag, 'old value deleted')
        call MPI_Keyval_free(key, ierr)
    end subroutine

    subroutine handlers
        integer :: handler, got, comm, class
        integer(MPI_ADDRESS_KIND) :: value
        logical :: flag
        call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
        call MPI_Comm_create_errhandler(on_error, handler, ierr)
        call MPI_Comm_set_errhandler(comm, handler, ierr)
        call MPI_Send(rank, 1, MPI_INTEGER, size, 0, comm, ierr)
        call check(errors == 1, 'handler called')
        call MPI_Error_class(ierr, class, ierr)
        call check(class == MPI_ERR_RANK, 'class')
        call MPI_Comm_get_errhandler(comm, got, ierr)
        call check(got == handler, 'same handler')
        call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
        call MPI_Errhandler_free(handler, ierr)
        call MPI_Send(rank, 1, MPI_INTEGER, size, 0, comm, ierr)
        call check(ierr /= MPI_SUCCESS .and. errors == 1, 'error returned')
        value = 0
        call MPI_Comm_get_attr(comm, MPI_KEYVAL_INVALID, value, flag, ierr)
        call check(ierr /= MPI_SUCCESS, 'error of an attribute returned')
        call MPI_Comm_set_attr(comm, MPI_KEYVAL_INVALID, value, ierr)
        call check(ierr /= MPI_SUCCESS, 'error of setting it returned')
        call MPI_Comm_free(comm, ierr)
    end subroutine

    subroutine grids
        integer :: dims(2), coords(2), grid, line, source, dest, count, kind
        integer :: graph, weights(2), in, out
        logical :: periods(2), got(2), weighted
        dims = 0
        periods = [.true., .false.]
        call MPI_Dims_create(size, 2, dims, ierr)
        call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid, &
                             ierr)
        call MPI_Cart_get(grid, 2, dims, got, coords, ierr)
        call check(all(got .eqv. periods), 'logical periods')
        call MPI_Cart_shift(grid, 0, 1, source, dest, ierr)
        call check(source >= 0 .and. dest >= 0, 'shift')
        call MPI_Cart_sub(grid, [.true., .false.], line, ierr)
        call MPI_Comm_size(line, count, ierr)
        call check(count == dims(1), 'line')
        call MPI_Comm_free(line, ierr)
        call MPI_Comm_free(grid, ierr)
        weights = 3
        call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &
            [mod(rank + size - 1, size)], weights, 1, [mod(rank + 1, size)], &
            weights, MPI_INFO_NULL, .false., graph, ierr)
        call MPI_Topo_test(graph, kind, ierr)
        call check(kind == MPI_DIST_GRAPH, 'kind of topology')
        call MPI_Dist_graph_neighbors_count(graph, in, out, weighted, ierr)
        call check(in == 1 .and. out == 1 .and. weighted, 'weighted')
        call MPI_Comm_free(graph, ierr)
        call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &
            [mod(rank + size - 1, size)], MPI_UNWEIGHTED, 1, &
            [mod(rank + 1, size)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., &
            graph, ierr)
        call MPI_Dist_graph_neighbors_count(graph, in, out, weighted, ierr)
        call check(in == 1 .and. out == 1 .and. .not. weighted, 'unweighted')
        call MPI_Comm_free(graph, ierr)
    end subroutine
end program
