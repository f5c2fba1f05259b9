/** How people write values and batch scripts, for the command line, the commands called like Slurm's, and the portal. Knows nothing else of Switchyard. */
export * from './asked.js';
export * from './batch.js';
export * from './csv.js';
export * from './dependency.js';
export * from './getopt.js';
export * from './nearest.js';
export * from './options.js';
export * from './parts.js';
export * from './quoted.js';
export * from './retry.js';
export * from './script.js';
export * from './values.js';
