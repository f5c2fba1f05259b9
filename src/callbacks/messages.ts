/** What is sent of an event: CloudEvents 1.0 in JSON, the event and its job in the words of the API (`jobUpdated`). */
import type { EventRow, JobRow } from '../store/rows.js';
import type { Message } from './sender.js';

/** What is read of jobs: what is told of them, and what filters ask of them. */
export const toldFields = [
  ...(['id', 'state', 'name', 'application', 'project', 'groupName', 'groupId', 'arrayIndex'] as const),
  ...(['userId', 'siteId', 'cause', 'exitCode', 'message', 'submittedAt', 'startedAt', 'endedAt'] as const),
  ...(['class', 'licenses', 'resources', 'epoch', 'eligibleAt', 'needsOthers'] as const),
] as const satisfies (keyof JobRow)[];
export type ToldJob = Pick<JobRow, (typeof toldFields)[number]>;

/** Names that rows only have the ids of. */
export interface Names {
  site(id: number): string;
  user(id: number): string;
}

/** What happened to a job: the state that it came into, or that it was changed in place. */
export const kindOf = ({ kind, toState }: EventRow): string =>
  kind === 'JOB_CHANGED' ? 'CHANGED' : (toState as string);

const iso = (atS: number): string => new Date(atS * 1000).toISOString();
const isoOrNull = (atS: number | null): string | null => (atS === null ? null : iso(atS));

function message(
  webhookId: number,
  event: { id: string; source: string; type: string; subject?: string; at: number; data: object },
): Message {
  const { at, id, data, ...attributes } = event;
  const body = { specversion: '1.0', id, ...attributes, time: iso(at) };
  return {
    id: `webhook_${webhookId}.${id}`,
    body: JSON.stringify({ ...body, datacontenttype: 'application/json', data }),
  };
}

export function jobMessage(
  webhookId: number,
  source: string,
  event: EventRow,
  job: ToldJob,
  names: Names,
): Message {
  const subject = `job_${event.entityId}`;
  const site = (id: number | null): object | null =>
    id === null ? null : { id: `site_${id}`, name: names.site(id) };
  return message(webhookId, {
    ...{ id: `event_${event.id}`, source, subject, at: event.at },
    type: `switchyard.job.${kindOf(event).toLowerCase()}`,
    data: {
      event: {
        id: `event_${event.id}`,
        at: iso(event.at),
        kind: event.kind,
        sequence: event.seq,
        fromState: event.fromState,
        toState: event.toState,
        site: site(event.siteId),
        epoch: event.epoch,
        cause: event.cause,
      },
      job: {
        id: subject,
        state: job.state,
        name: job.name,
        application: job.application,
        project: job.project,
        groupName: job.groupName,
        group: job.groupId === null ? null : { id: `group_${job.groupId}` },
        arrayIndex: job.arrayIndex,
        user: { id: `user_${job.userId}`, name: names.user(job.userId) },
        site: site(job.siteId),
        cause: job.cause,
        exitCode: job.exitCode,
        message: job.message,
        submittedAt: iso(job.submittedAt),
        startedAt: isoOrNull(job.startedAt),
        endedAt: isoOrNull(job.endedAt),
      },
    },
  });
}

/** Events were removed before they could be sent: whoever gets it looks at the jobs as they are now. */
export const missedMessage = (
  webhookId: number,
  source: string,
  after: number,
  to: number,
  at: number,
): Message =>
  message(webhookId, {
    ...{ id: `missed_${after}_${to}`, source, type: 'switchyard.events.missed', at },
    data: { after: String(after), cursor: String(to) },
  });

export const testMessage = (webhookId: number, source: string, at: number): Message =>
  message(webhookId, {
    ...{ id: `test_${Math.round(at * 1000)}`, source, type: 'switchyard.webhook.test', at },
    data: { webhook: { id: `webhook_${webhookId}` } },
  });
