/** What a run wrote, followed while it runs. */

import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useData } from '../../api/data';
import { createSetting, useStore } from '../../api/store';
import { Button, Choice, Segments, TextInput, Toggle } from '../../ui/controls';
import { download } from '../../ui/download';
import { bytes, numberOf, TERMINAL } from '../../ui/format';
import { Download } from '../../ui/icons';
import { Card, Loaded, Skeleton } from '../../ui/show';
import { useAskAfterEnd } from './after-end';
import { FOUND_MAX, Found, placesOf } from './found';
import { JobOutputDocument } from './job.gql';
import type { Job } from './shown';
import { hasTasks } from './tasks';

const FOLLOW_MS = 1_000;
const wrapping = createSetting<'on' | 'off'>('wrap', 'on');

export function OutputCard({
  job,
  run: { epoch },
  task,
  onSee,
}: {
  job: Job;
  run: Job['runs'][number];
  task: number;
  onSee(epoch: number, task?: number): void;
}) {
  const [chosen, setChosen] = useState<'stdout' | 'stderr' | null>(null);
  const [following, setFollowing] = useState(true);
  const ended = TERMINAL.has(job.state);
  const latest = epoch === job.epoch;
  const live = !ended && latest;
  const afterEnd = useAskAfterEnd(ended && latest);
  const output = useData(
    JobOutputDocument,
    { id: job.id, epoch, task },
    live ? { everyMs: FOLLOW_MS } : afterEnd,
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the job has moved on
  useEffect(() => output.refresh(), [job.state]);
  const streams = output.data?.job;
  // Of a job that failed, what it complained about comes first.
  const stream = chosen ?? (job.state === 'FAILED' && streams?.stderr?.text ? 'stderr' : 'stdout');
  const text = streams?.[stream]?.text ?? '';
  const box = useRef<HTMLPreElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what has come is shown
  useLayoutEffect(() => {
    if (following && live && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, following, live]);
  const tab = (name: 'stdout' | 'stderr') => ({
    value: name,
    label: streams?.[name]?.bytes ? `${name} · ${bytes(streams[name].bytes)}` : name,
  });

  return (
    <Card
      title={hasTasks(job) ? `Output of task ${task}` : 'Output'}
      actions={
        <div className="row wrap">
          {live && (
            <Toggle on={following} onChange={setFollowing}>
              Follow
            </Toggle>
          )}
          {job.runs.length > 1 && (
            <Choice
              label="Run"
              hideLabel
              value={String(epoch)}
              onChange={(value) => onSee(Number(value))}
              options={job.runs.map((run) => ({ value: String(run.epoch), label: `Run ${run.epoch}` }))}
            />
          )}
          {hasTasks(job) && (
            <div className="task-number">
              <TextInput
                label="Task"
                hideLabel
                type="number"
                min={0}
                max={job.tasks - 1}
                value={String(task)}
                onChange={(text) =>
                  /^\d+$/.test(text) && Number(text) < job.tasks && onSee(epoch, Number(text))
                }
              />
            </div>
          )}
          <Segments
            label="Stream"
            value={stream}
            onChange={setChosen}
            options={[tab('stdout'), tab('stderr')]}
          />
          <Button
            variant="quiet"
            icon={<Download size={15} />}
            hint="Save as a file"
            isDisabled={text === ''}
            onPress={() =>
              download(
                new Blob([text], { type: 'text/plain;charset=utf-8' }),
                `job-${numberOf(job.id)}${hasTasks(job) ? `-task-${task}` : ''}.${stream === 'stdout' ? 'out' : 'err'}`,
              )
            }
          />
        </div>
      }
    >
      <Loaded from={output} skeleton={<Skeleton height={120} />}>
        {({ job: shown }) => <Written found={shown?.[stream]} {...{ stream, live, box }} />}
      </Loaded>
    </Card>
  );
}

function Written({
  found,
  stream,
  live,
  box,
}: {
  found: { text: string; bytes: number; truncated: boolean } | null | undefined;
  stream: 'stdout' | 'stderr';
  live: boolean;
  box: RefObject<HTMLPreElement | null>;
}) {
  const text = found?.text ?? '';
  const wraps = useStore(wrapping) === 'on';
  const [wanted, setWanted] = useState('');
  const [chosen, setAt] = useState(0);
  const places = useMemo(() => placesOf(text, wanted), [text, wanted]);
  const at = places.length === 0 ? 0 : chosen % places.length;
  const here = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the next one is looked at
  useEffect(() => {
    here.current?.scrollIntoView({ block: 'nearest' });
  }, [wanted, at]);
  return (
    <>
      {text !== '' ? (
        <>
          <div className="row wrap">
            <TextInput
              label="Find in the output"
              hideLabel
              type="search"
              placeholder="Find"
              value={wanted}
              onChange={(value) => {
                setWanted(value);
                setAt(0);
              }}
              onEnter={() => setAt(at + 1)}
            />
            <span className="muted small num" role="status">
              {wanted !== '' &&
                (places.length === 0
                  ? 'Not found'
                  : `${at + 1} of ${places.length}${places.length === FOUND_MAX ? ' or more' : ''}`)}
            </span>
            <span className="grow" />
            <Toggle on={wraps} onChange={(on) => wrapping.set(on ? 'on' : 'off')}>
              Wrap lines
            </Toggle>
          </div>
          <pre
            ref={box}
            className={`terminal ${wraps ? '' : 'whole'}`}
            tabIndex={0}
            aria-label={`Output, ${stream}`}
          >
            <Found {...{ text, places, at, here }} length={wanted.length} />
          </pre>
        </>
      ) : (
        <p className="terminal none">
          {live
            ? 'No output yet.'
            : found
              ? `Nothing was written to ${stream === 'stdout' ? 'standard output' : 'standard error'}.`
              : 'No output was kept.'}
        </p>
      )}
      {found?.truncated && (
        <p className="faint tiny terminal-foot">{bytes(found.bytes)} were written; not all was kept.</p>
      )}
    </>
  );
}
