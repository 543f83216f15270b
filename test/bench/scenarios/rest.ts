/**
 * The reads of the REST API. The peer has no such API: the figures are absolute, against a target per second.
 *
 * Invariants: there is no If-None-Match, so that every answer has its body; the repository is the same as for git.
 */
import type { Exchange } from '../operation.ts';
import type { Side } from '../sides/side.ts';
import type { BenchContext, PreparedWorkload, Scenario } from './scenario.ts';

const PER_SECOND_TARGET = 4_000;

export const REST_SCENARIOS: readonly Scenario[] = [
  restScenario('rest-branches', 'GET branches', () => 'branches'),
  restScenario('rest-commits', 'GET commits', () => 'commits'),
  restScenario(
    'rest-contents',
    'GET contents, a file',
    ({ project }) => `contents/${encodeURIComponent(project.file)}`,
  ),
];

function restScenario(name: string, title: string, resource: (context: BenchContext) => string): Scenario {
  return {
    name,
    title,
    clients: 8,
    kind: 'rest',
    target: { perSecond: PER_SECOND_TARGET },
    prepare: (context, side) => prepareGet(context, side, name, resource(context)),
  };
}

async function prepareGet(
  context: BenchContext,
  side: Side,
  name: string,
  resource: string,
): Promise<PreparedWorkload> {
  const { rest } = side;
  if (rest === null) throw new Error(`${side.label} has no REST interface`);
  const repository = await side.createRepository(name, context.project);
  const head = [
    `GET ${rest.pathOf(repository)}/${resource} HTTP/1.1`,
    `Host: 127.0.0.1:${side.port}`,
    `Authorization: ${rest.authorization}`,
    'Accept: application/json',
    'User-Agent: bench',
  ];
  const exchange: Exchange = { parts: [Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1')], check: 'ok' };
  const operation = [exchange];
  return { next: () => operation, dispose: () => side.removeRepository(repository) };
}
