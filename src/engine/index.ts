/** What the composition root uses of the engine. */
export { type CycleLimits, DEFAULT_CYCLE_LIMITS } from './cycle.js';
export { createEngine, DEFAULT_ENGINE_CONFIG, type Engine, type EngineConfig } from './engine.js';
export type { Following } from './follower.js';
export type { EngineLog, EngineMetrics, GridMirror, Wake } from './ports.js';
export type { QueueConnection } from './queue.js';
export { createSimulationWorker, type Simulate, type SimulationWorker } from './simulations.js';
export { openWaker, type Waker } from './waker.js';
