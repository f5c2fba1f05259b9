/** The jobs that a policy is tried on: those of the last hours or days. */
import './simulation.css';
import { type ReactNode, useState } from 'react';
import { useData } from '../api/data';
import { Check, Choice } from '../ui/controls';
import { plural } from '../ui/format';
import { JobsInWindowDocument } from './simulation.gql';

const WINDOWS = [
  { value: '1', label: 'Last hour' },
  { value: '6', label: 'Last 6 hours' },
  { value: '24', label: 'Last 24 hours' },
  { value: '168', label: 'Last 7 days' },
] as const;

/** The window and how many jobs were submitted in it. */
export function useWindow(): {
  window: { from: string; to: string; acceptDistance: boolean };
  jobs: number | undefined;
  picker: ReactNode;
} {
  const [hours, setHours] = useState<string>('1');
  const [acceptDistance, setAcceptDistance] = useState(false);
  const [end] = useState(() => Date.now());
  const span = {
    from: new Date(end - Number(hours) * 3_600_000).toISOString(),
    to: new Date(end).toISOString(),
  };
  const { data } = useData(JobsInWindowDocument, span);
  return {
    window: { ...span, acceptDistance },
    jobs: data?.jobCount,
    picker: (
      <>
        <div className="windows">
          <Choice label="Jobs submitted in the" options={WINDOWS} value={hours} onChange={setHours} />
          <span className="muted small num" style={{ paddingBottom: 7 }}>
            {data ? plural(data.jobCount, 'job') : '…'}
          </span>
        </div>
        <Check checked={acceptDistance} onChange={setAcceptDistance}>
          Compare even if the simulation of the current policy is far from what actually happened
        </Check>
      </>
    ),
  };
}
