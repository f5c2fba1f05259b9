export { type CacheOptions, DataCache, type Input, type Moved, type Source } from './cache.js';
export { type StageableRunner, type StagingReport, StagingRunner, type StagingSource } from './runner.js';
