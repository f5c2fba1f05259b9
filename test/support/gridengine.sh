#!/bin/bash
# A Grid Engine of one host, for tests: sge_qmaster and sge_execd with the queue all.q of 8 slots and the parallel environment smp. Needs root and
# the packages gridengine-master gridengine-exec gridengine-client of Debian 12; no systemd. Everything is below DIR, two ports from PORT on.
#   gridengine.sh DIR start PORT    set it up and start it
#   gridengine.sh DIR stop          end it with its jobs
# Its commands are told where it is by DIR/env.
set -eu
dir=$1
verb=$2
export SGE_ROOT=$dir/root SGE_CELL=default LC_ALL=C
arch=$(/usr/share/gridengine/util/arch)
# By one name, whatever else the host is called.
host=localhost

waits() {
  local until=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || { echo "in vain: $*" >&2; exit 1; }
    sleep 0.2
  done
}
# Processes that were started with our root, which children inherit.
ours() { # PROGRAM
  local f p
  for f in $(grep -lsxzF "SGE_ROOT=$SGE_ROOT" /proc/[0-9]*/environ 2>/dev/null); do
    p=${f#/proc/}
    p=${p%/environ}
    [ "$p" != $$ ] && [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] && echo "$p"
  done
  return 0
}

configure() {
  local common=$SGE_ROOT/default/common
  mkdir -p "$common" "$dir"/spool/{qmaster/job_scripts,execd} "$dir/db"
  ln -s /usr/share/gridengine/util "$SGE_ROOT/util"
  for name in bin lib utilbin; do
    mkdir -p "$SGE_ROOT/$name"
    ln -s /usr/lib/gridengine "$SGE_ROOT/$name/$arch"
  done
  sed -e 's/^admin_user .*/admin_user none/' -e "s|/var/spool/gridengine/spooldb|$dir/db|" -e "s|/var/spool/gridengine|$dir/spool|" \
    /usr/share/gridengine/default-bootstrap >"$common/bootstrap"
  printf 'export SGE_ROOT=%s SGE_CELL=default SGE_QMASTER_PORT=%s SGE_EXECD_PORT=%s\n' "$SGE_ROOT" "$1" $(($1 + 1)) >"$dir/env"
  echo "localhost $(hostname)" >"$common/host_aliases"
  echo "$host" >"$common/act_qmaster"
  /usr/share/gridengine/scripts/init_cluster "$SGE_ROOT" default "$dir/db" root >/dev/null
}

queue() {
  cat <<CONF
qname all.q
hostlist $host
seq_no 0
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH
ckpt_list NONE
pe_list smp
rerun FALSE
slots 8
tmpdir /tmp
shell /bin/sh
prolog NONE
epilog NONE
shell_start_mode posix_compliant
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:05
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state default
s_rt INFINITY
h_rt INFINITY
s_cpu INFINITY
h_cpu INFINITY
s_fsize INFINITY
h_fsize INFINITY
s_data INFINITY
h_data INFINITY
s_stack INFINITY
h_stack INFINITY
s_core INFINITY
h_core INFINITY
s_rss INFINITY
h_rss INFINITY
s_vmem INFINITY
h_vmem INFINITY
CONF
}
environment() {
  printf 'pe_name smp\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\nstop_proc_args NONE\nallocation_rule $pe_slots\n'
  printf 'control_slaves FALSE\njob_is_first_task TRUE\nurgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n'
}
# Jobs start at once, root's too.
quickly() {
  sed -e 's/^schedule_interval .*/schedule_interval 0:0:1/' -e 's/^flush_submit_sec .*/flush_submit_sec 1/' -e 's/^flush_finish_sec .*/flush_finish_sec 1/'
}

case $verb in
  start)
    new=
    [ -e "$dir/env" ] || { configure "$3"; new=1; }
    . "$dir/env"
    cd "$dir"
    [ -n "$(ours sge_qmaster)" ] || /usr/sbin/sge_qmaster
    waits qconf -sh
    if [ -n "$new" ]; then
      qconf -as "$host" >/dev/null
      environment >"$dir/pe" && qconf -Ap "$dir/pe" >/dev/null
      printf 'hostname %s\nload_scaling NONE\ncomplex_values NONE\nuser_lists NONE\nxuser_lists NONE\nprojects NONE\nxprojects NONE\nusage_scaling NONE\nreport_variables NONE\n' \
        "$host" >"$dir/host" && qconf -Ae "$dir/host" >/dev/null
      queue >"$dir/queue" && qconf -Aq "$dir/queue" >/dev/null
      qconf -ssconf | quickly >"$dir/sched" && qconf -Msconf "$dir/sched" >/dev/null
      qconf -sconf | sed -e "s|^execd_spool_dir .*|execd_spool_dir $dir/spool/execd|" -e 's/^min_uid .*/min_uid 0/' -e 's/^min_gid .*/min_gid 0/' \
        -e 's/^load_report_time .*/load_report_time 00:00:02/' >"$dir/global"
      qconf -Mconf "$dir/global" >/dev/null
    fi
    [ -n "$(ours sge_execd)" ] || /usr/sbin/sge_execd
    hosts() { qstat -f | grep -qE 'all.q@.* (lx|linux)[^ ]* *$'; }
    waits hosts
    ;;
  stop)
    [ -e "$dir/env" ] || exit 0
    for program in sge_execd sge_qmaster sge_shepherd; do for p in $(ours $program); do kill -9 "$p" 2>/dev/null || true; done; done
    for f in $(grep -lsxzF "SGE_ROOT=$SGE_ROOT" /proc/[0-9]*/environ 2>/dev/null); do
      grep -qsz '^JOB_ID=' "$f" && kill -9 "$(basename "$(dirname "$f")")" 2>/dev/null || true
    done
    ;;
esac
