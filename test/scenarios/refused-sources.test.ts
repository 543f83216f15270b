/** An operator finds in the log who guesses tokens, without an address in it. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { admin, startStrata } from '../support/strata.ts';

test('lines of refused requests name their source as strata-admin names the address, and no other line does', async (context) => {
  const strata = await startStrata(context, { env: { STRATA_TRUSTED_PROXIES: '127.0.0.1,::1' } });
  const guess = (target: string, address: string) =>
    fetch(strata.url + target, { headers: { Authorization: 'Bearer guessed', 'X-Forwarded-For': address } });
  const addresses = ['203.0.113.7', '2001:db8:1:2::7', '2001:db8:1:2:ffff::8', '198.51.100.1'];
  for (const address of addresses) assert.equal((await guess('/v1/repositories', address)).status, 401);
  assert.equal((await guess('/r/a/b.git/info/refs?service=git-upload-pack', '203.0.113.7')).status, 401);
  assert.equal((await guess('/v1/openapi.json', '203.0.113.7')).status, 200);

  const lines = strata
    .log()
    .split('\n')
    .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : [])) as readonly {
    readonly status?: number;
    readonly source?: string;
  }[];
  const sources = lines.filter(({ status }) => status === 401).map(({ source }) => source);
  const named = async (address: string) => {
    const { source } = (await admin(strata, ['log-source', '--address', address])) as { readonly source: string };
    return source;
  };
  const [first, second, third] = [
    await named('203.0.113.7'),
    await named('2001:db8:1:2::ffff'),
    await named('198.51.100.1'),
  ];
  assert.match(first, /^[0-9a-f]{16}$/);
  assert.equal(new Set([first, second, third]).size, 3);
  assert.deepEqual(sources, [first, second, second, third, first]);
  assert.ok(lines.every(({ status, source }) => status === 401 || source === undefined));
  assert.ok(addresses.every((address) => !strata.log().includes(address)));
});
