/** What jobs of a submission need: checked, and from names to ids. Rules: src/core/needs. */
import {
  type AskedTerm,
  checkNeeds,
  type NeedsError,
  type NeedsItem,
  sayNeedsError,
} from '../../core/needs/check.js';
import { NEEDS_LIMITS } from '../../core/needs/model.js';
import { MAX } from '../../platform/limits.js';
import { turns } from '../../platform/turns.js';
import type { NewNeedTerm, NewWait, ReadTarget } from '../../store/needs.js';
import type { GroupMember } from '../../store/queries.js';
import type { Viewer } from '../auth.js';
import { textFault } from '../check.js';
import { notAccepted } from '../errors.js';
import type { NeedTermInput } from '../generated/types.js';
import { parseGlobalId } from '../ids.js';
import { maySeeJob } from './access.js';
import type { Fault } from './job-input.js';
import type { ServiceParts } from './parts.js';
import { type AskedJob, bulk, checkReads, neededToRead, type Read, readsOf } from './reads.js';

/** What waits of jobs are told as, to whoever compares two submissions; null: nothing. */
export const askedWait = ({ ref, needs, onUnmet, notBefore, inputs }: AskedJob['input']): object | null => {
  const from = inputs.flatMap((input) => input.from ?? []);
  if (needs.length === 0 && !notBefore && !ref && from.length === 0) return null;
  return { ref, needs, onUnmet, notBefore, ...(from.length > 0 && { from }) };
};

/** What the job at an index of an item waits for. */
export type WaitOf = (item: number, index: number | null) => NewWait | null;

/** Jobs in one look-up. */
const LOOK_UP_MAX = 10_000;
/** Whose needs are looked at in one turn of the event loop. */
const ITEMS_OF_A_TURN = 500;

/** Faults are handed to `fault`, with the item. The answer is only good when there were none. */
export async function waitsOfSubmission(
  { queries }: Pick<ServiceParts, 'queries'>,
  viewer: Viewer,
  jobs: readonly AskedJob[],
  fault: (item: number, fault: Fault) => void,
): Promise<WaitOf> {
  const refuse: Refuse = (item, field, message) => fault(item, { field, code: 'BAD_USER_INPUT', message });
  const refs = new Set<string>();
  for (const { input } of jobs) if (input.ref) refs.add(input.ref);
  const items: NeedsItem[] = [];
  const reads: (readonly Read[])[] = [];
  const named: AskedTerm[] = [];
  let isPart = refs.size > 0;
  for (const [item, job] of jobs.entries()) {
    if (item % ITEMS_OF_A_TURN === ITEMS_OF_A_TURN - 1) await turns.pause();
    const { input, array } = job;
    const read = readsOf(job, refs);
    const needs = [...askedClauses(input, item, refuse), ...neededToRead(read)];
    for (const { of } of needs) for (const term of of) if (!('ref' in term)) named.push(term);
    isPart ||= needs.length > 0;
    reads.push(read);
    items.push({ ref: input.ref ?? null, array, group: input.groupName ?? null, needs });
  }
  if (!isPart) return (item) => onlyTime(jobs[item]);
  const existing = await existingJobs(queries, viewer, named);
  await turns.pause();
  const errors = checkNeeds(items, existing, NEEDS_LIMITS);
  for (const error of errors) sayWrong(error, items, jobs, reads, refuse);
  const { resolve, membersOf } = resolver(items, existing);
  if (reads.some((of) => of.length > 0) && errors.length === 0)
    await checkReads(queries, jobs, reads, membersOf, refuse);
  return (item, index) => {
    const { input } = jobs[item] as AskedJob;
    const read = (reads[item] as readonly Read[]).map(
      ({ place, term }) => [place, membersOf(term, index)] as const,
    );
    // The last clause is of what it reads, if it reads anything.
    const { needs: asked } = items[item] as NeedsItem;
    const needs: NewWait['needs'][number][] = asked
      .slice(0, input.needs.length)
      .map(({ expression, of }) => ({ expression, of: of.map((term) => resolve(term, index)) }));
    if (read.length > 0) needs.push({ expression: 'ALL', of: read.flatMap(([, of]) => of.map(toBeKept)) });
    if (needs.length === 0) return onlyTime(jobs[item]);
    return { ...timeOf(input), needs, ...(read.length > 0 && { reads: new Map(read) }) };
  };
}

type Refuse = (item: number, field: string, message: string) => void;

function askedClauses(input: AskedJob['input'], item: number, refuse: Refuse): NeedsItem['needs'][number][] {
  const wrong = typeof input.ref === 'string' ? textFault(input.ref, MAX.nameChars, 1) : null;
  if (wrong) refuse(item, 'ref', notAccepted('ref', input.ref, wrong));
  return input.needs.map(({ expression, of }, c) => ({
    expression,
    of: of.flatMap((term, t) => {
      const asked = askedTerm(term);
      const field = `needs[${c}].of[${t}]`;
      if (asked === null)
        refuse(item, field, notAccepted(field, term, 'exactly one of `ref`, `job`, `group`, `jobGroup`'));
      return asked ?? [];
    }),
  }));
}

function sayWrong(
  error: NeedsError,
  items: readonly NeedsItem[],
  jobs: readonly AskedJob[],
  reads: readonly (readonly Read[])[],
  refuse: Refuse,
): void {
  const item = 'item' in error ? error.item : 'items' in error ? (error.items[0] as number) : 0;
  const message = sayNeedsError(error, items, NEEDS_LIMITS);
  const read = 'term' in error ? reads[item]?.[error.term] : undefined;
  if (read !== undefined && 'term' in error && error.clause === jobs[item]?.input.needs.length) {
    const { place } = read;
    const said = message.replace(`needs.${error.clause}.of.${error.term}`, `inputs.${place}.from`);
    refuse(item, `inputs[${place}].from`, said);
    return;
  }
  const field =
    'term' in error
      ? `needs[${error.clause}].of[${error.term}]`
      : 'clause' in error
        ? `needs[${error.clause}].of`
        : error.code === 'DUPLICATE_REF'
          ? 'ref'
          : 'needs';
  refuse(item, field, message);
}

const toBeKept = (of: ReadTarget): NewNeedTerm => ({ ...of, condition: 'OK', minDelayS: 0 });

const timeOf = ({ onUnmet, notBefore }: AskedJob['input']): Omit<NewWait, 'needs'> => ({
  onUnmet,
  notBefore: notBefore ? notBefore.getTime() / 1000 : null,
});

const onlyTime = (job: AskedJob | undefined): NewWait | null =>
  job?.input.notBefore ? { ...timeOf(job.input), needs: [] } : null;

/** null: it does not name one thing. */
function askedTerm(asked: NeedTermInput): AskedTerm | null {
  const { ref, job, group, jobGroup, condition, minDelayS } = asked;
  const isGiven = (name: string | null | undefined): number => (typeof name === 'string' ? 1 : 0);
  if (isGiven(ref) + isGiven(job) + isGiven(group) + isGiven(jobGroup) !== 1) return null;
  // There may be a million.
  if (typeof ref === 'string') return { ref, condition, minDelayS };
  if (typeof job === 'string') return { job, condition, minDelayS };
  return { group: typeof group === 'string' ? group : bulk(jobGroup as string), condition, minDelayS };
}

interface Existing {
  has(job: string): boolean;
  indicesOf(group: string): readonly (number | null)[] | null;
  /** The member with this index; of several the latest. */
  memberOf(group: string, index: number): number | null;
  /** In the order of ids. */
  membersOf(group: string): readonly number[];
}

/** What the terms name of what is there, as far as the viewer may see it. Groups by name are those of the viewer. */
async function existingJobs(
  queries: ServiceParts['queries'],
  viewer: Viewer,
  terms: readonly AskedTerm[],
): Promise<Existing> {
  const idsOf = (type: 'job' | 'group', names: readonly string[]): number[] => [
    ...new Set(
      names.flatMap((name) => {
        const parsed = parseGlobalId(name);
        return parsed?.type === type ? [parsed.id] : [];
      }),
    ),
  ];
  const named = terms.flatMap((term) => ('group' in term ? [term.group] : []));
  const isBulk = (name: string): boolean => name.endsWith(bulk(''));
  const jobs = new Set<string>();
  const ids = idsOf(
    'job',
    terms.flatMap((term) => ('job' in term ? [term.job] : [])),
  );
  for (let i = 0; i < ids.length; i += LOOK_UP_MAX)
    for (const owner of await queries.ownersOf(ids.slice(i, i + LOOK_UP_MAX)))
      if (maySeeJob(viewer, owner)) jobs.add(`job_${owner.id}`);
  const groups = new Map<string, GroupMember[]>();
  const put = (name: string, member: GroupMember): void => {
    const members = groups.get(name);
    if (members === undefined) groups.set(name, [member]);
    else members.push(member);
  };
  const names = [...new Set(named.filter((name) => !isBulk(name)))];
  for (const member of await queries.membersByName(viewer.userId, names)) put(member.group, member);
  const bulkIds = idsOf(
    'group',
    named.filter(isBulk).map((name) => name.slice(0, -bulk('').length)),
  );
  const visible = (await queries.groupsByIds(bulkIds)).filter((group) => maySeeJob(viewer, group));
  for (const member of await queries.membersOfGroups(visible.map(({ id }) => id)))
    put(bulk(`group_${member.group}`), member);
  const byIndex = new Map<string, Map<number | null, number>>();
  return {
    has: (job) => jobs.has(job),
    indicesOf: (group) => groups.get(group)?.map(({ arrayIndex }) => arrayIndex) ?? null,
    memberOf(group, index) {
      const known =
        byIndex.get(group) ??
        new Map((groups.get(group) ?? []).map(({ arrayIndex, id }) => [arrayIndex, id]));
      byIndex.set(group, known);
      return known.get(index) ?? null;
    },
    membersOf: (group) => (groups.get(group) ?? []).map(({ id }) => id),
  };
}

/** From what a term names to what is stored; `index` of the job that has it. */
function resolver(items: readonly NeedsItem[], existing: Existing) {
  const byRef = new Map(items.flatMap(({ ref }, item) => (ref === null ? [] : [[ref, item] as const])));
  const own = new Map<string, number>();
  for (const [item, { group, array }] of items.entries())
    if (group !== null && array !== null) own.set(`${array[0]} ${group}`, item);
  const memberOf = (group: string, index: number): ReadTarget => {
    const item = own.get(`${index} ${group}`);
    return item === undefined ? { job: existing.memberOf(group, index) ?? 0 } : { item };
  };
  /** The one job that it is about; null: all jobs of a group. */
  const one = (term: AskedTerm, index: number | null): ReadTarget | null => {
    if ('ref' in term) return { item: byRef.get(term.ref) ?? 0 };
    if ('job' in term) return { job: parseGlobalId(term.job)?.id ?? 0 };
    return term.condition === 'CORRESPONDING' ? memberOf(term.group, index ?? 0) : null;
  };
  return {
    resolve(term: AskedTerm, index: number | null): NewNeedTerm {
      const { minDelayS } = term;
      const condition = term.condition === 'CORRESPONDING' ? 'OK' : term.condition;
      const of = one(term, index);
      if (of !== null)
        return 'item' in of ? { item: of.item, condition, minDelayS } : { job: of.job, condition, minDelayS };
      const { group } = term as AskedTerm & { group: string };
      const id = group.endsWith(bulk('')) ? parseGlobalId(group.slice(0, -bulk('').length))?.id : undefined;
      return id === undefined ? { group, condition, minDelayS } : { jobGroup: id, condition, minDelayS };
    },

    /** Each job that it is about. */
    membersOf(term: AskedTerm, index: number | null): ReadTarget[] {
      const of = one(term, index);
      if (of !== null) return [of];
      const { group } = term as AskedTerm & { group: string };
      const here = items.flatMap((item, place) => (item.group === group ? [{ item: place }] : []));
      return [...existing.membersOf(group).map((job) => ({ job })), ...here];
    },
  };
}
