/** How the line to Temporal is secured, as the SDK takes it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineOptions } from '../../../workflows/temporal/connection-options.ts';

const [ca, cert, key] = ['ca', 'cert', 'key'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
const address = 'temporal:7233';

test('a line is in the clear, and carries no key, unless TLS is asked for', () => {
  assert.deepEqual(lineOptions({ address }), { address, tls: null });
  assert.deepEqual(lineOptions({ address, tls: null, apiKey: 'key' }), { address, tls: null });
});

test('TLS trusts what the machine does, or an authority of its own, and shows its certificate where it has one', () => {
  assert.deepEqual(lineOptions({ address, tls: { ca: null, client: null }, apiKey: 'key' }), {
    ...{ address, apiKey: 'key' },
    tls: {},
  });
  assert.deepEqual(lineOptions({ address, tls: { ca, client: { cert, key } }, apiKey: null }), {
    address,
    tls: { serverRootCACertificate: ca, clientCertPair: { crt: cert, key } },
  });
});
