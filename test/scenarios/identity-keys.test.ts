/** The keys of identity tokens on real servers: two that begin at the same time, a kill, and `strata-admin`. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { admin, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Listed {
  readonly generation: number;
  readonly signing: boolean;
  readonly keys: readonly { readonly kid: string; readonly alg: string }[];
}

async function publicKids({ url }: Strata): Promise<readonly string[]> {
  const answer = await fetch(`${url}/.well-known/jwks.json`);
  assert.equal(answer.status, 200);
  const text = await answer.text();
  // The attack: a private member of a key (RFC 7518, sections 6.2.2 and 6.3.2) among the public ones.
  assert.doesNotMatch(text, /"(d|p|q|dp|dq|qi|oth|k)":/);
  return (JSON.parse(text) as { keys: readonly { kid: string }[] }).keys.map(({ kid }) => kid);
}

describe('The keys of identity tokens', () => {
  test('are the same on two nodes that need them at the same time, outlive a kill, and are replaced by an operator', async (context) => {
    const shared = await sharedParts(context);
    const nodes = [await startNode(context, shared), await startNode(context, shared)] as const;
    const [first, second] = await Promise.all(nodes.map(publicKids));
    assert.equal(first?.length, 2);
    assert.deepEqual(second, first);
    const issuer = await fetch(`${nodes[0].url}/.well-known/openid-configuration`);
    assert.equal((await issuer.json()).jwks_uri, `${nodes[0].url}/.well-known/jwks.json`);

    const { signs_from: signsFrom } = (await admin(nodes[0], ['identity-keys', 'rotate'])) as { signs_from: string };
    assert.ok(Date.parse(signsFrom) > Date.now() + 9 * 60_000);
    const { sets } = (await admin(nodes[0], ['identity-keys', 'list'])) as { sets: readonly Listed[] };
    assert.deepEqual(
      sets.map(({ generation, signing }) => [generation, signing]),
      [
        [1, true],
        [2, false],
      ],
    );
    const again = await nodes[0].restart();
    const kids = sets.flatMap(({ keys }) => keys.map(({ kid }) => kid));
    assert.deepEqual(await publicKids(again), kids);
    assert.deepEqual(kids.slice(0, 2), first);
    for (const server of [nodes[1], again]) assert.doesNotMatch(server.log(), /"d"|PRIVATE/);
  });
});
