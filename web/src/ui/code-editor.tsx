import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  StreamLanguage,
  syntaxHighlighting,
} from '@codemirror/language';
import { python } from '@codemirror/legacy-modes/mode/python';
import { shell } from '@codemirror/legacy-modes/mode/shell';
import { linter } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';

const look = EditorView.theme({
  '&': {
    border: '1px solid var(--line-strong)',
    borderRadius: '6px',
    background: 'var(--surface)',
    color: 'var(--text)',
    fontSize: '0.8rem',
    maxHeight: '560px',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '0' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--text)', padding: '8px 0' },
  '.cm-gutters': { background: 'transparent', color: 'var(--text-3)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': { background: 'var(--sunken)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    background: 'var(--accent-soft)',
  },
  '.cm-tooltip': { background: 'var(--surface)', border: '1px solid var(--line)', color: 'var(--text)' },
});

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.variableName], color: 'var(--accent)' },
  { tag: [tags.string], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--held)' },
  { tag: [tags.keyword, tags.operatorKeyword, tags.standard(tags.variableName)], color: 'var(--cancelling)' },
  { tag: [tags.comment, tags.meta], color: 'var(--text-3)' },
]);

/** What is not JSON is underlined. */
const parse = jsonParseLinter();

export interface CodeProps {
  label: string;
  language: 'json' | 'shell' | 'python';
  value: string;
  onChange?: (value: string) => void;
  minLines?: number;
  error?: string | null | undefined;
}

export default function CodeEditor({ label, language, value, onChange, minLines = 8 }: CodeProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the text is followed below
  useEffect(() => {
    const made = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          history(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          syntaxHighlighting(colors),
          // Tab goes to the next field: an editor must not hold the keyboard.
          keymap.of([...defaultKeymap, ...historyKeymap]),
          language === 'json'
            ? [json(), linter((shown) => (shown.state.doc.length === 0 ? [] : parse(shown)))]
            : StreamLanguage.define(language === 'python' ? python : shell),
          look,
          EditorView.lineWrapping,
          // Its styles are elements of their own, which the page's security policy knows by this.
          EditorView.cspNonce.of(
            document.querySelector<HTMLElement>('meta[property=csp-nonce]')?.nonce ?? '',
          ),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorState.readOnly.of(onChange === undefined),
          EditorView.theme({ '.cm-content, .cm-gutter': { minHeight: `${minLines * 1.4}em` } }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [language, label]);

  useEffect(() => {
    const shown = view.current;
    if (!shown || shown.state.doc.toString() === value) return;
    shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: value } });
  }, [value]);

  return <div ref={place} />;
}
