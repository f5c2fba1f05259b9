/** Actions on many jobs: what they will do is counted first, and exactly what was counted is then acted on. */
import { useEffect, useState } from 'react';
import { ask } from '../api/client';
import type { JobState } from '../api/states.gql';
import { CANCELLABLE_STATES, ENDED_STATES, PENDING_STATES } from '../api/states.gql';
import { useViewer } from '../shell/viewer';
import { Button, Dialog, TextInput } from '../ui/controls';
import { count, plural } from '../ui/format';
import { Problem, Skeleton, StateBadge } from '../ui/show';
import { toast } from '../ui/toast';
import {
  BoostJobsDocument,
  CancelJobsDocument,
  HoldJobsDocument,
  ReleaseJobsDocument,
  RequeueJobsDocument,
} from './actions.gql';
import { JobIdsDocument } from './bulk.gql';
import type { JobFilter } from './job-rows.gql';

export type BulkAction = 'cancel' | 'requeue' | 'hold' | 'release' | 'boost';

interface Meaning {
  title: string;
  verb: string;
  done: string;
  states: readonly JobState[];
  /** And those, where jobs are named one by one. */
  named?: readonly JobState[];
  danger?: true;
  about: string;
}

export const ACTIONS: Record<BulkAction, Meaning> = {
  cancel: {
    title: 'Cancel jobs',
    verb: 'Cancel',
    done: 'canceled',
    states: CANCELLABLE_STATES,
    danger: true,
    about: 'Waiting jobs end immediately, running ones are stopped. This cannot be undone.',
  },
  requeue: {
    title: 'Requeue jobs',
    verb: 'Requeue',
    done: 'requeued',
    states: ['ASSIGNED', 'RUNNING'],
    danger: true,
    named: ENDED_STATES,
    about:
      'Their runs are stopped, and the jobs start again from the beginning. Ended jobs are rerun as copies; jobs that wait for them then wait for the copies.',
  },
  hold: {
    title: 'Hold jobs',
    verb: 'Hold',
    done: 'held',
    states: PENDING_STATES,
    about: 'They stay in the list, and start only after they are released.',
  },
  release: {
    title: 'Release jobs',
    verb: 'Release',
    done: 'released',
    states: ['HELD'],
    about: 'They wait in the queue again.',
  },
  boost: {
    title: 'Boost jobs',
    verb: 'Set the boost of',
    done: 'changed',
    states: CANCELLABLE_STATES,
    about: 'The boost is added to the priorities of the jobs.',
  },
};

/** Which jobs: some by id with what is known of their states, or all that match. */
export type Target = { jobs: readonly { id: string; state: JobState }[] } | { filter: JobFilter };

const COLLECT_PAGE = 5_000;
const COLLECT_MAX = 100_000;
const ACT_CHUNK = 5_000;

/** Whether it does something to a named job in this state. */
export const appliesTo = (action: BulkAction, state: JobState): boolean => {
  const { states, named = [] } = ACTIONS[action];
  return states.includes(state) || named.includes(state);
};

/** The jobs of a target on which the action can act. */
async function collect(
  target: Target,
  action: BulkAction,
  signal: AbortSignal,
  onProgress: (found: number) => void,
): Promise<{ id: string; state: JobState }[]> {
  if ('jobs' in target) return target.jobs.filter(({ state }) => appliesTo(action, state));
  const { states } = ACTIONS[action];
  const wanted = target.filter.states
    ? states.filter((state) => target.filter.states?.includes(state))
    : states;
  if (wanted.length === 0) return [];
  const found: { id: string; state: JobState }[] = [];
  let after: string | null = null;
  do {
    const filter: JobFilter = { ...target.filter, states: [...wanted] };
    const { jobs } = (await ask(JobIdsDocument, { filter, first: COLLECT_PAGE, after }, signal)) as {
      jobs: {
        nodes: { id: string; state: JobState }[];
        pageInfo: { hasNextPage: boolean; endCursor: string | null };
      };
    };
    found.push(...jobs.nodes);
    onProgress(found.length);
    after = jobs.pageInfo.hasNextPage ? jobs.pageInfo.endCursor : null;
  } while (after !== null && found.length < COLLECT_MAX);
  return found;
}

async function act(
  action: BulkAction,
  ids: string[],
  boost: number,
): Promise<{ changed: number; left: string[] }> {
  const selection = { ids };
  if (action === 'boost') {
    const { reprioritizeJobs: done } = await ask(BoostJobsDocument, { selection, boost });
    return { changed: done.jobIds.length, left: done.unchanged.map(({ message }) => message) };
  }
  const done = {
    cancel: async () => (await ask(CancelJobsDocument, { selection })).cancelJobs,
    requeue: async () => (await ask(RequeueJobsDocument, { selection })).requeueJobs,
    hold: async () => (await ask(HoldJobsDocument, { selection })).holdJobs,
    release: async () => (await ask(ReleaseJobsDocument, { selection })).releaseJobs,
  };
  const { jobIds, unchanged } = await done[action]();
  return { changed: jobIds.length, left: unchanged.map(({ message }) => message) };
}

interface BulkJob {
  id: string;
  state: JobState;
}

/** Acts on the jobs chunk by chunk; what it says at the end, or how far it came. */
async function actOnAll(
  action: BulkAction,
  jobs: readonly BulkJob[],
  boost: number,
  onProgress: (fraction: number) => void,
): Promise<string> {
  const { done } = ACTIONS[action];
  let changed = 0;
  let left = 0;
  try {
    for (let from = 0; from < jobs.length; from += ACT_CHUNK) {
      onProgress(from / jobs.length);
      const ids = jobs.slice(from, from + ACT_CHUNK).map(({ id }) => id);
      const part = await act(action, ids, boost);
      changed += part.changed;
      left += part.left.length;
    }
  } catch (reason) {
    throw new Error(
      `${(reason as Error).message}${changed > 0 ? ` ${plural(changed, 'job')} had been ${done}.` : ''}`,
    );
  }
  return `${plural(changed, 'job')} ${done}${left > 0 ? `; ${count(left)} had changed in the meantime and were left unchanged` : ''}.`;
}

export function BulkDialog({
  action,
  target,
  onClose,
  onDone,
}: {
  action: BulkAction;
  target: Target;
  onClose(): void;
  onDone(): void;
}) {
  const { title, verb, danger } = ACTIONS[action];
  const [jobs, setJobs] = useState<BulkJob[] | null>(null);
  const [found, setFound] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [progress, setProgress] = useState<number | null>(null);
  const boost = useBoost();

  useEffect(() => {
    const stop = new AbortController();
    collect(target, action, stop.signal, setFound).then(setJobs, (reason: unknown) => {
      if (!stop.signal.aborted) setError((reason as Error).message);
    });
    return () => stop.abort();
  }, [target, action]);

  async function go(): Promise<void> {
    if (!jobs) return;
    try {
      toast(await actOnAll(action, jobs, Number(boost.text), setProgress));
      onDone();
      onClose();
    } catch (reason) {
      setProgress(null);
      setError((reason as Error).message);
    }
  }

  const wrong = action === 'boost' && boost.wrong !== null;
  const acts = !jobs ? 'Counting…' : `${verb} ${plural(jobs.length, 'job')}`;
  return (
    <Dialog
      title={title}
      open
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>{jobs?.length === 0 ? 'Close' : 'Keep them as they are'}</Button>
          {jobs?.length !== 0 && (
            <Button
              variant={danger ? 'danger' : 'primary'}
              className={danger ? 'solid' : ''}
              isDisabled={!jobs || progress !== null || wrong}
              onPress={() => void go()}
            >
              {progress === null ? acts : `Working… ${Math.round(progress * 100)} %`}
            </Button>
          )}
        </>
      }
    >
      {error && <Problem error={error} />}
      {!jobs && !error && (
        <>
          <p className="muted">Counting the jobs… {found > 0 && count(found)}</p>
          <Skeleton height={24} />
        </>
      )}
      {jobs?.length === 0 && <p>None of these jobs is in a state that allows this.</p>}
      {jobs && jobs.length > 0 && <Chosen {...{ action, jobs }} />}
      {action === 'boost' && jobs && jobs.length > 0 && <Boost {...boost} />}
    </Dialog>
  );
}

/** How many jobs of which states will be changed, and how. */
function Chosen({ action, jobs }: { action: BulkAction; jobs: readonly BulkJob[] }) {
  const { done, about } = ACTIONS[action];
  const byState = new Map<JobState, number>();
  for (const { state } of jobs) byState.set(state, (byState.get(state) ?? 0) + 1);
  return (
    <>
      <p>
        <strong>{plural(jobs.length, 'job')}</strong> will be {done}
        {jobs.length >= COLLECT_MAX && `, the first ${count(COLLECT_MAX)} of those that match`}.{' '}
        <span className="muted">{about}</span>
      </p>
      <ul className="row wrap">
        {[...byState].map(([state, n]) => (
          <li key={state} className="row">
            <StateBadge state={state} /> <span className="num">{count(n)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The boost as it is typed, and what is wrong with it; only operators may raise. */
function useBoost() {
  const raises = useViewer().may('OPERATOR');
  const [text, setText] = useState(raises ? '10' : '-10');
  const most = raises ? 1000 : 0;
  const value = Number(text);
  const right = Number.isInteger(value) && value >= -1000 && value <= most && text.trim() !== '';
  return { raises, text, setText, wrong: right ? null : `A whole number from −1000 to ${most}.` };
}

function Boost({ raises, text, setText, wrong }: ReturnType<typeof useBoost>) {
  return (
    <TextInput
      label="Boost"
      type="number"
      value={text}
      onChange={setText}
      error={wrong}
      help={
        raises ? 'From −1000 to 1000; 0 removes a boost.' : 'From −1000 to 0; above 0 requires an operator.'
      }
    />
  );
}
