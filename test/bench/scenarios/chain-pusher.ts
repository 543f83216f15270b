/**
 * Small pushes as operations: the requests of a recorded push, with the chain's next commit in its place.
 *
 * Invariants: the head of each request and the capabilities are what a real git sent to this side; only the old id,
 * the new id and the pack change (gitprotocol-pack(5), reference update request).
 */
import { CHAIN_BRANCH } from '../commit-chain.ts';
import { createConnection } from '../connection.ts';
import { perform } from '../load.ts';
import type { Operation } from '../operation.ts';
import { type RecordedExchange, replayExchange, replayOperation } from '../recorder.ts';
import type { Repository, Side } from '../sides/side.ts';
import { type ChainBringer, chainBringer } from './chain.ts';
import { record } from './recording.ts';
import type { BenchContext } from './scenario.ts';

const REF = `refs/heads/${CHAIN_BRANCH}`;
const ZERO_ID = '0'.repeat(40);

/** Pushes the chain's first commit to every repository: with the real git to the first, replayed to the others. */
export async function startChainPusher(
  context: BenchContext,
  side: Side,
  repositories: readonly Repository[],
): Promise<ChainBringer> {
  const chain = await context.commitChain();
  const first = repositories[0];
  const [firstCommit] = chain.commits;
  if (first === undefined || firstCommit === undefined) throw new Error('There is nothing to push, or nowhere');
  const exchanges = await record(side, first, chain.folder, (url) => ['push', '--quiet', url, `${firstCommit}:${REF}`]);
  const post = exchanges.findIndex(({ method }) => method === 'POST');
  const recorded = exchanges[post];
  if (recorded === undefined) throw new Error('git pushed without a POST');
  const capabilities = capabilitiesOf(recorded);

  const operationOf = (repository: Repository, index: number): Operation => {
    const target = { port: side.port, fromPath: first.path, toPath: repository.path };
    const before = index === 0 ? ZERO_ID : (chain.commits[index - 1] ?? ZERO_ID);
    const command = `${before} ${chain.commits[index]} ${REF}\0${capabilities}`;
    const body = Buffer.concat([
      Buffer.from(`${packet(command)}0000`, 'latin1'),
      chain.packs[index] ?? Buffer.alloc(0),
    ]);
    return [
      ...replayOperation(exchanges.slice(0, post), target),
      replayExchange({ ...recorded, body, chunked: false }, target),
    ];
  };

  const connection = createConnection(side.port);
  for (const repository of repositories.slice(1)) await perform(connection, operationOf(repository, 0));
  connection.close();
  return chainBringer(chain.commits, repositories, operationOf);
}

/** Returns the capabilities that git wrote after the NUL of its first command. */
function capabilitiesOf(push: RecordedExchange): string {
  const body = push.body.toString('latin1');
  const length = Number.parseInt(body.slice(0, 4), 16);
  const capabilities = body.slice(4, length).split('\0')[1];
  if (capabilities === undefined) throw new Error('The recorded push names no capabilities');
  return capabilities;
}

/** pkt-line (gitprotocol-common(5)): four hex digits of the length, which includes them. */
function packet(text: string): string {
  return (text.length + 4).toString(16).padStart(4, '0') + text;
}
