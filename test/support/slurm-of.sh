#!/bin/bash
# Runs a command where Slurm's programs, MariaDB's apart, are those of another release of Debian: its Slurm is installed into DIR, once, and
# started there by whoever calls it here, who has to be root: tests that become other accounts fail. Needs mmdebstrap, and the same packages here. As in
#   test/support/slurm-of.sh trixie /var/tmp/trixie npm run test:slurm -- test/slurm/accounting
set -eu
release=$1
root=$2
shift 2
[ -x "$root/usr/sbin/slurmctld" ] || mmdebstrap --variant=minbase \
  --include=slurmctld,slurmd,slurm-client,slurmdbd,slurmrestd,slurm-wlm-basic-plugins,slurm-wlm-mysql-plugin,slurm-wlm-jwt-plugin,munge \
  "$release" "$root" >&2
export root
# All that is mounted is gone with this command.
exec unshare -m bash -eu -c '
  for d in proc dev tmp etc/passwd etc/group etc/hosts; do mount --bind "/$d" "$root/$d"; done
  mkdir -p "$root/run/wrappers"
  for program in sbatch squeue scancel sacct sinfo scontrol sdiag sacctmgr srun sstat slurmctld slurmd slurmdbd slurmrestd munged; do
    there=$(chroot "$root" bash -c "command -v $program") here=$(readlink -f "$(command -v "$program")") wrapper=$root/run/wrappers/$program
    printf "#!/bin/bash\nexec chroot %q /bin/bash -c %q bash \"\$PWD\" %q \"\$@\"\n" "$root" "cd \"\$1\"; shift; exec \"\$@\"" "$there" >"$wrapper"
    chmod 755 "$wrapper"
    mount --bind "$wrapper" "$here"
  done
  exec "$@"' bash "$@"
