/** An editor for JSON and scripts, which comes when it is first shown. */
import { lazy, Suspense } from 'react';
import { Skeleton } from './show';

const Editor = lazy(() => import('./code-editor'));

export interface CodeProps {
  label: string;
  language: 'json' | 'shell';
  value: string;
  onChange?: (value: string) => void;
  minLines?: number;
  error?: string | null | undefined;
}

export function Code(props: CodeProps) {
  return (
    <div className="field">
      <span className="code-label">{props.label}</span>
      <Suspense fallback={<Skeleton height={(props.minLines ?? 8) * 20 + 20} />}>
        <Editor {...props} />
      </Suspense>
      {props.error && (
        <p className="about error" role="alert">
          {props.error}
        </p>
      )}
    </div>
  );
}
