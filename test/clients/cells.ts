/**
 * One cell of the table: lets a client do one operation, and judges what came of it.
 *
 * Invariants: whatever is not as it must be fails the cell, with the reason, and never the run. In CI a client that
 * CI can install fails by not being there.
 */
import path from 'node:path';
import { type Client, NEEDED_WORDS } from './catalogue.ts';
import { shownWords } from './client.ts';
import { type Refs, refsOfServer } from './judging.ts';
import { OPERATIONS, type Operation, type Scene } from './operations.ts';
import type { Cell, Row } from './table.ts';

/** The row of a client that this machine cannot run. */
export function missingRow({ name, isRequiredInCi }: Client, why: string, isCi: boolean): Row {
  if (!isCi || !isRequiredInCi) return { client: name, notRun: why };
  return { client: name, cells: OPERATIONS.map(() => ({ is: 'failed', why })) };
}

export async function cellOf(client: Client, operation: Operation, scene: Scene): Promise<Cell> {
  try {
    return await judgedCell(client, operation, scene);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { is: 'failed', why: shownWords(why, runOf(scene)) };
  }
}

async function judgedCell(client: Client, operation: Operation, scene: Scene): Promise<Cell> {
  const before = await refsOfServer(scene);
  const answer = await operation.ask(scene);
  const cannot = client.cannot.includes(operation.needs);
  if (answer.outcome !== 'ok' && cannot) return { is: 'cannot' };
  if (answer.outcome === 'cannot') throw new Error('the client does not offer it any more');
  const words = answer.outcome === 'refused' ? shownWords(answer.words, runOf(scene)) : '';
  const { refusal } = operation;
  if (refusal === undefined) {
    if (answer.outcome === 'refused') throw new Error(words);
  } else {
    if (answer.outcome === 'ok') throw new Error('the client says that it was not refused');
    const needed = NEEDED_WORDS[refusal][client.showsStatusOf.includes(refusal) ? 'status' : 'server'];
    if (!needed.test(words)) throw new Error(`its words do not say "${needed.source}": ${words}`);
  }
  if (cannot) return offered(operation, scene, before);
  await operation.judge(scene, before);
  return refusal === undefined ? { is: 'ok' } : { is: 'refused', words };
}

/** Some clients say that they did what they do not offer. */
async function offered(operation: Operation, scene: Scene, before: Refs): Promise<Cell> {
  const isDone = await operation.judge(scene, before).then(
    () => true,
    () => false,
  );
  if (isDone) throw new Error('the client offers it now');
  return { is: 'cannot' };
}

function runOf({ url, token, cloned }: Scene): { url: string; token: string; folder: string } {
  return { url, token, folder: path.dirname(cloned) };
}
