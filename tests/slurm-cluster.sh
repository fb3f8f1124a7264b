#!/bin/bash
# A private Slurm cluster on this machine: every node is a slurmd of its own
# with its own port, all state lies below DIR, and no service of the system is
# touched. Needs root and Debian's slurmctld, slurmd, slurm-client and munge.
#
#   tests/slurm-cluster.sh start DIR   then export SLURM_CONF=DIR/slurm.conf
#   tests/slurm-cluster.sh stop DIR    cancels its jobs and ends its daemons
#
# NODES (4), CPUS (8 a node), GPUS (8 a node, made of /dev/null), BASE_PORT
# (27000: slurmctld; the nodes take the next ones).
# Exit codes: 0 done, 1 it does not come up, 2 bad usage, 77 cannot run here.
set -u

usage() {
  echo "usage: $0 start|stop DIR" >&2
  exit 2
}
[ $# = 2 ] || usage
mkdir -p "$2" || exit 1
DIR=$(cd "$2" && pwd) || exit 1
NODES=${NODES:-4} CPUS=${CPUS:-8} GPUS=${GPUS:-8} BASE_PORT=${BASE_PORT:-27000}
export SLURM_CONF=$DIR/slurm.conf
RECORD=$DIR/processes # lines: pid, start time, name

require() {
  if [ "$(id -u)" != 0 ]; then
    echo "slurm-cluster: only root can start slurmd: skipped"
    exit 77
  fi
  for program in munged slurmctld slurmd srun sbatch scontrol; do
    command -v $program >/dev/null || [ -x /usr/sbin/$program ] || {
      echo "slurm-cluster: no $program (Debian: slurmctld slurmd slurm-client" \
        "munge): skipped"
      exit 77
    }
  done
  PATH=$PATH:/usr/sbin
}

configure() {
  local host last
  host=$(hostname -s)
  last=$((BASE_PORT + NODES))
  mkdir -p "$DIR"/{munge,state,spool,tmp,log,pid,dev}
  # munge refuses a key that others could replace, and clients must reach the
  # socket.
  chmod 755 "$DIR"
  chmod 711 "$DIR/munge"
  for i in $(seq 0 $((GPUS - 1))); do
    [ -e "$DIR/dev/gpu$i" ] || mknod "$DIR/dev/gpu$i" c 1 3
  done
  for i in $(seq 1 "$NODES"); do
    mkdir -p "$DIR/spool/n$i" "$DIR/tmp/n$i"
  done
  cat >"$SLURM_CONF" <<CONF
ClusterName=reckontest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$BASE_PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$DIR/munge/socket
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
TmpFS=$DIR/tmp/%n
SlurmctldPidFile=$DIR/pid/slurmctld
SlurmdPidFile=$DIR/pid/slurmd.%n
SlurmctldLogFile=$DIR/log/slurmctld
SlurmdLogFile=$DIR/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=60
KillWait=5
InactiveLimit=0
WaitTime=0
MinJobAge=300
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n[1-$NODES] NodeHostname=$host NodeAddr=127.0.0.1 \
Port=[$((BASE_PORT + 1))-$last] CPUs=$CPUS Boards=1 SocketsPerBoard=1 \
CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=4000 Gres=gpu:h100:$GPUS \
State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10 \
State=UP OverSubscribe=NO
CONF
  echo "NodeName=n[1-$NODES] Name=gpu Type=h100" \
    "File=$DIR/dev/gpu[0-$((GPUS - 1))]" >"$DIR/gres.conf"
  echo "CgroupPlugin=cgroup/v1" >"$DIR/cgroup.conf" # read, though not used
  [ -s "$DIR/munge/key" ] ||
    (umask 077 && head -c 128 /dev/urandom >"$DIR/munge/key")
}

started() { awk '{print $22}' "/proc/$1/stat" 2>/dev/null; }
record() { echo "$1 $(started "$1") $2" >>"$RECORD"; }

# Whether the recorded process runs: pids come again, start times do not; a
# zombie that nobody has reaped yet counts as gone.
running() {
  [ "$(started "$1")" = "$2" ] &&
    [ "$(awk '{print $3}' "/proc/$1/stat" 2>/dev/null)" != Z ]
}

start() {
  if [ -s "$RECORD" ]; then
    echo "slurm-cluster: already started in $DIR" >&2
    exit 1
  fi
  configure
  munged --key-file="$DIR/munge/key" --socket="$DIR/munge/socket" \
    --pid-file="$DIR/munge/pid" --log-file="$DIR/munge/log" \
    --seed-file="$DIR/munge/seed" --num-threads=2 || exit 1
  record "$(cat "$DIR/munge/pid")" munged
  setsid slurmctld -c -D -f "$SLURM_CONF" >"$DIR/log/slurmctld.out" 2>&1 \
    </dev/null &
  record $! slurmctld
  for i in $(seq 1 "$NODES"); do
    setsid slurmd -D -N "n$i" -f "$SLURM_CONF" >"$DIR/log/slurmd.n$i.out" \
      2>&1 </dev/null &
    record $! slurmd
  done
  for _ in $(seq 1 1000); do
    idle=$(sinfo -h -N -o %t 2>/dev/null | grep -c '^idle$')
    if [ "$idle" = "$NODES" ]; then
      echo "slurm-cluster: $NODES nodes are up"
      exit 0
    fi
    sleep 0.2
  done
  echo "slurm-cluster: not all nodes came up:" >&2
  sinfo -N -l >&2
  tail -n 5 "$DIR"/log/* >&2
  stop
  exit 1
}

finish() { # NAME: ends the recorded processes of that name
  for signal in TERM KILL; do
    for _ in $(seq 1 50); do
      left=0
      while read -r pid time name; do
        if [ "$name" = "$1" ] && running "$pid" "$time"; then
          kill -$signal "$pid" 2>/dev/null
          left=1
        fi
      done <"$RECORD"
      [ $left = 0 ] && return
      sleep 0.1
    done
  done
}

stop() {
  [ -s "$RECORD" ] || return 0
  # A slurmd that ends leaves its jobs running, so these go first.
  if timeout 5 scontrol ping 2>/dev/null | grep -q 'is UP'; then
    timeout 5 scancel -Q -u root 2>/dev/null
    for _ in $(seq 1 60); do
      [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break
      sleep 0.2
    done
  fi
  finish slurmd
  finish slurmctld
  finish munged
  rm -f "$RECORD"
  echo "slurm-cluster: stopped"
}

require
case $1 in
start) start ;;
stop) stop ;;
*) usage ;;
esac
