/** Light, dark, or as the system has it. */
import { createSetting } from '../api/store';

export const theme = createSetting<'system' | 'light' | 'dark'>('theme', 'system');

function apply(): void {
  const chosen = theme.get();
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
apply();
theme.subscribe(apply);
