/** What a lane is told to do, as shell text: everything that comes from a job is quoted. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, resolve } from 'node:path';
import type { Assignment, TerminalSize } from '../runner.js';
import type { Entrance } from './image-runtimes.js';

/** Why a run cannot be started; the message is for its owner. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
}

/** The shell's errors about a run carry this name: no program of the run's does. */
export const LANE_NAME = 'switchyard-launch';

/** What passes input and output of a terminal is called so (at most 15 characters): signals to the command of a run are not for it. */
export const TERMINAL_NAME = 'sy-terminal';

/**
 * A lane: a shell in a session and process group of its own that runs one command after another in the slot `$1`.
 *
 * For each line on its input, the name of a run, it notes in `begun` that it has been told, reads the file `run` (see `runScript`),
 * which runs one command in the foreground, writes how that ended and the times so far to `end`, and answers with an empty line. When the agent dies, the lane finishes
 * its run, finds its input closed and goes. It shares the group with the run's processes, so it must outlive the signals that they
 * get: they are caught, not ignored, because ignoring would be inherited. An end that cannot be written down, because the disk is full, is
 * written when it can be.
 */
export const LANE_SCRIPT = `
trap 'hit=1' HUP INT QUIT TERM PIPE ALRM USR1 USR2
cd "$1" || exit
[ -p alive ] || mkfifo -m 600 alive || exit
while :; do
  hit=
  read -r go || { [ "$hit" ] && continue; exit; }
  until echo "$go" 1<>"$1/begun"; do sleep 1; done
  . "$1/run"
  code=$?
  cd "$1"
  until { times && echo "$run $code"; } 1<>"$1/end"; do sleep 1; done
  echo
done
`;

/** Variables that a shell does not let anybody assign, that it changes by itself, or that change how it reads its text. */
const SHELL_VARIABLES =
  /^(_|BASH.*|COMP_WORDBREAKS|DIRSTACK|EPOCH.*|EUID|FUNCNAME|GROUPS|HISTCMD|IFS|LINENO|OPTIND|POSIXLY_CORRECT|PPID|RANDOM|SECONDS|SHELLOPTS|SRANDOM|UID)$/;

const PERL = '/usr/bin/perl';

/** In perl: what the agent has inherited from who started it goes no further than this. */
const CLOSE_INHERITED = `opendir my $fds, "/proc/self/fd" or fail("/proc/self/fd");
for (grep { $_ > 2 && $_ != 9 } grep { /^\\d+$/ } readdir $fds) { open my $one, "<&=", $_ and close $one }`;

/**
 * The last step before the program of a run, with the rights of its job and inside its sandbox: what the job asked for (its variables, its
 * directory, where its program is found) has no effect before. It reads that from its standard input (`startInput`): nobody sees it on a
 * command line, and the account of the job need not be able to open the file.
 */
const LAST_STEP = [
  PERL,
  '-f',
  '-e',
  `
my @all = split /\\0/, do { local $/; <STDIN> }, -1;
my ($umask, $directory, $count) = splice @all, 0, 3;
my @command = splice @all, 0, $count;
pop @all;
%ENV = map { split /=/, $_, 2 } @all;
umask oct $umask if $umask ne "";
sub fail { my $code = $! == 2 ? 127 : 126; print STDERR "${LANE_NAME}: @_: $!\\n"; exit $code }
chdir $directory or fail("the directory $directory cannot be entered");
open STDIN, "<", "/dev/null" or fail("/dev/null");
${CLOSE_INHERITED}
exec { $command[0] } @command;
fail($command[0]);
`,
];

/**
 * In perl: gets a program into an image, which has no perl. A runtime that reads a bundle gets one here, with the account of the job: what is to
 * be in the new root, then `config.json`, which only this account reads. Its state is there too, and goes with the run's files. It has no use for
 * variables but those that it is to hand on, and would look for programs that map ids, which it does by itself.
 */
const ENTER = `
sub bundle {
  my ($bundle, $text) = @_;
  my ($directory, $count, @all) = split /\\0/, $text, -1;
  $directory eq "" or chdir $directory or fail("the directory $directory cannot be entered");
  chdir "/";
  (my $root = $bundle) =~ s{[^/]*$}{root};
  for ($bundle, $root) { mkdir $_ or fail($_) }
  for (1 .. $count) {
    my ($path, $to) = splice @all, 0, 2;
    if ($path !~ m{/$} and $to eq "") { open my $file, ">>", $path or fail($path); next }
    ($to eq "" ? mkdir $path : symlink $to, $path) or $! == 17 or fail($path);
  }
  my $text = shift @all;
  my $mask = umask 077;
  open my $config, ">", "$bundle/config.json" or fail("$bundle/config.json");
  (print $config $text and close $config) or fail("$bundle/config.json");
  umask $mask;
  %ENV = (map({ split /=/, $_, 2 } @all), PATH => "/nonexistent");
}
sub alive { open my $alive, "+<&", 9 or fail("descriptor 9"); $alive }
`;

/** The same for a program in an image. Its words: `umask`, the bundle or nothing, then the runtime and its words. */
const INTO_IMAGE = [
  PERL,
  '-f',
  '-e',
  `
sub fail { print STDERR "${LANE_NAME}: @_: $!\n"; exit 126 }
${ENTER}
my ($umask, $bundle, $runtime, @words) = @ARGV;
umask oct $umask if $umask ne "";
bundle($bundle, do { local $/; <STDIN> }) if $bundle ne "";
${CLOSE_INHERITED}
$^F = 9;
my $asked;
$bundle ne "" or open $asked, "<&", STDIN or fail("standard input");
open STDIN, "<", "/dev/null" or fail("/dev/null");
my $alive;
$alive = alive() if $bundle ne "";
exec { $runtime } $runtime, ($asked ? ("--args", fileno $asked) : ()), @words;
fail($runtime);
`,
];

/** The programs of a run that become its command, by their first words: a signal to the command is not for them. */
export const BECOMES_COMMAND: readonly string[] = [LAST_STEP, INTO_IMAGE].map((step) => step.join('\0'));

/**
 * The same for a program in a terminal, which this goes on to pass input and output for. It reads from its standard input: how many bytes what
 * the job asked for has, that, and then pieces (`inputPiece`), for as long as the program runs. It outlives the agent: which piece was the last is
 * known here, so that one that is sent again by the next agent is not typed twice.
 *
 * Asked to end, it has the program end as when a terminal is lost: shells do not heed SIGTERM. Its ioctls are those of x86, ARM, RISC-V and s390.
 */
const IN_TERMINAL = [
  PERL,
  '-f',
  '-e',
  `
use POSIX qw(:sys_wait_h :fcntl_h);
$0 = "${TERMINAL_NAME}";
sub fail { my $code = $! == 2 ? 127 : 126; print STDERR "${LANE_NAME}: @_: $!\n"; POSIX::_exit($code) }
sub take { my ($all, $n) = ("", @_); while (length $all < $n) { sysread STDIN, $all, $n - length $all, length $all or fail("standard input") } $all }
my ($rows, $columns, $umask, $bundle, $runtime) = splice @ARGV, 0, 5;
my $asked = take(unpack "N", take(4));
open my $master, "+<", "/dev/ptmx" or fail("/dev/ptmx");
ioctl $master, 0x40045431, my $unlocked = pack "i", 0 or fail("/dev/ptmx");
ioctl $master, 0x80045430, my $number = pack "i", 0 or fail("/dev/ptmx");
my $name = "/dev/pts/" . unpack "i", $number;
sysopen my $slave, $name, O_RDWR | O_NOCTTY or fail($name);
${ENTER}
sub resize { ioctl $master, 0x5414, my $size = pack "S4", @_, 0, 0 }
resize($rows, $columns);
my $pid = fork;
defined $pid or fail("fork");
if ($pid == 0) {
  POSIX::setsid();
  ioctl $slave, 0x540E, my $no = 0 or fail($name);
  open STDIN, "<&", $slave or fail($name);
  open STDOUT, ">&", $slave or fail($name);
  open STDERR, ">&", $slave or fail($name);
  my @command = @ARGV;
  if ($runtime) {
    umask oct $umask if $umask ne "";
    bundle($bundle, $asked) if $bundle ne "";
    $^F = 9;
    my ($words, $write, $fd, $alive);
    if ($bundle eq "") {
      pipe $words, $write or fail("pipe");
      syswrite $write, $asked;
      close $write;
      $fd = fileno $words;
    }
    opendir my $fds, "/proc/self/fd" or fail("/proc/self/fd");
    for (grep { $_ > 2 && $_ != 9 && $_ != ($fd || 9) } grep { /^\\d+$/ } readdir $fds) { open my $one, "<&=", $_ and close $one }
    $alive = alive() if $bundle ne "";
    exec { $runtime } $runtime, ($fd ? ("--args", $fd) : ()), @command;
    fail($runtime);
  }
  my @all = split /\\0/, $asked, -1;
  ($umask, my ($directory, $count)) = splice @all, 0, 3;
  @command = splice @all, 0, $count;
  pop @all;
  %ENV = map { split /=/, $_, 2 } @all;
  umask oct $umask if $umask ne "";
  chdir $directory or fail("the directory $directory cannot be entered");
  ${CLOSE_INHERITED}
  exec { $command[0] } @command;
  fail($command[0]);
}
close $slave;
$SIG{$_} = sub { kill "HUP", $pid } for qw(TERM HUP);
$SIG{$_} = sub { } for qw(INT QUIT ALRM USR1 USR2 PIPE CHLD);
fcntl $master, F_SETFL, O_NONBLOCK;
my ($in, $to, $last, $status) = ("", "", 0);
sub show { $! = 0; my $n = sysread $master, my $text, 65536; syswrite STDOUT, $text if $n; $n }
until (defined $status) {
  my ($r, $w) = ("", "");
  vec($r, fileno STDIN, 1) = 1 if length $to < 65536;
  vec($r, fileno $master, 1) = 1;
  vec($w, fileno $master, 1) = 1 if $to ne "";
  my $ready = select $r, $w, undef, 1;
  $status = $? if waitpid($pid, WNOHANG) == $pid;
  next if $ready <= 0;
  if (vec($r, fileno STDIN, 1)) {
    sysread STDIN, $in, 65536, length $in;
    while (length $in >= 10) {
      my ($sequence, $rows, $columns, $length) = unpack "Nn3", $in;
      last if length $in < 10 + $length;
      my $typed = substr substr($in, 0, 10 + $length, ""), 10;
      next if $sequence <= $last;
      $last = $sequence;
      resize($rows, $columns) if $rows;
      $to .= $typed;
    }
  }
  if (vec($w, fileno $master, 1)) { my $n = syswrite $master, $to; substr $to, 0, $n, "" if $n }
  # Nothing has it open any more: the program is about to be over.
  if (vec($r, fileno $master, 1) && !show() && !$!{EAGAIN} && !$!{EINTR} && !defined $status) {
    waitpid $pid, 0;
    $status = $?;
  }
}
for (1 .. 64) { show() or last }
exit($status & 127 ? 128 + ($status & 127) : $status >> 8);
`,
];

/** What this host lacks for the last step; null: nothing. */
export const lastStepLacks = (): string | null => (existsSync(PERL) ? null : `${PERL} is missing (perl)`);

/** The longest piece that is written to the terminal of a run: as much as a pipe takes whole or not at all. */
const PIECE_BYTES = 4096;
const PIECE_HEAD_BYTES = 10;

/** A piece of input as the last step in a terminal reads it. `size` null: as it was. */
export function inputPiece(sequence: number, size: TerminalSize | null, body: Buffer): Buffer {
  if (PIECE_HEAD_BYTES + body.length > PIECE_BYTES)
    throw new RangeError(`${body.length} bytes are too many for a piece of input`);
  const head = Buffer.alloc(PIECE_HEAD_BYTES);
  head.writeUInt32BE(sequence, 0);
  head.writeUInt16BE(size?.rows ?? 0, 4);
  head.writeUInt16BE(size?.columns ?? 0, 6);
  head.writeUInt16BE(body.length, 8);
  return Buffer.concat([head, body]);
}

/** Quotes a string for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** What a run executes, and what stands before it. */
export interface RunCommand {
  /** An absolute path, or, with `launchers`, what the job's account finds in the job's PATH and directory. */
  program: string;
  arguments: readonly string[];
  environment: ReadonlyMap<string, string>;
  directory: string;
  /** Words of the programs that change account and surroundings; they start in the agent's environment. */
  launchers: readonly string[];
  /** How the program gets into the image that it is in; null: it is the machine's. */
  inside: Entrance | null;
  /** The size of the terminal that it is in; null: it has none, and nothing on standard input. */
  terminal: TerminalSize | null;
  /** Octal; null: as it is. */
  umask: string | null;
  /** Shell text before all of it. */
  prologue: readonly string[];
}

/**
 * The file `run` of a slot: line 1, to the shell a comment, is the record of the run for the agent that finds it later, the
 * rest is for the lane. It ends with `return`, because older text may follow.
 *
 * Descriptor 9 is the read end of a pipe that nobody writes to: as long as the agent can open it for writing, a process of
 * the run is still there.
 *
 * @param record JSON
 * @param outputs where the run's output goes: the directory of `out` and `err`
 * @param start a file with the run's `startInput`; null: it has none
 */
export function runScript(
  record: string,
  key: string,
  slot: string,
  outputs: string,
  start: string | null,
  run: RunCommand,
): string {
  const steps = [
    ...run.prologue,
    start === null ? directly(run) : words([...run.launchers, ...lastWords(run)]),
  ];
  const body = steps.join(' && ');
  return (
    // A shell of its own where something has to be said before the program: it becomes the program.
    `${record}\nrun=${quote(key)}\n${run.prologue.length === 0 ? `{ ${body}; }` : `( ${body} )`} ` +
    `${run.terminal === null ? '<' : '<>'}${quote(start ?? '/dev/null')} >${quote(`${outputs}/out`)} 2>${quote(`${outputs}/err`)} 9<>${quote(`${slot}/alive`)}\nreturn\n`
  );
}

const words = (list: readonly string[]): string => list.map(quote).join(' ');

/** Nothing is between the lane and the program: the shell sets its variables for it alone. */
function directly(run: RunCommand): string {
  let text = `cd ${quote(run.directory)} && unset OLDPWD && `;
  for (const [name, value] of run.environment) text += `${name}=${quote(value)} `;
  return text + words([run.program, ...run.arguments]);
}

/** The last step of a run, which reads its `startInput`. */
export function lastWords(run: RunCommand): readonly string[] {
  const { inside, terminal } = run;
  const into = inside === null ? null : [run.umask ?? '', inside.bundle ?? '', ...inside.words(run)];
  if (terminal === null) return into === null ? LAST_STEP : [...INTO_IMAGE, ...into];
  return [...IN_TERMINAL, String(terminal.rows), String(terminal.columns), ...(into ?? ['', ''])];
}

/**
 * What the last step of a run reads; null: it needs none, because the lane starts its program directly.
 *
 * @throws LaunchError where it needs one and the host cannot do it
 */
export function startInput(run: RunCommand): string | null {
  const { program, environment, directory, launchers, inside, umask } = run;
  if (inside !== null) return inside.input(run);
  let odd: string | undefined;
  for (const name of environment.keys())
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || SHELL_VARIABLES.test(name)) odd ??= name;
  if (launchers.length === 0 && odd === undefined && run.terminal === null) return null;
  const lacks = lastStepLacks();
  if (lacks !== null)
    throw new LaunchError(
      odd === undefined
        ? `no terminal on this host: ${lacks}`
        : `environment: the variable ${odd} cannot be set on this host: ${lacks}`,
    );
  const variables = [...environment].map(([name, value]) => `${name}=${value}`);
  const command = [program, ...run.arguments];
  return [umask ?? '', directory, command.length, ...command, ...variables, ''].join('\0');
}

/** @throws LaunchError where a string cannot be passed to a process */
export function checkStrings(assignment: Assignment): void {
  const texts = [assignment.command, assignment.workingDirectory ?? '', ...assignment.arguments];
  for (const [name, value] of Object.entries(assignment.environment)) {
    if (name === '' || name.includes('='))
      throw new LaunchError(`environment: "${name}" is not a valid variable name`);
    texts.push(name, value);
  }
  if (texts.some((text) => text.includes('\0'))) {
    throw new LaunchError('command, arguments and environment may not contain a NUL character');
  }
}

const MAX_CACHED_PROGRAMS = 1000;

/** Finds programs as execvp would, and remembers where: at a thousand starts per second the search is worth it. */
export class ProgramFinder {
  private readonly found = new Map<string, string>();

  /** @throws LaunchError when there is no such program, or it may not be executed */
  find(command: string, path: string, directory: string): string {
    if (command === '') throw new LaunchError('the command is empty');
    if (command.includes('/')) {
      const program = resolve(directory, command);
      if (!isFile(program)) throw new LaunchError(`${command}: no such file`);
      if (!isExecutable(program)) throw new LaunchError(`${command}: not executable`);
      return program;
    }
    const key = `${path}\n${command}`;
    const known = this.found.get(key);
    if (known !== undefined && isFile(known)) return known;
    for (const folder of path.split(delimiter)) {
      if (!isAbsolute(folder)) continue;
      const program = `${folder}/${command}`;
      if (!isFile(program) || !isExecutable(program)) continue;
      if (this.found.size >= MAX_CACHED_PROGRAMS) this.found.clear();
      this.found.set(key, program);
      return program;
    }
    throw new LaunchError(`${command}: no such command in PATH (${path})`);
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
