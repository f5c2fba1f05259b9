/** Agents as parts of a process. */
import { Agent, type LinkProbe, ProcessRunner, type Runner, SimulatedRunner } from '../agent/index.js';
import type { ServiceError } from '../client/index.js';
import { type Config, inheritedEnvironment } from '../platform/config.js';
import type { Part } from '../platform/lifecycle.js';
import type { Logger } from '../platform/log.js';

export interface AgentAccess {
  url: string;
  /** Of role AGENT. */
  key: string;
  site: string;
  /** Told when the service refuses the key. */
  onRefused?: (error: ServiceError) => void;
}

/** An agent that runs real processes on this machine. `access` is asked when it starts. */
export function processAgent(config: Config, log: Logger, access: () => AgentAccess): Part {
  return agentPart(config, log, access, () =>
    ProcessRunner.open({
      stateDir: config.agentStateDir,
      baseEnvironment: inheritedEnvironment(),
      outputLimitBytes: config.agentOutputBytes,
      warn: (fields, message) => log.warn(fields, message),
    }),
  );
}

/** An agent whose runs only pass time, `speed` times as fast. */
export function simulatedAgent(config: Config, log: Logger, access: () => AgentAccess, speed: number): Part {
  return agentPart(config, log, access, async () => new SimulatedRunner({ speed }));
}

function agentPart(
  config: Config,
  log: Logger,
  access: () => AgentAccess,
  openRunner: () => Promise<Runner>,
): Part {
  let agent: Agent | null = null;
  let runner: Runner | null = null;
  return {
    name: 'agent',
    async start() {
      runner = await openRunner();
      agent = new Agent({
        ...access(),
        runner,
        log,
        heartbeatMs: config.agentHeartbeatS * 1000,
        linkProbes: linkProbes(config.agentLinks),
        linkProbeMs: config.agentLinksS * 1000,
        graceMs: config.agentGraceS * 1000,
      });
      agent.start();
    },
    async stop() {
      await agent?.stop();
      runner?.close();
    },
  };
}

/** `site=url,…` as the configuration has checked it. */
function linkProbes(written: string | null): LinkProbe[] {
  if (written === null) return [];
  return written.split(',').map((pair) => {
    const at = pair.indexOf('=');
    return { from: pair.slice(0, at), url: pair.slice(at + 1) };
  });
}
