/**
 * Uses a branch as a register of one value: compare-and-set by a forced push, reads over Git and over REST.
 *
 * Invariants: an operation without an answer has an unknown outcome, unless it was never sent; it never counts as
 * one that did not happen.
 */
import assert from 'node:assert/strict';
import { commit, type WireTarget, wirePush, wireRefs } from './git-wire.ts';
import type { Answer, Value } from './linearizability.ts';
import { api } from './strata.ts';

const REGISTER = 'refs/heads/register';

/**
 * Pushes a new commit on the condition that the branch is at `from`. The commits share no history, so only this
 * comparison decides. Null: the request was never sent, or the server refused to change anything.
 */
export async function setRegister(
  target: WireTarget,
  from: Value,
  message: string,
  signal?: AbortSignal,
): Promise<Answer | null> {
  const next = commit(message);
  const command = { ref: REGISTER, after: next.id, ...(from === null ? {} : { before: from }) };
  const about = { kind: 'compare-and-set', from, to: next.id } as const;
  try {
    const report = await wirePush(target, [command], [next], signal === undefined ? {} : { signal });
    const word = report.refs.get(REGISTER);
    if (word === 'ok') return { ...about, outcome: 'done' };
    if (report.status === 200 && /moved it first|exists already|not exist here any more/.test(word ?? '')) {
      return { ...about, outcome: 'refused' };
    }
    // A server whose clock was set sends nothing to the log.
    if (/clock of this server differs/.test(`${report.unpack} ${word}`)) return null;
    // A server that was stopped for longer than a push may take refuses it when it goes on.
    const isLate = report.status === 200 && /took too long to commit/.test(report.unpack ?? '');
    assert.ok(isLate || report.status === 503, `${report.status} ${report.unpack} ${word} ${report.remote}`);
    return { ...about, outcome: 'unknown' };
  } catch (error) {
    if (!isConnectionFault(error)) throw error;
    return wasNeverSent(error) ? null : { ...about, outcome: 'unknown' };
  }
}

/** Returns null when there was no answer or a 503: such a read tells nothing about the value. */
export async function readRegister(target: WireTarget, over: 'git' | 'rest'): Promise<Answer | null> {
  try {
    if (over === 'git') return { kind: 'read', value: (await wireRefs(target)).get(REGISTER) ?? null };
    const { strata, account, name } = target;
    const answer = await api(strata, account.token, 'GET', `/v1/repos/${account.username}/${name}/branches`);
    if (answer.status === 503) return null;
    assert.equal(answer.status, 200, answer.text);
    const { branches } = answer.body as { branches: { commit: { hexsha: string } }[] };
    return { kind: 'read', value: branches[0]?.commit.hexsha ?? null };
  } catch (error) {
    const unavailable = error instanceof Error && error.message.startsWith('ls-refs answered 503');
    if (!isConnectionFault(error) && !unavailable) throw error;
    return null;
  }
}

/**
 * fetch reports every broken connection as `TypeError`, with the reason as its cause, and a timeout as `TimeoutError`.
 */
export function isConnectionFault(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError');
}

function wasNeverSent(error: unknown): boolean {
  const cause = error instanceof TypeError ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED';
}
