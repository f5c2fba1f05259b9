#!/bin/bash
# A small Slurm cluster on this host, for tests: slurmctld and three slurmd (n1 to n3). Needs root and the packages slurmctld slurmd slurm-client
# slurm-wlm-basic-plugins munge of Debian 12; no systemd. Everything is below DIR and listens on 127.0.0.1, or on sockets there.
#   slurm.sh DIR start [FIRST]   set it up and start what does not run, on ports that nobody listens on; FIRST: jobs get no lower ids from then on
#   slurm.sh DIR stop            end it with all its jobs
#   slurm.sh DIR kill [NAME]     kill -9 of slurmctld, or of another daemon
# Variables, read when DIR is set up: SLURM_WITH, words of: rest (slurmrestd with tokens, at DIR/rest/socket: slurmrestd slurm-wlm-jwt-plugin),
# accounts (slurmdbd on MariaDB; QOS normal, and high, which preempts it: slurmdbd slurm-wlm-mysql-plugin mariadb-server); SLURM_EXTRA, lines for
# slurm.conf, of which the last one of a name counts; SLURM_CLUSTER, its name (small).
set -eu
dir=$1
verb=$2
export SLURM_CONF=$dir/slurm.conf LC_ALL=C

pid() { # NAME PROGRAM: its process, if that is still ours and more than a zombie
  local pid
  pid=$(cat "$dir/$1.pid" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] && readlink "/proc/$pid/exe" >/dev/null && echo "$pid"
}
program() { case $1 in n?) echo slurmd ;; *) echo "$1" ;; esac }
# By time, not by attempts: to ask a slurmctld that is not there takes many seconds.
waits() {
  local until=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || { echo "in vain: $*"; tail -n 5 "$dir"/*.log; exit 1; } >&2
    sleep 0.1
  done
}
gone() { [ ! -e "/proc/$1" ] || ! readlink "/proc/$1/exe"; }

has() { case " $(cat "$dir/with") " in *" $1 "*) true ;; *) false ;; esac }
answers() { mariadb --no-defaults --socket="$dir/sql.sock" --user=root -e 'select 1'; }
# What accounting needs.
books() {
  if ! pid mariadbd mariadbd >/dev/null; then
    [ -e "$dir/db/mysql" ] || mariadb-install-db --no-defaults --datadir="$dir/db" --user=root --auth-root-authentication-method=normal \
      --skip-test-db >"$dir/mariadb.log" 2>&1
    setsid mariadbd --no-defaults --datadir="$dir/db" --socket="$dir/sql.sock" --pid-file="$dir/mariadbd.pid" --user=root --skip-networking \
      --innodb-flush-log-at-trx-commit=2 --innodb-lock-wait-timeout=900 </dev/null >>"$dir/mariadb.log" 2>&1 &
    waits answers
  fi
  pid slurmdbd slurmdbd >/dev/null || MYSQL_UNIX_PORT=$dir/sql.sock slurmdbd
  waits sacctmgr -n show cluster
  [ -e "$dir/booked" ] || {
    sacctmgr -i add cluster "${SLURM_CLUSTER:-small}"
    sacctmgr -i add account science
    sacctmgr -i add qos high Priority=100 Preempt=normal
    sacctmgr -i add user root account=science qos=normal,high
    sacctmgr -i modify user root set defaultaccount=science
    touch "$dir/booked"
  } >"$dir/sacctmgr.log" 2>&1
}

# Five in a row, below those that the system gives to connections: one of these would keep a daemon from its port for as long as it lasts.
ports() {
  local first i
  while true; do
    first=$((20000 + RANDOM % 2400 * 5))
    for i in 0 1 2 3 4; do
      if (: <"/dev/tcp/127.0.0.1/$((first + i))") 2>/dev/null; then continue 2; fi
    done
    echo $first
    return
  done
}

configure() {
  local port
  port=$(ports)
  mkdir -p "$dir"
  echo "${SLURM_WITH:-}" >"$dir/with"
  mkdir -p "$dir"/{state,spool/n1,spool/n2,spool/n3,munge}
  chmod 700 "$dir/munge" "$dir/state"
  head -c 1024 /dev/urandom >"$dir/munge/key"
  chmod 400 "$dir/munge/key"
  # GetEnvTimeout: after two seconds, by default, slurmd kills a login with all that it has started. What has a lock then (as pyenv's, which many
  # profiles start) keeps it, and each later login waits for a minute.
  cat >"$SLURM_CONF" <<CONF
ClusterName=${SLURM_CLUSTER:-small}
SlurmctldHost=localhost(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge
SlurmctldPort=$port
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MaxJobCount=100000
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,default_queue_depth=10000,partition_job_depth=0,bf_interval=5
ReturnToService=2
SlurmdTimeout=20
BatchStartTimeout=120
GetEnvTimeout=60
KillWait=3
EpilogMsgTime=0
DefMemPerCPU=10
SlurmdParameters=config_overrides
GresTypes=gpu,tape
Licenses=matlab:1
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] CPUs=8 RealMemory=4000 Feature=intel State=UNKNOWN
NodeName=n3 NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 3)) CPUs=8 RealMemory=4000 Feature=amd,ib Gres=gpu:a100:2,tape:1 State=UNKNOWN
PartitionName=batch Nodes=n[1-3] Default=YES MaxTime=60 DefaultTime=5 State=UP
PartitionName=short Nodes=n3 MaxTime=1 State=UP
CONF
  if has rest; then
    head -c 32 /dev/urandom >"$dir/jwt"
    chmod 600 "$dir/jwt"
    printf 'AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=%s\n' "$dir/jwt" >>"$SLURM_CONF"
    mkdir "$dir/rest"
    chown nobody:nogroup "$dir/rest"
  fi
  has accounts || printf 'AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n' >>"$SLURM_CONF"
  if has accounts; then
    mkdir "$dir/db"
    cat >>"$SLURM_CONF" <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((port + 4))
AccountingStoragePass=$dir/munge.sock
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
PreemptType=preempt/qos
PreemptMode=REQUEUE
CONF
    cat >"$dir/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((port + 4))
SlurmUser=root
PidFile=$dir/slurmdbd.pid
LogFile=$dir/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
CommitDelay=1
CONF
    # Newer ones of slurmrestd speak with it by the token, too.
    if has rest; then printf 'AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=%s\n' "$dir/jwt" >>"$dir/slurmdbd.conf"; fi
    chmod 600 "$dir/slurmdbd.conf"
  fi
  echo "${SLURM_EXTRA:-}" >>"$SLURM_CONF"
  # Newer ones of slurmd want control groups, or this, which older ones do not know.
  case $(slurmd -V) in *' 2'[0-2].*) ;; *) echo CgroupPlugin=disabled >"$dir/cgroup.conf" ;; esac
  # Devices that are only counted: Slurm wants a file for each, of whatever kind.
  touch "$dir"/gpu0 "$dir"/gpu1
  printf 'NodeName=n3 Name=gpu Type=a100 File=%s\nNodeName=n3 Name=tape Count=1\n' "$dir/gpu[0-1]" >"$dir/gres.conf"
}

idle() { [ "$(sinfo -hN -p batch -t idle,mix,alloc -o %N | wc -l)" = 3 ] && ! sinfo -hN -o %T | grep -q '[*]'; }

# Jobs and their step daemons, which outlive the others: what was started with our configuration passes it on.
leftovers() {
  local f p
  for f in $(grep -lsxzF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ 2>/dev/null); do
    p=${f#/proc/}
    p=${p%/environ}
    if [ "$(cat "/proc/$p/comm" 2>/dev/null)" = slurmstepd ] || grep -qsz '^SLURM_JOB_ID=' "$f"; then echo "$p"; fi
  done
}

case $verb in
  start)
    [ -e "$SLURM_CONF" ] || configure
    pid munged munged >/dev/null || munged --key-file="$dir/munge/key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
      --log-file="$dir/munged.log" --seed-file="$dir/munge/seed" --force
    waits test -S "$dir/munge.sock"
    if has accounts; then books; fi
    if [ -n "${3:-}" ]; then sed -i -e '/^FirstJobId=/d' -e "\$aFirstJobId=$3" "$SLURM_CONF"; fi
    pid slurmctld slurmctld >/dev/null || slurmctld
    for n in n1 n2 n3; do pid $n slurmd >/dev/null || slurmd -N $n; done
    waits idle
    if has rest && ! pid slurmrestd slurmrestd >/dev/null; then
      rm -f "$dir/rest/socket"
      # It refuses to be root.
      cd "$dir"
      SLURM_JWT=daemon setsid slurmrestd -u nobody -g nogroup -a rest_auth/jwt "unix:$dir/rest/socket" </dev/null >>"$dir/slurmrestd.log" 2>&1 &
      echo $! >"$dir/slurmrestd.pid"
      waits test -S "$dir/rest/socket"
    fi
    ;;
  kill)
    name=${3:-slurmctld}
    p=$(pid "$name" "$(program "$name")")
    kill -9 "$p"
    # Else the next start would take it to be there.
    waits gone "$p"
    ;;
  stop)
    for n in slurmrestd slurmctld n1 n2 n3 slurmdbd mariadbd; do
      p=$(pid $n "$(program $n)") && kill -9 "$p" || true
    done
    for p in $(leftovers); do kill -9 "$p" 2>/dev/null || true; done
    # It writes a last file.
    p=$(pid munged munged) && kill "$p" && waits gone "$p" || true
    ;;
esac
