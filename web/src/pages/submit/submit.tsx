import './submit.css';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { parseArray } from '../../../../src/words/index';
import { ask } from '../../api/client';
import { useData } from '../../api/data';
import { declaredOf } from '../../parts/kinds';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { Button } from '../../ui/controls';
import { count, numberOf, plural } from '../../ui/format';
import { Send } from '../../ui/icons';
import { Page, Problem } from '../../ui/show';
import { toast } from '../../ui/toast';
import { arrayInputs } from './draft';
import { HowMany, More, Needs, Placement, usableBy, What } from './fields';
import { type Form, type Many, parametersOf, rowsOf, useForm, wholeOf } from './form';
import { Preview, usePlacement } from './preview';
import { type JobInput, SubmitChoicesDocument, SubmitGroupDocument, SubmitJobsDocument } from './submit.gql';

export function Submit() {
  const search = useSearch({ strict: false }) as Search;
  const form = useForm(search.again);
  const viewer = useViewer();
  const { busy, submit } = useSubmit(form);
  const choices = useData(SubmitChoicesDocument, {});
  const { mode, many, error, made } = form;
  const placed = usePlacement(made.input);
  const jobs = howMany(many);
  const what = many.how === 'one' ? 'the job' : `${Number.isFinite(jobs) ? count(jobs) : ''} jobs`;
  return (
    <Page title="Submit" about="A job runs a command on machines chosen by the scheduler.">
      <form
        className="submit-columns"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div className="stack">
          <What form={form} />
          {mode !== 'json' && (
            <>
              <Needs form={form} licenses={choices.data?.licenses.nodes.map(({ kind }) => kind) ?? []} />
              <Placement
                form={form}
                kinds={declaredOf(choices.data?.resourceKinds ?? [])}
                reservations={usableBy(viewer, choices.data?.holds.nodes ?? [])}
                refused={placed.refused?.field === 'machineConstraint' ? placed.refused.message : null}
              />
              <More
                form={form}
                datasets={choices.data?.datasets.nodes ?? []}
                classes={choices.data?.jobClasses.filter(({ mayUse }) => mayUse) ?? []}
              />
            </>
          )}
          <HowMany form={form} />
        </div>
        <div className="submit-side">
          <div className="stack">
            {error && <Problem error={error} />}
            <Button
              type="submit"
              variant="primary"
              className="big"
              icon={<Send size={15} />}
              isDisabled={busy}
            >
              {busy ? 'Submitting…' : `Submit ${what}`}
            </Button>
            <Preview input={made.input} placed={placed} />
          </div>
        </div>
      </form>
    </Page>
  );
}

/** As far as it is known while it is written. */
function howMany(many: Many): number {
  if (many.how === 'count') return Number(many.count);
  if (many.how === 'parameters') return rowsOf(many.rows).length;
  try {
    return parseArray('The indices', many.array).indices.length;
  } catch {
    return Number.NaN;
  }
}

/** Submits what was written, and goes to where it is seen. */
function useSubmit({ made, many, draft, touch, setError }: Form) {
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  const attempt = useRef({ payload: '', key: '' });

  /** The same for the same jobs: when an answer is lost, trying again makes no second ones. */
  function keyFor(payload: string): string {
    if (attempt.current.payload !== payload) attempt.current = { payload, key: randomKey() };
    return attempt.current.key;
  }

  async function submitOne(input: JobInput, idempotencyKey: string): Promise<void> {
    const { submitJobs } = await ask(SubmitJobsDocument, { input: { jobs: [input], idempotencyKey } });
    const [fault] = submitJobs.errors;
    if (fault) throw new Error(fault.message);
    const id = submitJobs.jobIds[0]!;
    toast(`Job ${numberOf(id)} is submitted.`);
    void navigate({ to: '/jobs/$id', params: { id } });
  }

  async function submitArray(template: JobInput, idempotencyKey: string): Promise<void> {
    const jobs = arrayInputs(template, many.array);
    const { submitJobs } = await ask(SubmitJobsDocument, { input: { jobs, idempotencyKey } });
    const [fault] = submitJobs.errors;
    if (fault) throw new Error(fault.message);
    toast(`${plural(jobs.length, 'job')} submitted.`);
    void navigate({ to: '/jobs' });
  }

  async function submitGroup(template: JobInput, idempotencyKey: string): Promise<void> {
    const name = draft.name.trim() || null;
    const members =
      many.how === 'count' ? { count: wholeOf(many.count) } : { parameters: parametersOf(many.rows) };
    const { submitJobGroup } = await ask(SubmitGroupDocument, {
      input: { name, template, idempotencyKey, ...members },
    });
    const [fault] = submitJobGroup.errors;
    if (fault) throw new Error(fault.message);
    const group = submitJobGroup.jobGroup!;
    toast(`${plural(group.size, 'job')} submitted.`);
    void navigate({ to: '/groups/$id', params: { id: group.id } });
  }

  async function submit(): Promise<void> {
    touch();
    setError(null);
    if (!made.input) return setError(made.wrong?.message ?? made.problem ?? 'The job is not complete.');
    setBusy(true);
    try {
      const key = keyFor(JSON.stringify([made.input, many]));
      const ways = { one: submitOne, array: submitArray, count: submitGroup, parameters: submitGroup };
      await ways[many.how](made.input, key);
    } catch (reason) {
      setError((reason as Error).message);
    } finally {
      setBusy(false);
    }
  }
  return { busy, submit };
}

/** `crypto.randomUUID` is only there over https and on localhost. */
const randomKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
