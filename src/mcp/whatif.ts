/** The tool that tries a policy on the jobs of the past. It changes no policy: that is for people. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { answer } from './answers.js';
import { PolicyDocument, SimulateDocument, SimulationDocument } from './documents.gql.js';
import { BadCall, time } from './inputs.js';
import { type Caller, tool } from './tools.js';

const DAY_MS = 86_400_000;
const LOOK_MS = 500;

export const whatIf = tool(
  'what_if',
  'Simulates a changed policy on past jobs, and compares it with the current one. Without arguments, returns the current policy. The policy of the service does not change.',
  {
    changes: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Fields of the policy to replace, each as a whole, such as local'),
    from: time('Only jobs submitted at this time or later; by default seven days ago'),
    to: time('Only jobs submitted before this time; by default now'),
    acceptDistance: z
      .boolean()
      .optional()
      .describe('Compare even if the simulation of the current policy is far from what happened'),
    simulation: z
      .string()
      .regex(/^simulation_\d{1,18}$/)
      .optional()
      .describe('Instead of all these: a simulation that had not ended'),
    seconds: z.number().min(0).max(50).optional().describe('Maximum time to wait for it, by default 40'),
  },
  async ({ simulation, seconds = 40, changes, from, to, acceptDistance = false }, caller) => {
    if (simulation !== undefined) return compared(caller, simulation, seconds);
    const { client, signal } = caller;
    const { policy } = await client.request(PolicyDocument, {}, signal);
    if (policy === null) throw new BadCall('there is no policy');
    if (changes === undefined)
      return answer(policy, { next: 'To try another one: what_if with changes.', textChars: 2_000 });
    const now = Date.now();
    const input = {
      candidate: { ...(policy.document as object), ...changes },
      from: from ?? new Date(now - 7 * DAY_MS).toISOString(),
      to: to ?? new Date(now).toISOString(),
      acceptDistance,
    };
    const made = await client.request(SimulateDocument, { input });
    return compared(caller, made.createSimulation.simulation.id, seconds);
  },
  ['ADMIN', 'OPERATOR'],
);

async function compared({ client, signal }: Caller, id: string, seconds: number): Promise<CallToolResult> {
  for (const end = Date.now() + seconds * 1_000; ; await sleep(LOOK_MS, undefined, { signal })) {
    const { simulation } = await client.request(SimulationDocument, { id }, signal);
    if (simulation === null) throw new BadCall(`simulation: there is no simulation ${id}`);
    const { state, result, progress, ...about } = simulation;
    if (state !== 'QUEUED' && state !== 'RUNNING') return answer({ id, state, ...about, ...result });
    if (Date.now() > end)
      return answer({ id, state, progress }, { next: `Not ended yet: what_if with simulation: ${id}.` });
  }
}
