/**
 * The Grid Workload Format (Grid Workloads Archive, TU Delft): comments after `#`, then a job a line, 29 fields of which
 * the first 18 are read. The first 16 are those of the Standard Workload Format; users, groups, executables, queues and
 * sites are names, and field 17 is the site where the job was submitted. Times are as in the file, mostly seconds since 1970.
 */
import { jobOf, type LineReader, numbersIn, type SwfJob } from './swf.js';

const FIELDS = 18;
/** Positions of user, group, executable, queue and partition. */
const NAMES = [11, 12, 13, 14, 15];
const SITE = 16;
/** Positions that the Standard Workload Format has, or may have, otherwise. */
const UNKNOWN = '-1';

/** Numbers names in the order in which they come, from 1. */
class Numbering {
  readonly names = new Map<number, string>();
  private readonly numbers = new Map<string, number>();

  of(name: string): number {
    if (name === UNKNOWN) return -1;
    let number = this.numbers.get(name);
    if (number === undefined) {
      number = this.numbers.size + 1;
      this.numbers.set(name, number);
      this.names.set(number, name);
    }
    return number;
  }
}

/** Reads its lines as jobs of the other format: the partition is the site of submission. */
export class GwfLines implements LineReader {
  readonly comment = '#';
  private readonly sites = new Numbering();
  private readonly users = new Numbering();
  private readonly others = NAMES.slice(1).map(() => new Numbering());

  get siteNames(): ReadonlyMap<number, string> {
    return this.sites.names;
  }

  get userNames(): ReadonlyMap<number, string> {
    return this.users.names;
  }

  read(content: string): SwfJob | string {
    const words = content.split(/\s+/, FIELDS);
    if (words.length < FIELDS)
      return `${words.length} fields; at least ${FIELDS} of the usual 29 are required`;
    const named = NAMES.map((at) => words[at] as string);
    const site = words[SITE] as string;
    // Memory is sometimes written with its unit or not at all: nothing depends on what was used.
    if (!Number.isFinite(Number(words[6]))) words[6] = UNKNOWN;
    for (const at of [...NAMES, SITE, SITE + 1]) words[at] = UNKNOWN;
    const numbers = numbersIn(words);
    if (typeof numbers === 'string') return numbers;
    const job = jobOf(numbers);
    const [user, group, executable, queue] = named as [string, string, string, string];
    job.user = this.users.of(user);
    job.group = this.others[0]?.of(group) as number;
    job.executable = this.others[1]?.of(executable) as number;
    job.queue = this.others[2]?.of(queue) as number;
    job.partition = this.sites.of(site);
    return job;
  }
}
