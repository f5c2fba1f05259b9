/**
 * Sites of time-shared nodes (Santoso et al., section 3): a node shares its processor equally among the tasks on it that can
 * run. The tasks of a parallel job sit on different nodes of one site and compute in sections of one unit of CPU time; a
 * task that has ended its section uses no CPU until all have. Places on nodes are held until the job ends.
 */

/** A job of `tasks` equal tasks. */
export interface TimeSharedJob {
  /** Its number by arrival, from 0. */
  id: number;
  arrival: number;
  tasks: number;
  /** CPU time of each task. */
  cpu: number;
}

export interface TimeSharedShape {
  sites: number;
  nodesPerSite: number;
  tasksPerNode: number;
  jobsPerSite: number;
  /** CPU time of a section of a parallel job. */
  section: number;
}

interface Running {
  job: TimeSharedJob;
  site: number;
  places: number[];
  /** CPU time that each task still needs after this section. */
  left: number;
  /** Tasks that have not ended this section. */
  busy: number;
}

/** CPU time below which a section counts as ended: rounding of sums of shares. */
const NEGLIGIBLE = 1e-9;

export class TimeSharedNodes {
  /** Running jobs by site. */
  readonly running: Int32Array;
  private readonly nodes: number;
  /** A node has `tasksPerNode` places; each is free, busy with so much CPU time left, or waits for its job's others. */
  private readonly jobAt: (Running | null)[];
  private readonly remaining: Float64Array;
  private readonly busy: Uint8Array;
  /** By node: tasks there, tasks that run, the time up to which `remaining` is true, and when the next section ends. */
  private readonly resident: Int32Array;
  private readonly sharers: Int32Array;
  private readonly updated: Float64Array;
  private readonly nextEnd: Float64Array;

  constructor(private readonly shape: TimeSharedShape) {
    this.nodes = shape.sites * shape.nodesPerSite;
    const places = this.nodes * shape.tasksPerNode;
    this.running = new Int32Array(shape.sites);
    this.jobAt = new Array(places).fill(null);
    this.remaining = new Float64Array(places);
    this.busy = new Uint8Array(places);
    this.resident = new Int32Array(this.nodes);
    this.sharers = new Int32Array(this.nodes);
    this.updated = new Float64Array(this.nodes);
    this.nextEnd = new Float64Array(this.nodes).fill(Infinity);
  }

  /** The node on which a section ends next; its time is `endAt(node)`, Infinity when nothing runs. */
  next(): number {
    let node = 0;
    for (let i = 1; i < this.nodes; i++) {
      if ((this.nextEnd[i] as number) < (this.nextEnd[node] as number)) node = i;
    }
    return node;
  }

  endAt(node: number): number {
    return this.nextEnd[node] as number;
  }

  /** Whether a site has room for a job of so many tasks: on different nodes, and for one more job. */
  fits(site: number, tasks: number): boolean {
    const { nodesPerSite, tasksPerNode, jobsPerSite } = this.shape;
    if ((this.running[site] as number) >= jobsPerSite) return false;
    let open = 0;
    for (let i = 0; i < nodesPerSite; i++) {
      if ((this.resident[site * nodesPerSite + i] as number) < tasksPerNode) open++;
    }
    return open >= tasks;
  }

  /** Starts a job that fits: from the node with the fewest tasks on, in order of index, passing full nodes over. */
  start(job: TimeSharedJob, site: number, now: number): void {
    const { nodesPerSite, tasksPerNode, section } = this.shape;
    const first = site * nodesPerSite;
    let least = 0;
    for (let i = 1; i < nodesPerSite; i++) {
      if ((this.resident[first + i] as number) < (this.resident[first + least] as number)) least = i;
    }
    const work = job.tasks === 1 ? job.cpu : Math.min(section, job.cpu);
    const running: Running = { job, site, places: [], left: job.cpu - work, busy: job.tasks };
    for (let i = 0; running.places.length < job.tasks; i++) {
      const node = first + ((least + i) % nodesPerSite);
      if ((this.resident[node] as number) >= tasksPerNode) continue;
      let place = node * tasksPerNode;
      while (this.jobAt[place] !== null) place++;
      this.jobAt[place] = running;
      this.resident[node] = (this.resident[node] as number) + 1;
      running.places.push(place);
      this.wake(place, work, now);
    }
    this.running[site] = (this.running[site] as number) + 1;
  }

  /** Ends the sections that end on the node now; the jobs that have ended with them go into `ended`. */
  advance(node: number, ended: { job: TimeSharedJob; site: number }[]): void {
    const now = this.endAt(node);
    const { tasksPerNode, section } = this.shape;
    this.share(node, now);
    const first = node * tasksPerNode;
    for (let place = first; place < first + tasksPerNode; place++) {
      if (this.busy[place] === 0 || (this.remaining[place] as number) > NEGLIGIBLE) continue;
      const running = this.jobAt[place] as Running;
      this.busy[place] = 0;
      this.sharers[node] = (this.sharers[node] as number) - 1;
      if (--running.busy > 0) continue;
      if (running.left <= NEGLIGIBLE) {
        this.free(running);
        ended.push(running);
        continue;
      }
      const work = Math.min(section, running.left);
      running.left -= work;
      running.busy = running.places.length;
      for (const other of running.places) this.wake(other, work, now);
    }
    this.plan(node, now);
  }

  private free(running: Running): void {
    for (const place of running.places) {
      const node = Math.floor(place / this.shape.tasksPerNode);
      this.jobAt[place] = null;
      this.resident[node] = (this.resident[node] as number) - 1;
    }
    this.running[running.site] = (this.running[running.site] as number) - 1;
  }

  /** The task in a place has work from now on. */
  private wake(place: number, work: number, now: number): void {
    const node = Math.floor(place / this.shape.tasksPerNode);
    this.share(node, now);
    this.busy[place] = 1;
    this.remaining[place] = work;
    this.sharers[node] = (this.sharers[node] as number) + 1;
    this.plan(node, now);
  }

  /** Gives the tasks on a node the CPU time that has passed since. */
  private share(node: number, now: number): void {
    const sharers = this.sharers[node] as number;
    const each = sharers === 0 ? 0 : (now - (this.updated[node] as number)) / sharers;
    this.updated[node] = now;
    if (each === 0) return;
    const first = node * this.shape.tasksPerNode;
    for (let place = first; place < first + this.shape.tasksPerNode; place++) {
      if (this.busy[place] === 1) this.remaining[place] = (this.remaining[place] as number) - each;
    }
  }

  private plan(node: number, now: number): void {
    let least = Infinity;
    const first = node * this.shape.tasksPerNode;
    for (let place = first; place < first + this.shape.tasksPerNode; place++) {
      if (this.busy[place] === 1 && (this.remaining[place] as number) < least)
        least = this.remaining[place] as number;
    }
    this.nextEnd[node] =
      least === Infinity ? Infinity : now + Math.max(0, least) * (this.sharers[node] as number);
  }
}
