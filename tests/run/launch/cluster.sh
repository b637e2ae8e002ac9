#!/bin/sh
# cluster.sh MASTER COLL UNTIL LIBRARIES SCRIPTS - a real Slurm of three nodes in
# a network namespace: allocation, batch, tasks without launcher, loss of a node,
# requeue, preemption by a partition, the end of the time; the last three with
# the batch scripts in SCRIPTS (packaging/slurm).
set -eu
master=$1 coll=$2 until=$3 libraries=$4 scripts=$5
PATH=$(dirname "$master"):$PATH # the scripts call pccl-master

skip() # WHY
{
    echo "skipped: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "not root"
[ -x "$coll" ] || skip "no $coll, which mpicc.mpich makes"
for tool in unshare ip munged slurmctld slurmd srun salloc sbatch scontrol; do
    PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || skip "no $tool"
done
PATH=$PATH:/usr/sbin:/sbin
if [ -z "${CLUSTER_INSIDE-}" ]; then
    unshare --net --mount true 2>/dev/null || skip "no network namespaces"
    export CLUSTER_INSIDE=1
    exec unshare --net --mount --pid --fork --kill-child --mount-proc \
        sh "$0" "$@"
fi

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# a resolver wants an address beside that of the loopback device
ip link set lo up
ip link add s0 type veth peer name s1 || skip "no veth"
ip addr add 10.78.0.1/24 dev s0
ip link set s0 up
ip link set s1 up
me=$(uname -n)
printf '127.0.0.1 localhost\n10.78.0.1 %s n1 n2 n3\n' "$me" >"$work/hosts"
mount --bind "$work/hosts" /etc/hosts || skip "no bind mounts"

mkdir "$work/state" "$work/spool" "$work/spool/n1" "$work/spool/n2" \
    "$work/spool/n3"
(umask 077 && mkdir "$work/munge" &&
    head -c 1024 /dev/urandom >"$work/munge/key")
munged --foreground --force --key-file="$work/munge/key" \
    --socket="$work/sock" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
    >"$work/munged.log" 2>&1 &
cat >"$work/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$me(10.78.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/sock,cred_expire=5
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdTimeout=5
KillWait=2
ReturnToService=2
MpiDefault=none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobRequeue=1
NodeName=n1 NodeHostname=$me NodeAddr=10.78.0.1 Port=17001 CPUs=2
NodeName=n2 NodeHostname=$me NodeAddr=10.78.0.1 Port=17002 CPUs=2
NodeName=n3 NodeHostname=$me NodeAddr=10.78.0.1 Port=17003 CPUs=2
PartitionName=DEFAULT Nodes=n[1-3] OverSubscribe=EXCLUSIVE
PartitionName=low Default=YES PriorityTier=1
PartitionName=high PriorityTier=10 PreemptMode=OFF
END
export SLURM_CONF="$work/slurm.conf"

show() # WHAT failed
{
    echo "failed: $*"
    for file in "$work"/*.out "$work"/*.log; do
        echo "== $file"
        tail -n 40 "$file"
    done
    exit 1
}

await() # SECONDS COMMAND: until it succeeds; Slurm decides by its own clocks
{
    tries=$(($1 * 10))
    shift
    while ! "$@" 2>/dev/null; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || show "$*"
        sleep 0.1 # for a step of another process
    done
}

idle() # NODES
{
    [ "$(sinfo -h -p low -t idle -N -o %N | sort -u | wc -l)" = "$1" ]
}

node() # NAME: starts its daemon
{
    slurmd -D -N "$1" >>"$work/$1.log" 2>&1 &
}

await 60 test -S "$work/sock"
slurmctld -D >"$work/slurmctld.log" 2>&1 &
for n in n1 n2 n3; do node $n; done
await 120 idle 3

in_files() # PATTERN FILES: each has a line of it
{
    pattern=$1
    shift
    for file; do grep -q "$pattern" "$file" || return 1; done
}

running() # FILE: three ranks have said so
{
    [ "$(grep -c 'rank [012] of 3' "$1")" -ge 3 ]
}

# an allocation: two nodes, three nodes
for nodes in 2 3; do
    timeout 300 salloc -N $nodes -n $((nodes + 1)) "$master" -l "$coll" \
        >"$work/salloc.out" 2>&1 || show "salloc -N $nodes"
done
# a batch job
printf '#!/bin/sh\nexec %s sh -c "echo here \\$SLURMD_NODENAME; exec %s"\n' \
    "$master" "$coll" >"$work/batch.sh"
timeout 300 sbatch -W -N 3 -n 3 -o "$work/batch.out" "$work/batch.sh" \
    >/dev/null || show batch
for n in n1 n2 n3; do in_files "^here $n\$" "$work/batch.out" || show "node $n"; done

# tasks that srun starts itself, with this library in the place of MPICH's
LD_LIBRARY_PATH=$libraries timeout 300 srun -N 2 -n 4 "$coll" \
    >"$work/srun.out" 2>&1 || show srun

echo "loss of a node"
timeout 300 salloc --no-kill -N 3 -n 3 "$master" --elastic -l \
    sh -c 'echo node $SLURMD_NODENAME; exec "$0" "$1"' "$until" "$work/over" \
    >"$work/loss.out" 2>&1 &
job=$!
await 120 running "$work/loss.out"
# all processes of node n2: its daemon, and the step with the agent
kill -9 "$(cat "$work/slurmd.n2.pid")"
lost=$(sed -n 's/^\[\([0-9]*\)\] node n2$/\1/p' "$work/loss.out")
pid=$(sed -n "s/^\[$lost\] rank .*pid //p" "$work/loss.out")
agent=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
step=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$agent/status")
kill -9 "$step" "$agent"
await 120 in_files 'host n2 is lost' "$work/loss.out"
: >"$work/over"
status=0
wait $job || status=$?
[ $status = 75 ] || show "loss of a node" # the program has not opted in
in_files 'over with 2 ranks' "$work/loss.out" || show "the others go on"
node n2
await 120 idle 3

# A job that runs until a file exists; the scripts say which of its starts it is.
begin() # NAME SCRIPT [update]: submits it, and waits until its ranks run
{
    rm -f "$work/over"
    name=$1 script=$2
    shift 2
    id=$(sbatch --parsable -N 3 -n 3 -o "$work/$name.out" "$scripts/$script" \
        "$until" "$work/over" "$@")
    await 120 running "$work/$name.out"
}

finish() # NAME: it runs again, and ends well
{
    await 300 in_files 'start 1' "$work/$1.out"
    : >"$work/over"
    await 300 in_files 'over with 3 ranks' "$work/$1.out"
    await 300 idle 3
    [ "$(scontrol -o show job "$id" | sed 's/.*JobState=\([A-Z]*\).*/\1/')" = \
        COMPLETED ] || show "$1: it did not end well"
    [ "$(pgrep -xc mpi_until)" = 0 ] || show "$1: ranks are left"
}

echo requeue
begin requeue elastic.sbatch
scontrol requeue "$id"
finish requeue

echo preemption
begin preemption elastic.sbatch
timeout 300 srun -p high -N 3 -n 3 true >"$work/high.out" 2>&1 ||
    show "the job of the better partition"
finish preemption

echo "the end of the time"
begin limit requeue.sbatch update
scancel --batch --signal=USR2 "$id" # as Slurm does some minutes before
finish limit
in_files 'out of time' "$work/limit.out" || show "who put it into the queue"
echo passed
