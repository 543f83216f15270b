/**
 * The kinds of inputs, how often each is made, and how each is sent.
 *
 * Invariants: seed, index and scene decide an input and its sending, so that `--replay` sends the same again.
 */
import { createDice, type Dice } from '../support/seeded.ts';
import { advertisement, fetchV0, fetchV2, lsRefs, push } from './git-inputs.ts';
import { type Draft, mutateHead, requestBytes } from './heads.ts';
import type { Making, Scene } from './making.ts';
import { restInput } from './rest-inputs.ts';
import { formInput, pageInput } from './site.ts';

export interface Kind {
  readonly name: string;
  /** How often it is made, beside the others. */
  readonly weight: number;
  readonly make: (making: Making) => Draft;
}

export const KINDS: readonly Kind[] = [
  { name: 'advertisements', weight: 14, make: advertisement },
  { name: 'ls-refs', weight: 16, make: lsRefs },
  { name: 'fetches, version 2', weight: 12, make: fetchV2 },
  { name: 'fetches, version 0 and 1', weight: 8, make: fetchV0 },
  { name: 'pushes', weight: 3, make: push },
  { name: 'REST', weight: 22, make: restInput },
  { name: 'pages', weight: 3, make: pageInput },
  { name: 'forms', weight: 2, make: formInput },
];
/** Parsed in the fuzzing process; not sent. */
export const FILES = { name: 'tars and exported logs', weight: 20 } as const;

/**
 * The share of inputs of all kinds whose head is changed; the rest of the request is then as a client sends it, half
 * the time.
 */
const HEAD_MUTATED_SHARE = 0.12;
const UNCHANGED_SHARE = 0.1;

/** How an input is sent: whole, or up to a byte, and what follows `after` the pause. */
export interface Sending {
  /** Null: all bytes together. */
  readonly cutAt: number | null;
  readonly pauseMs: number;
  readonly after: 'wait' | 'end' | 'destroy';
}

export interface Input {
  readonly index: number;
  readonly kind: string;
  readonly account: string;
  readonly bytes: Buffer;
  readonly isHead: boolean;
  readonly sending: Sending;
}

/** The dice of one input. */
export function diceOf(seed: number, index: number): Dice {
  // Seeds that follow one another must not give series that do.
  return createDice(Math.imul(seed ^ 0x9e37_79b9, 0x85eb_ca6b) ^ Math.imul(index + 1, 0xc2b2_ae35));
}

const WEIGHTS = [...KINDS, FILES].reduce((sum, { weight }) => sum + weight, 0);

/** Makes an input to send; null for one that is parsed in this process. */
export function inputOf(scene: Scene, seed: number, index: number, dice: Dice = diceOf(seed, index)): Input | null {
  let left = dice.below(WEIGHTS);
  const kind = KINDS.find(({ weight }) => (left -= weight) < 0);
  if (kind === undefined) return null;
  const isHeadMutated = dice.chance(HEAD_MUTATED_SHARE);
  const isMutated = isHeadMutated ? dice.chance(0.5) : !dice.chance(UNCHANGED_SHARE);
  const account = dice.pick(scene.accounts);
  const draft = kind.make({ scene, account, dice, isMutated });
  const whole = requestBytes(dice, draft);
  const bytes = isHeadMutated ? mutateHead(dice, whole) : whole;
  const name = isHeadMutated ? 'heads' : kind.name;
  const isHead = bytes.subarray(0, 5).toString('latin1') === 'HEAD ';
  return { index, kind: name, account: account.username, bytes, isHead, sending: sendingOf(dice, bytes.length) };
}

function sendingOf(dice: Dice, length: number): Sending {
  const cutAt = dice.below(length + 1);
  const pauseMs = dice.chance(0.5) ? 0 : dice.below(dice.chance(0.95) ? 20 : 1_000);
  const chosen = dice.below(100);
  if (chosen < 55) return { cutAt: null, pauseMs: 0, after: 'wait' };
  if (chosen < 68) return { cutAt, pauseMs, after: 'wait' };
  if (chosen < 78) return { cutAt, pauseMs, after: 'end' };
  if (chosen < 90) return { cutAt, pauseMs, after: 'destroy' };
  return { cutAt: null, pauseMs, after: 'destroy' };
}
