/**
 * What one case asks of both sides: commands of a real client, or one request of made packets.
 *
 * Invariants: a case holds all that it does, so that a printed case can be read without the program that made it.
 */
import { inspect } from 'node:util';
import { DELIMITER, FLUSH, packet } from '../support/git-wire.ts';
import type { RepositoryName } from './repository.ts';

/** Commands of git, in a new folder. `URL` stands for the repository's address. */
export interface ClientCase {
  readonly kind: 'client';
  readonly repository: RepositoryName;
  readonly protocol: 0 | 1 | 2;
  readonly steps: readonly (readonly string[])[];
}

/** The text of a packet, or bytes that are no data packet. */
export type Line = string | { readonly raw: string };

export interface RequestCase {
  readonly kind: 'request';
  readonly repository: RepositoryName;
  /** The header `Git-Protocol`; null: none is sent. */
  readonly protocol: string | null;
  /** Below the repository, with its query. */
  readonly target: string;
  /** Null for a GET. */
  readonly lines: readonly Line[] | null;
}

export type Case = ClientCase | RequestCase;

export const FLUSH_LINE: Line = { raw: FLUSH.toString() };
export const DELIMITER_LINE: Line = { raw: DELIMITER.toString() };

export function bodyOf(lines: readonly Line[]): Buffer {
  return Buffer.concat(lines.map((line) => (typeof line === 'string' ? packet(line) : Buffer.from(line.raw))));
}

const PACKETS_SHOWN_MAX = 60;

export function shown(given: Case): string {
  if (given.kind === 'client') {
    const commands = given.steps.map(
      (step) => `git -c protocol.version=${given.protocol} ${step.map(quoted).join(' ')}`,
    );
    return [`${given.repository}.git is URL`, ...commands].join('\n');
  }
  const method = given.lines === null ? 'GET' : 'POST';
  const packets = (given.lines ?? []).map((line) => (typeof line === 'string' ? inspect(line) : line.raw));
  const protocol = given.protocol === null ? 'no Git-Protocol' : `Git-Protocol: ${given.protocol}`;
  const more = packets.length > PACKETS_SHOWN_MAX ? [`and ${packets.length - PACKETS_SHOWN_MAX} more`] : [];
  const first = `${method} ${given.repository}.git/${given.target} with ${protocol}`;
  return [first, ...packets.slice(0, PACKETS_SHOWN_MAX), ...more].join('\n');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./~*-]+$/.test(word) ? word : `'${word}'`;
}

/** The case without some of its parts. */
export function* smallerCases(given: Case): Generator<Case> {
  if (given.kind === 'request') {
    for (const lines of withoutPart(given.lines ?? [])) yield { ...given, lines };
    return;
  }
  for (const steps of withoutPart(given.steps)) if (steps.length > 0) yield { ...given, steps };
  for (const [at, step] of given.steps.entries()) {
    const [command = '', ...options] = step;
    for (const fewer of withoutPart(options)) {
      // Without its address a command would ask the folder that it runs in.
      if (!step.includes('URL') || fewer.includes('URL')) {
        yield { ...given, steps: given.steps.with(at, [command, ...fewer]) };
      }
    }
  }
}

/** The list without a part of it: halves first, then quarters, at last each item. */
function* withoutPart<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let size = Math.ceil(items.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < items.length; at += size) yield items.toSpliced(at, size);
  }
}
