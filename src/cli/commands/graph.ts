/** `switchyard graph`: what the jobs of a group need of one another, and when the last of them will have ended. */
import type { Command } from 'commander';
import { isTerminal } from '../../core/states.js';
import { parseNumber } from '../../words/values.js';
import { addCommand, print, printJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import { JobGraphDocument, type JobGraphQuery } from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { count, duration, table, time } from '../format.js';
import { type FilterOptions, filterFromOptions } from '../job-options.js';

type Graph = JobGraphQuery['jobGraph'];
type Node = Graph['nodes'][number];

interface GraphOptions extends FilterOptions {
  dot?: boolean;
  most: string;
}

export function addGraph(program: Command): void {
  const command = addCommand(
    program,
    'graph <group>',
    'show jobs and their dependencies: those with this --group, or of a bulk group (group_3)',
  )
    .option('--user <user>', "another user's group (operators)")
    .option('--dot', 'print it for Graphviz')
    .option('--most <n>', 'at most this many jobs, the first ones by ID', '10000');
  command.action(async (group: string, options: GraphOptions) => {
    const client = connect();
    const which = /^group_\d+$/.test(group) ? { jobGroup: group } : { group, me: options.user === undefined };
    const filter = (await filterFromOptions(client, { ...options, ...which })) ?? {};
    const most = parseNumber('--most', options.most, { min: 1, max: 10_000, integer: true });
    const { jobGraph } = await client.request(JobGraphDocument, { filter, most });
    if (jobGraph.nodes.length === 0)
      throw new CliError(
        `there are no jobs of a group "${group}" that this key may see (NOT_FOUND)`,
        ExitCode.NOT_FOUND,
      );
    if (wantsJson(command)) printJson(jobGraph);
    else print(options.dot ? dotOf(jobGraph) : textOf(jobGraph));
  });
}

const named = ({ id, name, arrayIndex }: Node): string =>
  `${name ?? id}${arrayIndex === null ? '' : `[${arrayIndex}]`}`;

/** Of what a job waits for. */
const NAMES_SHOWN = 3;

function textOf({ nodes, isWhole, criticalPath, expectedEnd }: Graph): string {
  const critical = new Set(criticalPath);
  const order = [...nodes.keys()].sort((a, b) => nodes[a]!.level - nodes[b]!.level || a - b);
  const rows = order.map((i) => {
    const node = nodes[i]!;
    return [
      ...[node.level + 1, critical.has(i) ? '*' : '', node.id, named(node), node.state],
      ...[waitsFor(node, nodes), time(node.expectedStart), time(node.expectedEnd)],
    ];
  });
  const ended = nodes.filter(({ state }) => isTerminal(state)).length;
  const way = criticalPath.map((i) => named(nodes[i]!)).join(' → ');
  return [
    table(['LEVEL', '', 'ID', 'JOB', 'STATE', 'WAITS FOR', 'START (UTC)', 'END (UTC)'], rows),
    `${ended} of ${count(nodes.length, 'job')} ended${isWhole ? '' : '; there are more than are shown'}`,
    `* determines the end${expectedEnd === null ? '' : ` (no earlier than ${time(expectedEnd)}, in ${duration((Date.parse(expectedEnd) - Date.now()) / 1000)})`}: ${way}`,
  ].join('\n');
}

/** What has not happened yet of what it needs. */
function waitsFor({ state, needs, conditions }: Node, nodes: readonly Node[]): string | null {
  if (state !== 'BLOCKED') return null;
  const missing = needs.flatMap((on, i) => {
    const other = nodes[on]!;
    const happened = isTerminal(other.state) || (conditions[i] === 'START' && other.startedAt !== null);
    return happened ? [] : [`${named(other)}${conditions[i] === 'OK' ? '' : ` ${conditions[i]}`}`];
  });
  const more = missing.length > NAMES_SHOWN ? ` and ${missing.length - NAMES_SHOWN} more` : '';
  return missing.length === 0 ? null : `${missing.slice(0, NAMES_SHOWN).join(', ')}${more}`;
}

function dotOf({ nodes, criticalPath }: Graph): string {
  const critical = new Set(criticalPath);
  const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  const lines = nodes.flatMap((node, i) => [
    `  ${node.id} [label=${quoted(`${named(node)}\n${node.state}`)}${critical.has(i) ? ', penwidth=3' : ''}];`,
    ...node.needs.map((on, k) => {
      const condition = node.conditions[k]!;
      return `  ${nodes[on]!.id} -> ${node.id}${condition === 'OK' ? '' : ` [label=${condition}, style=dashed]`};`;
    }),
  ]);
  return ['digraph jobs {', '  rankdir=LR; node [shape=box];', ...lines, '}'].join('\n');
}
