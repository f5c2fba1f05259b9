import { toast } from './toast';

/** Puts a text where it can be pasted from, and says so. */
export const copy = (text: string): void =>
  void navigator.clipboard?.writeText(text).then(
    () => toast('Copied.'),
    () => toast('It could not be copied; select it instead.', true),
  );
