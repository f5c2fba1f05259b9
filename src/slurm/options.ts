/**
 * The options of the commands that only ask, one text for each: `--name -n`, `=` behind those that take a value. `!` behind one that asks for what
 * is so anyway, `?` behind one that changes nothing, which is said. Those of sbatch, srun and salloc are in words/options.ts. Source: the manual
 * pages of Slurm 22.05 to 24.11.
 */
export const OPTIONS = {
  scancel:
    '--account -A=;--batch -b;--clusters -M=;--ctld?;--cron?;--full -f;--help;--hurry -H?;--interactive -i?;--jobname=;--me;--name -n=;--nodelist -w=;--partition -p=;--qos -q=;--quiet -Q;--reservation -R=?;--sibling=?;--signal -s=;--state -t=;--user -u=;--verbose -v?;--version -V;--wckey=?',
  scontrol:
    '--all -a!;--details -d!;--oneliner -o;--quiet -Q?;--verbose -v?;--help -h;--hide!;--json?;--clusters -M=?;--future -F?;--version -V',
  sinfo:
    '--all -a!;--clusters -M=;--dead -d;--exact -e;--federation?;--format -o=;--Format -O=;--future -F?;--help;--hide!;--iterate -i=?;--json;--list-reasons -R;--local!;--long -l;--Node -N;--noconvert!;--noheader -h;--nodes -n=;--partition -p=;--reservation -T?;--responding -r;--sort -S=;--states -t=;--summarize -s;--verbose -v?;--version -V',
  squeue:
    '--all -a!;--array -r;--array-unique?;--account -A=;--clusters -M=;--format -o=;--Format -O=;--help;--hide!;--iterate -i=?;--jobs -j=;--json;--licenses -L=;--local!;--long -l;--me;--name -n=;--noconvert!;--noheader -h;--nodelist -w=;--only-job-state?;--partition -p=;--priority -P?;--qos -q=;--reservation -R=?;--sibling?;--sort -S=;--start;--states -t=;--steps -s;--user -u=;--users=;--verbose -v?;--version -V',
  sacct:
    '--accounts -A=;--allclusters -L!;--allocations -X;--allusers -a;--array;--brief -b;--clusters -M=;--completion -c?;--constraints -C=?;--delimiter=;--duplicates -D?;--endtime -E=;--federation?;--file -f=?;--format -o=;--group -g=?;--help -h;--helpformat -e;--json;--jobs -j=;--job=;--long -l;--name=;--nnodes -i=?;--noconvert;--nodelist -N=;--noheader -n;--parsable -p;--parsable2 -P;--partition -r=;--qos -q=;--reason -R=?;--starttime -S=;--state -s=;--timelimit-max=?;--timelimit-min -k=?;--truncate -T;--uid=;--units=;--use-local-uid?;--user -u=;--verbose -v?;--version -V;--wckeys -W=?;--whole-hetjob=?',
  sstat:
    '--allsteps -a!;--format -o=;--help -h;--helpformat -e;--jobs -j=;--noheader -n;--noconvert;--parsable -p;--parsable2 -P;--delimiter=;--units=;--verbose -v?;--version -V',
  sprio:
    '--noheader -h;--jobs -j=;--format -o=;--help;--long -l?;--user -u=;--partition -p=;--norm -n?;--sort -S=;--verbose -v?;--version -V;--weights -w?',
  seff: '--help -h;--debug -d?',
  /** sacctmgr, sshare and sreport. */
  accounts:
    '--noheader -n;--header!;--parsable -p;--parsable2 -P;--readonly -r!;--associations -s!;--immediate -i!;--quiet -Q!;--format -o=;--Format=;--accounts -A=;--all -a!;--clusters -M=?;--long -l?;--users -U!;--user -u=;--partition?;--delimiter=;--json?;--verbose -v?;--version -V;--tree -t?;--units=?;--help -h',
} as const;

export interface Entry {
  long: string;
  short?: string;
  takesValue: boolean;
  /** HONORED: the command looks at it; SO_ANYWAY; NOT: it is warned about. */
  kind: 'HONORED' | 'SO_ANYWAY' | 'NOT';
}

export const entriesOf = (table: string): Entry[] =>
  table.split(';').map((entry): Entry => {
    const [, long = '', short, value, mark] = /^(\S+?)(?: (-\w))?(=?)([?!]?)$/.exec(entry) ?? [];
    return {
      long,
      ...(short && { short }),
      takesValue: value === '=',
      kind: mark === '?' ? 'NOT' : mark === '!' ? 'SO_ANYWAY' : 'HONORED',
    };
  });
