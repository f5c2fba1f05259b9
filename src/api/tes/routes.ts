/**
 * The operations of GA4GH TES 1.1 (tes.yaml). Each is made of operations of GraphQL: a task may what its job may, costs what that costs, and
 * is the same job.
 */
import { readFileSync } from 'node:fs';
import type { Request } from 'express';
import { packagePath } from '../../platform/paths.js';
import { VERSION } from '../../platform/version.js';
import type { TesConfig } from '../config.js';
import { ApiError, badInput, notFound } from '../errors.js';
import { readTask } from './document.js';
import {
  TesCancelDocument,
  TesDetailsDocument,
  TesSitesDocument,
  TesSubmitDocument,
  TesTasksDocument,
  type TesTasksQuery,
} from './documents.gql.js';
import { jobOfTask, PARAMETER_NAMES, taskOfJob, WITHOUT_IMAGE } from './job.js';
import type { Ask } from './operation.js';
import { type Details, jobStatesOf, shownTask, stateOf, TES_STATES, VIEWS, type View } from './shown.js';

export const TES_PATH = '/ga4gh/tes/v1';

interface Route {
  method: 'get' | 'post';
  path: string;
  answer(ask: Ask, req: Request, config: TesConfig): Promise<object>;
}

export const ROUTES: readonly Route[] = [
  { method: 'get', path: '/service-info', answer: async (_ask, req, config) => serviceInfo(req, config) },
  { method: 'get', path: '/tasks', answer: listTasks },
  { method: 'post', path: '/tasks', answer: createTask },
  { method: 'get', path: '/tasks/:id', answer: getTask },
  { method: 'post', path: '/tasks/:id\\:cancel', answer: cancelTask },
];

/** The specification, with its license. */
export const openApi = (): string => readFileSync(packagePath('tes.yaml'), 'utf8');

function serviceInfo({ protocol, headers }: Request, { storage }: TesConfig) {
  return {
    ...{ id: 'switchyard', name: 'Switchyard', version: VERSION },
    description:
      'Tasks are jobs of Switchyard, scheduled across many sites, and run in an image if the task names one.',
    type: { group: 'org.ga4gh', artifact: 'tes', version: '1.1.0' },
    organization: { name: 'Switchyard', url: `${protocol}://${headers.host ?? 'localhost'}` },
    storage,
    tesResources_backend_parameters: PARAMETER_NAMES,
  };
}

async function createTask(ask: Ask, { body }: Request, { ignoresImages }: TesConfig) {
  if (body === undefined)
    throw new ApiError(
      'BAD_USER_INPUT',
      'the body is not JSON: send the task with Content-Type: application/json',
    );
  const task = readTask(body);
  const sites = task.resources?.zones?.length ? (await ask(TesSitesDocument, {})).sites.nodes : [];
  const { submitJobs } = await ask(TesSubmitDocument, { job: jobOfTask(task, { ignoresImages, sites }) });
  const [fault] = submitJobs.errors;
  if (fault?.field === 'image')
    throw new ApiError(fault.code, `executors[0].${fault.message}. ${WITHOUT_IMAGE}`, {
      field: 'executors[0].image',
    });
  if (fault) throw new ApiError(fault.code, fault.message, { field: fault.field });
  return { id: submitJobs.jobIds[0] };
}

async function getTask(ask: Ask, { params, query }: Request) {
  const view = viewOf(query);
  const id = idOf(params);
  const [job] = await details(ask, [id], view);
  if (!job) throw notFound('task', id);
  return view === 'MINIMAL' ? { id, state: stateOf(job) } : shownTask(job, view);
}

async function cancelTask(ask: Ask, { params }: Request) {
  const { unchanged } = (await ask(TesCancelDocument, { id: idOf(params) })).cancelJobs;
  const [fault] = unchanged;
  if (fault?.code === 'NOT_FOUND') throw notFound('task', idOf(params));
  if (fault) throw new ApiError(fault.code, fault.message, { http: { status: 409, headers: new Map() } });
  return {};
}

/** Of a page; what the specification says. */
const [PAGE_DEFAULT, PAGE_MAX] = [256, 2047];
/** With what tasks wrote, which costs: the rest is behind the page's token. */
const DETAILED_PAGE_MAX = 40;
/** Jobs that one request looks through for names and tags: the rest is behind the token, too. */
const [LOOK, LOOKS_MAX] = [500, 10];

async function listTasks(ask: Ask, { query }: Request) {
  const view = viewOf(query);
  const size = Math.min(pageSizeOf(query), view === 'MINIMAL' ? PAGE_MAX : DETAILED_PAGE_MAX);
  const state = textOf(query, 'state');
  if (state !== undefined && !(TES_STATES as readonly string[]).includes(state))
    throw badInput('state', state, TES_STATES.join(', '));
  const [prefix = '', tags] = [textOf(query, 'name_prefix'), tagsOf(query)];
  const isWanted = (job: Found): boolean =>
    (state === undefined || stateOf(job) === state) &&
    (job.name ?? '').startsWith(prefix) &&
    (tags.length === 0 || hasTags(job, tags));
  const found: Found[] = [];
  let after: string | null = textOf(query, 'page_token') ?? null;
  let more = true;
  for (let looks = 0; more && looks < LOOKS_MAX && found.length < size; looks++) {
    const { jobs } = await ask(TesTasksDocument, {
      filter: state === undefined ? null : { states: jobStatesOf(state) },
      ...{ first: LOOK, after, whole: prefix !== '' || tags.length > 0 },
    });
    more = jobs.pageInfo.hasNextPage;
    for (const [i, { cursor, node }] of jobs.edges.entries()) {
      after = cursor;
      if (!isWanted(node)) continue;
      found.push(node);
      if (found.length < size) continue;
      more ||= i + 1 < jobs.edges.length;
      break;
    }
  }
  const tasks =
    view === 'MINIMAL'
      ? found.map((job) => ({ id: job.id, state: stateOf(job) }))
      : (
          await details(
            ask,
            found.map(({ id }) => id),
            view,
          )
        ).map((job) => shownTask(job, view));
  return { tasks, ...(more && after !== null && { next_page_token: after }) };
}

type Found = TesTasksQuery['jobs']['edges'][number]['node'];

/** Those that still exist, in the order of the ids. */
async function details(ask: Ask, ids: readonly string[], view: View): Promise<Details[]> {
  if (ids.length === 0) return [];
  const { jobs } = await ask(TesDetailsDocument, { ids, first: ids.length, full: view === 'FULL' });
  const byId = new Map(jobs.nodes.map((job) => [job.id, job]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

type Query = Request['query'];

function hasTags(
  { command = '', arguments: args = [] }: Found,
  wanted: readonly [string, string][],
): boolean {
  const tags = taskOfJob({ command, arguments: args })?.tags ?? {};
  return wanted.every(([key, value]) => Object.hasOwn(tags, key) && (value === '' || tags[key] === value));
}

/** Keys with the values beside them; an empty value: any. */
function tagsOf(query: Query): [string, string][] {
  const list = (name: string): string[] => [query[name] ?? []].flat().map(String);
  const values = list('tag_value');
  return list('tag_key').map((key, i) => [key, values[i] ?? '']);
}

function idOf({ id }: Request['params']): string {
  // Anything else is no id of ours, and so of no task.
  if (typeof id !== 'string' || !/^job_[1-9]\d{0,14}$/.test(id)) throw notFound('task', String(id));
  return id;
}

function textOf(query: Query, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw badInput(name, value, 'one value');
  return value;
}

function viewOf(query: Query): View {
  const view = textOf(query, 'view') ?? 'MINIMAL';
  const known = VIEWS.find((one) => one === view);
  if (!known) throw badInput('view', view, VIEWS.join(', '));
  return known;
}

function pageSizeOf(query: Query): number {
  const written = textOf(query, 'page_size');
  if (written === undefined) return PAGE_DEFAULT;
  const size = Number(written);
  if (!Number.isInteger(size) || size < 1 || size > PAGE_MAX)
    throw badInput('page_size', written, `1 to ${PAGE_MAX}`);
  return size;
}
