import type { Plugin } from 'vite';

export const lucide: Plugin;
