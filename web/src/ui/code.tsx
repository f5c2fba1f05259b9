/** An editor for JSON and scripts, which comes when it is first shown. */
import { lazy, Suspense } from 'react';
import type { CodeProps } from './code-editor';
import { Skeleton } from './show';

const Editor = lazy(() => import('./code-editor'));

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
