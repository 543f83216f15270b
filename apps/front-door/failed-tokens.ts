/**
 * Throttles failed tokens by the address that they come from.
 *
 * Invariants: a valid token passes, whatever came from its address. So a limit only changes how a token is looked up
 * that this node does not know: all that arrive during a lookup are looked up together, in the read model, and one that
 * does not exist costs no read of the log. Memory is bounded.
 */
import { LRUCache } from 'lru-cache';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccessTokenId } from '../../core/kernel/ids.ts';
import { isIpv6, networkOf, wideNetworkOf } from '../../core/kernel/network.ts';
import { countedCache, entriesAtMost } from '../../core/kernel/shown-caches.ts';
import type { KnownTokens } from '../../core/ports/access-token-lists.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { ReadSecret } from '../../core/use-cases/callers/authenticate.ts';
import { createRate } from './rates.ts';

/**
 * Failed tokens within a minute, counted by each node: of one network, of a /48 of IPv6, and of all. Beyond it a token
 * that the node does not know is looked up together with others, and one that does not exist costs no read of the log.
 */
export const FAILED_TOKENS_PER_MINUTE_MAX = 60;
export const FAILED_TOKENS_PER_MINUTE_WIDE_MAX = 300;
export const FAILED_TOKENS_PER_MINUTE_NODE_MAX = 1_000;
/** Unknown tokens that are looked up together after too many failed ones. */
export const TOKENS_LOOKED_UP_MAX = 1_000;

/** The ids of the tokens that may have a secret. */
type TokenIds = Pick<ReadSecret, 'derived' | 'named'>;

export interface FailedTokens {
  /**
   * Returns whether the token is worth a read of the log, and if not, when its sender may fail again. No promise for a
   * token that was valid here before, as nearly all are.
   */
  judge(ids: TokenIds, address: string, position: LogPosition): Judgement | Promise<Judgement>;
  /** Notes that the token was valid. */
  passed(ids: TokenIds): void;
  failed(address: string): void;
}

export type Judgement =
  | { readonly worth: true }
  /** `waitSeconds` is null for who has not failed too often, while others do. */
  | { readonly worth: false; readonly waitSeconds: number | null };

const WORTH: Judgement = { worth: true };
/** Tokens that are known to exist. Internal: a forgotten token is looked up again. */
const KNOWN_MAX = 50_000;

const NODE = 'node';

export function createFailedTokens(options: {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly tokens: KnownTokens;
}): FailedTokens {
  const { clock } = options;
  const rateOf = (timesMax: number) => createRate({ timesMax, spanMs: 60_000, clock });
  const ofNetwork = rateOf(FAILED_TOKENS_PER_MINUTE_MAX);
  const ofWide = rateOf(FAILED_TOKENS_PER_MINUTE_WIDE_MAX);
  const ofNode = rateOf(FAILED_TOKENS_PER_MINUTE_NODE_MAX);
  /**
   * Secrets that were valid once, each by the id that only it has: at most as many reads of the log as there are
   * tokens.
   */
  const known = countedCache('known_tokens', 'entries', new LRUCache<AccessTokenId, true>(entriesAtMost(KNOWN_MAX)));
  const isToken = createLookups(options.tokens);
  const isAnyToken = async ({ derived, named }: TokenIds, position: LogPosition): Promise<boolean> => {
    const ids = named === null ? [derived] : [derived, named];
    return (await Promise.all(ids.map((id) => isToken(id, position)))).includes(true);
  };
  const judgeUnknown = async (ids: TokenIds, address: string, position: LogPosition): Promise<Judgement> => {
    const ofSender = ofNetwork.waitSeconds(networkOf(address));
    const waitSeconds = ofSender ?? (isIpv6(address) ? ofWide.waitSeconds(wideNetworkOf(address)) : null);
    if (waitSeconds === null && ofNode.waitSeconds(NODE) === null) return WORTH;
    return (await isAnyToken(ids, position)) ? WORTH : { worth: false, waitSeconds };
  };
  return {
    judge: (ids, address, position) => (known.get(ids.derived) === true ? WORTH : judgeUnknown(ids, address, position)),
    passed({ derived }) {
      if (!known.has(derived)) known.set(derived, true);
    },
    failed(address) {
      ofNetwork.take(networkOf(address));
      if (isIpv6(address)) ofWide.take(wideNetworkOf(address));
      ofNode.take(NODE);
    },
  };
}

interface Lookup {
  readonly id: AccessTokenId;
  readonly position: LogPosition;
  readonly resolve: (isToken: boolean) => void;
  readonly reject: (cause: unknown) => void;
}

/** Looks tokens up one query at a time: the next one is for all that arrived in between. */
function createLookups(tokens: KnownTokens): (id: AccessTokenId, position: LogPosition) => Promise<boolean> {
  const waiting: Lookup[] = [];
  let running = false;
  const run = async (): Promise<void> => {
    running = true;
    for (;;) {
      const batch = waiting.splice(0, TOKENS_LOOKED_UP_MAX);
      const [first] = batch;
      if (first === undefined) break;
      const position = batch.reduce(
        (newest, lookup) => (lookup.position > newest ? lookup.position : newest),
        first.position,
      );
      const ids = [...new Set(batch.map(({ id }) => id))];
      try {
        const found = await tokens.tokensAmong(ids, position);
        for (const { id, resolve } of batch) resolve(found.has(id));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    running = false;
  };
  return (id, position) =>
    new Promise((resolve, reject) => {
      waiting.push({ id, position, resolve, reject });
      if (!running) run().catch(reject);
    });
}
