/** The keys of issuers: at which addresses they are fetched, and how many are kept. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createHttpEgress } from '../../../adapters/http-egress/egress.ts';
import {
  createIssuerKeys,
  ISSUER_FETCH_SPAN_MS,
  ISSUER_FETCHES_AT_ONCE_MAX,
  ISSUER_FETCHES_PER_ACCOUNT_MAX,
  ISSUER_RSA_MODULUS_LENGTH_MAX,
  ISSUERS_KEPT_MAX,
} from '../../../adapters/jose/issuer-keys.ts';
import type { OutgoingRequest, OutgoingRequests } from '../../../core/ports/outgoing-requests.ts';
import { newAccount } from '../../support/events.ts';
import { createTestClock } from '../../support/test-clock.ts';

const EC_KEY = { kty: 'EC', kid: 'ec' };

/** Answers as an issuer does at every address, and counts the requests. */
function anyIssuer(keys: readonly unknown[] = [EC_KEY]) {
  const requests: string[] = [];
  const send = async ({ url }: OutgoingRequest) => {
    requests.push(url);
    const issuer = url.replace(/\/(\.well-known|keys).*$/, '');
    const body = url.endsWith('/keys') ? { keys } : { issuer, jwks_uri: `${issuer}/keys` };
    const text = new TextEncoder().encode(JSON.stringify(body));
    return { outcome: 'answered', status: 200, body: text, extent: 'whole' } as const;
  };
  return { requests, outgoing: { send } };
}

describe('The keys of an issuer', () => {
  // The attack: an issuer whose name led to a public address when the rule was saved, and leads inside now.
  test('are not fetched at a private address, whatever the name led to before', async () => {
    let address = '93.184.216.34';
    const outgoing = createHttpEgress({
      ownUrls: ['https://strata.example'],
      privateAllowed: false,
      lookup: async () => ({ addresses: [address] }),
    });
    assert.equal(await outgoing.check('https://issuer.example'), null);
    for (address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', 'fd00:ec2::254']) {
      const keys = createIssuerKeys({ outgoing, clock: createTestClock() });
      const fetched = await keys.keysOf(newAccount(), 'https://issuer.example', 'one');
      assert.deepEqual(fetched, { fault: 'issuer-unreachable', found: 'address-not-public' }, address);
    }
  });

  test('are kept for as many issuers as the limit, the one that was used last longest', async () => {
    const { requests, outgoing } = anyIssuer();
    const keys = createIssuerKeys({ outgoing, clock: createTestClock() });
    const read = (n: number) => keys.keysOf(newAccount(), `https://${n}.example`, 'ec');
    for (let n = 0; n < ISSUERS_KEPT_MAX; n += 1) await read(n);
    await read(0);
    assert.equal(requests.length, 2 * ISSUERS_KEPT_MAX);
    await read(ISSUERS_KEPT_MAX);
    await read(0);
    assert.equal(requests.length, 2 * ISSUERS_KEPT_MAX + 2, 'the one that was used again is still kept');
    await read(1);
    assert.equal(requests.length, 2 * ISSUERS_KEPT_MAX + 4, 'the oldest gave way');
  });

  // The attack: whoever can end the connection of an issuer cuts its list of keys where it is still JSON.
  test('are not read from an answer that broke off, or was not read to its end', async () => {
    for (const [extent, fault, found] of [
      ['cut', 'issuer-unreachable', 'answer-cut'],
      ['bounded', 'issuer-answer-invalid', 'too large'],
    ] as const) {
      const { outgoing } = anyIssuer();
      const send = async (request: OutgoingRequest) => ({ ...(await outgoing.send(request)), extent });
      const keys = createIssuerKeys({ outgoing: { send }, clock: createTestClock() });
      assert.deepEqual(await keys.keysOf(newAccount(), 'https://issuer.example', 'ec'), { fault, found });
    }
  });

  test('are asked for within the time for a document, and are not there when that is over', async () => {
    const spans: number[] = [];
    const { outgoing } = anyIssuer();
    const slow: Pick<OutgoingRequests, 'send'> = {
      send: async (request) => {
        spans.push(request.spanMs);
        if (spans.length <= 2) return outgoing.send(request);
        return { outcome: 'failed', failure: 'timed-out', status: null, detail: null };
      },
    };
    const keys = createIssuerKeys({ outgoing: slow, clock: createTestClock() });
    assert.ok('set' in (await keys.keysOf(newAccount(), 'https://quick.example', 'ec')));
    const fetched = await keys.keysOf(newAccount(), 'https://slow.example', 'ec');
    assert.ok('fault' in fetched && fetched.fault === 'issuer-unreachable');
    assert.deepEqual(spans, Array(3).fill(ISSUER_FETCH_SPAN_MS));
  });

  // The attack: keys with which a single verification takes seconds, or that are no public keys.
  test('are only those whose use is cheap and that are public', async () => {
    const rsa = (length: number, e = 'AQAB') => ({ kty: 'RSA', kid: `${length} ${e}`, n: 'x'.repeat(length), e });
    const good = [rsa(ISSUER_RSA_MODULUS_LENGTH_MAX), rsa(342, 'AQABAQAB'), EC_KEY, { kty: 'OKP', kid: 'okp' }];
    const bad = [rsa(ISSUER_RSA_MODULUS_LENGTH_MAX + 1), rsa(342, 'AQABAQABA'), { kty: 'oct', k: 'x' }, 5, null, {}];
    const { outgoing } = anyIssuer([...bad.slice(0, 3), ...good, ...bad.slice(3)]);
    const keys = createIssuerKeys({ outgoing, clock: createTestClock() });
    const fetched = await keys.keysOf(newAccount(), 'https://issuer.example', undefined);
    assert.ok('set' in fetched);
    assert.deepEqual(fetched.set.keys, good);
  });

  // The attack: many accounts whose issuers hang take every connection that the service has.
  test('are fetched by a bounded number of concurrent requests, in all and for one account', async () => {
    let running = 0;
    let most = 0;
    const waiting: (() => void)[] = [];
    const { outgoing } = anyIssuer();
    const held: Pick<OutgoingRequests, 'send'> = {
      send: async (request) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise<void>((resolve) => waiting.push(resolve));
        running -= 1;
        return outgoing.send(request);
      },
    };
    const release = async (all: Promise<unknown>): Promise<void> => {
      let isDone = false;
      const done = all.then(() => {
        isDone = true;
      });
      while (!isDone) {
        for (const go of waiting.splice(0)) go();
        await new Promise((resolve) => setImmediate(resolve));
      }
      await done;
    };
    const keys = createIssuerKeys({ outgoing: held, clock: createTestClock() });
    const account = newAccount();
    await release(Promise.all(Array.from({ length: 9 }, (_, n) => keys.keysOf(account, `https://${n}.example`, 'ec'))));
    assert.equal(most, ISSUER_FETCHES_PER_ACCOUNT_MAX);
    most = 0;
    await release(
      Promise.all(
        Array.from({ length: 2 * ISSUER_FETCHES_AT_ONCE_MAX }, (_, n) =>
          keys.keysOf(newAccount(), `https://more-${n}.example`, 'ec'),
        ),
      ),
    );
    assert.equal(most, ISSUER_FETCHES_AT_ONCE_MAX);
  });
});
