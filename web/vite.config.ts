import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { lucide } from './lucide.mjs';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** Where `npm run web` finds a service to talk to. */
const service = process.env.SWITCHYARD_URL ?? 'http://localhost:4000/graphql';

export default defineConfig({
  root: here('.'),
  plugins: [react(), lucide],
  // Two copies of graphql 16 would not know each other's types.
  resolve: { dedupe: ['graphql', 'react', 'react-dom'] },
  // The service puts a new one into each page (src/api/portal.ts).
  html: { cspNonce: '__NONCE__' },
  build: {
    outDir: here('../dist/web'),
    emptyOutDir: true,
    target: 'es2022',
    manifest: true,
    modulePreload: { polyfill: false },
    // Fonts and pictures as files: the content security policy needs no `data:` for them.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 10_000,
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    rolldownOptions: {
      input: { index: here('index.html'), explorer: here('explorer.html') },
      onLog(level, log, handler) {
        // Directives that libraries of the explorer leave in their modules.
        if (log.code === 'MODULE_LEVEL_DIRECTIVE') return;
        // An icon that Lucide does not have.
        if (log.code === 'IMPORT_IS_UNDEFINED') throw new Error(log.message);
        handler(level, log);
      },
    },
  },
  server: { port: 4100, proxy: { '/graphql': { target: new URL(service).origin, ws: true } } },
});
