/**
 * The differences from git that this service means. Whatever else differs is a fault.
 *
 * Invariants: at most ten rows, and none that explains an outage or a cut connection: `judge` does not ask for
 * these.
 */
import { isDeepStrictEqual } from 'node:util';
import { ZERO } from '../support/git-wire.ts';
import type { Observation } from './answers.ts';
import type { Case } from './cases.ts';

export interface Observed {
  readonly git: Observation;
  readonly ours: Observation;
  /** The text of the ERR packet by which this service refused; empty if it did not. */
  readonly told: string;
}

export interface MeantDifference {
  readonly name: string;
  /** Whether the row explains the whole of a difference. */
  explains(given: Case, observed: Observed): boolean;
}

/** What git serves and this service refuses with these words. */
function refusedAs(name: string, words: RegExp): MeantDifference {
  return {
    name,
    explains: (_, { git, ours, told }) =>
      git['outcome']?.[0] === 'served' && ours['outcome']?.[0] === 'refused' && words.test(told),
  };
}

const NO_REFS = `${ZERO} capabilities^{}`;

export const MEANT: readonly MeantDifference[] = [
  // No other reader of the same bytes can then find a second request in them.
  refusedAs('a body that holds more than one request', /^the body holds more than one request/),
  refusedAs(
    'an id or a number in a form that git does not write',
    /^(protocol error, expected to get object ID|expected SHA1 object|invalid shallow line|Invalid deepen: (deepen-since$|\S+ ([+-]|0\d|\d{11}|2147483648$)))/,
  ),
  // In versions 0 and 1 git passes over it, and answers with ids that such a client does not understand.
  refusedAs('a client that asks for SHA-256', /^unsupported object format/),
  // Without a want git does not look at them.
  refusedAs('bounds that contradict each other, of a request that wants nothing', /^deepen and deepen-since/),
  // Git takes these though it did not offer them.
  refusedAs('what is not offered', /^(invalid command '(object-info|bundle-uri)'|unexpected line: 'packfile-uris )/),
  // Git ends at such a packet as if it were the last, or does not read on after a NUL.
  refusedAs('a packet that is no text, in version 0 and 1', /^a line is not valid UTF-8/),
  {
    // Git does not read on: what follows the flush is no packet.
    name: 'bytes behind a request that wants nothing, in version 0 and 1',
    explains: (_, { git, ours, told }) =>
      git['outcome']?.[0] === 'served' &&
      ours['outcome']?.[0] === 'refused' &&
      git['objects']?.length === 0 &&
      git['texts']?.length === 0 &&
      told === 'the request ends too early',
  },
  {
    // Git does so since 2.41.
    name: 'the capabilities of an empty repository, in version 0 and 1',
    explains({ repository }, { git, ours }) {
      const others = ours['texts']?.filter((text) => text !== NO_REFS);
      return repository === 'empty' && isDeepStrictEqual({ ...ours, texts: others }, git);
    },
  },
];
