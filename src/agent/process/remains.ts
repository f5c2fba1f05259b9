/** What is left of runs that are over, until nothing uses their accounts and control groups any more. */
import { type Account, EMPTY } from './accounts.js';
import type { Cgroup } from './cgroup.js';
import { removeTree } from './disk.js';
import type { Isolation } from './isolation.js';
import { freeze, processesWithIds } from './processes.js';
import { signal } from './signals.js';

export interface Left {
  /** Its own account, or the group that only it has. */
  ownId: number | null;
  /** The account of its user. */
  account: Account | null;
  group: Cgroup | null;
  /** Directories of its own: not removed before nobody can exchange what is in them for a link to somewhere else. */
  trash: readonly string[];
}

export class Remains {
  private all: (Left & { rounds: number })[] = [];

  constructor(private readonly isolation: Isolation) {}

  /**
   * Gives back the number and the control group of a run that is over, when nothing uses them any more. A process that has left group,
   * session and environment behind is met here: the control group holds it, and account or group are no other's.
   */
  add(left: Left, rounds = 0): void {
    const { ownId, group } = left;
    if (group?.remove() === false) group.kill();
    // With a group that is gone nobody of the account is left. Without one, somebody has to look.
    else if (ownId === null || group !== null) {
      this.cleared(left);
      return;
    }
    this.all.push({ ...left, rounds });
  }

  /** Ends what is found of them. */
  look(): void {
    const { all } = this;
    if (all.length === 0) return;
    this.all = [];
    const ids = new Set(all.flatMap(({ ownId, group }) => (ownId === null || group ? [] : [ownId])));
    const found = ids.size > 0 ? processesWithIds((id) => ids.has(id)) : null;
    for (const one of all) {
      const pids = one.ownId === null || one.group ? undefined : found!.get(one.ownId);
      if (one.group) this.add(one);
      else if (pids === undefined) this.cleared(one);
      else {
        for (const pid of one.account === null ? pids : freeze(one.ownId!)) signal(pid, 'SIGKILL');
        if (one.rounds > 2 && one.account === null) this.isolation.killAll(one.ownId!);
        this.all.push({ ...one, rounds: one.rounds + 1 });
      }
    }
  }

  /** No process uses it any more. */
  cleared({ ownId, account, trash }: Omit<Left, 'group'>): void {
    if (ownId !== null) this.isolation.putBackId(ownId, account === null);
    const remove = async (dir: string): Promise<void> => {
      const gone = removeTree(dir);
      if (account === null || this.isolation.launcher === null) return gone;
      await gone.catch(async () => {
        // Somebody else's, whom the agent has to ask.
        await this.isolation.accounts!.do(account, EMPTY, dir);
        await removeTree(dir);
      });
    };
    for (const dir of trash) remove(dir).catch(() => {}); // What resists goes at the agent's next start.
  }
}
