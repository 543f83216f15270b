/**
 * The commits of a chain written over REST: one request for each, which the API answers with the commit that it made.
 *
 * Invariants: a commit has the files, the author, the date and the message of the chain's commit, and so the same id:
 * each request expects the id of the one before it, so that a commit with another id ends the run.
 */
import { CHAIN_AUTHOR, CHAIN_BRANCH, type CommitChain, chainMessage, chainSeconds } from '../commit-chain.ts';
import { createConnection } from '../connection.ts';
import { perform } from '../load.ts';
import type { Operation } from '../operation.ts';
import type { Repository, Side } from '../sides/side.ts';
import { type ChainBringer, chainBringer } from './chain.ts';
import type { BenchContext } from './scenario.ts';

const ZERO_ID = '0'.repeat(40);

/** Writes the chain's first commit to every repository. */
export async function startChainWriter(
  context: BenchContext,
  side: Side,
  repositories: readonly Repository[],
): Promise<ChainBringer> {
  const chain = await context.commitChain();
  const operationOf = (repository: Repository, index: number): Operation =>
    writeOperation(side, repository, bodyOf(chain, context.project.tip, index));
  const connection = createConnection(side.port);
  for (const repository of repositories) await perform(connection, operationOf(repository, 0));
  connection.close();
  return chainBringer(chain.commits, repositories, operationOf);
}

function bodyOf({ commits, file }: CommitChain, start: string, index: number): Buffer {
  const date = new Date(chainSeconds(index) * 1_000).toISOString();
  const body = {
    branch: CHAIN_BRANCH,
    ...(index === 0 ? { expected: ZERO_ID, start } : { expected: commits[index - 1] }),
    message: chainMessage(index),
    author: { ...CHAIN_AUTHOR, date },
    changes: [{ action: 'put', path: file.path, content: file.text(index) }],
  };
  return Buffer.from(JSON.stringify(body));
}

function writeOperation(side: Side, repository: Repository, body: Buffer): Operation {
  const { rest } = side;
  if (rest === null) throw new Error(`${side.label} has no REST interface`);
  const head = [
    `POST ${rest.pathOf(repository)}/commits HTTP/1.1`,
    `Host: 127.0.0.1:${side.port}`,
    `Authorization: ${rest.authorization}`,
    'Accept: application/json',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'User-Agent: bench',
  ];
  const bytes = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
  return [{ parts: [bytes], check: 'created' }];
}
